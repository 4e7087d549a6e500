"""
Changing two fields of a file that belongs to Hermes, as bytes in, bytes out, and leaving everything else as it was.

`.usage.json` is an object keyed by skill name; `cron/jobs.json` is `{"jobs": […], …}` or a bare list. Both hold live
state of another program, so an edit names an item and fields with the value before and after (`journal.EditItem`), the
rest of the document goes through untouched, in the style (indent, key order, escapes, BOM, last line end) it was
written in. What cannot be read, or could not be written back the same, is refused, never replaced: Hermes itself reads
a corrupt file as empty, and its next write wipes all pins.

Source: Hermes' own protocol for these files: 2-space indent, sorted keys, non-ASCII kept for `.usage.json`; in
`jobs.json` only `skills` and the legacy `skill` may be touched.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.journal import EditItem, FieldEdit, SetLine, Sighting
from curatord.core.values import SkillKey
from curatord.errors import InputError, OwnershipError

__all__ = [
    "JobChange",
    "Rename",
    "edit_item",
    "field_edits",
    "job_changes",
    "paused_state",
    "see_item",
    "see_line",
    "set_line",
    "usage_record",
]

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    indent: int | None = 2
    ensure_ascii: bool = False
    compact: bool = False
    end: str = ""
    bom: bool = False


# Tried in this order; the first that gives back the very bytes is the style the file was written in.
_STYLES = tuple(
    _Style(indent=indent, ensure_ascii=ensure_ascii, compact=compact)
    for indent in (2, 4, None, 1)
    for ensure_ascii in (False, True)
    for compact in ((False,) if indent else (False, True))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Where references to *old* shall point: the umbrella *new* that took it in, or nowhere."""

    old: SkillKey
    new: SkillKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """The edits of one scheduled job, and its skills before and after for the report."""

    job_id: str
    edits: tuple[FieldEdit, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


def usage_record(data: bytes | None, name: str) -> dict[str, Any] | None:
    """
    Return the record of *name* in the text of `.usage.json`, or None where there is none.

    Raises:
        OwnershipError: It cannot be read, or the record is no object.
    """
    items, _ = _items(data, "usage")
    record = items.get(name)
    if record is not None and not isinstance(record, dict):
        raise OwnershipError(f"the record of {name!r} in .usage.json is no object", hint="mend or remove that record")
    return record


def field_edits(record: Mapping[str, Any] | None, want: Mapping[str, Any]) -> tuple[FieldEdit, ...]:
    """Return the edits that give *record* the values in *want*, without those that it has already."""
    have = record or {}
    return tuple(
        FieldEdit(name=name, before=_text(have[name]) if name in have else None, after=_text(value))
        for name, value in sorted(want.items())
        if name not in have or _text(have[name]) != _text(value)
    )


def edit_item(data: bytes | None, step: EditItem) -> bytes | None:
    """
    Return the file's text *data* with *step* done; None where there shall be no file.

    Raises:
        InputError: It cannot be read, or the item is gone.
    """
    items, document = _items(data, step.format)
    item = items.get(step.item)
    if item is None and step.format == "jobs":
        raise InputError(f"the job {step.item!r} is not scheduled any more")
    if item is not None and not isinstance(item, dict):
        raise InputError(f"{step.item!r} in {step.file} is no object")
    new = dict(item or {})
    for edit in step.edits:
        if edit.after is None:
            new.pop(edit.name, None)
        else:
            new[edit.name] = json.loads(edit.after)
    if step.format == "jobs":
        assert isinstance(item, dict)
        item.clear()  # in place: it stands in the document's own list
        item.update(new)
        return _dump(document, _style_of(data))
    whole = dict(document)
    if new or step.item_there:
        whole[step.item] = _in_order(new, item or {})
    else:
        whole.pop(step.item, None)
        if not whole and not step.file_there:
            return None
    return _dump(_in_order(whole, document), _style_of(data))


def see_item(data: bytes | None, step: EditItem) -> Sighting:
    """Return whether *data* is before or after *step*."""
    try:
        items, _ = _items(data, step.format)
    except InputError as error:
        return Sighting(what="unreadable", found=str(error))
    item = items.get(step.item)
    if item is None and step.format == "jobs":
        return Sighting(what="after", found="the job is not scheduled any more")  # nothing is left to point wrong
    if item is not None and not isinstance(item, dict):
        return Sighting(what="unreadable", found=f"{step.item!r} in {step.file} is no object")
    have = {edit.name: _text(item[edit.name]) if item and edit.name in item else None for edit in step.edits}
    if all(have[edit.name] == edit.after for edit in step.edits):
        return Sighting(what="after")
    if all(have[edit.name] == edit.before for edit in step.edits):
        return Sighting(what="before")
    found = ", ".join(f"{name} is {value or 'absent'}" for name, value in have.items())
    return Sighting(what="other", found=found)


def paused_state(data: bytes | None) -> bytes | None:
    """
    Return the text of `.curator_state` with Hermes' own curator paused, or None where it is paused already.

    Raises:
        InputError: It cannot be read, so it is left as it is.
    """
    document = {} if data is None else _parse(data, ".curator_state", InputError)
    if not isinstance(document, dict):
        raise InputError(".curator_state holds no object", hint="mend it or move it away; nothing was changed")
    if document.get("paused") is True:
        return None
    return _dump(_in_order({**document, "paused": True}, document), _style_of(data))


def set_line(data: bytes | None, step: SetLine) -> bytes | None:
    """Return the list *data* with the line of *step* in or out; comments and order stay."""
    lines = (data or b"").decode("utf-8", "surrogateescape").splitlines(keepends=True)
    kept = [line for line in lines if line.strip() != step.line]
    if step.after:
        if len(kept) != len(lines):
            return data
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
        kept.append(step.line + "\n")
    elif not kept and not step.file_there:
        return None
    return "".join(kept).encode("utf-8", "surrogateescape")


def see_line(data: bytes | None, step: SetLine) -> Sighting:
    """Return whether *data* is before or after *step*."""
    lines = (data or b"").decode("utf-8", "surrogateescape").splitlines()
    return Sighting(what="after" if (step.line in (line.strip() for line in lines)) == step.after else "before")


def job_changes(data: bytes | None, renames: Sequence[Rename], roots: Sequence[str]) -> tuple[JobChange, ...]:
    """
    Return the edits after which no job of `cron/jobs.json` names a skill that went away.

    Args:
        data: The file's text; None: there is no schedule.
        renames: What went where.
        roots: Absolute paths under which jobs may name the library; entries below one are rewritten as paths.

    Raises:
        InputError: The schedule cannot be read, or a job that must change has no id of its own.
    """
    if data is None:
        return ()
    jobs, _ = _jobs(data)
    by_name = {rename.old.name: rename for rename in renames}
    by_path = {
        posixpath.normpath(f"{root}/{rename.old.rel}{tail}"): (rename, root, tail)
        for rename in renames
        for root in roots
        for tail in ("", "/SKILL.md")
    }

    def follow(entry: str) -> str | None:
        if "/" in entry:
            hit = by_path.get(posixpath.normpath(entry))
            if hit is not None:
                rename, root, tail = hit
                return None if rename.new is None else f"{root}/{rename.new.rel}{tail}"
            rename_or_none = next((rename for rename in renames if rename.old.rel == entry), None)
        else:
            rename_or_none = by_name.get(entry)  # type: ignore[call-overload]  # SkillName is a str
        if rename_or_none is None:
            return entry
        return None if rename_or_none.new is None else str(rename_or_none.new.name)

    found: list[JobChange] = []
    for job in jobs:
        want, before, after = _job_edit(job, follow)
        edits = field_edits(job, want)
        if not edits:
            continue
        job_id = job.get("id")
        if not isinstance(job_id, str) or sum(other.get("id") == job_id for other in jobs) != 1:
            raise InputError("a scheduled job that names the skill has no id of its own", hint="give each job its id")
        found.append(JobChange(job_id=job_id, edits=edits, before=before, after=after))
    return tuple(found)


def _job_edit(job: dict[str, Any], follow: Any) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    listed = job.get("skills")
    legacy = job.get("skill")
    before = [entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
    if not before and isinstance(legacy, str) and legacy:
        before = [legacy]
    after = list(dict.fromkeys(new for new in map(follow, before) if new is not None))
    want: dict[str, Any] = {}
    if after != before:
        if isinstance(listed, list):
            others = [entry for entry in listed if not isinstance(entry, str)]  # not ours to judge
            want["skills"] = [*after, *others]
        if "skill" in job:
            want["skill"] = after[0] if after else None
    return want, tuple(before), tuple(after)


def _items(data: bytes | None, format_: str) -> tuple[dict[str, Any], Any]:
    """Return the items by name, and the document they stand in."""
    if format_ == "jobs":
        jobs, document = _jobs(data)
        ids = [job.get("id") for job in jobs]
        return {
            job["id"]: job for job in jobs if isinstance(job.get("id"), str) and ids.count(job["id"]) == 1
        }, document
    document = {} if data is None else _parse(data, ".usage.json", OwnershipError)
    if not isinstance(document, dict):
        raise OwnershipError(".usage.json holds no object", hint="mend it or move it away; nothing was changed")
    return document, document


def _jobs(data: bytes | None) -> tuple[list[dict[str, Any]], Any]:
    document = [] if data is None else _parse(data, "cron/jobs.json", InputError)
    jobs = document.get("jobs", []) if isinstance(document, dict) else document
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError("cron/jobs.json holds no list of jobs", hint="mend it or move it away; nothing was changed")
    return jobs, document


def _parse(data: bytes, name: str, kind: type[InputError]) -> Any:
    try:
        document = json.loads(data.removeprefix(BOM).decode("utf-8"))
        # What could not be written back is not to be edited: NaN, 1e999, lone surrogates. (Without an indent, since
        # that way the encoder is the quick one.)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise kind(
            f"{name} cannot be read: {error}",
            hint="mend it or move it away; it was left as it is, and so were its skills",
        ) from error
    return document


def _in_order(new: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return *new* sorted if *old* was (Hermes sorts both levels), else in the order it has."""
    return dict(sorted(new.items())) if list(old) == sorted(old) else new


# Many actions in a row meet the bytes that the one before has written.
@lru_cache(maxsize=2)
def _style_of(data: bytes | None) -> _Style:
    if data is None:
        return _Style()
    bom = data.startswith(BOM)
    text = data.removeprefix(BOM)
    body = text.rstrip(b"\r\n \t")
    end = text[len(body) :].decode("ascii")
    document = json.loads(body)
    for style in _STYLES:
        if _dump(document, style) == body:
            return _Style(
                indent=style.indent, ensure_ascii=style.ensure_ascii, compact=style.compact, end=end, bom=bom
            )  # fmt: skip
    return _Style(end=end, bom=bom)


def _dump(document: Any, style: _Style) -> bytes:
    text = json.dumps(
        document,
        ensure_ascii=style.ensure_ascii,
        separators=(",", ":") if style.compact else None,
        allow_nan=False,
    ).encode("utf-8")
    if style.indent is not None:
        # The same as `dumps` with an indent, which is ten times as slow: it does without the encoder written in C.
        text = msgspec.json.format(text, indent=style.indent)
    return (BOM if style.bom else b"") + text + style.end.encode("utf-8")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
