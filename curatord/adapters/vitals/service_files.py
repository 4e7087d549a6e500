"""Which service files of curatord are installed, and which kind of service this machine has."""

from __future__ import annotations

import sys
from pathlib import Path

from curatord.core.doctor.running import ServiceFacts

__all__ = ["look_for_services", "service_command"]

SYSTEM = Path("/etc/systemd/system")


def service_command(platform: str = sys.platform, *, systemd: Path = Path("/run/systemd/system")) -> str:
    """Return the command that installs a service here, for people."""
    if platform == "darwin":
        return "curatord service install launchd"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "curatord service print docker"
    return "curatord service install systemd" if systemd.is_dir() or platform == "linux" else "curatord daemon"


def look_for_services(home: Path, config_home: str | None, *, system: Path = SYSTEM) -> ServiceFacts:
    """Return the unit files and plists that name curatord; *config_home* is `XDG_CONFIG_HOME`."""
    places = (
        (Path(config_home) if config_home else home / ".config") / "systemd/user",
        system,
        home / "Library/LaunchAgents",
    )
    found = []
    for place in places:
        try:
            found += sorted(str(path) for path in place.iterdir() if "curatord" in path.name and path.is_file())
        except OSError:
            continue  # no such place here
    return ServiceFacts(installed=tuple(found), command=service_command())
