"""
YAML text and environment -> `Config`, or `ConfigError`: the one way a configuration comes into being.

Pure: the text, the variables, the home and what was found on the machine are arguments. Nothing is logged, since
logging is not set up yet; what should be said is returned as notices.
"""

from __future__ import annotations

import importlib
import json
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from curatord.config.checks import cross_check, notices_of
from curatord.config.environ import lay_over
from curatord.config.nodes import Mapping_, Origin, Scalar, TreeError, decode
from curatord.config.reader import BAD, Expansion, Problem, Reader, fields_of, optional, unmarked
from curatord.config.render import plain
from curatord.config.tree import parse_tree
from curatord.core.cheap import dataclass, field, is_dataclass, replace
from curatord.core.hosts import host_of_path, set_variable
from curatord.core.settings import Config, KeyRef, LibrarySettings, SourceSettings
from curatord.errors import ConfigError

__all__ = ["Found", "Loaded", "check_resolved", "default_state_dir", "known_keys", "parse"]


class Found(NamedTuple):
    """The hosts and libraries of this machine, used where the configuration does not name its own."""

    sources: tuple[SourceSettings, ...] = ()
    libraries: tuple[LibrarySettings, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration, where each said key was said (`gates.interval`, `sources[0].path`), and what should be told."""

    config: Config
    origins: Mapping[str, Origin] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def default_state_dir(environ: Mapping[str, str], home: str | None, platform: str) -> str | None:
    """Return where state lies unless said: by XDG, on macOS in Application Support; None without a home."""
    xdg = set_variable(environ, "XDG_STATE_HOME")
    if xdg and PurePath(xdg).is_absolute():
        return str(PurePath(xdg) / "curatord")
    if platform == "win32" and (local := set_variable(environ, "LOCALAPPDATA")):
        return str(PurePath(local) / "curatord")
    if home is None:
        return None
    below = "Library/Application Support/curatord" if platform == "darwin" else ".local/state/curatord"
    return str(PurePath(home) / below)


def parse(
    data: bytes | str | None,
    environ: Mapping[str, str],
    *,
    file: str | None = None,
    home: str | None = None,
    found: Found | Callable[[], Found] | None = None,
    platform: str = "linux",
) -> Loaded:
    """
    Return the configuration that *data* and *environ* say.

    Args:
        data: The file's content; None where there is no file.
        environ: All variables; ours begin with `CURATORD_`, the others are for `${VAR}` and the hosts' homes.
        file: The file's absolute path, for messages and for paths relative to it; None: relative paths are refused.
        home: The user's home, absolute; None where unknown, then `~` is refused.
        found: What `sources` and `libraries` are where nothing names them, or what looks for it; asked only then.

    Raises:
        ConfigError: With file, line and key of the first problem; the message has them all, a line each.
    """
    name = file or "configuration"
    root = _tree(data, name)
    problems = [
        Problem(key=key, what=what, origin=origin, hint=hint) for origin, key, what, hint in lay_over(root, environ)
    ]
    folder = None if file is None else str(PurePath(file).parent)
    reader = Reader(Expansion(home=home, environ=environ, folder=folder), _suggest)
    if "state_dir" not in root.items:
        default = default_state_dir(environ, home, platform)
        if default is None:
            what = "no home folder is known, so there is no default for it"
            raise _error([Problem(key="state_dir", what=what, origin=Origin(file=name), hint=_NO_HOME)])
        root.items["state_dir"] = Scalar(default, False, Origin())
        root.keys["state_dir"] = Origin()
    config = reader.read_object(Config, root, "")
    problems += reader.problems
    if config is BAD or problems:
        raise _error(problems)
    whole: Config = replace(config, origin=None if data is None else file)
    if "sources" not in root.items or "libraries" not in root.items:
        there = (found() if callable(found) else found) or Found()
        if "sources" not in root.items and there.sources:
            whole = replace(whole, sources=there.sources)
            reader.origins["sources"] = Origin(found=True)
        if "libraries" not in root.items and there.libraries:
            whole = replace(whole, libraries=there.libraries)
            reader.origins["libraries"] = Origin(found=True)
    whole = replace(whole, libraries=tuple(_hosted(item, environ, home) for item in whole.libraries))
    problems = [
        problem._replace(origin=_origin_near(problem.key, reader.origins, name)) for problem in cross_check(whole)
    ]
    if problems:
        raise _error(problems)
    origins = {key: origin for key, origin in reader.origins.items() if origin != Origin()}
    notices = tuple(notices_of(whole, sources_said="sources" in root.items))
    return Loaded(config=replace(whole, fingerprint=_fingerprint(whole)), origins=origins, notices=notices)


def check_resolved(loaded: Loaded, resolve: Callable[[str], str]) -> None:
    """
    Hold the configuration to its rules once more with links followed: two names of one folder are one folder.

    *resolve* gives a path's real one.

    Raises:
        ConfigError: Libraries, sources, archives or state overlap by way of links.
    """
    config = loaded.config
    real = replace(
        config,
        state_dir=resolve(config.state_dir),
        libraries=tuple(
            replace(item, path=resolve(item.path), archive=None if item.archive is None else resolve(item.archive))
            for item in config.libraries
        ),
        sources=tuple(item if item.path is None else replace(item, path=resolve(item.path)) for item in config.sources),
    )
    if real == config:
        return
    problems = [
        problem._replace(
            what=f"{problem.what} (links followed)",
            origin=_origin_near(problem.key, loaded.origins, config.origin or "configuration"),
        )
        for problem in cross_check(real)
    ]
    if problems:
        raise _error(problems)


_NO_HOME = "set HOME, or state_dir in the file, or CURATORD_STATE_DIR"


def _tree(data: bytes | str | None, name: str) -> Mapping_:
    if data is None:
        return Mapping_({}, Origin(file=name))
    try:
        text = decode(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
        tree = parse_tree(text, name)
    except TreeError as error:
        where = f"{name}:{error.line}: " if error.line else f"{name}: "
        raise ConfigError(f"{where}{error}", file=name, line=error.line, key=error.key, hint=error.hint) from None
    return tree or Mapping_({}, Origin(file=name))


def _error(problems: list[Problem]) -> ConfigError:
    """Return the error that tells *problems* in the order of the file, the environment's last."""
    ordered = sorted(problems, key=lambda p: (bool(p.origin.variable), p.origin.line))
    lines = [
        f"{problem.origin}: " + (f"{problem.key}: " if problem.key else "") + problem.what
        + (f" ({problem.hint})" if problem.hint and len(ordered) > 1 else "")
        for problem in ordered
    ]  # fmt: skip
    first = ordered[0]
    hint = first.hint if len(ordered) == 1 else ""
    return ConfigError("\n".join(lines), file=first.origin.file, line=first.origin.line, key=first.key, hint=hint)


def _origin_near(key: str, origins: Mapping[str, Origin], name: str) -> Origin:
    """Return where *key* or the nearest said thing around it stands."""
    while key:
        if key in origins and origins[key] != Origin():
            return origins[key]
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return Origin(file=name)


def _hosted(library: LibrarySettings, environ: Mapping[str, str], home: str | None) -> LibrarySettings:
    if library.host is not None:
        return library
    return replace(library, host=host_of_path(library.path, environ, home))


# Where things lie and how often they are looked at changes no decision, so it is no part of the identity.
_NOT_DECIDING = ("origin", "fingerprint", "state_dir", "daemon", "reports", "notices", "metrics")


def _fingerprint(config: Config) -> str:
    values = {key: value for key, value in plain(config).items() if key not in _NOT_DECIDING}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    digest: str = _sha256()(text.encode()).hexdigest()
    return digest[:16]


def _sha256() -> Any:
    """Return SHA-256 without OpenSSL where Python has its own: loading that for one hash is a fifth of a command."""
    for own in ("_sha2", "_sha256"):  # its name since Python 3.12, and before
        try:
            return importlib.import_module(own).sha256
        except ImportError:
            continue
    import hashlib

    return hashlib.sha256


def known_keys(cls: type = Config, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key that can be said, with its type: `gates.interval`; lists as `sources[].path`."""
    for item in fields_of(cls).values():
        key = f"{prefix}{item.name}"
        inner, _ = optional(item.hint)
        inner, _ = unmarked(inner)
        if typing.get_origin(inner) is tuple:
            element, _ = unmarked(typing.get_args(inner)[0])
            yield key, item.hint
            if is_dataclass(element):
                yield from known_keys(typing.cast(type, element), f"{key}[].")
        elif is_dataclass(inner) and inner is not KeyRef:
            yield key, item.hint
            yield from known_keys(typing.cast(type, inner), f"{key}.")
        else:
            yield key, item.hint


def _suggest(word: str) -> str:
    """Return the known key elsewhere whose last part is *word*, or nothing."""
    lowered = word.lower().replace("-", "_")
    return next((key for key, _ in known_keys() if key.rpartition(".")[2] == lowered and "." in key), "")
