"""
How a configuration comes together: file, environment, and the hosts of this machine where nothing is said.

Part of the wiring: with `curatord.wiring` the one that knows adapters.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from curatord.adapters.config_file import candidates, default_config_path, locate, read, user_home
from curatord.adapters.true_path import true_path
from curatord.config import Found, Loaded, check_resolved, parse

if TYPE_CHECKING:
    from curatord.adapters.discover import Discovery

__all__ = ["ConfigPlaces", "discover_hosts", "load_config", "places"]


class ConfigPlaces(NamedTuple):
    """Where configurations are looked for, and where the user's own belongs."""

    own: str | None
    looked_at: tuple[str, ...]
    home: str | None


def places(environ: Mapping[str, str]) -> ConfigPlaces:
    """Return the places on this platform."""
    home = user_home(environ)
    return ConfigPlaces(
        own=default_config_path(environ, home, sys.platform),
        looked_at=tuple(candidates(environ, home, sys.platform)),
        home=home,
    )


def discover_hosts(environ: Mapping[str, str]) -> Discovery:
    """Return the hosts and libraries of this machine, skills counted."""
    from curatord.adapters.discover import discover

    return discover(environ, user_home(environ), count=True)


def load_config(said: str | None, environ: Mapping[str, str], *, links: bool = True) -> Loaded:
    """
    Return the configuration in force; *said* is `--config`.

    Without *links* nothing is asked of the places that it names, for who only reads what is stored: a look at a dead
    network mount never returns. Two names of one folder are two then.

    Raises:
        ConfigError: It is wrong, or the named file is not there.
    """
    home = user_home(environ)
    path = locate(said, environ, home, sys.platform)
    data = None if path is None else read(path)
    loaded = parse(data, environ, file=path, home=home, found=lambda: _found(environ, home), platform=sys.platform)
    if links:
        check_resolved(loaded, true_path)
    return loaded


def _found(environ: Mapping[str, str], home: str | None) -> Found:
    from curatord.adapters.discover import discover

    return discover(environ, home).as_settings()
