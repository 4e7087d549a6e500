"""`curatord doctor` over a real home: what it sees of each fault, and that it changes nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.instance import running_daemon
from curatord.adapters.store.database import NEWEST
from curatord.application import Application
from curatord.application.doctor import CHECKS, Examination, doctor
from curatord.application.doctor.setup import versions
from curatord.cli.main import main
from curatord.errors import StateError
from tests.e2e.beside import free_port
from tests.e2e.world import World, tree
from tests.fakes.stub import needs_stub, stub


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A demonstration home that was scanned once."""
    made = World(tmp_path / "w")
    Application(made.parts).scan()
    made.parts.close()
    made.open()
    yield made
    made.parts.close()


def examine(world: World, *, llm: bool = False) -> dict[str, dict[str, Any]]:
    """Return the checks of a doctor by name."""
    world.parts.close()
    world.open()
    return {check["check"]: check for check in Application(world.parts).doctor(notices=(), llm=llm)}


def failing(checks: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of failing checks."""
    return [name for name, check in checks.items() if not check["ok"]]


@contextmanager
def a_daemon(config: Path, state: Path, home: Path) -> Iterator[int]:
    """Run a real daemon until it has looked at everything once, and stop it afterwards."""
    command = [sys.executable, "-m", "curatord", "--config", str(config), "daemon"]
    environ = {**os.environ, "HOME": str(home)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not running_daemon(state).get("scanned_at") and time.monotonic() < until:
                time.sleep(0.05)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def test_a_home_in_order(world: World) -> None:
    """Nothing fails; sources and libraries have their numbers."""
    checks = examine(world)

    assert [] == failing(checks)
    assert ("fine", "fine") == (checks["state"]["level"], checks["database"]["level"])
    assert ", 197 sessions, " in checks["source claude-code"]["found"]
    assert "skills (" in checks["library hermes"]["found"]
    assert "its host's own curator is on" in checks["library hermes"]["found"]
    assert "was told of" in checks["events"]["found"]


def test_it_changes_nothing(world: World) -> None:
    """Not a byte, mode or time of state, libraries and transcripts; the probe is gone again."""
    world.parts.close()
    before = tree(world.folder, times=True)

    examine(world)

    assert before == tree(world.folder, times=True)


def test_without_any_state_none_is_made(tmp_path: Path) -> None:
    """A newcomer's first command may be this one."""
    world = World(tmp_path / "w")
    before = tree(world.folder, times=True)
    checks = examine(world)

    assert [] == failing(checks)
    assert ("note", "note") == (checks["state"]["level"], checks["database"]["level"])
    assert checks["source claude-code"]["found"].endswith("never scanned; `curatord scan` reads it")
    assert before == tree(world.folder, times=True)


def test_a_damaged_database_is_told_and_left_alone(world: World) -> None:
    """The other checks are made all the same, and say what they cannot know."""
    world.parts.close()
    path = world.parts.state_dir / "curatord.db"
    data = bytearray(path.read_bytes())
    data[4096 * 5 : 4096 * 6] = b"\xa5" * 4096
    path.write_bytes(data)
    before = tree(world.folder, times=True)
    checks = examine(world)

    assert ["database"] == failing(checks)
    assert "curatord scan" in checks["database"]["mend"]
    assert "is not known while the database cannot be used" in checks["source claude-code"]["found"]
    assert "managed not known" in checks["library hermes"]["found"]
    assert before == tree(world.folder, times=True)


def test_a_file_that_is_no_database(world: World) -> None:
    """Cut to nothing by a full disk, or something else altogether."""
    world.parts.close()
    (world.parts.state_dir / "curatord.db").write_bytes(b"hello, I am a text, and long enough to be looked at\n" * 20)

    assert ["database"] == failing(examine(world))


@pytest.mark.parametrize(("schema", "level"), [(NEWEST - 1, "note"), (NEWEST + 1, "failure")])
def test_databases_of_other_versions(world: World, schema: int, level: str) -> None:
    """An older one is brought up to date in a copy, so that its sources can be told of; a newer one is refused."""
    world.parts.close()
    with sqlite3.connect(world.parts.state_dir / "curatord.db") as connection:
        connection.execute("DROP INDEX files_left")  # what the newest migration made
        connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    checks = examine(world)

    assert level == checks["database"]["level"]
    assert (level == "note") == (", 197 sessions, " in checks["source claude-code"]["found"])


def test_a_wal_that_somebody_left_is_read(world: World) -> None:
    """A killed daemon leaves commits there; they are looked at, not passed over."""
    world.app.pause()
    state = world.parts.state_dir
    left = {name: (state / name).read_bytes() for name in ("curatord.db", "curatord.db-wal")}
    world.parts.close()
    for name, data in left.items():
        (state / name).write_bytes(data)
    checks = examine(world)

    assert left["curatord.db-wal"]
    assert "automatic runs are paused" in checks["daemon"]["found"]


def test_a_format_that_nobody_knows_is_seen_by_the_exit_code(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred lines of an invented record type after a year of others (bugs B098)."""
    folder = world.folder / "home/.claude/projects/-new"
    folder.mkdir()
    lines = [
        {"type": "turn_v9", "sessionId": "s9", "uuid": f"u{n}", "version": "9.0.0", "timestamp": "2026-11-30T11:00:00Z"}
        for n in range(200)
    ]
    (folder / "s9.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    world.parts.close()
    arguments = ["--config", str(world.folder / "curatord.yaml")]
    environ = {"HOME": str(world.folder / "home")}

    assert 0 == main([*arguments, "doctor", "--no-llm"], environ=environ)
    assert 0 == main([*arguments, "scan"], environ=environ)
    capsys.readouterr()
    assert 3 == main([*arguments, "doctor", "--no-llm", "--json"], environ=environ)
    checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)}

    assert ["source claude-code"] == failing(checks)
    found = checks["source claude-code"]["found"]
    assert "since version 9.0.0, 100 % of the records are of types that are not known here" in found
    assert "turn_v9 (200)" in found
    assert "not one turn was understood" in found


def test_a_source_that_is_away(world: World) -> None:
    """It was there, so a mount is missing or a host has moved."""
    (world.folder / "home/.claude/projects").rename(world.folder / "elsewhere")

    assert ["source claude-code"] == failing(examine(world))


def test_ownership_that_cannot_be_read(world: World) -> None:
    """Everything in the library is protected then, which should not go unnoticed."""
    (world.folder / "home/.hermes/skills/.usage.json").write_text("{", encoding="utf-8")
    checks = examine(world)

    assert ["library hermes"] == failing(checks)
    assert ".usage.json" in checks["library hermes"]["found"]


def test_what_is_handed_over_is_told_also_where_nothing_can_be_changed(world: World) -> None:
    """A library that is itself a skill is only looked at; that skills in it are managed makes it a failure to mend."""
    before = examine(world)["library hermes"]["found"].split(",")[0]
    (world.folder / "home/.hermes/skills/SKILL.md").write_text("---\ndescription: x\n---\nb\n", encoding="utf-8")
    checks = examine(world)

    assert ["library hermes"] == failing(checks)
    assert "(9 managed)" in before
    assert before == checks["library hermes"]["found"].split(",")[0]
    assert "is itself a skill" in checks["library hermes"]["found"]


def test_what_a_service_could_not_see_is_told(world: World) -> None:
    """The last remembered look found the library away; from here it is there (bugs B155). The next scan settles it."""
    skills = world.folder / "home/.claude/skills"
    skills.rename(world.folder / "elsewhere")
    world.app.scan()
    (world.folder / "elsewhere").rename(skills)
    during = examine(world)["library claude"]
    world.reopen()
    world.app.scan()
    after = examine(world)["library claude"]

    assert "the last scan or run found otherwise" in during["found"]
    assert ("note", "fine") == (during["level"], after["level"])


def test_a_library_that_is_away(world: World) -> None:
    """Nothing of it ages meanwhile, and somebody should mount it."""
    (world.folder / "home/.claude/skills").rename(world.folder / "elsewhere")

    assert ["library claude"] == failing(examine(world))


def test_state_that_others_may_read(world: World) -> None:
    """It names every project the agents worked on."""
    world.parts.state_dir.chmod(0o755)

    assert ["state"] == failing(examine(world))


def test_a_clock_that_was_set_back(world: World) -> None:
    """The scan was later than now."""
    world.clock.at -= timedelta(days=30)

    assert "clock" in failing(examine(world))


def test_a_running_daemon_is_asked_by_what_it_publishes(world: World) -> None:
    """It watches already, so no watch is set a second time; nothing is taken from it."""
    world.parts.close()
    home = world.folder / "home"
    with a_daemon(world.folder / "curatord.yaml", world.parts.state_dir, home) as pid:
        checks = examine(world)

    assert f"process {pid}" in checks["daemon"]["found"]
    assert "watched by the daemon" in checks["events"]["found"]


def test_a_place_for_figures_that_is_taken(world: World) -> None:
    """Doctor says what the daemon would say; the daemon's own hold on it is no fault, a new place asks for a reload."""
    config, state, port = world.folder / "curatord.yaml", world.parts.state_dir, free_port()
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("listen: null", f"listen: '127.0.0.1:{port}'"), encoding="utf-8")
    with socket.create_server(("127.0.0.1", port)):
        taken = examine(world)["metrics"]
    free = examine(world)["metrics"]
    world.parts.close()
    with a_daemon(config, state, world.folder / "home"):
        ours = examine(world)["metrics"]
        config.write_text(text.replace("listen: null", f"listen: '127.0.0.1:{free_port()}'"), encoding="utf-8")
        changed = examine(world)["metrics"]

    assert ["failure", "fine", "fine", "warning"] == [check["level"] for check in (taken, free, ours, changed)]
    assert "the daemon will not start" in taken["found"]
    assert "the running daemon answers" in ours["found"]
    assert "curatord reload" == changed["mend"]


def test_notices_that_would_not_arrive(world: World) -> None:
    """Both ways are looked at, and neither is tried; without any there is no line."""
    config = world.folder / "curatord.yaml"
    assert "notices" not in examine(world)
    before = tree(world.folder / "home")
    text = config.read_text(encoding="utf-8").replace("file: null", f"file: '{config}/notice'")
    config.write_text(text.replace("command: null", "command: [curatord-no-such-program]"), encoding="utf-8")
    check = examine(world)["notices"]

    assert "failure" == check["level"]
    assert f"{config} is no folder" in check["found"]
    assert "curatord-no-such-program is not found on PATH" in check["found"]
    assert before == tree(world.folder / "home")


def test_a_daemon_that_was_stopped_is_not_well(world: World) -> None:
    """As `status --check` has it: what it published before does not count."""
    world.parts.close()
    with a_daemon(world.folder / "curatord.yaml", world.parts.state_dir, world.folder / "home") as pid:
        os.kill(pid, signal.SIGSTOP)
        try:
            stopped = examine(world)["daemon"]
        finally:
            os.kill(pid, signal.SIGCONT)

    assert "failure" == stopped["level"]
    assert "it does not answer on its socket" in stopped["found"]
    assert "restart" in stopped["mend"]


def test_another_daemon_on_the_same_library(world: World, tmp_path: Path) -> None:
    """It has another state folder, so no lock keeps the two apart."""
    other = tmp_path / "other.yaml"
    skills = world.folder / "home/.claude/skills"
    other.write_text(
        f"state_dir: {tmp_path}/other\nsources: []\nlibraries: [{{name: mine, path: {skills}}}]\n", encoding="utf-8"
    )
    with a_daemon(other, tmp_path / "other", world.folder / "home") as pid:
        checks = examine(world)

    assert {"library claude", "others"} == set(failing(checks))
    assert f"process {pid}" in checks["library claude"]["found"]
    assert [] == failing(examine(world))


def test_one_examination_that_breaks_is_its_own_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on; another check is one more entry in the list."""

    def broken(_ward: object) -> Any:
        raise StateError("cannot be looked into", hint="try this")

    entries = (Examination("mine", broken), *CHECKS)
    monkeypatch.setattr("curatord.application.doctor.CHECKS", entries)
    world.parts.close()
    world.open()
    first, *rest = doctor(world.parts, notices=(), llm=False)

    assert ("mine", False, "try this") == (first["check"], first["ok"], first["mend"])
    assert len(rest) >= len(CHECKS) - 1


def test_a_wrong_configuration_is_a_check_and_no_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All mistakes are told, and what needs no configuration."""
    config = tmp_path / "c.yaml"
    config.write_text("gates: {intervall: 3d}\nmode: nope\n", encoding="utf-8")

    assert 3 == main(["--config", str(config), "doctor", "--json"], environ={"HOME": str(tmp_path)})
    version, wrong = json.loads(capsys.readouterr().out)

    assert (True, False) == (version["ok"], wrong["ok"])
    assert "intervall" in wrong["found"]
    assert "nope" in wrong["found"]


def a_model(url: str, **more: str) -> dict[str, str]:
    """Return the variables that configure a primary at *url*."""
    names = {"base_url": url, "model": "stub", "timeout": "10s", **more}
    return {f"CURATORD_LLM__PRIMARY__{name.upper()}": value for name, value in names.items()}


@needs_stub
def test_a_model_that_answers(world: World, tmp_path: Path) -> None:
    """One call; nothing is booked, since a doctor changes nothing."""
    with stub(tmp_path) as server:
        world.settings.update(a_model(server.url))
        check = examine(world, llm=True)["model"]

        assert ("fine", 1) == (check["level"], len(server.calls()))
    assert "answered in the asked form" in check["found"]


@needs_stub
@pytest.mark.parametrize(
    ("fault", "level", "words"),
    [
        ("401", "failure", "key refused"),
        ("404", "failure", "model or address unknown"),
        ("not-json", "failure", "gave no answer in the asked form"),
        ("not-json:1", "warning", "its first answer was not in the asked form"),
    ],
)
def test_models_in_trouble(world: World, tmp_path: Path, fault: str, level: str, words: str) -> None:
    """Each in its own words; the key is never among them, only where it is looked for."""
    key = "k" + "-0123456789abcdefghij"
    (tmp_path / "key").write_text(key, encoding="utf-8")
    with stub(tmp_path, "--fault", fault) as server:
        world.settings.update(a_model(server.url, api_key=f"{{file: {tmp_path}/key}}"))
        check = examine(world, llm=True)["model"]

    assert level == check["level"]
    assert words in check["found"]
    assert key not in json.dumps(check)
    assert f"the file {tmp_path}/key" in json.dumps(check)


def test_a_server_that_is_not_there(world: World) -> None:
    """The URL that was tried is named; nothing listens on the discard port of loopback."""
    world.settings.update(a_model("http://127.0.0.1:9"))
    check = examine(world, llm=True)["model"]

    assert "failure" == check["level"]
    assert "http://127.0.0.1:9/v1/chat/completions" in check["found"]


def test_a_key_that_is_missing_is_told_without_asking(world: World) -> None:
    """Also with --no-llm: it costs nothing to look."""
    world.settings.update(a_model("http://127.0.0.1:9/v1", api_key="{env: NO_SUCH_KEY}"))

    assert "NO_SUCH_KEY" in examine(world)["model"]["found"]


@pytest.mark.parametrize("llm", [True, False])
def test_no_model_is_asked_beyond_the_budget_or_against_the_users_word(world: World, llm: bool) -> None:
    """A note says why; nothing was sent, or this address would have failed."""
    world.settings.update(a_model("http://127.0.0.1:9/v1"), CURATORD_LLM__BUDGET__TOKENS_PER_RUN="10")
    check = examine(world, llm=llm)["model"]

    assert "note" == check["level"]
    assert ("tokens_per_run" if llm else "--no-llm") in check["found"]


@pytest.mark.parametrize("there", [True, False])
def test_a_missing_decompressor_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    """What reads packed transcripts is the module that the reader takes, not another one that may be installed."""
    if not there:
        for name in ("compression.zstd", "backports.zstd"):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "zstandard", None)

    assert there is ("backports.zstd" not in str(versions().as_json()))
