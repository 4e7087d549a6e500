"""
Which folders are too wide to be opened for a service, or shown to it, and what each of them holds.

Whoever takes a service over has what was opened for it. So a folder is opened for one file only where it is that
file's or little more: not what many programs share, and nothing in the places that hold keys or that things are started
from, since who may write there can be whatever the user can, without any walls. What is only shown costs less, and a
unit can read it anyway; but a container gets it in the place of its own, and sees with one key all that lies beside it.
A folder of one's own is always at hand, so where this table is in doubt it says no.

Libraries, archives and state are named by the user as what curatord works on and are opened whatever they are; asked
here is only whether the folder above a library may be.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["wideness", "within"]

Reach = Literal["itself", "all", "writing"]
"""
What of a place is refused: it alone, since folders in it are of one program each; it with all below it; it with all
below it to be written, it alone to be shown.
"""


class _Places(NamedTuple):
    folders: tuple[str, ...]
    reach: Reach
    hold: str


# `~` is any user's home, a last `*` any one name. The first row that fits a folder says what it holds.
_TABLE: Final = (
    _Places(("~",), "itself", "a whole home"),
    _Places(("~/.ssh", "~/.gnupg", "~/.pki", "~/.aws", "~/.kube", "~/.docker"), "all", "keys"),
    _Places(("~/.password-store", "~/.local/share/keyrings", "~/Library/Keychains"), "all", "keys"),
    _Places(("~/.config/systemd", "~/.config/autostart", "~/.config/environment.d"), "all", "what starts by itself"),
    _Places(("~/.config/plasma-workspace", "~/.local/share/systemd"), "all", "what starts by itself"),
    _Places(("~/.local/share/dbus-1", "~/.local/share/applications"), "all", "what is started when it is asked for"),
    _Places(("~/Library/LaunchAgents",), "all", "what starts by itself"),
    _Places(("~/bin", "~/.local/bin", "~/.local/lib", "~/.cargo/bin", "~/go/bin"), "all", "programs"),
    _Places(
        ("~/.config", "~/.cache", "~/.local", "~/.local/share", "~/.local/state"), "itself", "what all programs keep"
    ),
    _Places(("~/Library", "~/Library/*"), "itself", "what all programs keep"),
    _Places(("~/Desktop", "~/Documents", "~/Downloads"), "itself", "all that the user keeps there"),
    _Places(("/home", "/Users", "/run/user"), "itself", "what belongs to all users"),
    _Places(("/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/proc", "/sys", "/System"), "all", "the system"),
    _Places(("/etc/ssl", "/etc/ssh", "/etc/systemd"), "all", "the system's own settings"),
    _Places(("/etc", "/Library", "/Library/*"), "writing", "the system's own settings"),
    _Places(("/usr", "/usr/*", "/usr/local/*"), "writing", "programs"),
    _Places(("/var/spool/cron",), "all", "what starts by itself"),
    _Places(("/var/*",), "itself", "what all programs keep"),
    _Places(("/", "/*"), "itself", "much of the machine"),
)
_HOMES = ("/home", "/Users")


def within(path: str, folder: str) -> bool:
    """Return whether *path* is *folder* or lies in it, as text."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def wideness(folder: str, home: str, *, written: bool) -> str | None:
    """
    Return what *folder* holds that makes it too wide to be opened or shown, in words; None where it is not.

    Args:
        folder: Absolute, links resolved.
        home: Of the user whose agents the service serves, links resolved. What lies in it is judged as a part of it,
            wherever it stands.
        written: It would be opened to be written, else only shown.
    """
    folder = folder.rstrip("/") or "/"
    if folder != home and within(home, folder):
        return "a whole home, and what is beside it"
    named = _from_home(folder, home)
    if not named.startswith("~"):
        named = named.removeprefix("/private") or "/"  # where a Mac's links of /etc, /tmp and /var lead
    for places in _TABLE:
        whole = places.reach == "all" or (written and places.reach == "writing")
        if any(_is(named, one) or (whole and within(named, one)) for one in places.folders):
            return places.hold
    return None


def _is(named: str, place: str) -> bool:
    if not place.endswith("/*"):
        return named == place
    above, _, name = named.rpartition("/")
    return above == place[:-2] and bool(name)


def _from_home(folder: str, home: str) -> str:
    """Return *folder* with the home that it lies in as `~`: of this user, of root, or beside one of them."""
    homes = [home] if home != "/" else []
    homes += ["/root", "/var/root", "/private/var/root"]
    beside = home.rpartition("/")[0]
    for above in (*_HOMES, beside) if beside.rpartition("/")[2] in ("home", "Users") else _HOMES:
        if folder != above and within(folder, above):
            homes.append(f"{above}/{folder[len(above) + 1 :].partition('/')[0]}")
    return next((f"~{folder[len(one) :]}" for one in homes if within(folder, one)), folder)
