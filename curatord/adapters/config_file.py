"""Finds and reads the configuration file; what it means is `curatord.config`'s."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from curatord.config.nodes import MAX_BYTES
from curatord.core.hosts import set_variable
from curatord.errors import ConfigError

__all__ = ["candidates", "default_config_path", "locate", "read", "user_home"]


_NAME = "curatord/config.yaml"


def user_home(environ: Mapping[str, str]) -> str | None:
    """Return the user's home: `HOME`, else the password database; None where neither knows (bugs B152)."""
    said = Path(environ.get("HOME", "").strip())
    if said.is_absolute():
        return str(said)
    try:
        import pwd

        known = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        known = Path(environ.get("USERPROFILE", "").strip())
    return str(known) if known.is_absolute() else None


def default_config_path(environ: Mapping[str, str], home: str | None, platform: str) -> str | None:
    """Return where the user's own configuration belongs; None without a home."""
    xdg = set_variable(environ, "XDG_CONFIG_HOME")
    if xdg and Path(xdg).is_absolute():
        return str(Path(xdg) / _NAME)
    if platform == "win32" and (roaming := set_variable(environ, "APPDATA")):
        return str(Path(roaming) / _NAME)
    return None if home is None else str(Path(home) / ".config" / _NAME)


def candidates(environ: Mapping[str, str], home: str | None, platform: str) -> list[str]:
    """Return the places where a file is looked for when none is named, best first."""
    places = [default_config_path(environ, home, platform)]
    if platform == "darwin" and home is not None:
        places.append(str(Path(home) / "Library/Application Support" / _NAME))
    if platform != "win32":
        places.append("/etc/curatord/config.yaml")
    return [place for place in places if place]


def locate(said: str | None, environ: Mapping[str, str], home: str | None, platform: str) -> str | None:
    """
    Return the absolute path of the file to read, or None where there is none and none was named.

    *said* is `--config`, relative to the working directory. A named file that is not there is not passed over.

    Raises:
        ConfigError: The named file is not there, or a found one cannot be looked at.
    """
    for given, who in ((said, "--config"), (set_variable(environ, "CURATORD_CONFIG"), "CURATORD_CONFIG")):
        if given is None:
            continue
        expanded = home + given[1:] if home and given.startswith("~/") else given
        path = expanded if Path(expanded).is_absolute() else str(_working_folder(given, who) / expanded)
        if not Path(path).exists():
            hint = "curatord init writes a configuration"
            raise ConfigError(f"{path}: there is no such file, though {who} names it", file=path, hint=hint)
        return path
    for path in candidates(environ, home, platform):
        try:
            Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}", file=path) from error
        return path
    return None


def _working_folder(given: str, who: str) -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(
            f"{who} names {given}, and the working folder is gone", hint="name it by its absolute path"
        ) from error


def read(path: str) -> bytes:
    """
    Return the content of *path*, at most one byte more than a configuration may have.

    A pipe is fine (`--config <(…)`), a folder is not.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        if stat.S_ISDIR(Path(path).stat().st_mode):
            raise ConfigError(f"{path}: is a folder, not a file", file=path)
        with Path(path).open("rb") as handle:
            return handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", file=path, hint="curatord must be able to read it") from error
