"""The command line beside a running daemon: real processes, real sockets, real signals, and a model that is slow."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from curatord.adapters.control_client import live_status
from curatord.adapters.instance import running_daemon
from curatord.adapters.local_socket import connect
from tests.e2e.beside import WAIT_S, Beside, SlowModel, a_home


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """Return a home whose processes are gone at the end."""
    with a_home(tmp_path / "w") as made:
        yield made


@pytest.fixture
def slow() -> Iterator[SlowModel]:
    """Return a model that answers when it is told to."""
    model = SlowModel()
    yield model
    model.close()


def told(run: Any) -> dict[str, Any]:
    """Return what of a run's record must not depend on who did it."""
    rows = [(row["library"], row["skill"], row["from"], row["to"]) for row in run["transitions"]]
    return {
        **{name: run[name] for name in ("trigger", "dry_run", "mode", "outcome", "summary")},
        "transitions": rows,
        "keys": sorted(run),
    }


def test_a_run_is_the_same_with_and_without_a_daemon(tmp_path: Path, beside: Beside) -> None:
    """Value, exit code, streams; and it was the daemon that did it."""
    beside.daemon()

    with a_home(tmp_path / "alone") as alone:
        found = [each.do("run", "--json") for each in (alone, beside)]
        dry = [each.do("run", "--dry-run", "--json", "--library", "claude") for each in (alone, beside)]

    assert told(json.loads(found[0][1])) == told(json.loads(found[1][1]))
    assert told(json.loads(dry[0][1])) == told(json.loads(dry[1][1]))
    assert [0, 0, 0, 0] == [code for code, _, _ in (*found, *dry)]
    assert ["", ""] == [found[1][2], dry[1][2]]
    assert ["run", "run"] == [event["command"] for event in beside.events("order.done")]


def test_errors_are_the_same_too(beside: Beside) -> None:
    """A library that nobody configured, closed gates."""
    beside.daemon()

    code, _, err = beside.do("run", "--library", "nobody")
    gates = beside.do("run", "--respect-gates", "--json")

    assert 2 == code
    assert "there is no library 'nobody'" in err
    assert 0 == gates[0]
    assert "" == json.loads(gates[1])["run_id"]


def test_scan_and_pause_are_handed_over(beside: Beside) -> None:
    """And heard at once: `status` says so."""
    beside.daemon()

    scan = beside.do("scan", "--json")
    pause = beside.do("pause", "--json")
    status = json.loads(beside.do("status", "--json")[1])
    again = beside.do("pause", "--json")
    resume = beside.do("resume")

    assert [0, 0, 0, 0] == [code for code, _, _ in (scan, pause, again, resume)]
    assert 2 == len(json.loads(scan[1])["sources"])
    assert json.loads(pause[1])["done"]
    assert json.loads(again[1])["unchanged"]
    assert status["paused"]
    assert "answers" == status["daemon"]["control"]
    assert ["scan", "pause", "pause", "resume"] == [event["command"] for event in beside.events("order.done")]


def test_ctrl_c_stops_the_run_of_the_daemon(beside: Beside, slow: SlowModel) -> None:
    """After its current action, as it would without one; the daemon lives on."""
    beside.model(slow.port)
    daemon = beside.daemon()
    client = beside.begin("run")
    beside.until(lambda: slow.asked > 0)

    client.send_signal(signal.SIGINT)
    _, err = client.communicate(timeout=WAIT_S)

    assert 130 == client.returncode
    assert "asking the daemon" in err
    assert "interrupted" == beside.outcome()
    assert daemon.poll() is None
    beside.until(lambda: beside.live().get("activity") == "idle")


def test_a_killed_client_leaves_the_run_alone(beside: Beside, slow: SlowModel) -> None:
    """It goes on to its end, and the log says so."""
    beside.model(slow.port)
    beside.daemon()
    client = beside.begin("run")
    beside.until(lambda: slow.asked > 0)

    client.kill()
    beside.until(lambda: bool(beside.events("order.left")))
    slow.answers.set()
    beside.until(lambda: bool(beside.events("order.done")))

    assert beside.outcome() not in ("interrupted", "running")


def test_one_run_at_a_time(beside: Beside, slow: SlowModel) -> None:
    """The second is told at once, whoever does the first, and `status` shows it; a scan is none."""
    beside.model(slow.port)
    beside.daemon()
    beside.begin("run")
    beside.until(lambda: slow.asked > 0)

    second = beside.do("run")
    scan = beside.do("scan")

    assert 5 == second[0]
    assert "a run is at work" in second[2]
    assert 0 == scan[0]
    assert "run, as ordered" == beside.live()["activity"]
    assert 1 == slow.asked


def test_the_daemon_is_stopped_in_the_middle(beside: Beside, slow: SlowModel) -> None:
    """The client hears what became of the run, as its record says."""
    beside.model(slow.port)
    daemon = beside.daemon()
    client = beside.begin("run", "--json")
    beside.until(lambda: slow.asked > 0)

    daemon.send_signal(signal.SIGTERM)
    out, _ = client.communicate(timeout=WAIT_S)

    assert 143 == daemon.wait(WAIT_S)
    assert 130 == client.returncode
    assert "interrupted" == json.loads(out)["outcome"]
    assert not (beside.state / "control.sock").exists()


def test_the_daemon_is_killed_in_the_middle(beside: Beside, slow: SlowModel) -> None:
    """The client says so, and the next command goes on without one."""
    beside.model(slow.port)
    daemon = beside.daemon()
    client = beside.begin("run")
    beside.until(lambda: slow.asked > 0)

    daemon.kill()
    _, err = client.communicate(timeout=WAIT_S)
    slow.answers.set()
    after = beside.do("run", "--no-llm")

    assert 3 == client.returncode
    assert "went away" in err
    assert (beside.state / "control.sock").is_socket()  # stale, and harmless
    assert 0 == after[0]


def test_a_stopped_daemon_is_not_waited_for(beside: Beside) -> None:
    """It says why it does the work itself, and the order is not done once more when the daemon wakes."""
    daemon = beside.daemon()
    daemon.send_signal(signal.SIGSTOP)

    code, _, err = beside.do("run")
    status = beside.do("status")
    daemon.send_signal(signal.SIGCONT)
    beside.until(lambda: beside.live().get("activity") == "idle")

    assert 0 == code
    assert "does not answer; so it is done here" in err
    assert 0 == status[0]
    assert [] == beside.events("order.done")


def test_a_stopped_daemon_does_not_pass_the_health_check(beside: Beside) -> None:
    """Its last word was good, but it answers nobody; once it goes on it is well again."""
    daemon = beside.daemon()
    before = beside.do("status", "--check")
    daemon.send_signal(signal.SIGSTOP)

    code, out, _ = beside.do("status", "--check")
    daemon.send_signal(signal.SIGCONT)
    beside.until(lambda: beside.live().get("activity") == "idle")

    assert (0, 3) == (before[0], code)
    assert 1 == out.count("does not answer on its socket")
    assert 0 == beside.do("status", "--check")[0]


def test_a_daemon_without_a_socket_is_well(beside: Beside) -> None:
    """Some file systems know no sockets; then what it published is all there is to go by."""
    beside.state.joinpath("control.sock").mkdir(parents=True)
    with beside.log_file.open("ab") as log:
        beside.begin("--log-format", "json", "daemon", stderr=log)
    beside.until(lambda: "run.finished" in beside.log())
    beside.until(lambda: running_daemon(beside.state).get("activity") == "idle")

    code, out, _ = beside.do("status", "--check", "--json")

    assert (0, "absent") == (code, json.loads(out)["daemon"]["control"])


def test_another_configuration_is_not_the_daemons(beside: Beside) -> None:
    """What was asked for is done as it was asked for."""
    beside.daemon()
    beside.environ["CURATORD_LIFECYCLE__STALE_AFTER"] = "45d"

    code, out, err = beside.do("run", "--dry-run", "--json")

    assert 0 == code
    assert "another configuration" in err
    assert json.loads(out)["outcome"] in ("ok", "nothing_to_do")
    assert [] == beside.events("order.done")


def test_a_reload_takes_over_new_places(beside: Beside, tmp_path: Path) -> None:
    """All of the file, and a change in a place that it names is seen by an event from then on."""
    beside.daemon()
    other = tmp_path / "other"
    other.mkdir()
    text = beside.config.read_text()
    beside.config.write_text(
        text.replace("path: home/.claude/projects", f"path: {other}").replace("rescan_every: 1m", "rescan_every: 2m")
    )

    code, out, err = beside.do("reload")
    again = beside.do("reload")
    beside.until(lambda: any(str(other) == one["path"] for one in beside.live()["watches"]))

    assert 0 == code, err
    assert "rescan_every: 1m -> 2m" in out
    assert "says what it said before" in again[1]
    changed = beside.events("config.reloaded")[0]["changed"]
    assert 2 == len(changed)
    assert f"sources[1].path: {beside.folder}/home/.claude/projects -> {other}" in changed


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("rescan_every: 1m", "rescan_every: often", "rescan_every"),
        ("state_dir: state ", "state_dir: other ", "restart"),
    ],
    ids=["nonsense", "state"],
)
def test_a_wrong_configuration_is_refused_as_a_whole(beside: Beside, before: str, after: str, words: str) -> None:
    """The old one stays, what was right in the new one included."""
    beside.daemon()
    text = beside.config.read_text()
    old = beside.do("config", "show", "--json")
    assert before in text
    beside.config.write_text(text.replace(before, after).replace("interval: 7d", "interval: 3d"))

    os.kill(beside.live()["pid"], signal.SIGHUP)
    beside.until(lambda: bool(beside.events("config.refused")))
    refused = beside.events("config.refused")[0]
    beside.config.write_text(text)
    run = beside.do("run", "--dry-run", "--json")

    assert words in refused["error"] + refused["hint"]
    assert json.loads(old[1])["fingerprint"] == json.loads(run[1])["config_fingerprint"]
    assert ["run"] == [event["command"] for event in beside.events("order.done")]


def test_without_a_daemon_there_is_nothing_to_reload(beside: Beside) -> None:
    """It is no fault."""
    code, out, _ = beside.do("reload")

    assert 0 == code
    assert "none is running" in out


def test_a_deep_state_folder_has_its_socket(beside: Beside) -> None:
    """Deeper than a socket's address may be long."""
    deep = beside.folder / ("d" * 90) / ("e" * 90)
    beside.environ["CURATORD_STATE_DIR"] = str(deep)
    beside.state = deep
    beside.daemon()

    code, _, err = beside.do("run")

    assert (0, "") == (code, err)
    assert ["run"] == [event["command"] for event in beside.events("order.done")]


def test_commands_by_the_hundred_find_the_daemon(beside: Beside) -> None:
    """Asked from many sides at once, each is answered, and the daemon stays as it was."""
    beside.daemon()
    before = beside.threads()
    answers: list[Any] = []

    def look() -> None:
        for _ in range(25):
            answers.append(live_status(beside.state))

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join(WAIT_S)

    assert 100 == len(answers)
    assert all(answer is None or answer["activity"] in ("idle", "scanning") for answer in answers)
    assert sum(answer is not None for answer in answers) > 90
    beside.until(lambda: beside.threads() <= before)


def test_junk_from_all_sides_changes_nothing(beside: Beside, slow: SlowModel) -> None:
    """In the middle of a run: no trouble, no traceback, no thread left behind, and the run is what it was."""
    beside.model(slow.port)
    daemon = beside.daemon()
    client = beside.begin("run", "--json")
    beside.until(lambda: slow.asked > 0)
    random = Random(7)

    for number in range(150):
        with contextlib.suppress(OSError), connect(beside.state, "control.sock", 5.0) as connection:
            connection.sendall(random.randbytes(random.randrange(1, 40_000)) + b"\n" * (number % 3))
            if number % 4 == 0:
                connection.recv(10)
    slow.answers.set()
    out, _ = client.communicate(timeout=WAIT_S)

    assert json.loads(out)["run_id"]
    assert daemon.poll() is None
    beside.until(lambda: (beside.live().get("activity"), beside.live().get("last_error")) == ("idle", None))
    assert [] == beside.events("control.failed") + beside.events("worker.failed")
    assert "Traceback" not in beside.log()
