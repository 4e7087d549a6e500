"""
The proof that a merge lost nothing: every line, code block and support file of a member, looked for in the umbrella.

Worked out from bytes alone, before the apply on the planned ones and after it on what is on disk (promise 6); nothing
here knows how the package was made. Lines are compared without blanks at their ends and headings without their
depth, a code block as a whole without its line ends. A line in which a reference had to follow is found in its new
form, and only in the form that the edits say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from curatord.core.cheap import dataclass
from curatord.core.umbrella.lines import split_lines, structure
from curatord.core.umbrella.links import Edit
from curatord.core.umbrella.packed import Packed, is_text
from curatord.core.values import SkillKey

__all__ = ["Coverage", "Found", "coverage"]

_HASHES = re.compile(r" {0,3}#{1,6}(?=[ \t]|\Z)[ \t]*")
MISSING_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How much of one member was found: pairs are (found, all). *missing* says what was not, some of it."""

    key: SkillKey
    lines: tuple[int, int]
    blocks: tuple[int, int]
    files: tuple[int, int]
    missing: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return all(found == all_ for found, all_ in (self.lines, self.blocks, self.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The members of one merge, and how much of each is there."""

    members: tuple[Found, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing of any member is missing."""
        return all(member.whole for member in self.members)

    @property
    def ratio(self) -> float:
        """Share of all lines, blocks and files that were found, 0 to 1."""
        pairs = [pair for member in self.members for pair in (member.lines, member.blocks, member.files)]
        everything = sum(pair[1] for pair in pairs)
        return sum(pair[0] for pair in pairs) / everything if everything else 1.0

    def as_dict(self) -> dict[str, object]:
        """Return what `run.json` holds of it."""

        def total(pick: str) -> dict[str, int]:
            return {
                "found": sum(getattr(member, pick)[0] for member in self.members),
                "of": sum(getattr(member, pick)[1] for member in self.members),
            }

        return {
            "lines": total("lines"),
            "code_blocks": total("blocks"),
            "files": total("files"),
            "ratio": round(self.ratio, 4),
            "missing": [f"{member.key}: {what}" for member in self.members for what in member.missing],
        }


def coverage(members: Iterable[Packed], after: Packed, edits: Sequence[Edit] = ()) -> Coverage:
    """
    Return how much of *members* is in the package *after*.

    Args:
        members: The packages as they were before the merge.
        after: The umbrella's package: planned, or as found on disk.
        edits: References that were written anew; each is a line's only other allowed form.
    """
    lines, blocks = _told(after)
    digests = {file.sha256 for file in after.files}
    changed: dict[str, dict[int, list[Edit]]] = {}
    for edit in edits:
        changed.setdefault(edit.where, {}).setdefault(edit.line, []).append(edit)
    return Coverage(members=tuple(_member(member, lines, blocks, digests, changed) for member in members))


def _told(package: Packed) -> tuple[set[str], set[str]]:
    """Return all lines and all code blocks of the package's texts, in the form in which they are compared."""
    lines: set[str] = set()
    blocks: set[str] = set()
    for file in package.files:
        if is_text(file.path) or file.path == package.entry:
            its = split_lines(file.data.decode("utf-8", "surrogateescape"))
            lines.update(map(_plain, its))
            blocks.update(_block(its[first : last + 1]) for first, last in _blocks(its))
    return lines, blocks


def _blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the code blocks of a text behind its header; what looks like a fence in a header is none."""
    start = 0
    if lines and _is_fence(lines[0]):
        start = next((place + 1 for place, line in enumerate(lines[1:], start=1) if _is_fence(line)), 0)
    return [(first + start, last + start) for first, last in structure(lines[start:]).blocks]


def _plain(line: str) -> str:
    return _HASHES.sub("# ", line.lstrip("\ufeff")).strip()


def _block(lines: Sequence[str]) -> str:
    """Return a code block for comparing: without blanks at the ends of lines, and without blank lines at its end."""
    rows = [line.rstrip() for line in lines]
    while rows and not rows[-1]:
        rows.pop()
    while len(rows) > 2 and not rows[-2]:
        del rows[-2]
    return "\n".join(rows)


def _member(
    member: Packed,
    lines: set[str],
    blocks: set[str],
    digests: set[str],
    changed: Mapping[str, Mapping[int, Sequence[Edit]]],
) -> Found:
    missing: list[str] = []
    entry = member.file(member.entry)
    its = split_lines(entry.data.decode("utf-8", "surrogateescape")) if entry is not None else []
    moved = _followed(its, changed.get(member.place(member.entry), {}))
    wanted = [(number, line) for number, line in enumerate(its) if line.strip("\ufeff \t") and not _is_fence(line)]
    found = 0
    for number, line in wanted:
        if _plain(line) in lines or _plain(moved[number]) in lines:
            found += 1
        else:
            missing.append(f"line {number + 1} of {member.entry}: {line.strip()[:120]}")
    ranges = _blocks(its)
    found_blocks = 0
    for first, last in ranges:
        forms = {form(text[first : last + 1]) for form in (_block, _closed) for text in (its, moved)}
        if forms & blocks:
            found_blocks += 1
        else:
            missing.append(f"the code block at line {first + 1} of {member.entry}")
    found_files = 0
    for file in member.support:
        digest = file.sha256
        if digest not in digests and (followed := changed.get(member.place(file.path))):
            digest = _digest_after(file.data, followed)
        if digest in digests:
            found_files += 1
        else:
            missing.append(f"the file {file.path}")
    return Found(
        key=member.key,
        lines=(found, len(wanted)),
        blocks=(found_blocks, len(ranges)),
        files=(found_files, len(member.support)),
        missing=tuple(missing[:MISSING_SHOWN]),
    )


def _is_fence(line: str) -> bool:
    """Return whether a line is a header's fence, which says nothing."""
    return line.strip("\ufeff \t") == "---"


def _closed(lines: Sequence[str]) -> str:
    """Return a block; one that was left open at the end of its text is closed, as folding closes it."""
    return _block([*lines, *structure(list(lines)).closes])


def _followed(lines: Sequence[str], edits: Mapping[int, Sequence[Edit]]) -> list[str]:
    """Return *lines* with the edits done, by line."""
    result = list(lines)
    for number, its in edits.items():
        if 1 <= number <= len(result):
            result[number - 1] = _replaced(result[number - 1], its)
    return result


def _replaced(line: str, edits: Sequence[Edit]) -> str:
    """Return *line* with its edits done; one that does not stand where it should changes nothing."""
    for edit in sorted(edits, key=lambda edit: -edit.column):
        end = edit.column + len(edit.before)
        if line[edit.column : end] == edit.before:
            line = line[: edit.column] + edit.after + line[end:]
    return line


def _digest_after(data: bytes, edits: Mapping[int, Sequence[Edit]]) -> str:
    """Return the digest of a support text with its edits done; line ends are kept."""
    text = data.decode("utf-8", "surrogateescape")
    parts = re.split(r"(\r\n|\r|\n)", text)
    lines = _followed(parts[::2], edits)
    parts[::2] = lines
    return sha256("".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
