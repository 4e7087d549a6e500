"""Looking at some skills alone says of them what a look at the whole library says, also while things change."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from curatord.adapters.library import DiskLibrary
from curatord.adapters.library_scan import Package
from curatord.adapters.standing import LibraryStandings, Sites
from curatord.core.library import SkillContent
from curatord.core.ownership import LibraryView
from curatord.core.plan import Standing
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import SkillRecord
from curatord.core.values import LibraryName, RelPath, SkillKey
from tests.fakes.package_cache import MemoryCache

LIB = LibraryName("lib")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

COMMON = st.sampled_from(["a", "b", "grp"])
RARE = st.sampled_from(["a.md", "build", ".hid", "node_modules", "A", "_org", "extern", "grp2"])
NAMES = st.one_of(COMMON, COMMON, COMMON, RARE)
PATHS = st.one_of(NAMES, st.lists(NAMES, min_size=1, max_size=3).map("/".join))
# Most of what is done makes skills whose names and paths meet; the rest makes them odd.
SKILL = st.tuples(st.just("skill"), PATHS)
RECORD = st.tuples(st.just("usage"), st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2), st.booleans())
FLAT = st.tuples(st.just("file"), st.sampled_from(["a.md", "b.md"]))
ODD = st.one_of(
    st.tuples(st.sampled_from(["lower", "nested", "no-description", "other-name"]), PATHS),
    st.tuples(st.sampled_from(["dir", "file", "git", "edit", "unreadable", "description"]), PATHS),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("dead"), PATHS),
    st.tuples(st.just("hub"), st.sampled_from(["a", "zzz"]), PATHS),
    st.tuples(st.just("bundled"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("hermes-external"), PATHS),
    st.tuples(st.just("broken-usage")),
)
ACTIONS = st.one_of(SKILL, SKILL, SKILL, RECORD, FLAT, ODD, ODD, st.tuples(st.just("remove"), PATHS))


class WholeLooks(DiskLibrary):
    """The same library, which looks at everything for every question."""

    def look_at(self, keys: Collection[SkillKey], *, observed: Sequence[str] = ()) -> LibraryView:
        return DiskLibrary(self._settings, MemoryCache()).look(observed=observed)


def key(rel: str) -> SkillKey:
    return SkillKey(library=LIB, rel=RelPath(rel))


def write(root: Path, rel: str, *, name: str | None = None, file: str = "SKILL.md", description: str = "does") -> None:
    folder = root / rel
    folder.mkdir(parents=True, exist_ok=True)
    said = rel.rpartition("/")[2] if name is None else name
    (folder / file).write_text(f"---\nname: {said}\n{f'description: {description}' if description else ''}\n---\nx\n")


def do(root: Path, action: tuple[object, ...]) -> None:
    """Do one thing to the library; what the disk refuses (a file where a folder is) is left."""
    what = action[0]
    rel = str(action[1]) if len(action) > 1 else ""
    path = root / rel
    try:
        match what:
            case "skill":
                write(root, rel)
                if rel.endswith(".md"):
                    shutil.rmtree(path)
                    path.write_text("---\nname: a\ndescription: flat\n---\n")
            case "lower":
                write(root, rel, file="skill.md")
            case "nested":
                write(root, rel)
                write(root, f"{rel}/inner")
            case "no-description":
                write(root, rel, description="")
            case "other-name":
                write(root, rel, name="b")
            case "dir":
                path.mkdir(parents=True, exist_ok=True)
            case "file":
                path.write_text(f"---\nname: {path.stem}\ndescription: flat\n---\n")
            case "git":
                (path / ".git").mkdir(parents=True, exist_ok=True)
            case "description":
                path.mkdir(parents=True, exist_ok=True)
                (path / "DESCRIPTION.md").write_text("a category")
            case "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "edit":
                with (path / "SKILL.md").open("a") as file:
                    file.write("more\n")
            case "unreadable":
                (path / "SKILL.md").unlink()
                (path / "SKILL.md").mkdir()
            case "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(root / str(action[2]))
            case "dead":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(root / "nowhere")
            case "usage":
                row = {"created_by": "agent" if action[2] else None, "pinned": not action[2]}
                names = action[1]
                assert isinstance(names, list)
                (root / ".usage.json").write_text(json.dumps(dict.fromkeys(names, row)))
            case "broken-usage":
                (root / ".usage.json").write_text("{")
            case "hub":
                (root / ".hub").mkdir(exist_ok=True)
                (root / ".hub/lock.json").write_text(
                    json.dumps({"version": 1, "installed": {rel: {"install_path": str(action[2])}}})
                )
            case "bundled":
                (root / ".bundled_manifest").write_text(f"{rel}:{0:032x}\n")
            case "hermes-external":
                (root.parent / "config.yaml").write_text(f"skills:\n  external_dirs: ['{path}']\n")
    except OSError:
        return


def standings(library: DiskLibrary, said: LibrarySettings, keys: Sequence[SkillKey]) -> dict[SkillKey, Standing]:
    def record(key: SkillKey) -> SkillRecord | None:
        adopted = SkillRecord(key=key, state_since=NOW, first_seen_at=NOW, born_at=NOW, owner="adopted")
        return adopted if key.rel == "b" else None

    ask = LibraryStandings(libraries={LIB: library}, settings={LIB: said}, record_of=record, observed=lambda _: ())
    return ask(keys)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    layout=st.sampled_from(["auto", "hermes", "agent-skills", "flat"]),
    manage=st.sampled_from(["owned", "all", "none"]),
    outside=st.booleans(),
    before=st.lists(ACTIONS, max_size=9),
    after=st.lists(ACTIONS, max_size=4),
    asked=st.lists(PATHS, max_size=3),
)
@example("hermes", "owned", False, [("skill", "grp2/a"), ("skill", "a")], [("remove", "grp2/a")], [])
@example("hermes", "owned", False, [("skill", "a")], [("link", "grp2", "a"), ("skill", "b/a")], [])
@example(
    "hermes", "all", False, [("skill", "b/a"), ("other-name", "grp"), ("hub", "zzz", "grp")], [("hub", "a", "b")], []
)
def test_the_same_is_said_as_by_a_whole_look(
    layout: str,
    manage: str,
    outside: bool,
    before: list[tuple[object, ...]],
    after: list[tuple[object, ...]],
    asked: list[str],
) -> None:
    """Of every skill there is and of paths where none is; then again, with what was kept, after changes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "skills"
        root.mkdir(parents=True)
        write(Path(folder), "extern/c")
        said = LibrarySettings(
            name=LIB,
            path=str(root),
            layout=layout,  # type: ignore[arg-type]  # drawn from the good ones
            manage=manage,  # type: ignore[arg-type]  # as above
            external_dirs=(str(Path(folder) / "extern"), str(root / "extern")) if outside else (),
        )
        library, whole = DiskLibrary(said, MemoryCache()), WholeLooks(said, MemoryCache())
        if layout == "hermes":
            do(root, ("usage", ["a", "grp"], True))
        for actions in (before, after, []):
            for action in actions:
                do(root, action)
            keys = [skill.key for skill in whole.look_at(()).snapshot.skills]
            keys += [one for rel in asked if (one := key(rel)) not in keys]
            for some in (keys, *([one] for one in keys[:6])):
                assert standings(whole, said, some) == standings(library, said, some)


def test_kept_names_notice_a_namesake(tmp_path: Path) -> None:
    """An agent's skill stops being the record's one when another of its name appears, in whatever way it does."""
    root = tmp_path / "skills"
    write(root, "cat/one")
    write(root, "other/two/one")  # inside a package: none of its own
    write(root, "other/two")
    (root / ".usage.json").write_text(json.dumps({"one": {"created_by": "agent"}}))
    for path in root.rglob("*"):
        os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    said = LibrarySettings(name=LIB, path=str(root), host="hermes", layout="hermes")
    library = DiskLibrary(said, MemoryCache())
    time.sleep(2.1)  # so that the kept identities count

    def managed() -> bool:
        return standings(library, said, [key("cat/one")])[key("cat/one")].managed

    alone = [managed(), managed()]
    (root / "other/two/SKILL.md").unlink()  # a group now, with a skill in it
    with_one = managed()
    write(root, "other/two")
    back = managed()
    write(root, "new/one")

    assert [True, True] == alone
    assert [False, True, False] == [with_one, back, managed()]


def test_a_pin_is_noticed_at_once(tmp_path: Path) -> None:
    """What the host's file said a moment ago is not what is gone by."""
    root = tmp_path / "skills"
    write(root, "cat/one")
    said = LibrarySettings(name=LIB, path=str(root), host="hermes", layout="hermes")
    library = DiskLibrary(said, MemoryCache())

    seen = []
    for pinned in (False, True, False):
        (root / ".usage.json").write_text(json.dumps({"one": {"created_by": "agent", "pinned": pinned}}))
        seen.append(standings(library, said, [key("cat/one")])[key("cat/one")].pinned)

    assert [False, True, False] == seen


def test_no_other_package_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One skill's question costs one skill's reading, and none where its files are the same."""
    from curatord.adapters import library as module

    for number in range(30):
        write(tmp_path / "skills", f"s{number}")
    read: list[str] = []
    real = module._read

    def counted(package: Package, begun_ns: int) -> tuple[SkillContent, bytes | None]:
        read.append(package.rel)
        return real(package, begun_ns)

    monkeypatch.setattr(module, "_read", counted)
    said = LibrarySettings(name=LIB, path=str(tmp_path / "skills"))
    library = DiskLibrary(said, MemoryCache())
    time.sleep(2.1)

    for _ in range(2):
        standings(library, said, [key("s7")])

    assert ["s7"] == read


def test_a_site_is_looked_for_until_it_is_seen(tmp_path: Path) -> None:
    """A library that was away at the start has its host's home once it is back: its locks and records count."""
    root = tmp_path / "home" / "skills"
    said = LibrarySettings(name=LIB, path=str(root), host="hermes")
    sites = Sites([(said, DiskLibrary(said, MemoryCache()))])
    away = sites[LIB]
    write(root, "cat/one")
    (root / ".usage.json").write_text("{}")

    back = sites[LIB]
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    gone = sites[LIB]

    assert away.home is None
    assert str(tmp_path / "home") == back.home
    assert back == gone
    assert LibraryName("nobody") not in sites
