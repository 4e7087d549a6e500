"""What a service needs besides libraries and state: what is opened, what is made first, what the user is told."""

from __future__ import annotations

from typing import get_args

import pytest

from curatord.core.service.needs import Kind, Need, made_first, needs_notes, openable

HOME = "/home/me"


def need(key: str, path: str, *, there: bool = True) -> Need:
    """Return a need whose folder is the one above *path*, for prompts the folder itself."""
    folder = path if key == "prompts" else path.rpartition("/")[0] or "/"
    return Need(key=key, path=path, folder=folder, written=key in ("notices.file", "metrics.listen"), there=there)


def told(one: Need, kind: Kind) -> list[str]:
    """Return what is told of *one* where nothing else is opened."""
    opened = openable([one], home=HOME, written=True)
    shown = openable([one], home=HOME, written=False) if one.there else ()
    return needs_notes([one], kind, home=HOME, writable=opened, seen=[*opened, *shown])


IN_PLACE = [
    need("notices.file", "/home/me/.cache/curatord/notice"),
    need("metrics.listen", "/srv/figures/m.sock"),
    need("prompts", "/home/me/.config/curatord/prompts"),
    need("api_key", "/home/me/.config/curatord/keys/k"),
]


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("one", IN_PLACE)
def test_what_lies_in_a_folder_of_its_own_is_opened_without_a_word(kind: Kind, one: Need) -> None:
    """By every form of a service."""
    assert (one.folder,) == openable([one], home=HOME, written=one.written)
    assert () == openable([one], home=HOME, written=not one.written)
    assert [] == told(one, kind)


@pytest.mark.parametrize(
    "path",
    [
        *("/home/me/notice", "/home/notice", "/notice", "/srv/notice", "/home/other/notice", "/home/me/.config/notice"),
        *("/home/me/.ssh/notice", "/var/lib/notice", "/usr/local/bin/notice"),
    ],
)
@pytest.mark.parametrize("key", ["notices.file", "metrics.listen"])
def test_no_folder_that_holds_much_more_is_opened(key: str, path: str) -> None:
    """What would have to be is told, with a better place; a Mac's agent has no walls around it."""
    one = need(key, path)

    assert () == openable([one], home=HOME, written=True)
    for note in (*told(one, "user"), *told(one, "system"), *told(one, "docker")):
        assert note.startswith(f"{key}: {path} cannot be written by the service, since {one.folder} holds ")
        assert "/home/me/.cache/curatord/" in note
    assert {"user": 1, "system": 1, "docker": 1, "launchd": 0} == {
        kind: len(told(one, kind)) for kind in get_args(Kind)
    }


@pytest.mark.parametrize("key", ["notices.file", "api_key", "prompts"])
@pytest.mark.parametrize("path", ["/tmp/x", "/tmp/deep/x", "/var/tmp/x"])
def test_temporary_files_are_hidden_from_a_unit(key: str, path: str) -> None:
    """Whether they would be read or written (PrivateTmp)."""
    (own,), (system,) = told(need(key, path), "user"), told(need(key, path), "system")
    assert "which the service does not see" in own
    assert own == system
    assert () == made_first([need(key, path, there=False)], "user", home=HOME)


@pytest.mark.parametrize("path", ["/home/me/key", "/etc/key", "/tmp/key", "/etc/ssl/key", "/home/me/.ssh/key"])
def test_a_container_is_shown_no_whole_home_for_a_key(path: str) -> None:
    """Nor other keys, nor the system's settings in the place of its own; a unit reads it where it is."""
    if not path.startswith("/tmp/"):
        assert [] == told(need("api_key", path), "user") == told(need("api_key", path), "system")
    (note,) = told(need("api_key", path), "docker")

    assert f"api_key: {path} is not seen by the container" in note
    assert "/home/me/.config/curatord/keys/NAME" in note


def test_a_key_in_a_folder_that_is_mounted_anyway_is_seen() -> None:
    """Beside a library, for one."""
    one = need("api_key", "/home/me/.claude/key")

    assert [] == needs_notes([one], "docker", home=HOME, writable=[], seen=["/home/me/.claude"])


@pytest.mark.parametrize("kind", get_args(Kind))
def test_what_is_missing_is_told_or_made(kind: Kind) -> None:
    """A folder to write into is made first, a key and prompts are the user's to bring."""
    notice = need("notices.file", "/home/me/.cache/curatord/notice", there=False)
    key = need("api_key", "/home/me/keys/k", there=False)

    assert ("/home/me/.cache/curatord",) == made_first([notice, notice, key], kind, home=HOME)
    assert [] == told(notice, kind)
    (note,) = told(key, kind)
    assert note.startswith("api_key: /home/me/keys/k is not there: put the key into it, mode 0600, before the start")
    assert (kind == "docker") == note.endswith(", then install again")


def test_no_folder_is_made_that_is_not_opened() -> None:
    """What all programs share is not this one's to make either."""
    assert () == made_first([need("notices.file", "/home/me/.local/state/notice", there=False)], "docker", home=HOME)


def test_the_folder_of_a_login_is_nobodys_to_make() -> None:
    """The manager makes it; a service of the system may start before anybody is logged in."""
    there, away = (need("metrics.listen", "/run/user/1000/m.sock", there=there) for there in (True, False))

    assert () == made_first([away], "user", home=HOME)
    assert [0, 1, 1, 1] == [
        len(notes) for notes in (told(there, "user"), told(away, "user"), told(there, "system"), told(away, "docker"))
    ]
    for note in (*told(away, "user"), *told(there, "system"), *told(away, "docker")):
        assert "can only be written while /run/user/1000 is there" in note
