"""What a person reads before saying yes to a merge: what goes where, then the texts before and after."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from curatord.core.inert import one_line, visible
from curatord.core.skill import SKILL_FILE
from curatord.core.umbrella.build import Built
from curatord.core.umbrella.links import Edit
from curatord.core.umbrella.packed import Packed

__all__ = ["merge_diff"]

LINES_SHOWN = 400
DIFF_BYTES = 200_000


def merge_diff(built: Built, *, archive: str, needs_yes: Sequence[str] = ()) -> str:
    """
    Return the proposal's diff.

    Args:
        archive: Absolute path of the library's archive, where the originals go.
        needs_yes: Why a person is asked, each reason in words.
    """
    folded, decision = built.folded, built.decision
    verb = "takes in" if folded.before is not None else "is made of"
    lines = [
        f"# {one_line(str(decision.umbrella))} {verb} {len(folded.placed)} skills: {one_line(decision.reason)}",
        "",
    ]
    lines += [f"! {one_line(why)}" for why in needs_yes]
    lines += [f"! {one_line(note)}" for note in folded.notes]
    lines += ["", "# What goes where", ""]
    before = {package.key: package for package in built.before}
    for placed, member in zip(folded.placed, decision.members, strict=True):
        where = placed.path if placed.how != "section" else f"section “{placed.title}” of {SKILL_FILE}"
        support = before[placed.key].support
        more = f", {len(support)} files to {placed.folder}/" if support else ""
        lines += [
            f"- {one_line(str(placed.key))}",
            f"+ {one_line(decision.umbrella.rel)}: {one_line(where)}{more}",
            f"  original to {one_line(archive)}; {one_line(member.reason or decision.reason)}",
        ]
    lines += [f"  {one_line(str(kept.key))} stays: {one_line(kept.reason)}" for kept in decision.kept]
    told = built.coverage.as_dict()
    lines += [
        "",
        f"# Kept: {_told(told['lines'])} lines, {_told(told['code_blocks'])} code blocks, {_told(told['files'])} files",
    ]
    lines += _references("References that follow in moved texts", folded.edits)
    lines += _references("References that follow in other skills", built.other_edits)
    lines += ["", "# Texts", ""]
    lines += _file_diff(folded.before, folded.after, SKILL_FILE)
    for old, new in built.others:
        for file in new.files:
            lines += _file_diff(old, new, file.path)
    return "\n".join(lines) + "\n"


def _told(pair: object) -> str:
    return f"{pair['found']} of {pair['of']}" if isinstance(pair, dict) else str(pair)


def _references(title: str, edits: Sequence[Edit]) -> list[str]:
    if not edits:
        return []
    rows = [
        f"  {one_line(edit.where)}:{edit.line}: {one_line(edit.before)} → {one_line(edit.after)}" for edit in edits[:60]
    ]
    more = [f"  … and {len(edits) - 60} more"] if len(edits) > 60 else []
    return ["", f"# {title}", "", *rows, *more]


def _file_diff(before: Packed | None, after: Packed, path: str) -> list[str]:
    old = before.file(path) if before is not None else None
    new = after.file(path)
    if new is None or (old is not None and old.data == new.data):
        return []
    place = after.place(path)
    if max(len(new.data), len(old.data) if old is not None else 0) > DIFF_BYTES:
        return [f"  {one_line(place)}: too large to be shown, {len(new.data):,} bytes afterwards"]
    have = visible(old.data.decode("utf-8", "replace")).splitlines() if old is not None else []
    want = visible(new.data.decode("utf-8", "replace")).splitlines()
    rows = list(
        unified_diff(have, want, f"{place} before" if old is not None else "nothing", f"{place} after", lineterm="")
    )
    cut = [f"  … {len(rows) - LINES_SHOWN} more lines"] if len(rows) > LINES_SHOWN else []
    return [*rows[:LINES_SHOWN], *cut]
