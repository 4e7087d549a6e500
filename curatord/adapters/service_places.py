"""Where a service's folders and files really lie on this machine, for `core.service`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from curatord.adapters.sources.places import places
from curatord.adapters.sources.registry import open_source
from curatord.core.hosts import set_variable
from curatord.core.layout import archive_of, detect_layout
from curatord.core.service.facts import (
    ServiceFacts,
    carried_variables,
    credentials_of,
    innermost,
    read_only_folders,
    writable_folders,
)
from curatord.core.service.needs import Need, openable
from curatord.core.settings import Config, LibrarySettings

__all__ = ["command_words", "facts_of"]


def command_words(argv0: str, search_path: str | None) -> tuple[str, ...]:
    """
    Return how a service starts this very program: by the absolute path it was called by, else by the interpreter.

    Links are kept: the one that an installer puts into a `bin` folder outlives an upgrade, what it leads to may not.
    """
    name = os.path.basename(argv0)  # noqa: PTH119 - text
    if name == "curatord":
        found = argv0 if os.sep in argv0 else shutil.which(argv0, path=search_path)
        if found is not None and os.access(found, os.X_OK):
            return (os.path.abspath(found),)  # noqa: PTH100 - links are kept
    return (sys.executable, "-m", "curatord")


def facts_of(
    config: Config,
    environ: Mapping[str, str],
    *,
    command: Sequence[str],
    home: str,
    state_dir: str | None,
    user: str = "",
    uid: int = 1000,
    gid: int = 1000,
) -> ServiceFacts:
    """
    Return the facts of a configuration in force.

    Args:
        config: What is served.
        environ: The variables it was loaded with.
        command: Of `command_words`.
        home: Of the user whose agents are served.
        state_dir: Where the state will lie, None for the manager's own folder.
        user, uid, gid: Who it runs as.
    """
    real_home = os.path.realpath(home)
    roots = [_library(settings) for settings in config.libraries if settings.manage != "none"]
    sources = _transcripts(config, environ, home)
    needs = [*_outlets(config), *_consulted(config), *_host_of_model(config, environ, home), *sources]
    outlets = openable(needs, home=real_home, written=True)
    consulted = [path for path in openable(needs, home=real_home, written=False) if _is_folder(path)]
    writable = innermost((*writable_folders(roots, home=real_home), *outlets))
    kept_open = [path for pair in roots for path in pair] + ([os.path.realpath(state_dir)] if state_dir else [])
    return ServiceFacts(
        command=command,
        home=real_home,
        state_dir=None if state_dir is None else os.path.realpath(state_dir),
        config=config.origin,
        user=user,
        uid=uid,
        gid=gid,
        writable=writable,
        read_only=read_only_folders(
            [*(need.folder for need in sources if need.path == need.folder), *consulted],
            kept_open=[*kept_open, *writable, *outlets],
        ),
        variables=carried_variables(environ),
        credentials=credentials_of(config),
        needs=needs,
    )


def _outlets(config: Config) -> list[Need]:
    """Return the files that it writes outside of libraries and state: a notice, a socket for figures."""
    listen = config.metrics.listen or ""
    paths = {
        "notices.file": config.notices.file,
        "metrics.listen": listen.removeprefix("unix:") if listen.startswith("unix:") else None,
    }
    found = []
    for key, path in paths.items():
        if path is not None:
            folder = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - text
            found.append(Need(key=key, path=path, folder=folder, written=True, there=_is_folder(folder)))
    return found


def _consulted(config: Config) -> list[Need]:
    """Return what it reads besides transcripts: prompts of the user's own, keys in files, by a link and behind it."""
    found = []
    if config.prompts is not None:
        folder, there = os.path.realpath(config.prompts), _is_folder(config.prompts)
        found.append(Need(key="prompts", path=config.prompts, folder=folder, written=False, there=there))
    endpoints = (config.llm.primary, config.llm.fallback) if config.llm is not None else ()
    for endpoint in endpoints:
        if endpoint is None or endpoint.api_key is None or endpoint.api_key.kind != "file":
            continue
        path = endpoint.api_key.name
        there = os.path.exists(path)  # noqa: PTH110 - as in `_is_folder`
        for folder in (os.path.realpath(os.path.dirname(path)), os.path.dirname(os.path.realpath(path))):  # noqa: PTH120
            found.append(Need(key="api_key", path=path, folder=folder, written=False, there=there))
    return list(dict.fromkeys(found))


def _host_of_model(config: Config, environ: Mapping[str, str], home: str) -> list[Need]:
    """Return the home of Hermes where `from_host` takes model and key from its files, as `wiring` finds it."""
    if config.llm is None or config.llm.from_host is None:
        return []
    homes = [os.path.dirname(library.path) for library in config.libraries if library.host == "hermes"]  # noqa: PTH120 - text
    path = homes[0] if homes else set_variable(environ, "HERMES_HOME") or f"{home}/.hermes"
    folder = os.path.realpath(path)
    return [Need(key="llm.from_host", path=path, folder=folder, written=False, there=_is_folder(path))]


def _is_folder(path: str) -> bool:
    """Return whether *path* is a folder as far as this user can see; unlike pathlib's this raises nothing."""
    return os.path.isdir(path)  # noqa: PTH112


def _library(settings: LibrarySettings) -> tuple[str, str]:
    """Return where the library and its archive really lie."""
    try:
        names = os.listdir(settings.path)  # noqa: PTH208 - text
    except OSError:
        names = []
    layout = detect_layout(settings, names, categories=lambda: False, flat=lambda: False)
    return os.path.realpath(settings.path), os.path.realpath(archive_of(settings, layout))


def _transcripts(config: Config, environ: Mapping[str, str], home: str) -> list[Need]:
    """Return the places of all sources that are there; for a single file, such as a database, with the folder of it."""
    found: list[Need] = []
    for settings in config.sources:
        for place in places(settings, environ, home=Path(home)):
            source = open_source(settings, place.path)
            narrowed = getattr(source, "watch_paths", None)
            for path in [source.path] if narrowed is None else narrowed():
                real = os.path.realpath(path)
                if Path(real).exists():
                    folder = real if Path(real).is_dir() else str(Path(real).parent)
                    found.append(Need(key="sources", path=real, folder=folder, written=False, there=True))
    return found
