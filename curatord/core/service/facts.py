"""
What a service's files are made from: where things are on this machine, and for whom it works.

The same facts give all three kinds. A service manager starts with a bare environment (bugs B152), so every path here is
absolute and every variable that says where a host lives is carried over. Nothing here is a secret: keys come as
credentials or files, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname

from curatord.core.cheap import dataclass, field
from curatord.core.hosts import HOST_PLACES, set_variable
from curatord.core.service.needs import Need
from curatord.core.service.wide import wideness, within
from curatord.core.settings import Config, KeyRef
from curatord.errors import UsageError

__all__ = [
    "ServiceFacts",
    "carried_variables",
    "credentials_of",
    "innermost",
    "key_variables",
    "nameable",
    "read_only_folders",
    "writable_folders",
]

# Further variables by which hosts or this program find their places (`adapters.sources.places`, `config_file`).
_OTHER_VARIABLES = (
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "OPENCODE_DB",
    "PI_CODING_AGENT_SESSION_DIR",
    "QWEN_RUNTIME_DIR",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """
    Where things are; every path absolute, POSIX, with links resolved where a mount needs it.

    Attributes:
        command: How curatord is started, its absolute path first.
        home: Of the user whose agents it serves.
        state_dir: Where its state lies; None: the manager's own folder for it (the system form of systemd).
        config: The configuration file; None: it is looked for, or the defaults hold.
        user: Name of that user, for the forms that run as somebody.
        uid, gid: Of that user, for the form that knows no names.
        writable: Folders that a change of a library may touch.
        read_only: Folders with transcripts, prompts, keys. One may lie within a writable one, never the other way
            round.
        variables: Environment variables that say where a host lives, none of them secret.
        credentials: Names of the keys that the configuration takes as credentials.
        needs: Files and folders besides; what can be opened for them is among *writable* and *read_only*.
    """

    command: Sequence[str]
    home: str
    state_dir: str | None
    config: str | None = None
    user: str = ""
    uid: int = 1000
    gid: int = 1000
    writable: Sequence[str] = ()
    read_only: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    credentials: Sequence[str] = ()
    needs: Sequence[Need] = ()

    def __post_init__(self) -> None:
        """Refuse what no unit can name: a line break in a path would be a line of its own."""
        texts = (*self.command, self.home, *self.writable, *self.read_only, *self.variables.values())
        for text in (*texts, self.state_dir or "", self.config or "", self.user):
            nameable(text)


def nameable(text: str) -> None:
    """Raise `UsageError` where *text* cannot stand in a service's file."""
    if not text.isprintable() or any("\ud800" <= ch <= "\udfff" for ch in text):
        raise UsageError(
            f"{text!r} has characters that a service's file cannot hold", hint="rename the folder, or use a link to it"
        )


def carried_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of *environ* that say where hosts and configuration are, blank ones left out."""
    names = [*(name for places in HOST_PLACES for name in places.variables), *_OTHER_VARIABLES]
    found = ((name, set_variable(environ, name)) for name in dict.fromkeys(names))
    return {name: value for name, value in found if value is not None}


def _keys(config: Config) -> Iterable[KeyRef]:
    if config.llm is not None:
        for endpoint in (config.llm.primary, config.llm.fallback):
            if endpoint is not None and endpoint.api_key is not None:
                yield endpoint.api_key


def credentials_of(config: Config) -> tuple[str, ...]:
    """Return the names of the keys that come as credentials, each once."""
    return tuple(dict.fromkeys(key.name for key in _keys(config) if key.kind == "credential"))


def key_variables(config: Config) -> tuple[str, ...]:
    """Return the environment variables that hold keys, which a service does not see by itself."""
    return tuple(dict.fromkeys(key.name for key in _keys(config) if key.kind == "env"))


def writable_folders(libraries: Iterable[tuple[str, str]], *, home: str) -> tuple[str, ...]:
    """
    Return the folders to open for *libraries*, `(root, archive)` each with links resolved.

    The folder above a library, since each opened folder is a mount of its own, an archived skill is renamed, and a
    rename does not cross mounts; Hermes' schedules lie there too. Where that is too wide, library and archive are
    opened each by itself: moving is then a copy that is verified before the original goes.
    """
    wanted: list[str] = []
    for root, archive in libraries:
        above = dirname(root.rstrip("/"))
        opened = [above] if wideness(above, home, written=True) is None else [root, archive]
        if not any(within(archive, one) for one in opened):
            opened.append(archive)
        wanted += opened
    return innermost(wanted)


def read_only_folders(transcripts: Iterable[str], *, kept_open: Sequence[str]) -> tuple[str, ...]:
    """
    Return the folders of *transcripts* that can be closed and leave all of *kept_open* open.

    *kept_open* are libraries, archives and state. A home that holds both, a database beside the skills, stays open:
    that it is only read is curatord's own promise.
    """
    return innermost(folder for folder in transcripts if not any(within(kept, folder) for kept in kept_open))


def innermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Return *folders* in order of their names, without those that lie in another of them."""
    ordered = sorted(dict.fromkeys(folder.rstrip("/") or "/" for folder in folders))
    return tuple(one for one in ordered if not any(one != other and within(one, other) for other in ordered))
