"""
Names that a host answers to itself: who types or calls one of them never reaches a skill of that name.

Claude Code looks a `/name` up among its own commands first; the skills that it brings count as its own too. The list is
of names that its versions up to late 2026 have had, aliases and retired ones among them: a name that is free today and
was a command yesterday is one that people still type. A host's own list changes every few weeks, so this one is a net
with holes; what it catches is refused with its reason, and what it misses is a skill under an odd name.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["commands_of"]

_CLAUDE_CODE = """
    add-dir agents allowed-tools android approved-tools autofix-pr bashes batch branch btw bug checkpoint chrome
    claude-api clear color compact config context continue copy cost debug desktop diff doctor effort exit export
    extra-usage fast feedback fork heapdump help hooks ide init insights install-github-app install-slack-app ios
    keybindings login logout loop mcp memory mobile model new output-style passes permissions plan plugin plugins
    powerup pr-comments privacy-settings quit rate-limit-options release-notes reload-plugins remote-control
    remote-env rename reset resume review rewind sandbox schedule security-review settings setup-bedrock
    setup-vertex simplify skills stats status statusline stickers tasks team-onboarding teleport terminal-setup
    theme thinkback todos tui ultraplan ultrareview update upgrade usage vim voice web-setup
"""
_COMMANDS: Mapping[str, frozenset[str]] = {"claude-code": frozenset(_CLAUDE_CODE.split())}


def commands_of(host: str | None) -> frozenset[str]:
    """Return the names that *host* answers to itself; empty where none are known."""
    return _COMMANDS.get(host or "", frozenset())
