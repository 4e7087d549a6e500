"""Which folders a service is not given for the sake of one file."""

from __future__ import annotations

import pytest

from curatord.core.service.wide import wideness

HOME = "/home/me"


def wide(folder: str, *, home: str = HOME) -> tuple[bool, bool]:
    """Return whether *folder* is too wide to be written, and to be shown."""
    written, shown = (wideness(folder, home, written=written) for written in (True, False))
    return written is not None, shown is not None


@pytest.mark.parametrize("folder", ["/", "/home", "/home/me", "/home/me/", "/home/other", "/Users/other", "/root"])
def test_no_home_is_opened_or_shown(folder: str) -> None:
    """Nobody's, and nothing above one."""
    assert (True, True) == wide(folder)


@pytest.mark.parametrize(
    "below",
    [
        *(".config", ".cache", ".local", ".local/share", ".local/state", ".ssh", ".ssh/keys", ".gnupg", ".aws/x"),
        *("Library", "Library/Application Support", "Library/Caches", "Library/LaunchAgents/x", "Library/Keychains"),
        *(".config/systemd/user", ".config/autostart", "bin", ".local/bin/x", ".local/lib/python3.12", "Documents"),
        *(".local/share/systemd/user", ".local/share/dbus-1/services", ".local/share/applications", ".cargo/bin"),
        *(".config/plasma-workspace/env", "go/bin"),
    ],
)
@pytest.mark.parametrize("home", [HOME, "/home/other", "/Users/other", "/root", "/private/var/root"])
def test_what_all_programs_share_is_not_one_files_folder(home: str, below: str) -> None:
    """Nor are places with keys, or that things are started from, whosever home they are in."""
    assert (True, True) == wide(f"{home}/{below}")


@pytest.mark.parametrize(
    "below",
    [
        *(".config/curatord", ".config/curatord/keys", ".cache/curatord", ".local/share/curatord", ".hermes", "notes"),
        *("Library/Application Support/curatord", "Library/Caches/curatord", "Documents/notices", ".sshx", "binder"),
    ],
)
@pytest.mark.parametrize("home", [HOME, "/usr/home/me", "/etc/agents/me", "/var/lib/me", "/private/var/me"])
def test_a_folder_of_ones_own_in_the_home_is_opened(home: str, below: str) -> None:
    """Wherever the home stands: what lies in it is a part of it, not of the system."""
    assert (False, False) == wide(f"{home}/{below}", home=home)


def test_a_home_at_the_root_makes_no_home_of_everything() -> None:
    """Some users that only run services have it."""
    assert (True, True) == wide("/", home="/")
    assert (True, True) == wide("/usr/lib", home="/")
    assert (False, False) == wide("/srv/figures", home="/")


def test_a_home_beside_the_users_own_is_one_wherever_homes_are() -> None:
    """On some systems `/home` is a link to elsewhere, and links are resolved."""
    assert (True, True) == wide("/var/home/other", home="/var/home/me")
    assert (True, True) == wide("/var/home/other/.config", home="/var/home/me")
    assert (False, False) == wide("/srv/figures", home="/srv/agent")


@pytest.mark.parametrize(
    "folder",
    [
        *("/etc", "/usr", "/opt", "/srv", "/data", "/run", "/usr/lib", "/usr/local", "/usr/share", "/usr/local/lib"),
        *("/var/lib", "/var/log", "/var/cache", "/etc/ssl", "/etc/ssl/private", "/etc/systemd", "/etc/systemd/system"),
        *("/run/user", "/dev/shm", "/proc/self", "/private/etc/ssl", "/private/var/log", "/private", "/Library/Fonts"),
        *("/var/spool/cron", "/var/spool/cron/crontabs"),
    ],
)
def test_the_systems_folders_are_neither_opened_nor_shown(folder: str) -> None:
    """A container would have the machine's in the place of its own."""
    assert (True, True) == wide(folder)


@pytest.mark.parametrize("folder", ["/etc/agents", "/etc/curatord/keys", "/usr/share/agents", "/usr/local/share/a/b"])
def test_of_settings_and_programs_one_folder_may_be_shown(folder: str) -> None:
    """A key or prompts that an administrator put there; written they are by nobody but the system."""
    assert (True, False) == wide(folder)


@pytest.mark.parametrize(
    "folder", ["/opt/agents", "/srv/figures", "/var/lib/curatord", "/var/log/curatord", "/run/user/1000", "/mnt/a/b"]
)
def test_a_folder_of_one_program_is_opened(folder: str) -> None:
    """Where programs have one each."""
    assert (False, False) == wide(folder)
