"""Plans: what speaks against an action, all at once, and the JSON they are kept as."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curatord.core.curation import content_of
from curatord.core.plan import (
    Action,
    Adopt,
    Archive,
    CreateSkill,
    Disown,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Patch,
    Pin,
    Plan,
    Reactivate,
    Restore,
    SetImportance,
    Standing,
    Unpin,
    WriteSupportFile,
    actions_from_json,
    actions_to_json,
    objections,
    targets,
    validate,
)
from curatord.core.proposal_id import proposal_id
from curatord.core.values import Fingerprint, Importance, LibraryName, RelPath, SkillKey, State

F = Fingerprint("f" * 64)
BODY = FileChange(path=RelPath("SKILL.md"), content=b"---\n\xff", mode=0o600)


def key(rel: str, library: str = "lib") -> SkillKey:
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def standing(rel: str, *, there: bool = True, managed: bool = True, state: State = State.ACTIVE) -> Standing:
    return Standing(key=key(rel), there=there, managed=managed, fingerprint=F, state=state, why="no licence")


def merge(*members: str, umbrella: str = "kit", new: bool = True) -> Merge:
    return Merge(
        umbrella=key(umbrella),
        reason="r",
        writes=(PackageWrite(key=key(umbrella), expected=None if new else F, files=(BODY,)),),
        members=tuple(Member(key=key(member), expected=F, reason="r") for member in members),
    )


ACTIONS: tuple[Action, ...] = (
    MarkStale(key=key("a"), reason="r", expected=F),
    Reactivate(key=key("a"), reason="r", expected=F),
    Archive(key=key("a"), reason="r", expected=F, drop_references=True),
    Restore(key=key("a"), reason="r", by="user", archived=RelPath("a-20260101000000")),
    Pin(key=key("a"), reason="r", by="user"),
    Unpin(key=key("a"), reason="r", by="user"),
    SetImportance(key=key("a"), reason="r", by="user", importance=Importance.LOW),
    Adopt(key=key("a"), reason="r", by="user"),
    Disown(key=key("a"), reason="r", by="user"),
    Patch(key=key("a"), reason="r", by="model", expected=F, proposal="p", files=(BODY,)),
    WriteSupportFile(key=key("a"), reason="r", by="model", expected=F, files=(BODY,)),
    CreateSkill(key=key("ü/a"), reason="r", by="model", files=(BODY,)),
    merge("a", "b"),
)


def test_every_action_survives_json() -> None:
    """A stored proposal gives back the very values, bytes and modes too."""
    assert ACTIONS == actions_from_json(actions_to_json(ACTIONS))


@pytest.mark.parametrize("text", [b"", b"[]x", b'[{"action": "delete", "key": {}}]', b"[{}]"])
def test_what_are_no_actions_is_refused(text: bytes) -> None:
    """An unknown action, or half of one, is a `ValueError` and never an empty proposal."""
    with pytest.raises(ValueError, match=r"truncated|malformed|Invalid|missing"):
        actions_from_json(text)


CHANGES: tuple[Action, ...] = (
    MarkStale(key=key("a"), reason="r", expected=F),
    Archive(key=key("a"), reason="r", expected=F),
    Patch(key=key("a"), reason="r", expected=F, files=(BODY,)),
    WriteSupportFile(key=key("a"), reason="r", expected=F, files=(BODY,)),
    merge("a"),
    merge("b", umbrella="a", new=False),
)


@pytest.mark.parametrize("action", CHANGES, ids=lambda action: str(action.__struct_config__.tag))
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"there": False}, "gone"),
        ({"managed": False}, "unmanaged"),
        ({"pinned": True}, "pinned"),
        ({"importance": Importance.CRITICAL}, "critical"),
        ({"broken": "no header"}, "broken"),
        ({"fingerprint": Fingerprint("0")}, "edited"),
        ({"fingerprint": None}, "unreadable"),
    ],
)
def test_what_must_not_change_does_not(action: Action, change: dict[str, object], code: str) -> None:
    """Whatever the action: absent, unmanaged, pinned, critical, broken, edited or unreadable skills are refused."""
    facts = {key("a"): replace(standing("a"), **change), key("b"): standing("b")}  # type: ignore[arg-type]

    assert code in [violation.code for violation in objections(action, facts)]
    assert () == objections(action, {key("a"): standing("a"), key("b"): standing("b")})


def test_all_violations_are_told_at_once() -> None:
    """A bad plan comes back with everything that is wrong with it, in the order of its actions."""
    facts = {key("a"): replace(standing("a"), pinned=True, managed=False), key("b"): standing("b")}
    plan = Plan(
        actions=(
            Archive(key=key("a"), reason="r", expected=F),
            Archive(key=key("gone"), reason="r", expected=F),
            Archive(key=key("b"), reason="r"),
            Archive(key=key("b"), reason="r", expected=F),
        )
    )

    found = [(violation.index, violation.code) for violation in validate(plan, facts)]

    assert [(0, "unmanaged"), (0, "pinned"), (1, "gone"), (2, "invalid"), (3, "invalid")] == found


def new(rel: str, *files: FileChange) -> CreateSkill:
    return CreateSkill(key=key(rel), reason="r", files=files or (BODY,))


def file(path: str, mode: int | None = None) -> FileChange:
    return FileChange(path=RelPath(path), content=b"", mode=mode)


MEMBER = Member(key=key("a"), expected=F, reason="r")
BAD_PLANS: list[tuple[str, tuple[Action, ...]]] = [
    ("named twice", (merge("a", "a"),)),
    ("go into itself", (merge("kit", "a"),)),
    ("nothing goes into it", (merge(),)),
    ("changes it already", (merge("a"), merge("a", umbrella="other"))),
    ("changes it already", (merge("a", umbrella="b", new=False), Archive(key=key("b"), reason="r", expected=F))),
    ("takes it away", (merge("b"), merge("a", umbrella="b", new=False))),
    ("only in case", (merge("b", umbrella="A"),)),
    ("only in case", (merge("a"), new("KIT"))),
    ("only in case", (new("\u00e9"), new("e\u0301"))),
    ("nothing is written into it", (Merge(umbrella=key("k"), reason="r", writes=(), members=(MEMBER,)),)),
    ("another library", (Merge(umbrella=key("k", "other"), reason="r", writes=(), members=(MEMBER,)),)),
    ("needs a SKILL.md", (new("n", file("x")),)),
    ("written twice", (new("n", BODY, file("skill.MD")),)),
    ("mode 4755", (new("n", file("SKILL.md", 0o4755)),)),
    ("not a path", (new("n", BODY, file("../SKILL.md")),)),
    ("not a path", (new("n", BODY, file("COM1.txt")),)),
    ("not a path", (new("n", BODY, file("a\u202eb")),)),
    ("not a name", (new(".git"),)),
    ("not a name", (new("a/aux"),)),
]


@pytest.mark.parametrize(("what", "actions"), BAD_PLANS)
def test_plans_that_contradict_themselves(what: str, actions: tuple[Action, ...]) -> None:
    """Chains, twins, doubles, umbrellas that go away, and names that nobody could check out are refused."""
    facts = {key("a"): standing("a"), key("b"): standing("b")}

    found = validate(Plan(actions=actions), facts)

    assert any(what in violation.what for violation in found), found


def test_decisions_may_come_in_a_row() -> None:
    """Adopting and pinning the same skill is no contradiction."""
    plan = Plan(actions=(Adopt(key=key("a"), reason="", by="user"), Pin(key=key("a"), reason="", by="user")))

    assert () == validate(plan, {key("a"): standing("a", managed=False)})


def test_states_that_are_so_already() -> None:
    """Marking a stale one stale, or an active one active, is told as nothing to do."""
    stale = {key("a"): standing("a", state=State.STALE)}
    active = {key("a"): standing("a")}

    assert ["nothing"] == [v.code for v in objections(MarkStale(key=key("a"), reason="", expected=F), stale)]
    assert ["nothing"] == [v.code for v in objections(Reactivate(key=key("a"), reason="", expected=F), active)]


def test_targets_of_a_merge() -> None:
    """All skills that it touches, the umbrella first."""
    assert (key("kit"), key("a"), key("b")) == targets(merge("a", "b"))


def test_the_id_of_a_proposal_is_its_content() -> None:
    """Other words, another proposer or another order of targets are the same proposal; other bytes are not."""
    one = Patch(key=key("a"), reason="because", by="model", expected=F, files=(BODY,))
    same = Patch(key=key("a"), reason="for another reason", by="user", expected=F, proposal="x", files=(BODY,))
    other = Patch(key=key("a"), reason="because", by="model", expected=F, files=(file("SKILL.md"),))
    moved_on = Patch(key=key("a"), reason="because", by="model", expected=Fingerprint("0"), files=(BODY,))
    ids = [
        proposal_id(LibraryName("lib"), "patch", keys, content_of([action]))
        for action, keys in (
            (one, (key("a"), key("b"))),
            (same, (key("b"), key("a"))),
            (other, (key("a"), key("b"))),
            (moved_on, (key("a"), key("b"))),
        )
    ]

    assert ids[0] == ids[1]
    assert 3 == len(set(ids))
