"""Rows about sessions and their operations for `run.json` and the log; lessons that wait, as the store keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.distil.candidates import KeptCandidate
from curatord.core.distil.decide import Refused
from curatord.core.distil.digest import Digest
from curatord.core.inert import shorten
from curatord.core.redact import redact
from curatord.core.replies import Create, Operation, Patch
from curatord.core.values import LibraryName
from curatord.ports.distil_store import SessionToDistil, StoredCandidate

__all__ = [
    "SessionOutcome",
    "kept_candidate",
    "operation_word",
    "quotes_of",
    "refs_of",
    "refused_row",
    "row_of_refusal",
    "session_words",
    "state_of",
    "stored_candidate",
]

QUOTE_CHARS = 160
QUOTES_SHOWN = 3


@dataclass(slots=True, kw_only=True)
class SessionOutcome:
    """
    What came of one session. *operations* are its rows; *confirmed* are the ids of lessons that became a skill;
    *new_skills* counts creates that were applied or proposed.
    """

    state: str = "skipped"
    reason: str = ""
    operations: list[dict[str, Any]] = field(default_factory=list)
    candidates: list[StoredCandidate] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    new_skills: int = 0


def operation_word(operation: Operation) -> str:
    """Return how an operation is called on the wire."""
    return "patch" if isinstance(operation, Patch) else "create" if isinstance(operation, Create) else "write_file"


def refused_row(operation: Operation, code: str, reason: str, library: LibraryName | None = None) -> dict[str, Any]:
    """Return the row of an operation that was refused before it was looked into."""
    return {
        "op": operation_word(operation),
        "library": library,
        "skill": shorten(operation.skill, 80),
        "state": "refused",
        "code": code,
        "counts_as": "skipped",
        "reason": reason,
    }


def row_of_refusal(refused: Refused, library: LibraryName) -> dict[str, Any]:
    """Return the row of an operation that was looked into and refused."""
    return {
        "op": refused.op,
        "library": library,
        "skill": refused.skill,
        "state": "refused",
        "code": refused.code,
        "counts_as": refused.outcome,
        "reason": redact(refused.reason),
    }


def state_of(operations: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the outcome word of a session and its reason, from what became of its operations."""
    states = {row["state"] for row in operations}
    told = [row for row in operations if row["state"] != "refused"] or list(operations)
    reason = shorten("; ".join(str(row.get("summary") or row["reason"]) for row in told), 400)
    if any(row["state"] == "applied" and row["op"] == "create" for row in operations):
        return "created", reason
    for state, word in (("applied", "updated"), ("pending", "pending"), ("candidate", "candidate")):
        if state in states:
            return word, reason
    kinds = {row.get("counts_as", "skipped") for row in operations}
    return next((word for word in ("cap", "skipped") if word in kinds), "invalid"), reason


def session_words(session: SessionToDistil) -> str:
    """Return which session it is, for people."""
    return f"{session.host} session {session.session_id}"


def refs_of(digest: Digest, evidence: Iterable[str]) -> list[str]:
    """Return the records' own names of cited rows."""
    refs = digest.refs
    return [refs[row] or row for row in evidence if row in refs]


def quotes_of(digest: Digest, evidence: Iterable[str]) -> list[str]:
    """Return how the first of the cited rows begin, as they were shown."""
    cited = set(evidence)
    said = [f"{entry.role}: {entry.text}" for entry in digest.entries if entry.id in cited]
    return [shorten(text, QUOTE_CHARS) for text in said[:QUOTES_SHOWN]]


def stored_candidate(one: KeptCandidate) -> StoredCandidate:
    """Return a lesson that waits, as the store keeps it."""
    return StoredCandidate(
        one.id,
        one.library,
        one.name,
        one.last_at,
        {
            "description": one.description,
            "content_sha256": one.content_sha256,
            "sightings": [[lineage, at.isoformat()] for lineage, at in one.sightings],
            "noted_at": None if one.noted_at is None else one.noted_at.isoformat(),
        },
    )


def kept_candidate(stored: StoredCandidate) -> KeptCandidate | None:
    """Return what the store keeps, or None where it cannot be read: the lesson is then seen for the first time."""
    try:
        told = stored.told
        noted_at = told.get("noted_at")
        return KeptCandidate(
            id=stored.id,
            library=LibraryName(stored.library),
            name=stored.name,
            description=str(told["description"]),
            content_sha256=str(told["content_sha256"]),
            sightings=tuple((str(lineage), datetime.fromisoformat(at)) for lineage, at in told["sightings"]),
            noted_at=None if noted_at is None else datetime.fromisoformat(noted_at),
        )
    except (KeyError, TypeError, ValueError):
        return None
