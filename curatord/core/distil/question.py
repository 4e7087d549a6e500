"""
The one question of a distilling: what was said, what skills there are, and the nearest of them in full.

It is made to fit: where the model's context is small, similar bodies go first (the least alike before those that the
session used), then the index, then the oldest of the digest (contract, section 4). What does not fit even then is
`TooBig`, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from json import dumps
from typing import Any

from curatord.core.budget import estimate_tokens
from curatord.core.cheap import dataclass
from curatord.core.distil.digest import Digest
from curatord.core.wire import Question, first_request
from curatord.core.words import iso

__all__ = ["INDEX_BYTES", "IndexRow", "SessionCard", "SimilarText", "TooBig", "distil_question", "index_rows"]

INDEX_BYTES = 8 * 1024  # peers, "Shown the existing skills"; more makes a model choose worse, not better
SIMILAR_CHARS = 24_000
ANSWER_TOKENS = 900
FOCUS_CHARS = 2_000
LEAST_DIGEST = 2_000  # of characters; a digest of less than this is not worth asking about


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCard:
    """Which session it is; *first_ms* and *last_ms* bound what is shown of it."""

    host: str
    id: str
    cwd: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None

    def row(self) -> dict[str, Any]:
        """Return it as section 11 of the contract has it."""
        span = [iso(datetime.fromtimestamp(ms / 1000, UTC)) for ms in (self.first_ms, self.last_ms) if ms is not None]
        return {"host": self.host, "id": self.id, "cwd": self.cwd, "span": " – ".join(at for at in span if at) or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A skill, or a lesson that waits to be confirmed (*candidate*), as one line of the index."""

    name: str
    description: str
    candidate: bool = False

    def row(self) -> dict[str, Any]:
        """Return it as section 11 of the contract has it."""
        return {"name": self.name, "description": self.description, "candidate": self.candidate}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarText:
    """The whole text of a skill; *used* by the session, so that it is kept longest."""

    name: str
    sha256: str
    text: str
    used: bool = False

    def row(self) -> dict[str, Any]:
        """Return it as section 11 of the contract has it."""
        text = self.text
        if len(text) > SIMILAR_CHARS:
            text = f"{text[:SIMILAR_CHARS]}\n[…{len(text) - SIMILAR_CHARS} characters left out…]"
        return {"name": self.name, "sha256": self.sha256, "text": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class TooBig:
    """The question does not fit the model's context, whatever is left out."""

    reason: str


def distil_question(
    prompt: str,
    session: SessionCard,
    digest: Digest,
    used: Sequence[str],
    index: Sequence[IndexRow],
    similar: Sequence[SimilarText],
    focus: str | None,
    room_tokens: int,
    *,
    emails: bool = False,
) -> Question | TooBig:
    """
    Return the question about one session that fits *room_tokens*, or that none does.

    Args:
        prompt: The text of `distil.md`.
        session: Which it is.
        digest: What was said.
        used: Names of the skills that it used.
        index: All skills and waiting lessons; those that matter most first. Cut to 8 KiB.
        similar: Whole texts, most alike first.
        focus: What a person wants to be looked at, or None.
        room_tokens: How many tokens the whole request may have.
        emails: Replace e-mail addresses too.
    """
    rows = [row.row() for row in index_rows(index)]
    bodies = [(text.row(), text.used) for text in similar]
    shown = digest

    def question() -> Question:
        data: dict[str, Any] = {
            "session": session.row(),
            "digest": shown.rows(),
            "used": list(used),
            "index": rows,
            "similar": [row for row, _ in bodies],
            "focus": (focus or "").strip()[:FOCUS_CHARS] or None,
        }
        return Question(task="distil", prompt=prompt, data=data, expect_tokens=ANSWER_TOKENS, emails=emails)

    asked = question()
    while (over := _tokens(asked) - room_tokens) > 0:
        if bodies:
            place = next((i for i in reversed(range(len(bodies))) if not bodies[i][1]), len(bodies) - 1)
            del bodies[place]
        elif rows:
            _drop(rows, over)
        else:
            chars = len(shown.text())
            shorter = shown.shortened(max(LEAST_DIGEST, chars - max(over * 2, 200)))
            if len(shorter.entries) == len(shown.entries):
                return TooBig(
                    reason=f"about {room_tokens + over:,} tokens with the newest of the session alone, "
                    f"and the model's context leaves {room_tokens:,}"
                )
            shown = shorter
        asked = question()
    return asked


def index_rows(index: Sequence[IndexRow], *, most_bytes: int = INDEX_BYTES) -> tuple[IndexRow, ...]:
    """
    Return *index* in at most *most_bytes* of JSON: descriptions are shortened first, alike for all, then rows go.

    Those that stand first stay longest. Waiting lessons stay as long as anything does, in at most a third of the room:
    one that is not shown can hardly be confirmed, and a flood of them must not hide the skills that there are.
    """
    lessons = [row for row in index if row.candidate]
    skills = [row for row in index if not row.candidate]
    for chars in (400, 240, 160, 100, 60):
        rows = tuple(_described(row, chars) for row in index)
        if _bytes(rows) <= most_bytes:
            return rows
    kept: set[int] = set()
    left = most_bytes - 2
    for those, room in ((lessons, most_bytes // 3), (skills, most_bytes), (lessons, most_bytes)):
        for row in those:
            size = _bytes((_described(row, 60),))
            if id(row) not in kept and size <= min(left, room):
                left -= size
                room -= size
                kept.add(id(row))
    return tuple(_described(row, 60) for row in index if id(row) in kept)


def _described(row: IndexRow, chars: int) -> IndexRow:
    line = " ".join(row.description.split())
    short = line if len(line) <= chars else line[: chars - 1].rstrip() + "…"
    return IndexRow(name=row.name, description=short, candidate=row.candidate)


def _bytes(rows: Sequence[IndexRow]) -> int:
    return sum(len(_dumped(row.row()).encode("utf-8", "replace")) + 1 for row in rows)


def _drop(rows: list[dict[str, Any]], over: int) -> None:
    """
    Take rows from the end of *rows* until about *over* tokens are gone; waiting lessons last, where they are few.
    """
    gone = 0
    while rows and gone <= over:
        many = sum(bool(row["candidate"]) for row in rows) * 3 > len(rows) + 2
        place = next((i for i in reversed(range(len(rows))) if rows[i]["candidate"] is many), len(rows) - 1)
        gone += estimate_tokens(_dumped(rows.pop(place)))


def _tokens(question: Question) -> int:
    return estimate_tokens(first_request(question).text)


def _dumped(value: Mapping[str, Any]) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
