"""Paths that no configuration can mean, and what a path tells of host, layout and archive."""

from __future__ import annotations

import pytest

from curatord.core.installers import parse_lock, plugin_words
from curatord.core.layout import archive_of, archived_name, host_of_path
from curatord.core.places import Place, conflicts
from curatord.core.settings import LibrarySettings
from curatord.errors import OwnershipError


def place(kind: str, label: str, path: str, real: str | None = None) -> Place:
    """Return a place; *real* is *path* where it is no link."""
    return Place(kind=kind, label=label, path=path, real=real or path)  # type: ignore[arg-type]  # one of its words


A = place("library", "a", "/s/a")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([place("library", "b", "/s/b")], []),
        ([place("library", "b", "/s/ab")], []),
        ([place("library", "b", "/s/a")], ["a:same-path", "b:same-path"]),
        ([place("library", "b", "/t/b", "/s/a")], ["a:same-path", "b:same-path"]),
        ([place("library", "b", "/s/a/b")], ["a:nested", "b:nested"]),
        ([place("library", "b", "/s")], ["a:nested", "b:nested"]),
        ([place("library", "b", "/")], ["a:nested", "b:nested"]),
        ([place("source", "codex", "/s/a/sessions")], ["a:source-inside"]),
        ([place("source", "codex", "/t", "/s/a")], ["a:source-inside"]),
        ([place("source", "hermes", "/s")], []),
        ([place("state", "state", "/s/a/.state")], ["a:state-inside"]),
        ([place("archive", "a", "/s/a/.archive")], []),
        ([place("archive", "a", "/s/.a-archive")], []),
        ([place("archive", "a", "/s/a/old")], ["a:archive-visible"]),
        ([place("archive", "a", "/s/a")], ["a:archive-is-library"]),
        ([place("archive", "b", "/s/a/.old")], ["a:archive-inside"]),
    ],
)  # fmt: skip
def test_conflicts(others: list[Place], expected: list[str]) -> None:
    """Same path, nesting, links, sources and state within a library; in either order."""
    assert expected == sorted(f"{found.library}:{found.code}" for found in conflicts([A, *others]))
    assert expected == sorted(f"{found.library}:{found.code}" for found in conflicts([*others, A]))


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/home/u/.claude/skills", "claude-code"),
        ("/home/u/.hermes/skills/", "hermes"),
        ("/home/u/.hermes/profiles/x/skills", "hermes"),
        ("/repo/.agents/skills", None),
        ("/home/u/.config/opencode/skill", "opencode"),
        ("/srv/.claude", None),
    ],
)
def test_hosts_of_paths(path: str, host: str | None) -> None:
    """A host's own folder in the path tells whose library it is; a library called so does not."""
    assert host == host_of_path(path)


def test_archives() -> None:
    """As configured, else Hermes' own, else beside the library."""
    library = LibrarySettings(name="a", path="/s/skills/")

    assert ("/s/skills/.archive", "/s/.skills-archive", "/x") == (
        archive_of(library, "hermes"),
        archive_of(library, "flat"),
        archive_of(LibrarySettings(name="a", path="/s", archive="/x"), "hermes"),
    )


@pytest.mark.parametrize(
    ("folder", "name", "stamped"),
    [
        ("greet", "greet", False),
        ("greet-20260102030405", "greet", True),
        ("greet-20260102030405-20260102030406", "greet-20260102030405", True),
        ("greet-20261302030405", "greet-20261302030405", False),
        ("greet-2026", "greet-2026", False),
        ("-20260102030405", "-20260102030405", False),
    ],
)
def test_archived_names(folder: str, name: str, stamped: bool) -> None:
    """Fourteen digits are a time only where they are one."""
    found, at = archived_name(folder)

    assert (name, stamped) == (found, at is not None)


def test_locks() -> None:
    """The names in an installer's lock; a damaged one is an error."""
    assert frozenset({"a", "b"}) == parse_lock(b'{"version": 3, "skills": {"a": {}, "b": 1}}', "x")
    assert frozenset() == parse_lock(b'{"version": 3}', "x")
    for data in (b"", b"[]", b'{"skills": []}', b"{" * 10_000):
        with pytest.raises(OwnershipError, match="lock"):
            parse_lock(data, "lock")


@pytest.mark.parametrize(
    ("path", "plugin"),
    [
        ("/h/.claude/plugins/cache/m/p/1.0/skills", True),
        ("/h/.claude/skills", False),
        ("/h/plugins/mine/skills", False),
    ],
)
def test_plugin_libraries(path: str, plugin: bool) -> None:
    """A library that Claude Code unpacked is the plugin's."""
    assert plugin is (plugin_words(path) is not None)
