"""`init` on a machine with any of the hosts finds it, and the configuration it writes reads that host's transcripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from curatord.adapters.sources.places import places
from curatord.cli.app import Surroundings
from curatord.cli.main import main
from curatord.config import parse
from curatord.core.settings import HOSTS, Config, HostName, SourceSettings
from curatord.wiring import Parts

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "transcripts"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no sample transcripts at {SAMPLES}")

# Where the samples of each host belong in a home, and the variables that move them: the sample's folder, then what the
# variable says, both relative to the home. All hosts but `jsonl`, which has no home of its own.
DEFAULTS: dict[HostName, str] = {
    "claude-code": ".claude",
    "hermes": ".hermes",
    "codex": ".codex",
    "pi": ".pi/agent",
    "openclaw": ".openclaw",
    "dsh": ".dsh",
    "opencode": ".local/share/opencode",
    "gemini-cli": ".gemini",
    "qwen-code": ".qwen",
    "copilot-cli": ".copilot",
    "cursor": ".cursor",
}
OTHERS: list[tuple[HostName, str]] = [
    ("claude-code", ".config/claude"),
    ("pi", ".omp/agent"),
    ("openclaw", ".clawdbot"),
    ("openclaw", ".moltbot"),
    ("openclaw", ".moldbot"),
]
MOVED: list[tuple[HostName, str, str, str]] = [
    ("claude-code", "m", "CLAUDE_CONFIG_DIR", "m"),
    ("hermes", "m", "HERMES_HOME", "m"),
    ("codex", "m", "CODEX_HOME", "m"),
    ("pi", "m", "PI_CODING_AGENT_DIR", "m"),
    ("pi", "m", "PI_CODING_AGENT_SESSION_DIR", "m/sessions"),
    ("openclaw", "m", "OPENCLAW_STATE_DIR", "m"),
    ("dsh", "m", "DSH_HOME", "m"),
    ("opencode", "m/opencode", "XDG_DATA_HOME", "m"),
    ("opencode", "m", "OPENCODE_DB", "m/opencode.db"),
    ("gemini-cli", "m/.gemini", "GEMINI_CLI_HOME", "m"),
    ("qwen-code", "m", "QWEN_HOME", "m"),
    ("qwen-code", "m", "QWEN_RUNTIME_DIR", "m"),
    ("copilot-cli", "m", "COPILOT_HOME", "m"),
]
SITES = [
    *((host, folder, "", "") for host, folder in (*DEFAULTS.items(), *OTHERS)),
    *MOVED,
]


def written(home: Path, **environ: str) -> Config:
    """Run `init --yes` and return what it wrote, as a service reads it: without the user's variables."""
    assert 0 == main(["init", "--yes"], environ={"HOME": str(home), **environ})
    file = home / ".config/curatord/config.yaml"
    return parse(file.read_bytes(), {}, file=str(file), home=str(home)).config


def test_every_host_is_in_this_test() -> None:
    """A new host is added here, with where its samples belong."""
    assert set(HOSTS) - {"jsonl"} == set(DEFAULTS)


@pytest.mark.parametrize("host", DEFAULTS)
def test_a_home_that_was_only_just_made_is_found(host: HostName, tmp_path: Path) -> None:
    """The program is installed and has done nothing yet: its places are watched from now on."""
    (tmp_path / DEFAULTS[host]).mkdir(parents=True)
    config = written(tmp_path)

    assert [host] == [source.host for source in config.sources]
    assert places(SourceSettings(host=host), {}, home=tmp_path) == places(config.sources[0], {}, home=tmp_path)


@needs_samples
@pytest.mark.parametrize(("host", "folder", "variable", "value"), SITES)
def test_what_init_writes_reads_the_hosts_transcripts(
    host: HostName, folder: str, variable: str, value: str, tmp_path: Path
) -> None:
    """Real samples in each place where the host may have them, read through the configuration alone."""
    shutil.copytree(SAMPLES / host, tmp_path / folder)
    config = written(tmp_path, **({variable: str(tmp_path / value)} if variable else {}))
    parts = Parts(config, Surroundings(), environ={"HOME": str(tmp_path)})
    report = parts.scan(lambda: False).as_json()
    parts.close()

    assert {host} == {source.host for source in config.sources}
    assert report["sessions"] > 0


def test_all_hosts_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is named once, and what is read and what is managed is said."""
    for folder in DEFAULTS.values():
        (tmp_path / folder).mkdir(parents=True)
    config = written(tmp_path)
    said = capsys.readouterr().out

    assert list(DEFAULTS) == [source.host for source in config.sources]
    assert all(f"{host} " in said for host in DEFAULTS)
    assert "are read and never changed" in said
    assert "there is no library of skills yet" in said


def test_profiles_of_a_moved_hermes_are_written_out(tmp_path: Path) -> None:
    """A source with a path is that path alone, and each profile is a home of its own."""
    (tmp_path / "m/profiles/work").mkdir(parents=True)
    config = written(tmp_path, HERMES_HOME=str(tmp_path / "m"))

    assert [str(tmp_path / "m"), str(tmp_path / "m/profiles/work")] == [source.path for source in config.sources]


def test_the_next_steps_are_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Doctor, a dry run, what to hand over, a service; the last by the system."""
    (tmp_path / ".claude/skills/one").mkdir(parents=True)
    (tmp_path / ".claude/skills/one/SKILL.md").write_text("---\ndescription: x\n---\nb\n", encoding="utf-8")
    written(tmp_path)
    steps = capsys.readouterr().out.split("next:\n")[1]

    assert ["curatord doctor", "curatord run --dry-run", "curatord adopt --agent-made --dry-run"] == [
        line.strip().split("  ")[0] for line in steps.splitlines()[:3]
    ]
    assert "curatord service" in steps


def test_a_configuration_that_is_there_is_held_against_what_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays as it is, byte for byte; a host and a library that came later are named."""
    (tmp_path / ".claude/skills").mkdir(parents=True)
    written(tmp_path)
    file = tmp_path / ".config/curatord/config.yaml"
    before = file.read_bytes()
    (tmp_path / ".codex/skills").mkdir(parents=True)
    capsys.readouterr()

    assert 0 == main(["init", "--yes"], environ={"HOME": str(tmp_path)})
    said = capsys.readouterr().out

    assert f"it does not name the host codex at {tmp_path}/.codex" in said
    assert f"it does not name the library codex at {tmp_path}/.codex/skills" in said
    assert "claude-code at" not in said
    assert before == file.read_bytes()


def test_a_configuration_that_is_wrong_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stays too."""
    file = tmp_path / ".config/curatord/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("mode: nope\n", encoding="utf-8")

    assert 0 == main(["init", "--yes"], environ={"HOME": str(tmp_path)})
    assert "it cannot be used" in capsys.readouterr().err
