"""What a daemon at work tells: its log, notices, figures; with real processes, files and sockets."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.beside import Beside, SlowModel, a_home, free_port


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """Return a home whose processes are gone at the end."""
    with a_home(tmp_path / "w") as made:
        yield made


def figures(port: int) -> dict[str, float]:
    """Return the page of figures by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_a_run_is_told_event_by_event(beside: Beside) -> None:
    """Begin, each action, end; each with the run's id, and what is measured with its unit."""
    beside.daemon()
    run = json.loads(beside.do("run", "--json")[1])
    beside.until(lambda: bool(beside.events("order.done")))

    (started,) = [event for event in beside.events("run.started") if event["trigger"] == "manual"]
    (finished,) = [event for event in beside.events("run.finished") if event["trigger"] == "manual"]
    applied = beside.events("action.applied")
    assert {run["run_id"]} == {event["run_id"] for event in (started, finished, *applied)}
    assert len(run["transitions"]) == len(applied) > 0
    assert (run["outcome"], run["duration_s"]) == (finished["outcome"], finished["duration_s"])
    assert "run_id" not in beside.events("order.done")[0]
    assert {"files", "size_bytes", "records", "duration_s"} <= set(beside.events("scan.finished")[0])


def test_a_changing_run_gives_one_notice(beside: Beside, tmp_path: Path) -> None:
    """To the log, the file and the command, the same words; nothing for one that changes nothing."""
    prompt, heard = tmp_path / "prompt", tmp_path / "heard"
    beside.environ["CURATORD_NOTICES__FILE"] = str(prompt)
    beside.environ["CURATORD_NOTICES__CHARS"] = "40"
    beside.environ["CURATORD_NOTICES__COMMAND"] = f"[sh, -c, 'cat >> {heard}; env >> {heard}.env']"
    beside.environ["OPENAI_API_KEY"] = "hush-hush-hush"
    beside.daemon()
    before = [prompt.exists(), heard.exists(), beside.events("notice")]

    run = json.loads(beside.do("run", "--json")[1])
    prompt_line = prompt.read_text()
    prompt.unlink()  # seen
    again = json.loads(beside.do("run", "--json")[1])

    assert [False, False, []] == before
    assert f"curatord: {run['summary']}\n" == heard.read_text()
    assert [f"curatord: {run['summary']}"] == [event["text"] for event in beside.events("notice")]
    assert prompt_line.endswith("…\n")
    assert len(prompt_line) <= 41
    assert prompt_line.startswith("curatord: marked")
    assert [] == again["transitions"]
    assert not prompt.exists()
    assert "hush" not in Path(f"{heard}.env").read_text()
    assert f"CURATORD_RUN_ID={run['run_id']}" in Path(f"{heard}.env").read_text()


def test_a_notice_that_fails_harms_nothing(beside: Beside, tmp_path: Path) -> None:
    """The run is what it was, and the log says what failed."""
    (tmp_path / "folder").mkdir()
    beside.environ["CURATORD_NOTICES__FILE"] = str(tmp_path / "folder")
    beside.environ["CURATORD_NOTICES__COMMAND"] = "[sh, -c, 'echo no bus >&2; exit 9']"
    beside.daemon()

    code, out, err = beside.do("run", "--json")

    assert (0, "") == (code, err)
    assert "ok" == json.loads(out)["outcome"]
    failed = beside.events("notice.failed")
    assert [str(tmp_path / "folder"), None] == [event.get("path") for event in failed]
    assert "ended with 9: no bus" == failed[1]["error"]


def test_a_run_by_hand_tells_too(beside: Beside, tmp_path: Path) -> None:
    """Without a daemon the file and the command are the same; the answer on standard output is not disturbed."""
    beside.environ["CURATORD_NOTICES__FILE"] = str(tmp_path / "prompt")

    code, out, err = beside.do("run", "--json")

    assert (0, "") == (code, err)
    assert (tmp_path / "prompt").read_text().startswith(f"curatord: {json.loads(out)['summary']}"[:60])


def test_figures_follow_what_happens(beside: Beside) -> None:
    """Runs, sessions, skills; no path and no name of a skill is among them."""
    port = free_port()
    beside.environ["CURATORD_METRICS__LISTEN"] = f"127.0.0.1:{port}"
    beside.daemon()
    beside.until(lambda: figures(port).get('curatord_source_sessions{source="hermes",host="hermes"}', 0) > 0)
    before = figures(port)

    run = json.loads(beside.do("run", "--json")[1])
    after = figures(port)

    ran = 'curatord_runs_total{trigger="manual",outcome="ok"}'
    assert (None, 1.0) == (before.get(ran), after[ran])
    assert 1.0 == after['curatord_runs_total{trigger="schedule",outcome="nothing_to_do"}']
    stale = [row for row in run["transitions"] if row["to"] == "stale"]
    assert len(stale) == after['curatord_skills{state="stale"}']
    assert len(run["pending"]) == after["curatord_proposals_pending"]
    assert 0 <= after['curatord_source_lag_seconds{source="claude-code",host="claude-code"}'] < 60
    text = "\n".join(after)
    assert "/" not in text
    assert not [row["skill"] for row in run["transitions"] if row["skill"].rpartition("/")[2] in text]


def test_a_model_that_fails_is_counted_and_told(beside: Beside) -> None:
    """By what went wrong; the exchange is an event with the run's id."""
    model, port = SlowModel(), free_port()
    model.answers.set()
    beside.model(model.port)
    beside.environ["CURATORD_METRICS__LISTEN"] = f"127.0.0.1:{port}"
    beside.daemon()

    run = json.loads(beside.do("run", "--json")[1])
    model.close()

    calls = {name: value for name, value in figures(port).items() if name.startswith("curatord_model_calls_total")}
    assert [1.0] == list(calls.values())
    failed = beside.events("model.failed")
    assert [run["run_id"]] == [event["run_id"] for event in failed]
    assert 1 == failed[0]["times"]


def test_a_reload_moves_the_figures_or_refuses_all(beside: Beside) -> None:
    """A port that is taken refuses the whole file; a free one is listened at, the old one no more."""
    old, new = free_port(), free_port()
    text = beside.config.read_text()
    beside.config.write_text(text.replace("listen: null", f"listen: 127.0.0.1:{old}"))
    beside.daemon()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wrong = text.replace("listen: null", f"listen: 127.0.0.1:{port}").replace("interval: 7d", "interval: 3d")
        beside.config.write_text(wrong)
        refused = beside.do("reload")
    kept = figures(old)

    beside.config.write_text(text.replace("listen: null", f"listen: 127.0.0.1:{new}"))
    moved = beside.do("reload")

    assert 2 == refused[0]
    assert "metrics.listen" in refused[2]
    assert "curatord_paused" in kept
    assert 0 == moved[0]
    assert [f"metrics.listen: 127.0.0.1:{old} -> 127.0.0.1:{new}"] == beside.events("config.reloaded")[0]["changed"]
    assert "curatord_paused" in figures(new)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", old))


def test_figures_of_a_second_daemon_are_none(beside: Beside) -> None:
    """It is kept out before it listens anywhere."""
    beside.environ["CURATORD_METRICS__LISTEN"] = f"127.0.0.1:{free_port()}"
    beside.daemon()

    code, _, err = beside.do("daemon")

    assert 5 == code
    assert "a daemon is at work" in err
