"""Whatever the packages are: what a fold makes of them holds every line, code block and file, and no link breaks."""

from __future__ import annotations

import posixpath

from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.agent_skills import violations
from curatord.core.umbrella.build import Built, Fallen, build, dead_links
from curatord.core.umbrella.coverage import coverage
from curatord.core.umbrella.decision import Decision, Taken
from curatord.core.umbrella.fold import Folded, cannot_move, fold_in
from curatord.core.umbrella.links import Ground, Moved, find_references, is_relative
from curatord.core.umbrella.packed import Packed, is_text
from tests.core.umbrella.packages import NAMES, key, packages

ROOTS = ("/home/u/.claude/skills",)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Packed | None, Decision, dict[str, Packed]]:
    """An umbrella or none, and one to three members to be taken in, each in some way."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    members = [draw(packages(name)) for name in names]
    before = draw(st.one_of(st.none(), packages("the-umbrella")))
    umbrella = before.key if before is not None else key("the-umbrella")
    taken = tuple(
        Taken(
            key=member.key,
            how=draw(st.sampled_from(("section", "section", "reference", "template", "script"))),
            title=draw(st.sampled_from(("", "A title", "Same", "# odd [x](y)"))),
            path=draw(st.sampled_from(("", "references/same.md", "templates/t.md", "references/notes.md"))),
        )
        for member in members
    )
    decision = Decision(
        umbrella=umbrella,
        existing=before is not None,
        members=taken,
        description="Use for all: of it.",
        overview=draw(st.sampled_from(("", "One place.", "# H\n\n```\nopen"))),
    )
    return before, decision, {str(member.key): member for member in members}


def folded(case: tuple[Packed | None, Decision, dict[str, Packed]]) -> Folded:
    before, decision, members = case
    others = Ground(
        files=frozenset(), packages=frozenset({"other", "csv-fix", "net-kit"}), moved={}, went={}, roots=ROOTS
    )
    return fold_in(before, decision, {member.key: member for member in members.values()}, others=others)


@given(cases())
@settings(max_examples=400, deadline=None)
def test_nothing_is_lost(case: tuple[Packed | None, Decision, dict[str, Packed]]) -> None:
    """The proof finds all of every member, and what the umbrella had is still there."""
    before, _, members = case
    result = folded(case)

    proof = coverage(members.values(), result.after, result.edits)
    assert () == tuple(what for member in proof.members for what in member.missing)
    assert proof.whole
    if before is not None:
        own = [file.path for file in before.support]
        assert [result.after.file(path).mode for path in own] == [before.file(path).mode for path in own]  # type: ignore[union-attr]
        assert coverage([before], result.after, result.edits).members[0].files[0] == len(own)


@given(cases())
@settings(max_examples=400, deadline=None)
def test_lines_are_found_by_a_stranger_too(case: tuple[Packed | None, Decision, dict[str, Packed]]) -> None:
    """A search that knows nothing of how folding works finds each line, but for those in which a reference moved."""
    _, _, members = case
    result = folded(case)

    there = {
        line.strip().lstrip("#").strip()
        for file in result.after.files
        for line in file.data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    }
    moved = {(edit.where, edit.line) for edit in result.edits}
    for member in members.values():
        entry = member.file("SKILL.md")
        assert entry is not None
        text = entry.data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip() and line != "---" and (member.place("SKILL.md"), number) not in moved:
                assert line.strip().lstrip("#").strip() in there


@given(cases())
@settings(max_examples=400, deadline=None)
def test_links_lead_where_they_led(case: tuple[Packed | None, Decision, dict[str, Packed]]) -> None:
    """Each relative link of a moved text that led to a file leads to that same file afterwards."""
    before, _, members = case
    result = folded(case)
    everything = [*members.values(), *([before] if before is not None else [])]
    homes = {package.place(file.path): (package, file) for package in everything for file in package.files}

    assert [] == dead_links(result, everything)
    for placed in result.placed:
        member = members[str(placed.key)]
        if placed.how == "section":
            continue
        for file in member.files:
            if not is_text(file.path):
                continue
            new = placed.path if file.path == "SKILL.md" else f"{placed.folder}/{file.path}"
            after = result.after.file(new)
            assert after is not None
            old_links = find_references(file.data.decode("utf-8", "replace"), mentions=False)
            new_links = find_references(after.data.decode("utf-8", "replace"), mentions=False)
            assert len(old_links) == len(new_links)
            for old_link, new_link in zip(old_links, new_links, strict=True):
                old_path, new_path = is_relative(old_link), is_relative(new_link)
                if old_path is None or new_path is None:
                    continue
                target = posixpath.normpath(posixpath.join(posixpath.dirname(member.place(file.path)), old_path))
                where = posixpath.normpath(posixpath.join(posixpath.dirname(result.after.place(new)), new_path))
                if target in homes:
                    package, old_file = homes[target]
                    there = result.ground.moved.get(target, Moved(place=target)).place
                    assert where == there
                    assert package.key == result.after.key or old_file.path == "SKILL.md" or there != target


@given(cases())
@settings(max_examples=200, deadline=None)
def test_what_comes_out_is_a_valid_skill(case: tuple[Packed | None, Decision, dict[str, Packed]]) -> None:
    """A merge that is built breaks no rule of the specification that was not broken before, and is told apart."""
    before, decision, members = case
    built = build(
        decision,
        before=before,
        members={member.key: member for member in members.values()},
        pointing={},
        layout="agent-skills",
        others=Ground(files=frozenset(), packages=frozenset(), moved={}, went={}, roots=ROOTS),
        reasons={},
    )

    assert isinstance(built, Built | Fallen)
    if isinstance(built, Built):
        after = built.folded.after.file("SKILL.md")
        assert after is not None
        old = before.file("SKILL.md") if before is not None else None
        had = {v.code for v in violations(old.data, "x", "agent-skills")} if old is not None else set()
        now = {violation.code for violation in violations(after.data, decision.umbrella.name, "agent-skills")}
        assert now - had <= {"name-folder"} - had
        assert all(cannot_move(member) is None for member in built.before)
        assert built.folded.after.fingerprint == built.folded.after.with_files(()).fingerprint
