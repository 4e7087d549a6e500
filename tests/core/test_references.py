"""Who names whom: schedules and links of other skills."""

from __future__ import annotations

from typing import Literal

import pytest

from curatord.core.hermes_files import ScheduleReference
from curatord.core.library import LibrarySnapshot, OutwardLink, Skill, SkillContent
from curatord.core.references import SkillIndex, references_by_skill
from curatord.core.settings import LibrarySettings
from curatord.core.values import LibraryName, RelPath, SkillKey


def a_skill(rel: str, *links: OutwardLink, library: str = "lib", form: Literal["folder", "flat"] = "folder") -> Skill:
    """Return a skill at *rel* of *library* with *links* out of it."""
    path = f"/{library}/{rel}" + (".md" if form == "flat" else "")
    return Skill(
        key=SkillKey(library=LibraryName(library), rel=RelPath(rel)),
        path=path,
        form=form,
        content=SkillContent(entry_file="SKILL.md", outward=links),
    )


def link(target: str, kind: Literal["link", "path", "code", "wiki"] = "link", line: int = 3) -> OutwardLink:
    """Return a link as a package's text has it."""
    return OutwardLink(target=target, kind=kind, file="SKILL.md", line=line)


def job(target: str, *, enabled: bool = True) -> tuple[str, ScheduleReference]:
    """Return a reference of a scheduled job."""
    return "lib", ScheduleReference(job="weekly", index=0, place="skills", target=target, enabled=enabled)


def snapshot(*skills: Skill, library: str = "lib") -> LibrarySnapshot:
    """Return a snapshot of *skills*."""
    return LibrarySnapshot(
        library=LibraryName(library), root=f"/{library}", real_root=f"/data/{library}", layout="hermes",
        archive="/a", skills=skills,
    )  # fmt: skip


def references(
    *snapshots: LibrarySnapshot, jobs: tuple[tuple[str, ScheduleReference], ...] = ()
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the words for each referenced skill, and what named nobody."""
    settings = {"lib": LibrarySettings(name="lib", path="/lib", seen_as=("/container/skills",))}
    index = SkillIndex(snapshots, settings, home="/home/u")
    found, unknown = references_by_skill(snapshots, jobs, index)
    return {str(key): [reason.words for reason in reasons] for key, reasons in found.items()}, unknown


@pytest.mark.parametrize(
    "target",
    [
        "close",
        "ops/close",
        "/lib/ops/close",
        "/lib/ops/close/SKILL.md",
        "/data/lib/ops/close/",
        "/container/skills/ops/close/x.sh",
    ],
)
@pytest.mark.parametrize("enabled", [True, False])
def test_schedules(target: str, enabled: bool) -> None:
    """A job names a skill by name or by any path that leads to it, paused or not (bugs B019)."""
    found, unknown = references(snapshot(a_skill("ops/close"), a_skill("other")), jobs=(job(target, enabled=enabled),))

    paused = "" if enabled else " (paused)"
    assert ({"lib/ops/close": [f"the scheduled job `weekly`{paused} names it"]}, []) == (found, unknown)


def test_a_schedule_that_names_nobody_is_told() -> None:
    """A name that no live skill has protects nobody and is said."""
    assert ({}, ["the scheduled job `weekly` names `gone`, which is no live skill"]) == references(
        snapshot(a_skill("x")), jobs=(job("gone"),)
    )


def test_a_shared_name_protects_all() -> None:
    """Where several skills have the name, each is protected; one of the job's own library goes before others'."""
    one = snapshot(a_skill("a/greet"), a_skill("b/greet"))
    other = snapshot(a_skill("greet", library="other"), library="other")

    assert ["lib/a/greet", "lib/b/greet"] == list(references(one, other, jobs=(job("greet"),))[0])
    assert ["other/greet"] == list(references(snapshot(), other, jobs=(job("greet"),))[0])


@pytest.mark.parametrize(
    "found",
    [
        link("../b/SKILL.md"),
        link("../b"),
        link("../b/references/x.md"),
        link("../b/scripts/run.sh", "code"),
        link("/lib/b/SKILL.md", "path"),
        link("/container/skills/b/SKILL.md", "path"),
        link("b", "wiki"),
    ],
    ids=lambda found: found.target,
)
def test_links(found: OutwardLink) -> None:
    """A link, a path, a command or a `[[name]]` in another skill's text needs the skill."""
    assert {"lib/b": ["`a` leads to it (SKILL.md, line 3)"]} == references(snapshot(a_skill("a", found), a_skill("b")))[
        0
    ]


def test_home_stands_for_itself() -> None:
    """`~` in a text is the user's home."""
    here = LibrarySnapshot(
        library=LibraryName("lib"), root="/home/u/s", real_root="/home/u/s", layout="agent-skills", archive="/a",
        skills=(
            a_skill("a", link("~/s/b/run.sh", "path")),
            Skill(
                key=SkillKey(library=LibraryName("lib"), rel=RelPath("b")), path="/home/u/s/b", form="folder",
                content=SkillContent(),
            ),
        ),
    )  # fmt: skip

    assert ["lib/b"] == list(references(here)[0])


@pytest.mark.parametrize(
    "found",
    [link("../a/references/x.md"), link("../gone/SKILL.md"), link("../../etc/passwd"), link("/lib"), link("..")],
)
def test_links_that_need_nobody(found: OutwardLink) -> None:
    """A link to itself, to nothing, out of the library or to the library as a whole names no skill."""
    assert {} == references(snapshot(a_skill("a", found), a_skill("b")))[0]


def test_flat_skills() -> None:
    """A flat skill's neighbours are beside it, with or without `.md`."""
    flat = a_skill("a", link("b.md"), link("c/SKILL.md"), form="flat")
    found, _ = references(snapshot(flat, a_skill("b", form="flat"), a_skill("c")))

    assert ["lib/b", "lib/c"] == list(found)


def test_one_that_names_it_often_counts_once() -> None:
    """Ten links from one skill are one reason."""
    links = [link("../b/SKILL.md", line=number) for number in range(1, 9)]

    assert {"lib/b": ["`a` leads to it (SKILL.md, line 1)"]} == references(
        snapshot(a_skill("a", *links), a_skill("b"))
    )[0]
