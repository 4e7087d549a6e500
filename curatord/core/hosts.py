"""
Where agent hosts keep their homes and their skills: a table, and pure questions to it.

A host's home is what its own environment variable says (blank counts as unset, bugs B104), else its default below the
user's home. Which of these exist on a machine is asked by `adapters.discover`; where the transcripts lie within a home
is the readers' knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import join, normpath
from typing import NamedTuple

from curatord.core.settings import HostName

__all__ = [
    "HOST_FOLDERS",
    "HOST_PLACES",
    "HostPlaces",
    "LibraryPlace",
    "host_home",
    "host_of_path",
    "library_places",
    "set_variable",
]


class HostPlaces(NamedTuple):
    """
    One host's places.

    Attributes:
        library: What its library is called in a configuration that curatord makes.
        variables: Environment variables that name its home, first set one wins.
        below: What the program adds to the variable's folder (Gemini CLI: `.gemini`).
        home: Its home, relative to the user's.
        skills: Its skills folders: relative to its home, or to the user's where they begin with `~/`.
        others: Former names of its home, and homes of its forks, relative to the user's.
    """

    host: HostName
    library: str
    variables: tuple[str, ...]
    home: str
    below: str = ""
    skills: tuple[str, ...] = ("skills",)
    others: tuple[str, ...] = ()


class LibraryPlace(NamedTuple):
    """A folder that is a skill library if it exists. *host* None: several hosts share it."""

    name: str
    path: str
    host: HostName | None


HOST_PLACES: tuple[HostPlaces, ...] = (
    HostPlaces(
        host="claude-code",
        library="claude",
        variables=("CLAUDE_CONFIG_DIR",),
        home=".claude",
        others=(".config/claude",),
    ),
    HostPlaces(host="hermes", library="hermes", variables=("HERMES_HOME",), home=".hermes"),
    HostPlaces(host="codex", library="codex", variables=("CODEX_HOME",), home=".codex"),
    HostPlaces(host="pi", library="pi", variables=("PI_CODING_AGENT_DIR",), home=".pi/agent", others=(".omp/agent",)),
    HostPlaces(
        host="openclaw",
        library="openclaw",
        variables=("OPENCLAW_STATE_DIR",),
        home=".openclaw",
        skills=("skills", "workspace/skills"),
        others=(".clawdbot", ".moltbot", ".moldbot"),
    ),
    HostPlaces(host="dsh", library="dsh", variables=("DSH_HOME",), home=".dsh"),
    HostPlaces(
        host="opencode",
        library="opencode",
        variables=(),
        home=".local/share/opencode",
        skills=("~/.config/opencode/skills", "~/.config/opencode/skill"),
    ),
    HostPlaces(host="gemini-cli", library="gemini", variables=("GEMINI_CLI_HOME",), home=".gemini", below=".gemini"),
    HostPlaces(host="qwen-code", library="qwen", variables=("QWEN_HOME",), home=".qwen"),
    HostPlaces(host="copilot-cli", library="copilot", variables=("COPILOT_HOME",), home=".copilot"),
    HostPlaces(host="cursor", library="cursor", variables=(), home=".cursor", skills=("skills", "skills-cursor")),
)

SHARED_SKILLS = ".agents/skills"  # read by Codex, Gemini CLI, OpenCode, Cursor and others alike

# A folder in a path that gives a host away, the more special ones first; `.agents` is nobody's alone.
HOST_FOLDERS: tuple[tuple[str, HostName], ...] = (
    (".claude", "claude-code"),
    (".hermes", "hermes"),
    (".codex", "codex"),
    (".pi", "pi"),
    (".openclaw", "openclaw"),
    (".dsh", "dsh"),
    ("opencode", "opencode"),
    (".opencode", "opencode"),
    (".gemini", "gemini-cli"),
    (".qwen", "qwen-code"),
    (".copilot", "copilot-cli"),
    (".cursor", "cursor"),
)


def set_variable(environ: Mapping[str, str], *names: str) -> str | None:
    """Return the value of the first of *names* that is set and not blank, else None."""
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)


def host_home(places: HostPlaces, environ: Mapping[str, str], home: str | None) -> tuple[str, str] | None:
    """
    Return the host's home and why it is that one (`HERMES_HOME` or `default`); None without any home.

    *home* is the user's, absolute. A variable's value may begin with `~/`.
    """
    for name in places.variables:
        said = set_variable(environ, name)
        if said is not None:
            if said == "~" or said.startswith("~/"):
                if home is None:
                    continue
                said = home + said[1:]
            return normpath(join(said, places.below)), name
    if places.host == "opencode" and (data := set_variable(environ, "XDG_DATA_HOME")):
        return join(data, "opencode"), "XDG_DATA_HOME"
    return None if home is None else (join(home, places.home), "default")


def library_places(environ: Mapping[str, str], home: str | None) -> list[LibraryPlace]:
    """Return every default library folder of every host, hosts in table order, the shared one last."""
    found: list[LibraryPlace] = []
    for places in HOST_PLACES:
        base = host_home(places, environ, home)
        for index, folder in enumerate(places.skills):
            if folder.startswith("~/"):
                config = set_variable(environ, "XDG_CONFIG_HOME")
                if folder.startswith("~/.config/") and config:
                    path = join(config, folder.removeprefix("~/.config/"))
                elif home is not None:
                    path = join(home, folder[2:])
                else:
                    continue
            elif base is not None:
                path = join(base[0], folder)
            else:
                continue
            name = places.library if index == 0 else f"{places.library}-{index + 1}"
            found.append(LibraryPlace(name=name, path=path, host=places.host))
    if home is not None:
        found.append(LibraryPlace(name="agents", path=join(home, SHARED_SKILLS), host=None))
    return found


def host_of_path(path: str, environ: Mapping[str, str], home: str | None) -> HostName | None:
    """Return whose library or transcripts *path* holds: below a host's home, or by a telling folder name, else None."""
    best: tuple[int, HostName] | None = None
    for places in HOST_PLACES:
        base = host_home(places, environ, home)
        if base is not None and f"{path}/".startswith(f"{base[0]}/"):
            best = max(best or (0, places.host), (len(base[0]), places.host))
    if best is not None:
        return best[1]
    parts = path.split("/")
    return next((host for part in reversed(parts) for telling, host in HOST_FOLDERS if part == telling), None)
