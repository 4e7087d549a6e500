"""What a person reads before saying yes to what a session taught: why, from which words, the texts before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff

from curatord.core.inert import one_line, visible
from curatord.core.plan import CreateSkill, FileChange, Patch, WriteSupportFile

__all__ = ["change_diff"]

LINES_SHOWN = 400
DIFF_BYTES = 200_000


def change_diff(
    action: Patch | CreateSkill | WriteSupportFile,
    before: Mapping[str, bytes],
    *,
    waits: Sequence[str],
    session: str,
    quotes: Sequence[str],
) -> str:
    """
    Return the diff of one change.

    Args:
        action: What would be done.
        before: The files that stand there, by path within the package.
        waits: Why a person is asked, each reason in words.
        session: Which session taught it, in words.
        quotes: What was said there that speaks for it.
    """
    lines = [f"# {one_line(str(action.key))}: {one_line(action.reason)}", f"# from {one_line(session)}"]
    lines += [f"! {one_line(why)}" for why in waits]
    lines += [f"> {one_line(quote)}" for quote in quotes]
    for file in action.files:
        lines += ["", *_file(action.key.rel, file, before.get(file.path))]
    return "\n".join(lines) + "\n"


def _file(rel: str, file: FileChange, old: bytes | None) -> list[str]:
    place = f"{rel}/{file.path}"
    if max(len(file.content), len(old or b"")) > DIFF_BYTES:
        return [f"  {one_line(place)}: too large to be shown, {len(file.content):,} bytes afterwards"]
    have = visible(old.decode("utf-8", "replace")).splitlines() if old is not None else []
    want = visible(file.content.decode("utf-8", "replace")).splitlines()
    was = f"{place} before" if old is not None else "nothing"
    rows = list(unified_diff(have, want, was, f"{place} after", lineterm=""))
    cut = [f"  … {len(rows) - LINES_SHOWN} more lines"] if len(rows) > LINES_SHOWN else []
    return [*rows[:LINES_SHOWN], *cut]
