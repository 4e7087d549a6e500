"""Sessions that get no outcome now: whose doing it was, who is asked first next time, and how long each waits."""

from __future__ import annotations

import errno
import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from curatord.adapters.disk import Disk
from curatord.adapters.mutate import FileMutator
from tests.distil_world import DistilWorld, patch, reply
from tests.fakes.stub import Stub, needs_stub, stub

pytestmark = needs_stub

CORRECTED = ["deploy it", "that is wrong, you forgot the log", "now it works, thanks"]
NOTHING = reply(nothing="a one-off")
TAGS = reply(patch("deploy", "2. Push it.", "2. Push it, with tags."))
Opened = Callable[..., tuple[DistilWorld, Stub]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Yield what opens a world with a stub behind it: the stub's arguments, its script, the world's settings."""
    with ExitStack() as stack:

        def open_(*arguments: str, script: list[Any] | None = None, **settings: Any) -> tuple[DistilWorld, Stub]:
            server = stack.enter_context(stub(tmp_path, *arguments, script=script))
            return DistilWorld(folder=tmp_path, url=server.url, **settings), server

        yield open_


# --- Budget and endpoint ----------------------------------------------------------------------------------------------


def test_a_session_that_eats_the_budget_has_had_its_turn(opened: Opened) -> None:
    """Its reply was useless and cost all there was: that is its failure, and the others are asked first next time."""
    world, _ = opened(script=["x" * 100_000, NOTHING, NOTHING], llm={"budget": {"tokens_per_run": 20_000}})
    world.session("s0", CORRECTED, ago=30)
    world.session("s1", CORRECTED, ago=20)
    first = world.run()
    after = world.distil("s0")
    world.clock.at += timedelta(minutes=10)
    world.run()

    assert "budget" == first["outcome"]
    assert (1, "invalid") == (after["failures"], after["state"])
    assert [("s0", "invalid"), ("s1", "skipped"), ("s0", "skipped")] == world.log()


def test_a_question_that_no_budget_pays_for_keeps_no_other_waiting(opened: Opened) -> None:
    """It alone is more than a run may spend; the pass goes on without it, and later tries come after the others."""
    world, server = opened()
    primary = {"base_url": server.url, "model": "stub", "context_tokens": 128_000, "max_output_tokens": 1000}
    world.reopen(llm={"primary": primary, "budget": {"tokens_per_run": 7_000}})
    long = [f"{n} that is wrong " + "unlike words of every kind " * 120 for n in range(12)]
    world.session("large", long, ago=30)
    world.session("small", CORRECTED, ago=20)
    record = world.run()

    assert "budget" != record["outcome"]
    assert "skipped" == world.distil("small")["state"]
    assert "tokens_per_run" in world.distil("large")["reason"]
    assert 0 == world.distil("large")["failures"]
    assert 1 == len(server.calls())


def test_a_question_that_breaks_the_server_keeps_no_other_waiting(opened: Opened) -> None:
    """The server answers others, so the endpoint works; the one waits, and nothing is counted against it."""
    broken = [{"status": 500, "text": "boom"}] * 3
    world, _ = opened(script=[*broken, NOTHING, *broken, NOTHING])
    world.session("s0", CORRECTED, ago=30)
    world.session("s1", CORRECTED, ago=20)
    record = world.run()
    states = world.states()
    world.session("s2", CORRECTED, ago=1)
    world.run()

    assert "failed" not in record["outcome"]
    assert ("error", "skipped") == (states["s0"], states["s1"])
    assert 0 == world.distil("s0")["failures"]


def test_an_endpoint_that_is_down_takes_turns(opened: Opened) -> None:
    """Whoever was asked in vain goes behind the others, and all stay due."""
    world, server = opened("--fault", "503")
    for number in range(3):
        world.session(f"s{number}", CORRECTED, ago=30 - number)
    world.run()
    world.run()

    asked = [call["request"]["messages"][-1]["content"] for call in server.calls()]
    assert {"s0": "due", "s1": "due", "s2": "due"} == world.states()
    assert {"s0", "s1", "s2"} == {name for name in ("s0", "s1", "s2") for text in asked if f'"{name}"' in text}


def test_a_lone_request_that_is_refused_is_asked_more_and_more_seldom(opened: Opened) -> None:
    """Nobody can tell whose fault it is: it is never put aside, and costs a request less and less often."""
    world, server = opened("--fault", "400")
    world.session("s1", CORRECTED)
    hours = 0
    asked: list[int] = []
    for _ in range(6):
        before = len(server.calls())
        while len(server.calls()) == before and hours < 40:
            world.batch()
            world.clock.at += timedelta(hours=1)
            hours += 1
        asked.append(hours)
    gaps = [after - before for before, after in itertools.pairwise(asked)]

    assert [1, 2, 4, 6, 6] == gaps
    assert (0, False) == (world.distil("s1")["failures"], world.distil("s1")["aside"])


# --- Files that come and go -------------------------------------------------------------------------------------------


def said(server: Stub) -> list[list[str]]:
    """Return, question by question, what users said that may be cited."""
    found = []
    for call in server.calls():
        text = call["request"]["messages"][-1]["content"]
        data = json.loads(text.split("<curatord-data>")[1].split("</curatord-data>")[0])
        found.append([row["text"] for row in data["digest"] if row["role"] == "user" and row["id"].startswith("r")])
    return found


@pytest.mark.parametrize("grown", [False, True])
def test_a_file_that_a_scan_missed_is_looked_at_when_it_comes_back(opened: Opened, *, grown: bool) -> None:
    """The session was settled without it; all that it says is new then, whatever its age, and once."""
    world, server = opened()
    world.session("s1", ["one", "that is wrong", "fine"], ago=20)
    there = world.claude / "projects" / "-home-dev-other" / "s1.jsonl"
    there.parent.mkdir()
    second = world.session("s1-part", ["two", "wrong again", "good"], ago=22)
    there.write_text(second.read_text(encoding="utf-8").replace('"s1-part"', '"s1"'), encoding="utf-8")
    second.unlink()
    world.app.scan()
    there.rename(world.folder / "away")
    world.app.scan()
    world.run()
    settled = world.distil("s1")["state"]
    world.clock.at += timedelta(hours=3)
    quiet = [world.batch(), world.batch()]
    asked_meanwhile = len(server.calls())
    (world.folder / "away").rename(there)
    if grown:
        world.session("s1", ["three", "no, wrong", "ok"], ago=1)
    world.run()
    world.clock.at += timedelta(hours=3)
    world.run()

    assert ("skipped", 1) == (settled, asked_meanwhile)
    assert [None, None] == quiet
    later = ["two", "wrong again", "good", *(["three", "no, wrong", "ok"] if grown else [])]
    assert 2 == len(server.calls())
    assert [["one", "that is wrong", "fine"], sorted(later)] == [said(server)[0], sorted(said(server)[1])]


@pytest.mark.parametrize("grown", [False, True])
def test_a_file_that_went_with_growth_unseen_hides_no_later_lesson(opened: Opened, *, grown: bool) -> None:
    """The session goes on in another file: what it says there is new beside all that was looked at."""
    world, server = opened()
    path = world.session("s1", ["a", "b", "c", "that is wrong", "e", "f"], ago=20)
    world.run()
    world.clock.at += timedelta(hours=30)
    if grown:
        world.session("s1", ["one more"], ago=20)
    world.app.scan()
    path.rename(world.folder / "away")
    world.app.scan()
    there = world.claude / "projects" / "-home-dev-other" / "s1.jsonl"
    there.parent.mkdir()
    second = world.session("s1-part", ["two", "that is wrong again", "good"], ago=2)
    there.write_text(second.read_text(encoding="utf-8").replace('"s1-part"', '"s1"'), encoding="utf-8")
    second.unlink()
    world.run()
    world.clock.at += timedelta(hours=1)  # the growth was seen just now, and is to be quiet for a while
    world.run()

    assert 2 == len(server.calls())
    assert ["two", "that is wrong again", "good"] == said(server)[1]


def test_a_session_whose_only_file_is_gone_waits_for_it(opened: Opened) -> None:
    """Nothing is settled over what nobody read."""
    world, server = opened()
    path = world.session("s1", CORRECTED)
    world.app.scan()
    path.rename(world.folder / "away")
    world.run()
    meanwhile, told = len(server.calls()), world.distil("s1")
    (world.folder / "away").rename(path)
    world.run()

    assert (0, 1) == (meanwhile, len(server.calls()))
    assert ("skipped", "its transcript is gone; it is looked at if that comes back") == (told["state"], told["reason"])
    assert "skipped" == world.distil("s1")["state"]


# --- Disks and libraries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_cannot_be_written_is_none_of_the_sessions_doing(opened: Opened, number: int) -> None:
    """Its lesson was paid for once, is written when the disk can be, and nothing is counted against it."""
    world, server = opened(script=[TAGS])
    path = world.skill("deploy")
    world.run()
    world.session("s1", CORRECTED)

    def full(name: str) -> None:
        if name == "create":
            raise OSError(number, os.strerror(number), str(path))

    mutator = world.parts.applier.mutator
    assert isinstance(mutator, FileMutator)
    mutator.disk.hook = full
    record = world.run()
    row = world.distil("s1")
    mutator.disk.hook = Disk().hook
    world.run()

    assert "partial" == record["outcome"]
    assert (0, False) == (row["failures"], row["aside"])
    assert os.strerror(number) in row["reason"]
    assert 1 == len(server.calls())
    assert "with tags" in path.read_text(encoding="utf-8")


def test_a_library_that_is_closed_for_good_is_asked_after_more_and_more_seldom(opened: Opened) -> None:
    """It is said once, in log and events; nothing is paid for, and a person's run tries at once."""
    world, server = opened(script=[TAGS])
    path = world.skill("deploy")
    world.run()
    world.session("s1", CORRECTED)
    away = world.skills.rename(world.folder / "away")
    tries: list[int] = []
    last = None
    with capture_logs() as logs:
        for minute in range(0, 24 * 60, 5):
            world.batch()
            if world.distil("s1")["retry_at"] != last:
                tries.append(minute)
            last = world.distil("s1")["retry_at"]
            world.clock.at += timedelta(minutes=5)
    rows = world.app.doctor(notices=(), llm=False)
    (found,) = [row for row in rows if row["check"] == "distilling"]
    shut = world.run()
    away.rename(world.skills)
    world.run()

    assert "partial" == shut["outcome"]
    assert ["look at claude-code session s1"] == [row["action"] for row in shut["skipped"]]
    assert "1 session cannot be looked at just now" in found["found"]
    assert "curatord run" in found["mend"]
    assert [0, 5, 15, 35, 75, 155, 315, 635, 995, 1355] == tries
    assert 1 == sum("is looked at later" in row["event"] for row in logs)
    assert [("s1", "error"), ("s1", "updated")] == world.log()
    assert 1 == len(server.calls())
    assert "with tags" in path.read_text(encoding="utf-8")


def test_a_session_that_begins_to_wait_is_announced_behind_one_that_waits(opened: Opened) -> None:
    """The reason is old, that it holds up another is news; once for all that begin in the same pass."""
    world, _ = opened()
    world.skill("deploy")
    world.run()
    world.session("s1", CORRECTED, ago=30)
    world.skills.rename(world.folder / "away")
    world.run()
    world.clock.at += timedelta(hours=5)
    world.session("s2", CORRECTED, ago=2)
    world.session("s3", CORRECTED, ago=2)
    with capture_logs() as logs:
        record = world.run()
        world.run()

    assert ["s1", "s2", "s3"] == [row["session_id"] for row in record["distil"]["sessions"]]
    assert 1 == sum("is looked at later" in row["event"] for row in logs)
