"""
From a decision and the packages on disk to one `Merge` action, with the proof that it may be.

The fold is checked on the very bytes that will be written: nothing of a member is missing (`coverage`), no link that
led somewhere leads nowhere now (bugs B004), SKILL.md breaks no rule of the specification that it did not break before.
Whatever fails makes the whole cluster fall, with every reason; a member is never half taken in.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from curatord.core.agent_skills import Layout, violations
from curatord.core.cheap import dataclass, replace
from curatord.core.header import Fault
from curatord.core.plan import FileChange, Member, Merge, PackageWrite
from curatord.core.proposal_id import proposal_id
from curatord.core.skill import SKILL_FILE
from curatord.core.umbrella.coverage import Coverage, coverage
from curatord.core.umbrella.decision import Decision, Taken
from curatord.core.umbrella.fold import Folded, cannot_move, fold_in, moved_text
from curatord.core.umbrella.links import Edit, Ground, find_references, is_relative
from curatord.core.umbrella.packed import Packed, PackedFile, is_text
from curatord.core.values import RelPath, SkillKey

__all__ = ["KIND_MERGE", "Built", "Fallen", "build", "changes", "dead_links", "fold_checked"]

KIND_MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """Why a cluster cannot be merged as decided, each reason in words."""

    umbrella: SkillKey
    members: tuple[SkillKey, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """
    A merge ready to be proposed or applied.

    Attributes:
        proposal: Its id: the same skills, put together the same way, always have the same one.
        action: What the gate is asked to do.
        before: The members' packages as they are, for the proof on disk afterwards.
        others: Other skills' packages with their references following.
        coverage: On the planned bytes.
    """

    proposal: str
    decision: Decision
    action: Merge
    folded: Folded
    before: tuple[Packed, ...]
    others: tuple[tuple[Packed, Packed], ...]
    coverage: Coverage
    other_edits: tuple[Edit, ...]


def fold_checked(
    before: Packed | None, decision: Decision, members: Mapping[SkillKey, Packed], *, layout: Layout, others: Ground
) -> tuple[Folded, Coverage] | Fallen:
    """Return the umbrella's package with the proof that nothing is lost, or why it cannot be made so."""

    def fallen(*reasons: str) -> Fallen:
        return Fallen(
            umbrella=decision.umbrella, members=tuple(member.key for member in decision.members), reasons=reasons
        )

    stuck = [f"{key}: {why}" for key, package in sorted(members.items()) if (why := cannot_move(package)) is not None]
    if before is not None and (why := _no_umbrella(before)):
        stuck.append(f"{before.key}: {why}")
    if stuck:
        return fallen(*stuck)
    try:
        folded, proof = _folded(before, decision, members, others)
    except ValueError as error:
        return fallen(str(error))
    reasons = [] if proof.whole else [f"{m.key}: {what} would be lost" for m in proof.members for what in m.missing]
    reasons += dead_links(folded, [*members.values(), *([before] if before is not None else [])])
    reasons += _new_violations(folded, layout)
    return fallen(*reasons) if reasons else (folded, proof)


def _folded(
    before: Packed | None, decision: Decision, members: Mapping[SkillKey, Packed], others: Ground
) -> tuple[Folded, Coverage]:
    packages = [members[member.key] for member in decision.members]
    if decision.body is None:
        folded = fold_in(before, decision, members, others=others)
        return folded, coverage(packages, folded.after, folded.edits)
    # The model wrote the body: a member that is not found in it word for word keeps its original as a reference.
    as_files = replace(
        decision, members=tuple(replace(m, how="reference") if m.how == "section" else m for m in decision.members)
    )
    trial = fold_in(before, as_files, members, others=others, spare=tuple(members))
    found = coverage(packages, trial.after, trial.edits)
    spare = tuple(member.key for member in found.members if member.whole)
    folded = fold_in(before, as_files, members, others=others, spare=spare)
    return folded, coverage(packages, folded.after, folded.edits)


def _no_umbrella(package: Packed) -> str | None:
    if package.links:
        return f"it holds a link, `{package.links[0][0]}`, so nothing is put beside it"
    if package.entry != SKILL_FILE:
        return f"its text is `{package.entry}`"
    text = package.text
    return str(text) if isinstance(text, Fault) else None


def _new_violations(folded: Folded, layout: Layout) -> list[str]:
    name = folded.after.key.name
    entry = folded.after.file(SKILL_FILE)
    assert entry is not None, "folding writes it"
    now = violations(entry.data, name, layout)
    had: set[str] = set()
    if folded.before is not None:
        old = folded.before.file(folded.before.entry)
        had = {violation.code for violation in violations(old.data, name, layout)} if old is not None else set()
    return [f"{SKILL_FILE}: {violation.message}" for violation in now if violation.code not in had]


def dead_links(folded: Folded, sources: Sequence[Packed]) -> list[str]:
    """
    Return the links of the umbrella's texts that lead to nothing in its package and did not do so before.

    Args:
        sources: The packages that the texts came from; what was dead there may stay so.
    """
    known = {raw for package in sources for file in package.files for raw in _dead(package, file)}
    return [
        f"{file.path} links to `{raw}`, which is not there"
        for file in folded.after.files
        for raw in _dead(folded.after, file)
        if raw not in known
    ]


def _dead(package: Packed, file: PackedFile) -> list[str]:
    """Return the relative links in *file* that should lead into the package and do not."""
    if not (is_text(file.path) or file.path == package.entry):
        return []
    text = file.data.decode("utf-8", "replace")
    found = []
    for reference in find_references(text, mentions=False):
        path = is_relative(reference)
        if path is None:
            continue
        # By its place in the library: `../me/x` leads into the package too.
        place = posixpath.normpath(posixpath.join(posixpath.dirname(package.place(file.path)), path))
        own = place.startswith(f"{package.key.rel}/")
        if own and not package.flat and not package.holds(place.removeprefix(f"{package.key.rel}/")):
            found.append(reference.raw)
    return found


def build(
    decision: Decision,
    *,
    before: Packed | None,
    members: Mapping[SkillKey, Packed],
    pointing: Mapping[SkillKey, Packed],
    layout: Layout,
    others: Ground,
    reasons: Mapping[SkillKey, str],
) -> Built | Fallen:
    """
    Return the action that carries out *decision*, or why it cannot be.

    Args:
        before: The umbrella's package now; None: it is made.
        members: The members' packages now.
        pointing: Packages whose texts may point at a member, the umbrella's and the members' own left out.
        others: See `fold_in`.
        reasons: Why each member goes, for its record.
    """
    checked = fold_checked(before, decision, members, layout=layout, others=others)
    if isinstance(checked, Fallen):
        return checked
    folded, proof = checked
    written: list[tuple[Packed, Packed]] = []
    other_edits: list[Edit] = []
    for _key, package in sorted(pointing.items()):
        after, edits = moved_text(package, folded.ground)
        if edits:
            written.append((package, after))
            other_edits += edits
    action = Merge(
        umbrella=decision.umbrella,
        reason=decision.reason or f"they are one class of work: {decision.umbrella.name}",
        writes=(
            PackageWrite(
                key=decision.umbrella,
                expected=None if before is None else before.fingerprint,
                files=changes(before, folded.after),
            ),
            *(PackageWrite(key=old.key, expected=old.fingerprint, files=changes(old, new)) for old, new in written),
        ),
        members=tuple(
            Member(key=member.key, expected=members[member.key].fingerprint, reason=_why(member, decision, reasons))
            for member in decision.members
        ),
        by="model",
    )
    identity = proposal_id(
        decision.umbrella.library,
        KIND_MERGE,
        [decision.umbrella, *members],
        {
            "umbrella": None if before is None else str(before.fingerprint),
            "members": [[str(key), str(package.fingerprint)] for key, package in sorted(members.items())],
            "after": str(folded.after.fingerprint),
        },
    )
    return Built(
        proposal=identity,
        decision=decision,
        action=Merge(
            umbrella=action.umbrella,
            reason=action.reason,
            writes=action.writes,
            members=action.members,
            by=action.by,
            proposal=identity,
        ),
        folded=folded,
        before=tuple(members[member.key] for member in decision.members),
        others=tuple(written),
        coverage=proof,
        other_edits=tuple(other_edits),
    )


def _why(member: Taken, decision: Decision, reasons: Mapping[SkillKey, str]) -> str:
    told = member.reason or reasons.get(member.key, "") or decision.reason
    return f"absorbed into {decision.umbrella.name}: {told}" if told else f"absorbed into {decision.umbrella.name}"


def changes(before: Packed | None, after: Packed) -> tuple[FileChange, ...]:
    """Return the files in which *after* differs from *before*; SKILL.md comes last, so that what it names is there."""
    found = []
    for file in after.files:
        old = before.file(file.path) if before is not None else None
        if old is None or old.data != file.data or old.mode != file.mode:
            found.append(FileChange(path=RelPath(file.path), content=file.data, mode=file.mode, only_new=old is None))
    return tuple(sorted(found, key=lambda change: (change.path == SKILL_FILE, change.path)))
