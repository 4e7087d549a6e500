"""
Where hosts keep their transcripts (formats page, the "Where" of each).

Order: what the configuration says; else the host's own environment variable, a blank one counting as unset; else the
defaults of the platform (bugs B104). Nothing is asked of the disk here but by `found`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from curatord.core.cheap import dataclass
from curatord.core.settings import HostName, SourceSettings

__all__ = ["Place", "found", "places"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place of one host, absolute, and *why* it is this one."""

    host: HostName
    path: str
    why: str


def places(settings: SourceSettings, env: Mapping[str, str], *, home: Path) -> list[Place]:
    """
    Return the places of *settings*, most specific first, whether they exist or not; never none for a known host.

    Args:
        settings: Its *path*, where set, is the only place.
        env: The environment.
        home: Of the user whose agents are watched.
    """
    if settings.path is not None:
        return [Place(host=settings.host, path=settings.path, why="configured")]
    return DEFAULTS[settings.host](env, home)


def found(host: HostName, env: Mapping[str, str], *, home: Path) -> list[Place]:
    """Return the default places of *host* that exist."""
    return [place for place in places(SourceSettings(host=host), env, home=home) if os.path.exists(place.path)]


def _variable(env: Mapping[str, str], name: str, home: Path) -> str | None:
    value = env.get(name, "").strip()
    if not value:
        return None
    if value == "~" or value.startswith("~/"):
        value = str(home) + value[1:]
    return os.path.abspath(value)


def _simple(host: HostName, variable: str | None, below_variable: str, *defaults: str) -> Defaults:
    """Return the rule of a host with one variable for its home and default folders below the user's home."""

    def rule(env: Mapping[str, str], home: Path) -> list[Place]:
        value = _variable(env, variable, home) if variable else None
        if value is not None:
            path = os.path.join(value, below_variable) if below_variable else value
            return [Place(host=host, path=path, why=f"${variable}")]
        return [Place(host=host, path=str(home / default), why="default") for default in defaults]

    return rule


def _claude_code(env: Mapping[str, str], home: Path) -> list[Place]:
    value = _variable(env, "CLAUDE_CONFIG_DIR", home)
    if value is not None:
        return [Place(host="claude-code", path=os.path.join(value, "projects"), why="$CLAUDE_CONFIG_DIR")]
    # Some old installations have the second; where both are there, both are read, and what is in both counts once.
    first = home / ".claude" / "projects"
    second = home / ".config" / "claude" / "projects"
    chosen = [first, second] if os.path.isdir(second) else [first]
    return [Place(host="claude-code", path=str(path), why="default") for path in chosen]


def _hermes(env: Mapping[str, str], home: Path) -> list[Place]:
    value = _variable(env, "HERMES_HOME", home)
    top = Path(value) if value is not None else home / ".hermes"
    why = "$HERMES_HOME" if value is not None else "default"
    found = [Place(host="hermes", path=str(top), why=why)]
    profiles = top / "profiles"
    # What this user may not look into is no profile of theirs; asking must not end the scan of everything else.
    if os.path.isdir(profiles) and os.access(profiles, os.R_OK | os.X_OK):
        found += [
            Place(host="hermes", path=str(folder), why=f"profile of {why}")
            for folder in sorted(profiles.iterdir())
            if os.path.isdir(folder)
        ]
    return found


def _pi(env: Mapping[str, str], home: Path) -> list[Place]:
    for variable, below in (("PI_CODING_AGENT_SESSION_DIR", ""), ("PI_CODING_AGENT_DIR", "sessions")):
        value = _variable(env, variable, home)
        if value is not None:
            return [Place(host="pi", path=os.path.join(value, below) if below else value, why=f"${variable}")]
    first = home / ".pi" / "agent" / "sessions"
    fork = home / ".omp" / "agent" / "sessions"  # oh-my-pi
    chosen = [first, fork] if os.path.isdir(fork) else [first]
    return [Place(host="pi", path=str(path), why="default") for path in chosen]


def _qwen_code(env: Mapping[str, str], home: Path) -> list[Place]:
    for variable in ("QWEN_RUNTIME_DIR", "QWEN_HOME"):
        value = _variable(env, variable, home)
        if value is not None:
            return [Place(host="qwen-code", path=value, why=f"${variable}")]
    return [Place(host="qwen-code", path=str(home / ".qwen"), why="default")]


def _opencode(env: Mapping[str, str], home: Path) -> list[Place]:
    data = _variable(env, "XDG_DATA_HOME", home)
    folder = Path(data) / "opencode" if data else home / ".local" / "share" / "opencode"
    name = env.get("OPENCODE_DB", "").strip()
    if name:
        return [Place(host="opencode", path=str(folder / os.path.expanduser(name)), why="$OPENCODE_DB")]
    return [Place(host="opencode", path=str(folder), why="$XDG_DATA_HOME" if data else "default")]


Defaults = Callable[[Mapping[str, str], Path], list[Place]]

DEFAULTS: dict[HostName, Defaults] = {
    "claude-code": _claude_code,
    "hermes": _hermes,
    "codex": _simple("codex", "CODEX_HOME", "", ".codex"),
    "pi": _pi,
    "openclaw": _simple("openclaw", "OPENCLAW_STATE_DIR", "", ".openclaw", ".clawdbot", ".moltbot", ".moldbot"),
    "dsh": _simple("dsh", "DSH_HOME", "sessions", ".dsh/sessions"),
    "opencode": _opencode,
    "gemini-cli": _simple("gemini-cli", "GEMINI_CLI_HOME", ".gemini/tmp", ".gemini/tmp"),
    "qwen-code": _qwen_code,
    "copilot-cli": _simple("copilot-cli", "COPILOT_HOME", "", ".copilot"),
    "cursor": _simple("cursor", None, "", ".cursor"),
    "jsonl": lambda env, home: [],
}
