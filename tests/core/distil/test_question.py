"""The question fits the model's context: what goes first, what stays, what is said when nothing fits."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.budget import estimate_tokens
from curatord.core.distil.question import (
    INDEX_BYTES,
    IndexRow,
    SessionCard,
    SimilarText,
    TooBig,
    distil_question,
    index_rows,
)
from curatord.core.wire import Question, first_request, read_data_part
from tests.core.distil.conversation import digest_of, said
from tests.planted_secrets import SECRETS, planted

CARD = SessionCard(
    host="claude-code", id="s1", cwd="/home/me/app", first_ms=1_790_000_000_000, last_ms=1_790_003_600_000
)
LONG = digest_of(*(said("user" if n % 2 else "assistant", f"message {n} " + "w " * 300, n) for n in range(40)))
INDEX = [IndexRow(name=f"skill-{n}", description="Does things. " * 3) for n in range(60)]
INDEX.insert(30, IndexRow(name="waiting", description="A lesson.", candidate=True))
BODIES = [
    SimilarText(name="used-one", sha256="a" * 64, text="u " * 2_000, used=True),
    SimilarText(name="near", sha256="b" * 64, text="n " * 2_000),
    SimilarText(name="nearer", sha256="c" * 64, text="m " * 2_000),
]


def ask(room: int, focus: str | None = None) -> Question | TooBig:
    return distil_question("Judge it.", CARD, LONG, ["used-one"], INDEX, BODIES, focus, room)


def asked(room: int) -> dict[str, object]:
    question = ask(room)
    assert isinstance(question, Question), question
    return dict(question.data)


def size(question: Question) -> int:
    return estimate_tokens(first_request(question).text)


def test_the_data_are_those_of_the_contract() -> None:
    """Section 11: session, digest, used, index, similar, focus."""
    question = distil_question("Judge it.", CARD, LONG, ["used-one"], INDEX[:1], BODIES[:1], " look at x ", 100_000)
    assert isinstance(question, Question)
    data = read_data_part(first_request(question).messages[0].text)

    assert ["task", "session", "digest", "used", "index", "similar", "focus"] == list(data)
    assert {
        "host": "claude-code", "id": "s1", "cwd": "/home/me/app",
        "span": "2026-09-21T14:13:20.000Z – 2026-09-21T15:13:20.000Z",
    } == data["session"]  # fmt: skip
    assert [{"name": "skill-0", "description": "Does things. Does things. Does things.", "candidate": False}] == data[
        "index"
    ]
    assert ["name", "sha256", "text"] == list(data["similar"][0])
    assert ("look at x", "distil") == (data["focus"], data["task"])
    assert LONG.rows() == data["digest"]


def test_what_goes_first_where_the_context_is_small() -> None:
    """Similar bodies, used ones last; then the index, waiting lessons last; then the oldest of the digest."""
    rooms = range(30_000, 1_500, -250)
    steps = []
    for room in rooms:
        question = ask(room)
        if isinstance(question, TooBig):
            break
        data = question.data
        assert size(question) <= room
        steps.append(
            ([row["name"] for row in data["similar"]], [row["name"] for row in data["index"]], len(data["digest"]))
        )
    similar = [step[0] for step in steps]
    assert similar[0] == ["used-one", "near", "nearer"]
    assert ["used-one", "near"] in similar
    assert ["used-one"] in similar
    assert all(len(step[1]) == 61 for step in steps if step[0])
    assert all(step[2] == len(LONG.entries) for step in steps if step[1])
    assert any(step[1] == ["waiting"] or (len(step[1]) < 61 and "waiting" in step[1]) for step in steps)
    assert steps[-1][:2] == ([], [])
    assert 0 < steps[-1][2] < len(LONG.entries)


def test_what_does_not_fit_at_all_is_said() -> None:
    """With the numbers; nothing is sent."""
    found = ask(300)

    assert isinstance(found, TooBig)
    assert "300" in found.reason


def test_the_newest_message_is_in_every_question() -> None:
    """However small the room: else it is no question."""
    for room in range(1_000, 30_000, 1_000):
        question = ask(room)
        if isinstance(question, Question):
            assert question.data["digest"][-1]["text"].endswith(LONG.entries[-1].text)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.builds(IndexRow, name=st.text(max_size=60), description=st.text(max_size=300), candidate=st.booleans()),
        max_size=80,
    )
)
def test_the_index_is_within_its_bytes(rows: list[IndexRow]) -> None:
    """8 KiB of JSON, whatever the names; in the order it came in."""
    kept = index_rows(rows)

    assert (
        len(
            json.dumps([row.row() for row in kept], ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "replace"
            )
        )
        <= INDEX_BYTES
    )
    names = [row.name for row in kept]
    left = iter(row.name for row in rows)
    assert all(name in left for name in names)


def test_descriptions_are_shortened_before_rows_go() -> None:
    """A name with the first words says more than nothing; a small index is not touched."""
    small = [IndexRow(name="a", description="x" * 300)]
    many = [IndexRow(name=f"skill-{n}", description="word " * 100) for n in range(60)]
    huge = [IndexRow(name=f"skill-{n}", description="word " * 100) for n in range(900)]

    assert tuple(small) == index_rows(small)
    assert 60 == len(index_rows(many))
    assert index_rows(many)[0].description.endswith("…")
    assert 40 < len(index_rows(huge)) < 90


def test_waiting_lessons_stay_in_the_index() -> None:
    """One that is not shown can hardly be confirmed."""
    rows = [IndexRow(name=f"skill-{n}", description="word " * 100) for n in range(900)]
    rows.append(IndexRow(name="waiting", description="A lesson.", candidate=True))

    assert "waiting" in [row.name for row in index_rows(rows)]


def test_a_flood_of_waiting_lessons_does_not_hide_the_skills() -> None:
    """A model that proposes a new skill after every session would else leave no other name to be seen."""
    lessons = [IndexRow(name=f"lesson-{n}", description="word " * 100, candidate=True) for n in range(300)]
    skills = [IndexRow(name=f"skill-{n}", description="word " * 100) for n in range(300)]
    kept = index_rows([*lessons, *skills])
    question = distil_question("Judge it.", CARD, LONG, [], [*lessons, *skills], [], None, 9_500)

    assert isinstance(question, Question)
    for rows in ([row.row() for row in kept], question.data["index"]):
        waiting = sum(row["candidate"] for row in rows)
        assert 0 < waiting * 2 <= len(rows) - waiting + 4


def test_a_huge_body_is_cut_with_its_count() -> None:
    """156 KB of one skill are in the wild."""
    row = SimilarText(name="big", sha256="d" * 64, text="x" * 156_000).row()

    assert len(str(row["text"])) < 24_100
    assert "132000 characters left out" in str(row["text"])


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_leaves_in_any_part_of_a_question(kind: str) -> None:
    """Skills, descriptions, the focus, the working folder: all pass the wire's redaction."""
    form, secret = planted(random.Random(kind), kind)
    question = distil_question(
        "Judge it.", SessionCard(host="pi", id="s", cwd=f"/home/me/{form}"), digest_of(said("user", form)), [],
        [IndexRow(name="a", description=form)], [SimilarText(name="a", sha256="", text=form)], form, 100_000,
    )  # fmt: skip

    assert isinstance(question, Question)
    lines = [line for line in secret.split("\n") if "PRIVATE" not in line]
    assert not any(line in first_request(question).text for line in lines)
