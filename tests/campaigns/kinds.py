"""Every kind of change there is: what is prepared for it, and the command that is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from curatord.core.curation import Proposal, content_of
from curatord.core.plan import (
    Action,
    Archive,
    CreateSkill,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Patch,
    Reactivate,
    WriteSupportFile,
)
from curatord.core.proposal_id import proposal_id
from curatord.core.values import Fingerprint, LibraryName, RelPath, SkillKey

if TYPE_CHECKING:
    from curatord.wiring import Parts
    from tests.campaigns.home import BigHome
    from tests.campaigns.processes import Cutter

__all__ = ["KINDS", "Kind", "proposal"]

LIB = LibraryName("hermes")
UMBRELLA = "cat3/kit"


def key(rel: str) -> SkillKey:
    return SkillKey(library=LIB, rel=RelPath(rel))


def body(name: str, text: str) -> bytes:
    return f"---\nname: {name}\ndescription: Use when {name} is asked for.\n---\n\n# {name}\n\n{text}\n".encode()


def actions(kind: str, rels: Sequence[str], seen: dict[SkillKey, Fingerprint | None], old: bytes) -> tuple[Action, ...]:
    """Return what a proposal of *kind* about *rels* would do."""

    def expected(rel: str) -> Fingerprint:
        fingerprint = seen[key(rel)]
        assert fingerprint is not None, rel
        return fingerprint

    first = rels[0]
    files: tuple[FileChange, ...]
    match kind:
        case "patch":
            files = (
                FileChange(path=RelPath("SKILL.md"), content=old + b"\nOne more line.\n"),
                FileChange(path=RelPath("scripts/run.sh"), content=b"#!/bin/sh\nnew\n", mode=0o700),
                FileChange(path=RelPath("templates/deep/t.md"), content=b"t\n"),
            )
            return (Patch(key=key(first), reason="r", by="model", expected=expected(first), files=files),)
        case "support":
            files = (FileChange(path=RelPath("references/extra.md"), content=b"x" * 70_000),)
            return (WriteSupportFile(key=key(first), reason="r", by="model", expected=expected(first), files=files),)
        case "create":
            name = first.rpartition("/")[2]
            files = (
                FileChange(path=RelPath("SKILL.md"), content=body(name, "made")),
                FileChange(path=RelPath("scripts/x.sh"), content=b"x", mode=0o755),
            )
            return (CreateSkill(key=key(first), reason="r", by="model", files=files),)
        case "merge":
            content = body("kit", "".join(f"The text of {rel.rpartition('/')[2]}.\n\n" for rel in rels))
            write = PackageWrite(
                key=key(UMBRELLA),
                expected=None,
                files=(
                    FileChange(path=RelPath("SKILL.md"), content=content),
                    *(
                        FileChange(path=RelPath(f"scripts/{rel.rpartition('/')[2]}.sh"), content=b"s", mode=0o755)
                        for rel in rels
                    ),
                ),
            )
            members = tuple(Member(key=key(rel), expected=expected(rel), reason="narrow") for rel in rels)
            return (Merge(umbrella=key(UMBRELLA), reason="r", writes=(write,), members=members),)
        case "stale":
            return (MarkStale(key=key(first), reason="r", expected=expected(first)),)
        case "active":
            return (Reactivate(key=key(first), reason="r", expected=expected(first)),)
        case "prune":
            return (Archive(key=key(first), reason="r", by="model", expected=expected(first), drop_references=True),)
        case "held":
            return tuple(Archive(key=key(rel), reason="r", expected=expected(rel)) for rel in rels)
    raise AssertionError(kind)


def proposal(parts: Parts, kind: str, rels: Sequence[str], *, now: datetime) -> Proposal:
    """Return a proposal of *kind* about the skills *rels*, decided on what they are now."""
    from pathlib import Path

    keys = [key(rel) for rel in rels]
    standings = parts.applier.standings(keys)
    path = Path(parts.sites[LIB].root) / rels[0] / "SKILL.md"
    old = path.read_bytes() if path.exists() else b""
    made = actions(kind, rels, {one: standing.fingerprint for one, standing in standings.items()}, old)
    return Proposal(
        id=proposal_id(LIB, kind, keys, content_of(made)),
        kind=kind,
        library=LIB,
        targets=tuple(keys),
        summary=f"{kind} of {len(rels)}",
        reason="a campaign asks",
        created_at=now,
        actions=made,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    One kind of change: *prepare* is done undisturbed and returns the words of the command that is cut.

    *whole*: before or after and nothing else; otherwise several actions, each of which is whole. *undo*: that an undo
    brings the files back to the byte.
    """

    prepare: Callable[[Cutter, BigHome], tuple[str, ...]]
    whole: bool = True
    undo: bool = True


def _words(*words: str) -> Callable[[Cutter, BigHome], tuple[str, ...]]:
    return lambda _cutter, _home: words


def _after(*first: Sequence[str], then: Sequence[str]) -> Callable[[Cutter, BigHome], tuple[str, ...]]:
    def prepare(cutter: Cutter, home: BigHome) -> tuple[str, ...]:
        for words in first:
            done = cutter.do(home, *words)
            assert done.code == 0, (words, done)
        return tuple(then)

    return prepare


def _approving(kind: str, *rels: str, word: str = "approve") -> Callable[[Cutter, BigHome], tuple[str, ...]]:
    def prepare(cutter: Cutter, home: BigHome) -> tuple[str, ...]:
        done = cutter.do(home, order="propose", kind=kind, skills=rels)
        assert done.code == 0, done
        return (word, done.out.strip())

    return prepare


def _undoing(
    first: Callable[[Cutter, BigHome], tuple[str, ...]],
) -> Callable[[Cutter, BigHome], tuple[str, ...]]:
    def prepare(cutter: Cutter, home: BigHome) -> tuple[str, ...]:
        words = first(cutter, home)
        done = cutter.do(home, *words)
        assert done.code == 0, (words, done)
        last = home.last_action()
        assert last is not None
        return ("undo", last)

    return prepare


def _backed_up(cutter: Cutter, home: BigHome) -> tuple[str, ...]:
    """Make a backup, then change a skill of it."""
    first = cutter.do(home, "backup", "create")
    assert first.code == 0, first
    words = _approving("patch", A)(cutter, home)
    done = cutter.do(home, *words)
    assert done.code == 0, done
    return ("backup", "restore", "last", "--skill", "skill-030")


def _moved(cutter: Cutter, home: BigHome) -> tuple[str, ...]:
    """Pin a skill, and let its user move it to another category."""
    done = cutter.do(home, "pin", "skill-030")
    assert done.code == 0, done
    (home.library / A).rename(home.library / "cat6" / "skill-030")
    return ("scan",)


A, B, C, D = "cat2/skill-030", "cat5/skill-040", "cat3/skill-045", "cat1/skill-120"

KINDS: dict[str, Kind] = {
    "archive": Kind(prepare=_words("archive", "skill-030")),
    "restore": Kind(prepare=_after(["archive", "skill-030"], then=["restore", "skill-030"])),
    "pin": Kind(prepare=_words("pin", "skill-030")),
    "unpin": Kind(prepare=_after(["pin", "skill-030"], then=["unpin", "skill-030"])),
    "importance": Kind(prepare=_words("importance", "skill-030", "critical")),
    "adopt": Kind(prepare=_words("adopt", "skill-030")),
    "disown": Kind(prepare=_after(["adopt", "skill-030"], then=["disown", "skill-030"])),
    "stale": Kind(prepare=_approving("stale", A)),
    "patch": Kind(prepare=_approving("patch", A)),
    "support": Kind(prepare=_approving("support", A)),
    "create": Kind(prepare=_approving("create", "cat3/brand-new"), undo=False),
    "merge": Kind(prepare=_approving("merge", A, B, C), undo=False),
    "prune": Kind(prepare=_approving("prune", D)),
    "held": Kind(prepare=_approving("held", A, B, C), whole=False),
    "reject": Kind(prepare=_approving("patch", A, word="reject"), undo=False),
    "undo archive": Kind(prepare=_undoing(_words("archive", "skill-030")), undo=False),
    "undo patch": Kind(prepare=_undoing(_approving("patch", A)), undo=False),
    "undo create": Kind(prepare=_undoing(_approving("create", "cat3/brand-new")), undo=False),
    "undo merge": Kind(prepare=_undoing(_approving("merge", A, B, C)), undo=False),
    "backup create": Kind(prepare=_words("backup", "create"), undo=False),
    "backup restore": Kind(prepare=_backed_up, undo=False),
    "scan after a move": Kind(prepare=_moved, whole=False, undo=False),
    "pause": Kind(prepare=_words("pause"), undo=False),
    "resume": Kind(prepare=_after(["pause"], then=["resume"]), undo=False),
    "reject many": Kind(prepare=_approving("held", A, B, C, word="reject"), undo=False),
    "run": Kind(prepare=_words("run", "--no-llm"), whole=False, undo=False),
}
