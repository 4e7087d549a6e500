"""The log: one event a line, a run's id on all of a run's, nothing secret and nothing that acts on a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from curatord.logs import Repeating, set_up

ROOT = Path(__file__).resolve().parent.parent
SECRET = "sk-ant-" + "api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"


def said(code: str, form: str) -> str:
    """Return what a process of its own logs to standard error."""
    script = f"from curatord.logs import *\nlog = set_up(form={form!r}, verbose=False)\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    return done.stderr


HOSTILE = {
    "text": f"log.info('a.b', text='key {SECRET} \\x1b[2J', many=['x', {{'deep': '{SECRET}'}}], path='/p')",
    "secret by its name": "log.info('a.b', api_key='Hq7Rt2Lm9Zx4Wv8Kc1Bn', path='/p')",
    "exception": f"""
try:
    raise RuntimeError('refused {SECRET} \\x1b[2J')
except RuntimeError:
    log.error('a.b', exc_info=True, path='/p')
""",
    "object": f"""
class Odd:
    def __str__(self):
        return 'odd {SECRET} \\x1b[2J'
log.info('a.b', it=Odd(), path='/p')
""",
    "library": f"import logging; logging.getLogger('lib').warning('key {SECRET} \\x1b[2J /p')",
}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_no_secret_and_no_escape_leaves(code: str, form: str) -> None:
    """Wherever in an event it stands; what is harmless is said as it is."""
    text = said(code, form)

    assert SECRET not in text
    assert "Hq7Rt2Lm9Zx4Wv8Kc1Bn" not in text
    assert "\x1b" not in text
    assert "/p" in text
    assert "redacted" in text


def test_json_is_a_line_an_event() -> None:
    """With its name, level and time; numbers stay numbers."""
    text = said("log.info('scan.finished', duration_s=0.5, files=3, whole=True, reason=None, at_work='x\\ny')", "json")

    (line,) = text.splitlines()
    event = json.loads(line)
    assert datetime.fromisoformat(event.pop("at")).tzinfo is not None
    told = {"duration_s": 0.5, "files": 3, "whole": True, "reason": None, "at_work": "x\ny"}
    assert {"event": "scan.finished", "level": "info", **told} == event


def test_the_journal_stamps_lines_itself() -> None:
    """So a text line carries no time there."""
    done = subprocess.run(
        [sys.executable, "-c", "from curatord.logs import *; set_up(form='text', verbose=False).info('a.b', n=1)"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"JOURNAL_STREAM": "8:1", "PATH": ""},
        timeout=60,
        check=True,
    )

    assert done.stderr.startswith("[info")


def test_what_is_bound_is_on_every_event() -> None:
    """Of other threads too: a run asks its model from several; and on none afterwards."""
    code = """
import threading
with bound(run_id='r1'):
    thread = threading.Thread(target=lambda: log.info('in.thread'))
    thread.start(); thread.join()
    log.info('in.run')
log.info('after')
"""
    events = {event["event"]: event for event in map(json.loads, said(code, "json").splitlines())}

    assert ["r1", "r1", None] == [events[name].get("run_id") for name in ("in.thread", "in.run", "after")]


class Hand:
    """A clock that moves a minute at each look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(minutes=1)
        return self.at


def events(work: Any) -> list[dict[str, Any]]:
    """Return what *work* logs with a repeater."""
    log = set_up(form="json", verbose=False)
    with capture_logs() as found:
        work(Repeating(log, Hand().now))
    return [dict(event) for event in found]


def test_trouble_that_repeats_is_said_seldom_and_its_end_once() -> None:
    """Eleven failures are four lines, and one that says for how long they went on."""

    def work(repeating: Repeating) -> None:
        for _ in range(11):
            repeating.met("model.failed", "m", "refused", model="m")
        repeating.gone("model.failed", "m", model="m")
        repeating.gone("model.failed", "m", model="m")

    found = events(work)

    assert [1, 2, 4, 8] == [event["times"] for event in found if event["event"] == "model.failed"]
    (over,) = [event for event in found if event["event"] == "model.recovered"]
    assert (11, 660.0, "refused") == (over["after"], over["duration_s"], over["was"])


def test_a_whole_look_ends_what_it_did_not_meet() -> None:
    """Of its own kind only."""

    def work(repeating: Repeating) -> None:
        for place in ("/a", "/b"):
            repeating.met("source.failed", place, "is away", path=place)
        repeating.met("transcript.failed", "/a", "cannot be read", path="/a")
        repeating.whole("source.failed", {"/b": {}})

    over = [event for event in events(work) if event["event"].endswith("recovered")]

    assert [("source.recovered", "/a")] == [(event["event"], event["what"]) for event in over]


def test_threads_count_together() -> None:
    """None of the troubles that come from several sides at once is lost."""
    counted: list[int] = []

    def work(repeating: Repeating) -> None:
        def many() -> None:
            for _ in range(256):
                repeating.met("model.failed", "m", "refused")

        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        repeating.gone("model.failed", "m")

    counted += [event["after"] for event in events(work) if "after" in event]
    assert [1024] == counted
