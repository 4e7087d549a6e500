"""service print, install, uninstall; the manual page; and the daemon's plain exit for managers without codes."""

from __future__ import annotations

import getpass
import hashlib
import io
import os
import plistlib
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from curatord.adapters.service_files import make_folder
from curatord.adapters.service_places import command_words
from curatord.cli.commands import COMMANDS
from curatord.cli.main import main
from curatord.core.settings import HOSTS
from curatord.errors import StateError

ME = getpass.getuser()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a library of Claude Code, a configuration for it, and transcripts."""
    home = tmp_path / "home"
    (home / ".claude/skills/one").mkdir(parents=True)
    (home / ".claude/projects").mkdir()
    (home / ".claude/skills/one/SKILL.md").write_text("---\ndescription: x\n---\nbody\n")
    config = home / ".config/curatord/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(
        "sources: [{host: claude-code, path: ~/.claude/projects}]\n"
        "libraries: [{name: claude, path: ~/.claude/skills}]\n"
        "llm: {primary: {base_url: 'https://models.example/v1', model: m, api_key: {env: SOME_KEY}}}\n"
    )
    return home


def cli(home: Path, *arguments: str, **environ: str) -> int:
    """Run `curatord service …` as the user of *home*."""
    return main(["service", *arguments], environ={"HOME": str(home), "PATH": os.environ["PATH"], **environ})


def unit_of(home: Path) -> Path:
    return home / ".config/systemd/user/curatord.service"


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


def test_a_dry_run_writes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names each file and folder that would be made."""
    before = tree(home)

    assert 0 == cli(home, "install", "systemd", "--dry-run")
    said = capsys.readouterr().out
    assert before == tree(home)
    assert str(unit_of(home)) in said
    assert str(home / ".local/state/curatord") in said


def test_install_writes_the_unit_for_the_configuration_in_force(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file and the state folder; it opens the folder above the library and closes the transcripts in it."""
    before = tree(home)

    assert 0 == cli(home, "install", "systemd", "--yes", CLAUDE_CONFIG_DIR=str(home / ".claude"))
    said = capsys.readouterr()
    new = {path for path in tree(home).keys() - before.keys() if (home / path).is_file()}
    unit = unit_of(home).read_text()

    assert {".config/systemd/user/curatord.service"} == new
    assert 0o700 == (home / ".local/state/curatord").stat().st_mode & 0o777
    assert "ReadWritePaths=-%h/.claude\n" in unit
    assert "ReadWritePaths=%h/.local/state/curatord\n" in unit
    assert "ReadOnlyPaths=-%h/.claude/projects\n" in unit
    assert "Environment=CLAUDE_CONFIG_DIR=%h/.claude\n" in unit
    assert "--config %h/.config/curatord/config.yaml daemon\n" in unit
    assert "systemctl --user daemon-reload && systemctl --user enable --now curatord" in said.out
    assert f"put SOME_KEY=KEY into {home}/.config/curatord/environment" in said.err


def test_print_is_what_install_writes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the letter, so that a printed and saved unit is known again."""
    cli(home, "install", "systemd", "--yes")
    capsys.readouterr()

    assert 0 == cli(home, "print", "systemd")
    assert unit_of(home).read_text() == capsys.readouterr().out


def test_install_again_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does it ask."""
    cli(home, "install", "systemd", "--yes")
    before = unit_of(home).stat()

    assert 0 == cli(home, "install", "systemd")
    after = unit_of(home).stat()  # it was read, which its time of access may tell
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    assert "nothing to do" in capsys.readouterr().out


def test_an_unchanged_unit_follows_the_configuration(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A library that came to it is opened by installing again; what differs is shown."""
    cli(home, "install", "systemd", "--yes")
    (home / ".agents/skills").mkdir(parents=True)
    config = home / ".config/curatord/config.yaml"
    config.write_text(config.read_text().replace("skills}]", "skills}, {name: a, path: ~/.agents/skills}]"))
    capsys.readouterr()

    assert 0 == cli(home, "install", "systemd", "--yes")
    said = capsys.readouterr().out
    assert "+ReadWritePaths=-%h/.agents" in said
    assert "systemctl --user restart curatord" in said
    assert "ReadWritePaths=-%h/.agents\n" in unit_of(home).read_text()


@pytest.mark.parametrize("how", ["edited", "foreign", "link"])
def test_somebody_elses_unit_is_never_touched(home: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    """Neither by install nor by uninstall: they say whose it is and how to go on, and write nothing at all."""
    unit = unit_of(home)
    cli(home, "install", "systemd", "--yes")
    if how == "edited":
        unit.write_text(unit.read_text().replace("Nice=10", "Nice=5"))
    else:
        unit.unlink()
        (home / "mine").write_text("[Unit]\n")
        if how == "link":
            unit.symlink_to(home / "mine")
        else:
            unit.write_text("[Unit]\n")
    before = tree(home)
    capsys.readouterr()

    assert 4 == cli(home, "install", "systemd", "--yes")
    assert "--replace" in capsys.readouterr().err
    assert 4 == cli(home, "uninstall", "systemd", "--yes")
    assert before == tree(home)


def test_replace_keeps_the_old_one(home: Path) -> None:
    """Also a second time: the first one that was kept stays."""
    unit = unit_of(home)
    unit.parent.mkdir(parents=True)
    for text in ("mine\n", "mine again\n"):
        unit.write_text(text)
        assert 0 == cli(home, "install", "systemd", "--yes", "--replace")

    kept = {path.name: path.read_text() for path in unit.parent.iterdir() if path != unit}
    assert {"curatord.service.before": "mine\n", "curatord.service.before-2": "mine again\n"} == kept
    assert unit.read_text().startswith("# curatord as a user service")


def test_uninstall_takes_back_what_was_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The unit goes; state and configuration stay; a second time there is nothing to do."""
    cli(home, "install", "systemd", "--yes")
    config = (home / ".config/curatord/config.yaml").read_text()

    assert 0 == cli(home, "uninstall", "systemd", "--yes")
    assert not unit_of(home).exists()
    assert (home / ".local/state/curatord").is_dir()
    assert config == (home / ".config/curatord/config.yaml").read_text()
    assert 0 == cli(home, "uninstall", "systemd")
    assert "nothing to do" in capsys.readouterr().out


def test_uninstall_waits_until_it_is_disabled(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the manager would keep a link to nowhere; the line to type is told."""
    cli(home, "install", "systemd", "--yes")
    wants = unit_of(home).parent / "default.target.wants"
    wants.mkdir()
    (wants / "curatord.service").symlink_to(unit_of(home))

    capsys.readouterr()

    assert 2 == cli(home, "uninstall", "systemd", "--yes")
    said = capsys.readouterr()
    assert "systemctl --user disable --now curatord" in said.err
    assert "" == said.out  # nothing that reads as if it were removed
    assert unit_of(home).exists()


def test_uninstall_of_what_may_run_says_first_how_to_stop_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no link tells whether it is started: the manager's command comes before what is removed."""
    cli(home, "install", "launchd", "--yes")
    capsys.readouterr()

    assert 0 == cli(home, "uninstall", "launchd", "--yes")
    said = capsys.readouterr().out
    assert 0 < said.index("launchctl bootout") < said.index("remove ") < said.index("removed;")


def test_uninstall_needs_no_sound_configuration(home: Path) -> None:
    """Who broke it must still be able to get rid of the service."""
    cli(home, "install", "systemd", "--yes")
    (home / ".config/curatord/config.yaml").write_text("nonsense: [")

    assert 0 == cli(home, "uninstall", "systemd", "--yes")
    assert not unit_of(home).exists()


def test_install_needs_a_sound_configuration(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its error is told as everywhere, and nothing is written."""
    (home / ".config/curatord/config.yaml").write_text("modus: auto\n")

    assert 2 == cli(home, "install", "systemd", "--yes")
    assert "config.yaml:1" in capsys.readouterr().err
    assert not unit_of(home).exists()


def test_nobody_is_asked_where_nobody_is(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal and without --yes nothing is written."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    assert 2 == cli(home, "install", "systemd")
    assert "--yes" in capsys.readouterr().err
    assert not unit_of(home).exists()


def test_a_system_service_names_its_user(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It runs as them, with their home, and its state is the manager's; the caller's own variables do not count."""
    config = str(home / ".config/curatord/config.yaml")
    asked = ("--config", config, "--system", "--for", ME, "--output", str(tmp_path / "units"))

    assert 0 == cli(home, "install", "systemd", *asked, "--yes", HERMES_HOME="/not/theirs")
    unit = (tmp_path / "units/curatord.service").read_text()
    assert f"\nUser={ME}\n" in unit
    assert f"Environment=HOME={Path(pwd.getpwnam(ME).pw_dir).resolve()}\n" in unit
    assert "HERMES_HOME" not in unit
    assert "StateDirectory=curatord\n" in unit
    assert "sudo" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("systemd", "--system"), "--for USER"),
        (("systemd", "--system", "--for", "no-such-user-here"), "no user"),
        (("systemd", "--system", "--user"), "one of them"),
        (("systemd", "--for", "root"), "--system"),
        (("docker", "--system"), "systemd"),
    ],
)
def test_what_cannot_be_meant_is_told(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    """With what to say instead."""
    assert 2 == cli(home, "print", *arguments)
    assert says in capsys.readouterr().err


@pytest.mark.skipif(os.getuid() != 0, reason="sudo makes root of whoever runs it")
def test_a_users_service_is_not_made_by_sudo(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would be root's, with files in the user's home that they cannot remove."""
    assert 2 == cli(home, "install", "systemd", "--yes", SUDO_USER=ME)
    assert "--system" in capsys.readouterr().err
    assert not unit_of(home).exists()


def test_a_folder_that_cannot_be_written_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the file and what to do about it."""
    (home / "units").write_text("a file where a folder should be")

    assert 4 == cli(home, "install", "systemd", "--yes", "--output", str(home / "units"))
    assert f"{home}/units/curatord.service: " in capsys.readouterr().err


def test_hosts_that_are_not_there_are_no_trouble(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every host by its default place, none of which exists: nothing of them is named, and nothing fails."""
    sources = ", ".join(f"{{host: {host}}}" for host in HOSTS if host not in ("jsonl", "claude-code"))
    (home / ".config/curatord/config.yaml").write_text(f"sources: [{sources}]\nlibraries: []\n")

    assert 0 == cli(home, "print", "systemd")
    assert "ReadOnlyPaths" not in capsys.readouterr().out


def test_variables_that_would_be_lost_are_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting of the shell holds for no service, so its folders are those of the file."""
    cli(home, "print", "systemd", CURATORD_LIBRARIES="[{name: x, path: /srv/x/skills}]")
    said = capsys.readouterr()

    assert "CURATORD_LIBRARIES of this shell does not reach a service" in said.err
    assert "/srv/x" not in said.out


def test_launchd_gets_its_plist_and_the_folder_of_its_log(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """launchd makes a log's file, not its folder; a key in a variable cannot reach it, and that is told."""
    assert 0 == cli(home, "install", "launchd", "--yes")
    said = capsys.readouterr()
    plist = plistlib.loads((home / "Library/LaunchAgents/curatord.plist").read_bytes())

    assert Path(plist["StandardErrorPath"]).parent.is_dir()
    assert ["--config", str(home / ".config/curatord/config.yaml")] == plist["ProgramArguments"][-4:-2]
    assert "SOME_KEY" not in (home / "Library/LaunchAgents/curatord.plist").read_text()
    assert "SOME_KEY" in said.err
    assert "launchctl bootstrap" in said.out
    assert 0 == cli(home, "uninstall", "launchd", "--yes")
    assert [] == list((home / "Library/LaunchAgents").iterdir())


def test_the_sidecar_gets_its_two_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With this user's ids; the wheel that the image needs is told while it is not there, and never removed."""
    folder = home / ".config/curatord/docker"
    assert 0 == cli(home, "install", "docker", "--yes")
    said = capsys.readouterr()
    service = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["curatord"]

    assert f"${{CURATORD_UID:-{os.getuid()}}}:${{CURATORD_GID:-{os.getgid()}}}" == service["user"]
    assert str(home / ".claude/projects") in [one["source"] for one in service["volumes"] if one.get("read_only")]
    assert "pip wheel --no-deps" in said.err
    assert "docker compose" in said.out
    (folder / "curatord-0.1.0-py3-none-any.whl").write_text("")
    assert 0 == cli(home, "uninstall", "docker", "--yes")
    assert ["curatord-0.1.0-py3-none-any.whl"] == [path.name for path in folder.iterdir()]


def configure(home: Path, text: str) -> None:
    """Add lines to the configuration."""
    with (home / ".config/curatord/config.yaml").open("a") as file:
        file.write(text)


def test_a_unit_opens_a_folder_that_is_told_to_be_made(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is missing at the start is passed over by the manager, and the notice never written."""
    configure(home, "notices: {file: /nowhere/curatord-test/notice}\n")

    assert 0 == cli(home, "print", "systemd")
    said = capsys.readouterr()
    assert "ReadWritePaths=-/nowhere/curatord-test\n" in said.out
    assert "before the start: mkdir -p -m 700 /nowhere/curatord-test\n" in said.err


@pytest.mark.parametrize("kind", ["launchd", "docker"])
def test_folders_that_it_writes_into_are_made_before_it_starts(
    home: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """A container's mounts must be there, and nobody makes a socket's folder; `print` says how, and makes none."""
    configure(home, f"notices: {{file: ~/.cache/c/notice}}\nmetrics: {{listen: 'unix:{home}/.run/m.sock'}}\n")
    made = [home / ".local/state/curatord", home / ".cache/c", home / ".run"]

    assert 0 == cli(home, "print", kind)
    said = capsys.readouterr().err
    assert [True] * 3 == [f"before the start: mkdir -p -m 700 {path}\n" in said for path in made]
    assert [False] * 3 == [path.exists() for path in made]
    assert 0 == cli(home, "install", kind, "--yes")
    assert [0o700] * 3 == [path.stat().st_mode & 0o777 for path in made]


@pytest.mark.parametrize("kind", ["systemd", "docker"])
def test_what_cannot_be_opened_is_told(home: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """A notice in the home itself, a key that is not there yet."""
    (home / "key").write_text("x")
    configure(home, "notices: {file: ~/notice}\n")
    config = home / ".config/curatord/config.yaml"
    config.write_text(config.read_text().replace("{env: SOME_KEY}", "{file: ~/key}"))

    assert 0 == cli(home, "print", kind)
    said = capsys.readouterr()
    assert f"notices.file: {home}/notice " in said.err
    assert (kind == "systemd") == ("api_key" not in said.err or "does not see" in said.err)
    assert f"{home}\n" not in said.out
    assert f'"{home}"\n' not in said.out.replace(f'HOME: "{home}"', "")


def test_a_container_reaches_nobody_by_itself(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its loopback, its programs and its links are not this machine's."""
    (home / "dotfiles").mkdir()
    (home / ".claude").rename(home / "dotfiles/claude")
    (home / ".claude").symlink_to(home / "dotfiles/claude")
    configure(home, "notices: {command: [notify-send, x]}\nmetrics: {listen: '127.0.0.1:9464'}\n")

    assert 0 == cli(home, "print", "docker")
    said = capsys.readouterr().err
    assert "metrics.listen: 127.0.0.1:9464 is the container's own loopback" in said
    assert "notices.command: notify-send is started within the container" in said
    assert f"name {home}/dotfiles/claude/skills in the configuration" in said
    assert f"name {home}/dotfiles/claude/projects in the configuration" in said
    assert 0 == cli(home, "print", "systemd")
    said = capsys.readouterr().err
    assert "notify-send" not in said
    assert "9464" not in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes folders for others")
def test_folders_made_for_somebody_are_theirs(tmp_path: Path) -> None:
    """Those above them too: a home with folders of root's in it is a broken one."""
    assert make_folder(str(tmp_path / "a/b"), owner=(41234, 41235))
    assert not make_folder(str(tmp_path / "a/b"), owner=(1, 1))

    above, made = (tmp_path / "a").stat(), (tmp_path / "a/b").stat()
    assert [(41234, 41235)] * 2 == [(one.st_uid, one.st_gid) for one in (above, made)]
    assert 0o700 == made.st_mode & 0o777


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes folders for others")
def test_only_the_last_folder_is_private(tmp_path: Path) -> None:
    """Also where the one above it has the same name."""
    make_folder(str(tmp_path / "a/a"), owner=(41234, 41235))

    assert [0o755, 0o700] == [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a/a")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes folders for others")
def test_root_is_led_nowhere_by_a_users_link(tmp_path: Path) -> None:
    """A link in the home could hand over a folder of the system."""
    (tmp_path / "system").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.cache").symlink_to(tmp_path / "system")

    with pytest.raises(StateError, match="cannot make"):
        make_folder(str(tmp_path / "home/.cache/curatord"), owner=(41234, 41234))
    assert [] == list((tmp_path / "system").iterdir())


def test_a_system_service_makes_nothing_outside_of_the_home(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What its user configured is not for root to make and give away; the line for it is told."""
    configure(home, f"state_dir: {tmp_path}/elsewhere/state\n")
    config = str(home / ".config/curatord/config.yaml")
    asked = ("--config", config, "--system", "--for", ME, "--output", str(tmp_path / "units"), "--yes")

    assert 0 == cli(home, "install", "systemd", *asked)
    said = capsys.readouterr()
    state = f"{tmp_path.resolve()}/elsewhere/state"
    assert f"mkdir -p -m 700 {state} && chown {os.getuid()}:{os.getgid()} {state}\n" in said.err
    assert "make " not in said.out
    assert not (tmp_path / "elsewhere").exists()


def test_a_command_on_the_path_is_named_by_its_link(tmp_path: Path) -> None:
    """What an installer links outlives an upgrade; a module that was run is named by its interpreter."""
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/curatord").write_text("#!/bin/sh\n")
    (tmp_path / "venv/curatord").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/curatord").symlink_to(tmp_path / "venv/curatord")

    assert (str(tmp_path / "bin/curatord"),) == command_words("curatord", str(tmp_path / "bin"))
    assert (str(tmp_path / "bin/curatord"),) == command_words(str(tmp_path / "bin/curatord"), None)
    assert (sys.executable, "-m", "curatord") == command_words("/x/curatord/__main__.py", None)


@pytest.mark.parametrize(("option", "code"), [((), 2), (("--exit-zero-if-final",), 0)])
def test_a_manager_without_codes_is_told_not_to_try_again(
    home: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...], code: int
) -> None:
    """A wrong configuration ends with 2, or with 0 where that was asked for; the error is told both times."""
    (home / ".config/curatord/config.yaml").write_text("modus: auto\n")

    assert code == main(["daemon", *option], environ={"HOME": str(home)})
    assert "modus" in capsys.readouterr().err


def test_the_manual_tells_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """With its help and its example; it is made from the parser."""
    assert 0 == main(["man"], environ={"HOME": "/nonexistent"})
    page = capsys.readouterr().out.replace("\\-", "-").replace("\\(ga", "`").replace("\\(aq", "'")

    names = [f"{one.name} {inner.name}" if one.inner else one.name for one in COMMANDS for inner in one.inner or (one,)]
    assert [] == [name for name in names if f"\\fB{name}\\fR" not in page]
    assert [] == [inner.example for one in COMMANDS for inner in one.inner or (one,) if inner.example not in page]


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not there")
def test_the_manual_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The formatter has nothing to say against it."""
    main(["man"], environ={"HOME": "/nonexistent"})
    (tmp_path / "curatord.1").write_text(capsys.readouterr().out)

    done = subprocess.run(
        ["man", "--warnings", "-l", str(tmp_path / "curatord.1")],
        env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "" == done.stderr
    assert "service install" in done.stdout
