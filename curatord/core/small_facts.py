"""Keys of the small facts that the store keeps between processes."""

from __future__ import annotations

__all__ = [
    "BASELINE_RUN",
    "DISTIL_SINCE",
    "FORGOTTEN_UNTIL",
    "KILLED",
    "PAUSED_SINCE",
    "REBUILT_FROM",
    "REFILLED_AT",
    "RUN_COUNT",
    "TWINS",
    "library_facts",
]

PAUSED_SINCE = "paused_since"  # an ISO time while somebody has said `pause`
RUN_COUNT = "runs.count"  # runs that were no dry runs, ever; their rows are only kept as long as their folders
KILLED = "it was killed"  # how the summary of a run begins that did not end by itself
BASELINE_RUN = "runs.baseline"  # the newest run that only recorded; the first change comes one interval after it
DISTIL_SINCE = "distil.since"  # when sessions could first be distilled here, an ISO time
REFILLED_AT = "state.refilled_at"  # when the plain file of decisions was read into this database; missing: never
FORGOTTEN_UNTIL = "undo.forgotten_until"  # ISO time of the newest action that can be undone no more, for its age
TWINS = "library.twins"  # skills that an agent cannot tell apart, with a digest of what that was found from
REBUILT_FROM = "state.rebuilt"  # where a damaged database was put, until a run has said so


def library_facts(library: str) -> str:
    """Return the key of what the newest look found wrong with a library, and which skills its host has pinned."""
    return f"library.facts.{library}"
