"""
The files as they stand in `systemd/` and `config/`, for reading and for copying by hand: made from made-up facts.

A test holds them equal to this, and writes them anew with `CURATORD_GOLDEN=rewrite`.
"""

from __future__ import annotations

from curatord.core.service.docker import compose, dockerfile
from curatord.core.service.facts import ServiceFacts
from curatord.core.service.launchd import agent
from curatord.core.service.systemd import system_unit, user_unit

__all__ = ["samples"]

_HOMES = (".agents", ".claude", ".codex", ".dsh", ".hermes", ".pi")
_TRANSCRIPTS = (
    ".claude/projects",
    ".codex/archived_sessions",
    ".codex/sessions",
    ".dsh/sessions",
    ".pi/agent/sessions",
)


def _facts(
    home: str, *, command: str, state_dir: str | None, config: str | None = None, user: str = ""
) -> ServiceFacts:
    return ServiceFacts(
        command=(command,),
        home=home,
        state_dir=state_dir,
        config=config,
        user=user,
        writable=tuple(f"{home}/{name}" for name in _HOMES),
        read_only=tuple(f"{home}/{name}" for name in _TRANSCRIPTS),
    )


def samples() -> dict[str, str]:
    """Return the text of each sample by its path in the repository."""
    person, mac = "/home/you", "/Users/you"
    container = "${AGENT_HOME:?}"
    beside = ServiceFacts(
        command=("curatord",),
        home=container,
        state_dir=f"{container}/.local/state/curatord",
        writable=(f"{container}/.claude",),
        read_only=(f"{container}/.claude/projects",),
    )
    return {
        "systemd/curatord.service": user_unit(
            _facts(person, command=f"{person}/.local/bin/curatord", state_dir=f"{person}/.local/state/curatord")
        ),
        "systemd/curatord-system.service": system_unit(
            _facts(
                "/home/agent",
                command="/usr/local/bin/curatord",
                state_dir=None,
                config="/etc/curatord/config.yaml",
                user="agent",
            )
        ),
        "config/launchd/curatord.plist": agent(
            _facts(mac, command=f"{mac}/.local/bin/curatord", state_dir=f"{mac}/Library/Application Support/curatord")
        ),
        "config/docker/Dockerfile": dockerfile(),
        "config/docker/compose.yaml": compose(beside),
    }
