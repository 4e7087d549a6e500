"""Which library an event belongs to."""

from __future__ import annotations

import time

import pytest

from curatord.core.resolve import HostResolvers, KnownLibrary, KnownSkill, Resolved, Resolver
from curatord.core.values import LibraryName, RelPath, SkillName

HOME = "/home/u"


def a_library(
    name: str, path: str, *skills: str, host: str | None = None, seen_as: tuple[str, ...] = ()
) -> KnownLibrary:
    """Return a library; a skill `rel=header` has another name in its header."""
    known = []
    for skill in skills:
        rel, _, header = skill.partition("=")
        known.append(KnownSkill(rel=RelPath(rel), header_name=header or None))
    return KnownLibrary(name=LibraryName(name), path=path, host=host, seen_as=seen_as, skills=tuple(known))


PERSONAL = a_library("personal", "/home/u/.claude/skills", "foo", "bar", host="claude-code")
PROJECT = a_library("project", "/home/u/src/app/.claude/skills", "foo", "baz", host="claude-code")
OTHER = a_library("other", "/home/u/src/lib/.claude/skills", "foo", "qux", host="claude-code")
HERMES = a_library("hermes", "/home/u/.hermes/skills", "writing/release-notes=Release Notes", "foo", host="hermes")
ALL = (PERSONAL, PROJECT, OTHER, HERMES)


def claude(*libraries: KnownLibrary, only: tuple[str, ...] | None = None) -> Resolver:
    """Return the resolver of a Claude Code source."""
    return Resolver(libraries or ALL, host="claude-code", source_path="/home/u/.claude/projects", only=only, home=HOME)


def answer(library: str | None, skill: str, rel: str | None = None) -> Resolved:
    """Return what is expected."""
    return Resolved(
        LibraryName(library) if library else None, SkillName(skill), RelPath(rel) if rel is not None else None
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/u/src/app/.claude/skills/foo/SKILL.md", answer("project", "foo", "foo")),
        ("~/.claude/skills/foo/references/x.md", answer("personal", "foo", "foo")),
        (
            "/home/u/.hermes/skills/writing/release-notes/SKILL.md",
            answer("hermes", "release-notes", "writing/release-notes"),
        ),
        ("/home/u/.hermes/skills/writing/release-notes", answer("hermes", "release-notes", "writing/release-notes")),
        ("/home/u/.claude/skills/gone/SKILL.md", answer("personal", "gone")),
        ("/home/u/.claude/skills/../skills/./bar/SKILL.md", answer("personal", "bar", "bar")),
    ],
)
def test_a_path_within_a_library_decides(path: str, expected: Resolved) -> None:
    """The library with the longest path that the file's path starts with is it, whatever the working folder."""
    assert expected == claude().resolve(skill=path.split("/")[-2], path=path, cwd="/home/u/src/lib") or (
        expected == claude().resolve(skill="release-notes", path=path, cwd=None)
    )


def test_the_longest_of_nested_libraries_wins() -> None:
    """A library inside another one is the nearer."""
    outer = a_library("outer", "/l", "x/foo")
    inner = a_library("inner", "/l/x", "foo")

    found = claude(outer, inner).resolve(skill="foo", path="/l/x/foo/SKILL.md")

    assert answer("inner", "foo", "foo") == found


def test_a_prefix_ends_at_a_folder() -> None:
    """`/l/skills-old` is not below `/l/skills`."""
    found = claude(a_library("one", "/l/skills", "bar")).resolve(skill="foo", path="/l/skills-old/foo/SKILL.md")

    assert answer(None, "foo") == found


def test_seen_as_is_a_path_of_the_library_too() -> None:
    """A container's view of a library belongs to it."""
    library = a_library("box", "/srv/skills", "foo", seen_as=("/workspace/skills",))

    assert answer("box", "foo", "foo") == claude(library).resolve(skill="foo", path="/workspace/skills/foo/SKILL.md")


def test_windows_paths_compare_without_case_and_others_with() -> None:
    """Drive letters mark paths of a file system without case."""
    windows = a_library("win", "C:\\Users\\U\\.claude\\skills", "foo")
    posix = a_library("posix", "/l/Skills", "foo")

    found = claude(windows, posix)

    assert "win" == found.resolve(skill="foo", path="c:\\users\\u\\.claude\\SKILLS\\foo\\SKILL.md").library
    assert (None, None) == (
        claude(posix).skill_at("/l/skills/foo/SKILL.md"),
        claude(a_library("a", "/a", "x"), a_library("b", "/b", "x")).resolve(skill="x", path="/A/x/SKILL.md").library,
    )


def test_personal_goes_before_project_in_claude_code() -> None:
    """Of one name, Claude Code takes the personal skill."""
    assert answer("personal", "foo", "foo") == claude().resolve(skill="foo", cwd="/home/u/src/app/deep/er")


def test_a_projects_skill_is_found_from_below_and_another_projects_is_not() -> None:
    """The project's library counts in its folder and below, nowhere else."""
    resolver = claude(PERSONAL, PROJECT, a_library("p2", "/home/u/src/two/.claude/skills", "baz", host="claude-code"))

    assert "project" == resolver.resolve(skill="baz", cwd="/home/u/src/app/deep").library
    assert "p2" == resolver.resolve(skill="baz", cwd="/home/u/src/two").library
    assert None is resolver.resolve(skill="baz", cwd="/home/u/else").library


def test_the_nearer_project_wins_where_projects_nest() -> None:
    """Upward from the working folder, the first library with the name is it."""
    outer = a_library("outer", "/p/.codex/skills", "foo", host="codex")
    inner = a_library("inner", "/p/q/.agents/skills", "foo", host="codex")
    resolver = Resolver((outer, inner), host="codex", home=HOME)

    assert "inner" == resolver.resolve(skill="foo", cwd="/p/q/r").library
    assert "outer" == resolver.resolve(skill="foo", cwd="/p").library


def test_the_only_library_with_the_name_is_it() -> None:
    """Without path or folder, a name that one library alone has is enough; an ambiguous one is not."""
    assert answer("other", "qux", "qux") == claude().resolve(skill="qux")
    assert None is claude(PROJECT, OTHER).resolve(skill="foo").library
    assert answer(None, "nobody") == claude().resolve(skill="nobody", cwd="/home/u/src/app")


def test_a_source_uses_the_libraries_of_its_host_or_those_it_names() -> None:
    """Hermes' skill of the name is no candidate for a Claude Code session unless the source says so."""
    assert None is claude().resolve(skill="release-notes").library
    assert "hermes" == claude(only=("hermes",)).resolve(skill="release-notes").library
    assert "hermes" == claude(HERMES).resolve(skill="release-notes").library  # none of its host: all


def test_a_hermes_home_uses_its_own_skills() -> None:
    """The library beside the database wins over another home's with the same name."""
    second = a_library("work", "/home/u/.hermes/profiles/work/skills", "foo", host="hermes")
    resolver = Resolver(
        (HERMES, second), host="hermes", source_path="/home/u/.hermes/profiles/work/state.db", home=HOME
    )

    assert "work" == resolver.resolve(skill="foo", cwd="/x").library
    assert answer("hermes", "release-notes", "writing/release-notes") == resolver.resolve(skill="release-notes")


@pytest.mark.parametrize(
    "name", ["release-notes", "Release Notes", "release notes", "RELEASE_NOTES", "writing/release-notes"]
)
def test_folder_and_header_name_mean_one_skill(name: str) -> None:
    """The header's name, other spellings and the path with the category all mean the folder's skill."""
    resolver = Resolver((HERMES,), host="hermes", home=HOME)

    assert answer("hermes", "release-notes", "writing/release-notes") == resolver.resolve(skill=name)


def test_the_folders_name_goes_before_anothers_header() -> None:
    """A header that claims another skill's folder name does not take its events."""
    library = a_library("l", "/l", "foo", "impostor=foo")

    assert answer("l", "foo", "foo") == claude(library).resolve(skill="foo")


def test_two_categories_with_one_name_leave_the_path_open() -> None:
    """The library is sure, which of the two is not."""
    library = a_library("l", "/l", "a/foo", "b/foo")

    assert answer("l", "foo") == claude(library).resolve(skill="foo")
    assert answer("l", "foo", "b/foo") == claude(library).resolve(skill="b/foo")


def test_a_plugins_skill_is_never_the_plain_one() -> None:
    """`p:foo` is not `foo`, but in a library of that plugin, or where the path says so."""
    plugin = a_library("plug", "/home/u/.claude/plugins/cache/m/p/1.2/skills", "foo", host="claude-code")

    assert answer(None, "p:foo") == claude().resolve(skill="p:foo", cwd="/home/u/src/app")
    assert answer("plug", "foo", "foo") == claude(PERSONAL, plugin).resolve(skill="p:foo")
    path = "/home/u/.claude/plugins/cache/m/p/1.2/skills/foo"
    assert answer("plug", "foo", "foo") == claude(PERSONAL, plugin).resolve(skill="p:foo", path=path)


def test_hermes_names_a_category_with_a_colon_too() -> None:
    """`writing:release-notes` is the skill at that path."""
    resolver = Resolver((HERMES,), host="hermes", home=HOME)

    assert answer("hermes", "release-notes", "writing/release-notes") == resolver.resolve(skill="writing:release-notes")


def test_flat_skills_are_found_by_their_file() -> None:
    """`<name>.md` in the library's root is the skill of that name."""
    library = a_library("flat", "/d/.dsh/skills", "note")

    assert answer("flat", "note", "note") == claude(library).resolve(skill="x", path="/d/.dsh/skills/note.md")


def test_files_that_are_in_no_known_package() -> None:
    """`skill_at` and `in_package` know only packages that are there."""
    resolver = claude()

    assert None is resolver.skill_at("/etc/passwd")
    assert None is resolver.skill_at("/home/u/.claude/skills/gone/SKILL.md")
    assert answer("personal", "foo", "foo") == resolver.skill_at("../.claude/skills/foo/a.md", cwd="/home/u/src")
    assert resolver.in_package("/home/u/.claude/skills/foo/a.md")


def test_a_librarys_own_folder_is_where_the_host_looked() -> None:
    """A path that is a whole library prefers it where it has the skill, and says nothing else."""
    second = a_library("work", "/home/u/.hermes/profiles/work/skills", "foo", host="hermes")
    resolver = Resolver((HERMES, second), host="hermes", home=HOME)

    assert "work" == resolver.resolve(skill="foo", path="/home/u/.hermes/profiles/work/skills").library
    assert "hermes" == resolver.resolve(skill="release-notes", path=second.path).library
    assert None is resolver.resolve(skill="gone", path=second.path).library


def test_all_hosts_answers_in_one_place() -> None:
    """The store asks with the host; each host has its own libraries and precedence."""
    resolve = HostResolvers(ALL, only={"codex": ["other"]}, home=HOME)

    assert "personal" == resolve(host="claude-code", skill="foo", path=None, cwd="/home/u/src/app")
    assert "hermes" == resolve(host="hermes", skill="foo", path=None, cwd=None)
    assert "other" == resolve(host="codex", skill="foo", path=None, cwd=None)
    assert None is resolve(host="pi", skill="foo", path=None, cwd=None)


def test_the_hosts_place_tells_its_own_library() -> None:
    """Of two libraries of a host, the one in the home that its source lies in is its own."""
    both = [a_library("one", "/a/.claude/skills", "foo"), a_library("two", "/b/.claude/skills", "foo")]
    for path, expected in (("/a/.claude/projects", "one"), ("/b/.claude/projects", "two")):
        resolve = HostResolvers(both, places={"claude-code": path}, home=HOME)
        assert expected == resolve(host="claude-code", skill="foo", path=None, cwd=None)


def test_a_hundred_thousand_events_take_a_moment() -> None:
    """A first scan's events are answered from dictionaries."""
    libraries = [a_library(f"l{n}", f"/l{n}", *(f"c/s{k}" for k in range(200))) for n in range(20)]
    resolver = Resolver(libraries, host="claude-code", home=HOME)
    began = time.process_time()
    for n in range(100_000):
        resolver.resolve(skill=f"s{n % 200}", path=f"/l{n % 20}/c/s{n % 200}/SKILL.md", cwd=f"/w/{n % 50}")

    assert time.process_time() - began < 3
