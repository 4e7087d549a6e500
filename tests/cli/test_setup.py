"""init, demo, try, config, completion: what a newcomer meets first."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from curatord.cli.main import main
from curatord.config import parse
from tests.cli.fake_app import FakeApp

ROOT = Path(__file__).resolve().parents[2]


def tree(folder: Path) -> dict[str, str]:
    """Return every file below *folder* with a hash of its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a Hermes and a Claude Code library of one skill each."""
    for folder in (".hermes/skills/cat/one", ".claude/skills/two"):
        (tmp_path / "home" / folder).mkdir(parents=True)
        (tmp_path / "home" / folder / "SKILL.md").write_text("---\ndescription: x\n---\nbody\n", encoding="utf-8")
    usage = {"one": {"created_by": "agent"}, "gone": {"created_by": None}, "odd": 5}
    (tmp_path / "home/.hermes/skills/.usage.json").write_text(json.dumps(usage), encoding="utf-8")
    return tmp_path / "home"


def cli(*arguments: str, home: Path, app: FakeApp | None = None, **environ: str) -> int:
    """Run the command line as the user whose home is *home*."""
    return main(arguments, environ={"HOME": str(home), **environ}, factory=(app or FakeApp()).opened)


def test_init_writes_what_was_found_and_touches_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The only new file is the configuration, and it reads back to the hosts and libraries found."""
    before = tree(home)

    assert 0 == cli("init", "--yes", home=home)
    said = capsys.readouterr().out
    written = home / ".config/curatord/config.yaml"
    config = parse(written.read_bytes(), {}, file=str(written), home=str(home)).config

    assert before == {name: value for name, value in tree(home).items() if name != ".config/curatord/config.yaml"}
    assert ["claude-code", "hermes"] == [source.host for source in config.sources]
    assert [str(home / ".claude/skills"), str(home / ".hermes/skills")] == [lib.path for lib in config.libraries]
    assert {"owned"} == {library.manage for library in config.libraries}
    assert "the 1 that Hermes' own ledger marks" in said
    assert str(written) in said


def test_init_never_overwrites(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, and a link to nowhere, stay as they are; that is nothing to do, not an error."""
    written = home / ".config/curatord/config.yaml"
    written.parent.mkdir(parents=True)
    written.write_text("mode: review\n", encoding="utf-8")
    link = home / "link.yaml"
    link.symlink_to(home / "nowhere.yaml")

    assert 0 == cli("init", "--yes", home=home)
    assert 0 == cli("init", "--yes", "--output", str(link), home=home)
    assert "mode: review\n" == written.read_text(encoding="utf-8")
    assert not (home / "nowhere.yaml").exists()
    assert "stays as it is" in capsys.readouterr().out


def test_init_asks_nobody_that_is_not_there(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal and without --yes nothing is written, and the mend is said."""
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    assert 2 == cli("init", home=home)
    assert not (home / ".config").exists()
    assert "--yes" in capsys.readouterr().err


def test_init_prints_instead_of_writing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--output -` gives the text alone."""
    assert 0 == cli("init", "--output", "-", home=home)
    config = parse(capsys.readouterr().out, {}, file="/c.yaml", home=str(home)).config

    assert 2 == len(config.sources)
    assert not (home / ".config").exists()


def test_init_writes_out_a_home_that_a_variable_names(home: Path, tmp_path: Path) -> None:
    """A service does not have the variable, so the configuration must not need it."""
    (home / ".claude").rename(tmp_path / "moved")

    assert 0 == cli("init", "--yes", home=home, CLAUDE_CONFIG_DIR=str(tmp_path / "moved"))
    written = home / ".config/curatord/config.yaml"
    config = parse(written.read_bytes(), {}, file=str(written), home=str(home)).config

    assert str(tmp_path / "moved") == next(s.path for s in config.sources if s.host == "claude-code")


def test_init_without_any_host_writes_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is installed later is found then: sources and libraries are left unsaid."""
    assert 0 == cli("init", "--yes", home=tmp_path)
    text = (tmp_path / ".config/curatord/config.yaml").read_text(encoding="utf-8")

    assert "no agent host was found" in capsys.readouterr().out
    assert "\n# sources:" in text
    assert (
        parse(text, {}, file="/c.yaml", home="/home/u").config.fingerprint
        == parse("", {}, home="/x").config.fingerprint
    )


def test_init_tells_what_it_cannot_write(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in the way of the folder is a clear error."""
    (home / "file").write_text("", encoding="utf-8")

    assert 2 == cli("init", "--yes", "--output", str(home / "file/c.yaml"), home=home)
    assert "file/c.yaml" in capsys.readouterr().err


def test_demo_makes_a_home_and_runs_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run by rules, its report, the status, and how to go on; the demo's own configuration is used."""
    app = FakeApp()
    folder = tmp_path / "demo"

    assert 0 == cli("demo", str(folder), home=tmp_path, app=app, CURATORD_MODE="auto")
    said = capsys.readouterr().out

    assert ["run", "report", "status"] == [name for name, _, _ in app.calls]
    assert {"dry_run": True, "respect_gates": False, "llm": False, "library": None} == app.calls[0][2]
    assert app.loaded is not None
    assert str(folder / "state") == app.loaded.config.state_dir
    assert "guarded" == app.loaded.config.mode.value
    assert [str(folder / "home/.hermes/skills"), str(folder / "home/.claude/skills")] == [
        library.path for library in app.loaded.config.libraries
    ]
    assert f"curatord --config {folder / 'curatord.yaml'} run" in said


def test_demo_refuses_a_folder_with_something_in_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It could be somebody's home."""
    before = tree(home)

    assert 2 == cli("demo", str(home), home=home)
    assert before == tree(home)
    assert "is not empty" in capsys.readouterr().err


def test_try_looks_at_this_machine_and_leaves_nothing(home: Path) -> None:
    """Without a configuration, state goes to a folder that is gone afterwards."""
    before = tree(home)
    app = FakeApp()

    assert 0 == cli("try", home=home, app=app)
    assert app.loaded is not None
    assert not Path(app.loaded.config.state_dir).parent.exists()
    assert ["claude-code", "hermes"] == [source.host for source in app.loaded.config.sources]
    assert {"dry_run": True, "respect_gates": False, "llm": False, "library": None} == app.calls[0][2]
    assert before == tree(home)


def test_try_without_any_host_is_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer without an agent sees the demonstration."""
    app = FakeApp()

    assert 0 == cli("try", str(tmp_path / "demo"), home=tmp_path, app=app)
    assert (tmp_path / "demo/curatord.yaml").exists()
    assert "no agent host was found" in capsys.readouterr().out


def test_the_demo_of_try_is_gone_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing names what is no longer there, but how to have one that stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    app = FakeApp()

    assert 0 == cli("try", home=tmp_path, app=app)
    said = capsys.readouterr().out

    assert app.loaded is not None
    assert tmp_path / "tmp" == Path(app.loaded.config.state_dir).parents[1]
    assert [] == list((tmp_path / "tmp").iterdir())
    assert "--config" not in said
    assert "removed again" in said
    assert "curatord demo DIR" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demo_of_try_is_gone_after_a_signal(tmp_path: Path, number: int) -> None:
    """A closed terminal too, whenever it comes; the exit code is that of the signal."""
    environ = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)}
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "curatord", "try"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not list((tmp_path / "tmp").iterdir()) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(60)

    assert 128 + number == process.returncode
    assert [] == list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("arguments", [[], ["--no-run"]])
def test_a_demo_that_stays_says_how_to_remove_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """In a line that a shell takes as it is, whatever the folder is called."""
    folder = tmp_path / "my demo"

    assert 0 == cli("demo", str(folder), *arguments, home=tmp_path, app=FakeApp())
    said = capsys.readouterr().out

    assert f"rm -r '{folder}'" in said
    assert f"--config '{folder}/curatord.yaml'" in said
    assert folder.is_dir()


def test_try_uses_a_configuration_that_is_there(home: Path) -> None:
    """Whoever has set up curatord sees the dry run of that."""
    config = home / ".config/curatord/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("state_dir: state\n", encoding="utf-8")
    app = FakeApp()

    assert 0 == cli("try", home=home, app=app)
    assert app.loaded is not None
    assert str(config.parent / "state") == app.loaded.config.state_dir


def test_config_show_tells_where_values_come_from(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File and line, variable, found on this machine, default; the text is a configuration again."""
    config = home / "c.yaml"
    config.write_text("gates:\n  interval: 3d\n", encoding="utf-8")

    assert 0 == cli("--config", str(config), "config", "show", home=home, CURATORD_MODE="auto")
    text = capsys.readouterr().out
    assert 0 == cli("--config", str(config), "config", "show", "--json", home=home, CURATORD_MODE="auto")
    value = json.loads(capsys.readouterr().out)
    again = parse(text, {}, file=str(config), home=str(home)).config

    assert "  interval: 3d" in text
    assert "# line 2" in text
    assert "# environment variable CURATORD_MODE" in text
    assert "# found" in text
    assert f"{config}:2" == value["origins"]["gates.interval"]
    assert "3d" == value["config"]["gates"]["interval"]
    assert value["fingerprint"] == again.fingerprint


def test_config_check_says_what_is_wrong_as_json_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For editors and scripts: one JSON value also for a wrong file, and exit 2."""
    config = home / "c.yaml"
    config.write_text("gates:\n  intervall: 3d\n", encoding="utf-8")

    assert 2 == cli("--config", str(config), "config", "check", "--json", home=home)
    value = json.loads(capsys.readouterr().out)

    assert (False, str(config), 2, "gates.intervall") == (value["ok"], value["file"], value["line"], value["key"])
    assert 2 == cli("--config", str(config), "config", "check", home=home)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts_of_their_shell(
    shell: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They name all commands, and where the shell is installed it takes them."""
    assert 0 == cli("completion", shell, home=home)
    script = capsys.readouterr().out

    assert {"status", "explain", "config", "undo"} == {
        w for w in ("status", "explain", "config", "undo") if w in script
    }
    assert "--dry-run" in script or "-l dry-run" in script
    program = shutil.which(shell)
    if program is not None:
        file = tmp_path / "script"
        file.write_text(script, encoding="utf-8")
        subprocess.run([program, "-n", str(file)], check=True, timeout=20)
