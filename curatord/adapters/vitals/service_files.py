"""Which service files of curatord are installed, and which kind of service this machine has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from curatord.core.doctor.running import ServiceFacts

__all__ = ["look_for_services", "service_command"]

SYSTEM = Path("/etc/systemd/system")
_UNIT = re.compile(r"curatord([-@.][^/]*)?\.service")
_AGENT = re.compile(r"([^/]+\.)?curatord(\.[^/]+)?\.plist")
_COMPOSE = re.compile(r"compose\.yaml")


def service_command(platform: str = sys.platform, *, systemd: Path = Path("/run/systemd/system")) -> str:
    """Return the command that installs a service here, for people."""
    if platform == "darwin":
        return "curatord service install launchd"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "curatord service print docker"
    return "curatord service install systemd" if systemd.is_dir() or platform == "linux" else "curatord daemon"


def look_for_services(home: Path, config_home: str | None, *, system: Path = SYSTEM) -> ServiceFacts:
    """
    Return the installed services of curatord, as their managers would find them: by exact names, or names made of them
    (`curatord-work.service`). What somebody set aside (`.before`, `.bak`) starts nothing.

    *config_home* is `XDG_CONFIG_HOME`; a user's manager that was started without it looks into `~/.config`.
    """
    own = dict.fromkeys((Path(config_home) if config_home else home / ".config", home / ".config"))
    places = [
        *((config / "systemd/user", _UNIT, "systemctl --user enable --now") for config in own),
        (system, _UNIT, "sudo systemctl enable --now"),
        (home / "Library/LaunchAgents", _AGENT, None),
        (home / ".config/curatord/docker", _COMPOSE, None),
    ]
    found: list[str] = []
    idle: list[tuple[str, str]] = []
    for place, name, enable in places:
        try:
            files = sorted(path for path in place.iterdir() if name.fullmatch(path.name) and path.is_file())
        except OSError:
            continue  # no such place here
        found += map(str, files)
        if enable is not None:
            idle += [(str(path), f"{enable} {path.stem}") for path in files if not _is_enabled(path)]
    return ServiceFacts(installed=tuple(found), idle=tuple(idle), command=service_command())


def _is_enabled(unit: Path) -> bool:
    """Return whether something pulls *unit* in: the link that `systemctl enable` makes."""
    return any(os.path.lexists(folder / unit.name) for folder in unit.parent.glob("*.wants"))
