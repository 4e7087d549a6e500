"""Views of backups."""

from __future__ import annotations

from typing import Any

from curatord.cli.output import Output
from curatord.cli.views.words import count, when
from curatord.cli.views.work import show_changes

__all__ = ["show_backups", "show_created", "show_restored", "show_verified"]

ROWS_SHOWN = 20


def show_created(out: Output, value: Any) -> None:
    """Print what a new backup has, what it lacks, and what went for it."""
    out.line("backup ", (value["id"], "bold"), f", all backups together {_size(value['total_bytes'])}")
    for library in value["libraries"]:
        skills, files = count(library["skills"], "skill"), count(library["files"], "file")
        out.line(f"  {library['name']}: {skills}, {files}, {_size(library['bytes'])}")
    for row in value["failed"]:
        out.note("  ", ("failed: ", "red"), f"{row['library']}: {row['error']}")
    for row in value["left_out"][:ROWS_SHOWN]:
        out.note("  ", ("left out: ", "yellow"), f"{row['path']}: {row['why']}")
    if value["left_out_count"] > ROWS_SHOWN:
        out.note(f"  … and {value['left_out_count'] - ROWS_SHOWN} more left out")
    for text in value["warnings"]:
        out.note("  ", ("warning: ", "yellow"), text)
    if value["dropped"]:
        out.line(f"  dropped, as the oldest: {', '.join(value['dropped'])} ({_size(value['freed'])} freed)")


def show_backups(out: Output, value: Any) -> None:
    """Print all backups, newest first."""
    if not value:
        out.line("there is no backup yet: curatord backup create makes one")
        return
    rows = [
        (
            (row["id"], "bold"),
            when(row["at"]) if row["at"] else "",
            ", ".join(library["name"] for library in row["libraries"]),
            str(sum(library["skills"] for library in row["libraries"])),
            _size(sum(library["bytes"] for library in row["libraries"])),
            row["damaged"] or row["reason"] or "",
        )
        for row in value
    ]
    out.table(("id", "made", "libraries", "skills", "size", "why"), rows, right=(3, 4))
    out.note("curatord backup restore ID --dry-run shows what would come back")


def show_restored(out: Output, value: Any) -> None:
    """Print what came back; what was as in the backup is only counted where it is much."""
    unchanged = value["unchanged"]
    few = len(unchanged) <= ROWS_SHOWN
    show_changes(out, value if few else {**value, "unchanged": []})
    if not few:
        out.line(f"{len(unchanged)} packages are as in the backup")


def show_verified(out: Output, value: Any) -> None:
    """Print what of backups is damaged."""
    if not value:
        out.line("there is no backup yet: curatord backup create makes one")
    for row in value:
        if not row["damaged"]:
            out.line((row["id"], "bold"), ": whole")
            continue
        out.line((row["id"], "bold"), ": ", ("damaged", "red"))
        for words in row["damaged"][:ROWS_SHOWN]:
            out.line("  ", words)
        if len(row["damaged"]) > ROWS_SHOWN:
            out.line(f"  … and {len(row['damaged']) - ROWS_SHOWN} more")


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
