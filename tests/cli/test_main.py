"""The frame of the command line: help, errors, exit codes, streams."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from curatord import __version__
from curatord.cli.commands import COMMANDS, GROUPS, Command
from curatord.cli.main import main
from curatord.errors import (
    BusyError,
    ConfigError,
    CuratorError,
    StateCorruptError,
    StateError,
    StoppedError,
    UsageError,
)
from tests.cli.fake_app import CHANGES, RUN, SCAN, SKILL, STATUS, FakeApp

ALL: list[tuple[str, Command]] = [
    (f"{command.name} {inner.name}" if command.inner else command.name, inner)
    for command in COMMANDS
    for inner in (command.inner or (command,))
]

# What each command needs behind its name.
OPERANDS = {
    "show": ["pdf-forms"],
    "explain": ["pdf-forms"],
    "diff": ["3f9a2c"],
    "approve": ["3f9a2c"],
    "reject": ["3f9a2c", "--reason", "no"],
    "refine": ["s1"],
    "undo": ["last"],
    "pin": ["a", "b"],
    "unpin": ["a"],
    "importance": ["a", "low"],
    "adopt": ["--agent-made", "--dry-run"],
    "disown": ["a"],
    "archive": ["a"],
    "restore": ["a", "--anyway"],
    "backup create": ["--reason", "no reason"],
    "backup verify": ["last"],
    "backup restore": ["last", "--skill", "a", "--skill", "b", "--dry-run"],
    "completion": ["bash"],
}


def run_cli(*arguments: str, app: FakeApp | None = None, environ: dict[str, str] | None = None) -> int:
    """Run the command line in this process with a made-up application."""
    return main(arguments, environ=environ or {"HOME": "/nonexistent/home"}, factory=(app or FakeApp()).opened)


def test_every_command_is_in_a_group_and_named_once() -> None:
    """The overview shows all of them."""
    names = [command.name for command in COMMANDS]

    assert sorted(set(names)) == sorted(names)
    assert {command.group for command in COMMANDS} == {group for group, _ in GROUPS}


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_every_command_has_help_with_an_example(
    name: str, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` goes to standard output, exits 0, and ends in something to copy that is right."""
    code = run_cli(*name.split(), "--help")
    said = capsys.readouterr()

    assert 0 == code
    assert "example:" in said.out
    assert command.example in said.out
    assert f"curatord {name}" in said.out
    assert "" == said.err


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_the_examples_parse(name: str, command: Command) -> None:
    """An example that the parser refuses would be worse than none."""
    import shlex

    from curatord.cli.parser import build

    words = shlex.split(command.example.split(" > ")[0])

    assert "curatord" == words[0]
    assert build().parse_args(words[1:]).handler == command.run


def test_the_overview_names_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """`curatord --help` shows them by group."""
    assert 0 == run_cli("--help")
    text = capsys.readouterr().out

    assert set() == {command.name for command in COMMANDS if not re.search(rf"(?m)^  {command.name} +\S", text)}
    assert set() == {title for _, title in GROUPS if f"{title}:" not in text}


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, and with the code of a usage error."""
    assert 2 == run_cli()
    said = capsys.readouterr()
    assert "" == said.out
    assert "Set up:" in said.err


@pytest.mark.parametrize(
    ("word", "hint"), [("stats", "did you mean status?"), ("Status", "did you mean status?"), ("xyzzy", "--help")]
)
def test_an_unknown_command_brings_the_nearest(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip names the command that was meant."""
    assert 2 == run_cli("--config", "status", word)
    said = capsys.readouterr()
    assert "" == said.out
    assert f"there is no command {word!r}" in said.err
    assert hint in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--jsno"],
        ["show"],
        ["config"],
        ["config", "shwo"],
        ["importance", "a", "huge"],
        ["approve"],
        ["approve", "x", "--all"],
        ["adopt"],
        ["adopt", "a", "--all"],
        ["events", "--since", "soon"],
        ["--log-format", "xml", "status"],
        ["run", "--dry"],
        ["refine"],
        ["refine", "s1", "--retry", "--focus", "x"],
        ["events", "--distil", "--skill", "a"],
    ],
)
def test_wrong_usage_is_2_and_one_short_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, nothing on standard output, a hint, and nothing was called."""
    app = FakeApp()

    assert 2 == run_cli(*arguments, app=app)
    said = capsys.readouterr()
    assert "" == said.out
    assert said.err.startswith("curatord: ")
    assert [] == app.calls


@pytest.mark.parametrize(
    "name", [name for name, command in ALL if command.json and not name.startswith("config")], ids=str
)
def test_json_is_one_value_on_standard_output(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints one JSON value there and nothing else."""
    run_cli(*name.split(), *OPERANDS.get(name, []), "--json")
    said = capsys.readouterr()

    json.loads(said.out)
    assert "\x1b" not in said.out


@pytest.mark.parametrize("name", [name for name, command in ALL if command.json], ids=str)
def test_text_is_said_without_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same commands say something to a person, without colour where there is no terminal."""
    run_cli(*name.split(), *OPERANDS.get(name, []))
    said = capsys.readouterr()

    assert said.out.strip()
    assert "\x1b" not in said.out + said.err


def test_run_prints_the_record_it_got(capsys: pytest.CaptureFixture[str]) -> None:
    """`run --json` is run.json itself."""
    assert 0 == run_cli("run", "--json")
    assert RUN == json.loads(capsys.readouterr().out)


def test_a_run_that_closed_gates_kept_from_beginning_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no record then to speak of."""
    gates = [{"gate": "min_idle", "open": False, "reason": "somebody is at work"}]

    assert 0 == run_cli("run", "--respect-gates", app=FakeApp({"run": {**RUN, "run_id": "", "gates": gates}}))
    said = capsys.readouterr().out
    assert "nothing begun" in said
    assert "min_idle: somebody is at work" in said
    assert "report" not in said


@pytest.mark.parametrize(("kind", "code", "told"), [("failed", 3, True), ("waiting", 0, True), ("restart", 0, False)])
def test_a_scan_tells_what_it_could_not_read(
    capsys: pytest.CaptureFixture[str], kind: str, code: int, *, told: bool
) -> None:
    """What failed is in the exit code too; a restart is an ordinary thing."""
    value = {**SCAN, "notes": [{"kind": kind, "path": "/h/x.jsonl", "text": "denied"}]}

    assert code == run_cli("scan", app=FakeApp({"scan": value}))
    assert told == ("/h/x.jsonl: denied" in capsys.readouterr().out)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_answer_that_did_not_arrive_is_no_success() -> None:
    """A full disk behind standard output: one line and exit 1, no traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "curatord", "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).resolve().parents[2], check=False,
        )  # fmt: skip
        answer = subprocess.run(
            [sys.executable, "-m", "curatord", "config", "schema"], stdout=full, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).resolve().parents[2], check=False,
        )  # fmt: skip

    assert 1 == answer.returncode
    assert "could not be written: No space left on device" in answer.stderr
    assert "Traceback" not in answer.stderr + done.stderr


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["skills", "--problems"], ("skills", (), {"problems": True, "library": None})),
        (
            ["run", "--dry-run", "--no-llm", "--library", "x"],
            ("run", (), {"dry_run": True, "respect_gates": False, "llm": False, "library": "x"}),
        ),
        (
            ["run", "--respect-gates"],
            ("run", (), {"dry_run": False, "respect_gates": True, "llm": True, "library": None}),
        ),
        (["report"], ("report", ("last",), {})),
        (["scan", "--backfill"], ("scan", (), {"backfill": True})),
        (["refine", "s1", "--focus", "x"], ("refine", ("s1",), {"focus": "x"})),
        (["refine", "--retry"], ("retry_distil", (None,), {})),
        (["refine", "s1", "--retry"], ("retry_distil", (["s1"],), {})),
        (["events", "--distil", "--host", "pi"], ("distil_log", (), {"host": "pi", "since": None})),
        (["undo", "20260301-100000"], ("undo", ("20260301-100000",), {})),
        (["approve", "--all"], ("approve", (None,), {})),
        (["approve", "a", "b"], ("approve", (["a", "b"],), {})),
        (["reject", "a", "--reason", "no"], ("reject", (["a"],), {"reason": "no"})),
        (["pin", "a", "b"], ("pin", (["a", "b"],), {})),
        (["importance", "a", "low"], ("importance", ("a", "low"), {})),
        (["adopt", "a"], ("adopt", (["a"],), {"everything": False, "agent_made": False, "dry_run": False})),
        (
            ["adopt", "--agent-made", "--dry-run"],
            ("adopt", ([],), {"everything": False, "agent_made": True, "dry_run": True}),
        ),
        (["restore", "a", "--anyway"], ("restore", (["a"],), {"anyway": True})),
        (["backup", "create"], ("backup_create", (), {"reason": None})),
        (["backup", "list"], ("backup_list", (), {})),
        (["backup", "verify"], ("backup_verify", (None,), {})),
        (
            ["backup", "restore", "last", "--library", "x", "--to", "d"],
            ("backup_restore", ("last",), {"library": "x", "skills": (), "to": "d", "dry_run": False}),
        ),
    ],
)  # fmt: skip
def test_a_command_calls_one_method(arguments: list[str], call: tuple[str, Any, Any]) -> None:
    """Arguments arrive at the application as they were said."""
    app = FakeApp()
    run_cli(*arguments, app=app)

    assert [call] == app.calls


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("ok", 0), ("nothing_to_do", 0), ("partial", 3), ("budget", 3), ("failed", 3), ("held", 4), ("interrupted", 130)],
)
def test_the_outcome_of_a_run_is_its_exit_code(outcome: str, code: int) -> None:
    """0 done or nothing to do, 3 something skipped or failed, 4 needs a human."""
    assert code == run_cli("run", app=FakeApp({"run": {**RUN, "outcome": outcome}}))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (CHANGES, 0),
        ({"done": [], "unchanged": [{"skill": "a", "reason": "is pinned already"}]}, 0),
        ({"done": [], "skipped": [{"skill": "a", "reason": "edited since"}]}, 3),
        ({"done": CHANGES["done"], "failed": [{"skill": "a", "error": "no space"}]}, 3),
    ],
)
def test_changes_that_were_not_made_are_3(changes: Any, code: int) -> None:
    """Having it so already is success; having skipped or failed something is not."""
    assert code == run_cli("pin", "a", app=FakeApp({"pin": changes}))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such skill", hint="look"), 2),
        (ConfigError("x:1: bad", file="x", line=1), 2),
        (StateCorruptError("met nobody"), 4),
        (BusyError("another instance is at work"), 5),
        (StoppedError("asked to stop", signal=15), 143),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_is_a_line_a_hint_and_its_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors raised on purpose never show a traceback."""
    assert code == run_cli("status", app=FakeApp({"status": error}))
    said = capsys.readouterr()
    assert "" == said.out
    assert "Traceback" not in said.err
    assert said.err.startswith("curatord: ")


def test_a_bug_is_not_hidden() -> None:
    """It leaves as the exception it is: Python shows the traceback, and the process's code is 1."""
    with pytest.raises(ZeroDivisionError):
        run_cli("status", app=FakeApp({"status": ZeroDivisionError("bug")}))


@pytest.mark.parametrize(
    ("daemon", "code"),
    [
        (STATUS["daemon"], 0),
        ({**STATUS["daemon"], "alive": False}, 3),
        ({**STATUS["daemon"], "last_error": "no space"}, 3),
        (None, 3),
    ],
)
def test_status_check_is_for_health_checks(daemon: Any, code: int) -> None:
    """0 only while a live daemon says of itself no trouble; without --check always 0."""
    app = FakeApp({"status": {**STATUS, "daemon": daemon}})

    assert code == run_cli("status", "--check", app=app)
    assert 0 == run_cli("status", app=app)


@pytest.mark.parametrize("error", [ConfigError("line 3"), StateError("disk I/O error"), BusyError("at work")])
def test_a_check_that_cannot_be_made_is_not_passed(error: CuratorError, capsys: pytest.CaptureFixture[str]) -> None:
    """A health check knows 0 and 3; without --check the error keeps its own code."""
    app = FakeApp({"status": error})

    assert 3 == run_cli("status", "--check", app=app)
    assert str(error) in capsys.readouterr().err
    assert error.exit_code == run_cli("status", app=app)


def test_global_options_stand_before_or_behind() -> None:
    """`curatord --config X status` and `curatord status --config X` are the same."""
    before, behind = FakeApp(), FakeApp()
    options = ["--log-format", "json", "-vv"]
    run_cli(*options, "status", app=before)
    run_cli("status", *options, app=behind)

    assert before.surroundings is not None
    assert behind.surroundings is not None
    assert ("json", 2) == (before.surroundings.log_format, before.surroundings.verbose)
    assert ("json", 2) == (behind.surroundings.log_format, behind.surroundings.verbose)


def test_the_named_configuration_is_read(tmp_path: Path) -> None:
    """`--config` names the file; its values reach the application."""
    config = tmp_path / "c.yaml"
    config.write_text("mode: review\nstate_dir: s\n", encoding="utf-8")
    app = FakeApp()

    assert 0 == run_cli("--config", str(config), "status", app=app)
    assert app.loaded is not None
    assert "review" == app.loaded.config.mode.value
    assert str(tmp_path / "s") == app.loaded.config.state_dir


def test_a_wrong_configuration_stops_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All mistakes are told, and nothing is opened."""
    config = tmp_path / "c.yaml"
    config.write_text("mode: x\ngates: {intervall: 1d}\n", encoding="utf-8")
    app = FakeApp()

    assert 2 == run_cli("--config", str(config), "daemon", app=app)
    said = capsys.readouterr()
    assert 2 == said.err.count("curatord: ")
    assert f"{config}:1: mode: expected review | guarded | auto" in said.err
    assert app.loaded is None


def test_other_peoples_text_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """A name or description cannot colour, move, reverse, ring or forge a line, in text and in JSON."""
    nasty = "a\x1b[2J\x07\r\nfake: line\u202egnp.exe\x9b31m\u200b\udcff"
    skill = {**SKILL, "name": nasty, "path": nasty, "description": nasty, "problems": [nasty]}
    app = FakeApp({"skills": [skill], "show": skill})

    for arguments in (
        ["skills"],
        ["skills", "--problems"],
        ["show", "x"],
        ["skills", "--json"],
        ["show", "x", "--json"],
    ):
        assert 0 == run_cli(*arguments, app=app)
        text = capsys.readouterr().out
        assert [] == re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", text), arguments
        assert not re.search("(?m)^fake: line", text)
        if "--json" in arguments:
            value = json.loads(text)
            assert nasty == (value[0] if isinstance(value, list) else value)["name"]


def test_errors_with_other_peoples_text_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """Error messages name skills and paths too."""
    run_cli("status", app=FakeApp({"status": UsageError("no skill \x1b[31mred", hint="\x1b]0;title\x07")}))

    assert "\x1b" not in capsys.readouterr().err


def test_a_long_work_is_asked_to_stop_by_a_signal() -> None:
    """The first SIGTERM lets the current action finish; the code then tells the signal."""
    seen: list[bool] = []
    app = FakeApp()

    def work() -> Any:
        assert app.surroundings is not None
        seen.append(app.surroundings.stop())
        os.kill(os.getpid(), signal.SIGTERM)
        seen.append(app.surroundings.stop())
        return RUN

    app = FakeApp({"run": work})
    before = signal.getsignal(signal.SIGTERM)

    assert 143 == run_cli("run", app=app)
    assert [False, True] == seen
    assert signal.getsignal(signal.SIGTERM) is before


# Real processes.


def real(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the real command and return what came of it."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **more.pop("environ", {})}
    command = [sys.executable, "-m", "curatord", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env=environ, check=False, **more)


def test_the_version_is_said() -> None:
    """On standard output, alone."""
    assert f"curatord {__version__}\n" == real("--version").stdout


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`curatord config schema | head -1` ends quietly."""
    script = f"{sys.executable} -m curatord config schema | head -c 20; echo code=${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False, env=os.environ
    )

    assert "" == done.stderr
    assert "code=0" in done.stdout


def test_a_plain_locale_is_no_hindrance(tmp_path: Path) -> None:
    """`LC_ALL=C PYTHONUTF8=0` and names in Chinese: read, opened and shown as UTF-8 (bugs B077)."""
    (tmp_path / "技能").mkdir()
    config = tmp_path / "技能" / "配置.yaml"
    config.write_text("state_dir: 状态—é\n", encoding="utf-8")
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    shown = real("--config", str(config), "config", "show", environ=environ)
    said = real("--config", str(config), "config", "show", "--json", environ=environ)

    assert (0, 0) == (shown.returncode, said.returncode), shown.stderr
    assert f"{tmp_path}/技能/状态—é" in shown.stdout
    assert f"{tmp_path}/技能/状态—é" == json.loads(said.stdout)["config"]["state_dir"]


def test_a_bare_environment_is_enough(tmp_path: Path) -> None:
    """No HOME, no PATH, working directory `/`: fine where paths are absolute, and no folder named ~ (bugs B152)."""
    config = tmp_path / "c.yaml"
    config.write_text(f"state_dir: {tmp_path}/s\nsources: []\nlibraries: []\n", encoding="utf-8")
    command = [sys.executable, "-m", "curatord", "--config", str(config), "config", "check"]
    environ = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ, cwd="/", check=False)

    assert 0 == done.returncode, done.stderr
    assert not Path("/~").exists()


def test_control_c_is_130() -> None:
    """A real SIGINT in the middle of work ends it with one line."""
    # A suite that runs in the background of a shell inherits SIGINT as ignored.
    code = "import signal, time, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from tests.cli.fake_app import FakeApp\n"
    code += "from curatord.cli.main import main\n"
    code += "def work():\n  print('ready', flush=True)\n  time.sleep(30)\n"
    code += "sys.exit(main(['status'], factory=FakeApp({'status': work}).opened))\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert 130 == process.returncode
    assert "curatord: stopped\n" == err


def test_status_asks_nothing_of_the_disks_of_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a dead network mount never returns, and what `status` tells is stored elsewhere."""
    library, told = tmp_path / "lib", tmp_path / "c.yaml"
    library.mkdir()
    told.write_text(
        f"libraries: [{{name: a, path: {library}}}]\nstate_dir: {tmp_path}/s\nsources: []\n", encoding="utf-8"
    )
    asked: list[str] = []

    def noted(real: Any) -> Any:
        def look(path: Any = ".", **said: Any) -> Any:
            asked.append(str(path))
            return real(path, **said)

        return look

    for name in ("lstat", "stat", "scandir", "listdir", "readlink"):
        monkeypatch.setattr(os, name, noted(getattr(os, name)))

    assert 0 == main(["--config", str(told), "status"], environ={"HOME": str(tmp_path)})
    assert [] == [path for path in asked if path.startswith(str(library))]
    assert asked


def test_status_tells_a_models_error_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """When and what, and no value of our own making."""
    error = {"at": "2026-03-01T10:00:00+00:00", "kind": "key refused", "message": "status 401: no", "status": 401}
    llm = {**STATUS["llm"], "configured": True, "last_error": error, "fallback_used": True}

    run_cli("status", app=FakeApp({"status": {**STATUS, "llm": llm}}))

    (line,) = [line for line in capsys.readouterr().out.splitlines() if "model:" in line]
    assert "fallback in use" in line
    assert "last error: 2026-03-01 10:00 UTC, status 401: no" in line
    assert "{" not in line
