"""The one place where errors and outcomes become exit codes (README, "Exit codes")."""

from __future__ import annotations

from typing import Any

from curatord.errors import CuratorError, StateError

__all__ = [
    "NEEDS_A_HUMAN",
    "OK",
    "SKIPPED",
    "is_final",
    "of_changes",
    "of_daemon",
    "of_doctor",
    "of_error",
    "of_refined",
    "of_run",
    "of_scan",
    "of_status",
]

OK = 0
SKIPPED = 3
NEEDS_A_HUMAN = 4

_OF_OUTCOME = {
    "ok": OK,
    "nothing_to_do": OK,
    "partial": SKIPPED,
    "budget": SKIPPED,
    "failed": SKIPPED,
    "held": NEEDS_A_HUMAN,
    "interrupted": 130,
}


def of_error(error: CuratorError) -> int:
    """Return the code of an error raised on purpose; each class of `curatord.errors` carries its own."""
    return error.exit_code


def of_daemon(error: CuratorError) -> int:
    """
    Return the code of an error that ended the daemon.

    A state folder that cannot be used just now (a full disk, one that reports errors, a mount that is away) is no
    conflict: a start in a minute may find it well, so a service manager must not give up on us for it.
    """
    return SKIPPED if type(error) is StateError else of_error(error)


def is_final(code: int) -> bool:
    """Return whether starting the daemon again would change nothing: a mistake, a conflict, another one, a signal."""
    return code in (2, NEEDS_A_HUMAN, 5, 130, 143)


def of_run(record: Any) -> int:
    """Return the code of a run by the `outcome` of its run.json; an outcome nobody knows is no success."""
    return _OF_OUTCOME.get(record["outcome"], SKIPPED)


def of_scan(scan: Any) -> int:
    """Return the code of a scan: 0 where all that is there was read; a place that does not exist yet is no fault."""
    if any(note["kind"] in ("failed", "problem") for note in scan.get("notes", ())):
        return SKIPPED
    return SKIPPED if (scan.get("distil") or {}).get("state") in ("failed", "budget", "stopped") else OK


def of_refined(value: Any) -> int:
    """Return the code of `refine`: 3 where an operation was refused, or nothing could be settled."""
    refused = any(row["state"] == "refused" for row in value["operations"])
    return SKIPPED if refused or value["state"] in ("error", "invalid", "budget", "cap") else OK


def of_changes(changes: Any) -> int:
    """Return the code of changes (`cli.app`): 0 where all that was asked for is so now."""
    return SKIPPED if changes.get("skipped") or changes.get("failed") else OK


def of_doctor(checks: Any) -> int:
    """Return the code of `doctor`: 3 where a check failed; warnings and notes are no failure."""
    return OK if all(check["ok"] for check in checks) else SKIPPED


def of_status(status: Any, *, check: bool) -> int:
    """
    Return the code of `status`: with *check*, 0 only while a daemon is alive and nothing speaks against its health.

    Silence, trouble at work and a last run that failed stand in `daemon.last_error`.
    """
    daemon = status.get("daemon") or {}
    healthy = daemon.get("alive") is True and not daemon.get("last_error")
    return OK if healthy or not check else SKIPPED
