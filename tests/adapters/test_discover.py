"""Hosts, libraries and the configuration file are found where they are, by the rules of each host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from curatord.adapters.config_file import locate, read, user_home
from curatord.adapters.discover import discover
from curatord.core.hosts import HOST_PLACES
from curatord.core.settings import HOSTS
from curatord.errors import ConfigError
from curatord.loading import load_config


def a_skill(folder: Path, name: str) -> None:
    """Make a package *name* in *folder*."""
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: x\n---\nbody\n", encoding="utf-8")


def test_every_host_with_a_home_has_its_places() -> None:
    """The table knows all hosts but `jsonl`, which has no home."""
    assert set(HOSTS) - {"jsonl"} == {places.host for places in HOST_PLACES}


def test_nothing_is_found_in_an_empty_home(tmp_path: Path) -> None:
    """No hosts and no libraries is an answer, not an error; the same without any home."""
    assert ((), ()) == (discover({}, str(tmp_path)).hosts, discover({}, str(tmp_path)).libraries)
    assert ((), ()) == (discover({}, None).hosts, discover({}, None).libraries)


def test_hosts_and_libraries_are_found(tmp_path: Path) -> None:
    """Homes in their default places, profiles of Hermes and the shared folder; skills are counted."""
    a_skill(tmp_path / ".claude/skills", "one")
    a_skill(tmp_path / ".hermes/skills/cat", "two")
    a_skill(tmp_path / ".hermes/skills/.archive", "gone")
    a_skill(tmp_path / ".hermes/profiles/work/skills", "three")
    a_skill(tmp_path / ".agents/skills", "four")
    (tmp_path / ".codex").mkdir()

    found = discover({}, str(tmp_path), count=True)

    assert ["claude-code", "hermes", "codex"] == [host.host for host in found.hosts]
    assert [("claude", 1), ("hermes", 1), ("agents", 1), ("hermes-work", 1)] == [
        (library.name, library.skills) for library in found.libraries
    ]
    settings = found.as_settings()
    assert [None, None, None] == [source.path for source in settings.sources]
    assert {"owned"} == {library.manage for library in settings.libraries}


@pytest.mark.parametrize(("value", "expected"), [("MOVED", "moved"), ("", ".codex"), ("   ", ".codex")])
def test_a_moved_home_is_followed_and_a_blank_variable_is_none(tmp_path: Path, value: str, expected: str) -> None:
    """`CODEX_HOME` set, empty and blank: the host's own variable first, a blank counts as unset (bugs B104)."""
    (tmp_path / "moved").mkdir()
    (tmp_path / ".codex").mkdir()
    environ = {"CODEX_HOME": value.replace("MOVED", str(tmp_path / "moved"))}

    assert [str(tmp_path / expected)] == [host.home for host in discover(environ, str(tmp_path)).hosts]


def test_two_names_of_one_folder_are_one_library(tmp_path: Path) -> None:
    """A linked skills folder would otherwise be curated twice."""
    a_skill(tmp_path / ".agents/skills", "one")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/skills").symlink_to(tmp_path / ".agents/skills")

    libraries = discover({}, str(tmp_path)).libraries

    assert [("claude", (str(tmp_path / ".agents/skills"),))] == [(lib.name, lib.same_as) for lib in libraries]


@pytest.mark.parametrize("linked", [True, False])
def test_what_a_ledger_hands_over_is_told_whosever_library_it_lies_in(tmp_path: Path, *, linked: bool) -> None:
    """Hermes' ledger is heeded in every library that has one, so nobody may be told that nothing is handed over."""
    home = ".hermes" if linked else ".claude"
    a_skill(tmp_path / home / "skills", "one")
    (tmp_path / home / "skills/.usage.json").write_text('{"one": {"created_by": "agent"}}', encoding="utf-8")
    if linked:
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude/skills").symlink_to(tmp_path / ".hermes/skills")

    found = discover({}, str(tmp_path), count=True)

    assert [("claude", 1)] == [(library.name, library.handed_over) for library in found.libraries]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """It is there, so silence would mislead."""
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills").chmod(0)

    found = discover({}, str(tmp_path))
    (tmp_path / ".claude/skills").chmod(0o700)

    assert [str(tmp_path / ".claude/skills")] == [path for path, _ in found.problems]


def test_the_config_file_is_looked_for_in_order(tmp_path: Path) -> None:
    """`--config`, then the variable, then the user's own, then the machine's."""
    named, by_variable, own = tmp_path / "named.yaml", tmp_path / "variable.yaml", tmp_path / "xdg/curatord/config.yaml"
    own.parent.mkdir(parents=True)
    for path in (named, by_variable, own):
        path.write_text("", encoding="utf-8")
    environ = {"CURATORD_CONFIG": str(by_variable), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}

    assert str(named) == locate(str(named), environ, str(tmp_path), "linux")
    assert str(by_variable) == locate(None, environ, str(tmp_path), "linux")
    assert str(own) == locate(None, {**environ, "CURATORD_CONFIG": " "}, str(tmp_path), "linux")


@pytest.mark.parametrize(("said", "environ"), [("nope.yaml", {}), (None, {"CURATORD_CONFIG": "/nope.yaml"})])
def test_a_named_file_that_is_not_there_is_an_error(said: str | None, environ: dict[str, str]) -> None:
    """Falling back to another file would run with settings nobody asked for."""
    with pytest.raises(ConfigError, match="no such file"):
        locate(said, environ, "/home/u", "linux")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """`--config ~/.config/curatord` is a likely slip."""
    with pytest.raises(ConfigError, match="is a folder"):
        read(str(tmp_path))


@pytest.mark.parametrize("said", ["", "  ", "relative", "~"])
def test_a_home_that_is_none_is_looked_up(said: str) -> None:
    """An unset, blank or relative HOME is not believed; the password database knows (bugs B152)."""
    home = user_home({"HOME": said})

    assert home is None or Path(home).is_absolute()
    assert user_home({"HOME": "/h/u/"}) == "/h/u"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("libraries: [{name: a, path: real}, {name: b, path: link}]", "libraries[1].path"),
        ("libraries: [{name: a, path: link}]\nsources: [{host: hermes, path: real/x}]", "sources[0].path"),
        ("libraries: [{name: a, path: link}]\nstate_dir: real/state", "state_dir"),
        ("libraries: [{name: a, path: link}, {name: b, path: y, archive: real/z}]", "libraries[1].archive"),
    ],
)
def test_links_do_not_hide_an_overlap(tmp_path: Path, text: str, key: str) -> None:
    """Two names of one folder are one folder: each skill belongs to one library."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match="links followed") as caught:
        load_config(str(tmp_path / "c.yaml"), {"HOME": str(tmp_path / "home")})
    assert (key, str(tmp_path / "c.yaml")) == (caught.value.key, caught.value.file)


def test_a_configuration_comes_through_a_pipe(tmp_path: Path) -> None:
    """`--config <(generate)` is a habit of some shells' users."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    import threading

    writer = threading.Thread(target=pipe.write_text, args=("mode: review\n",))
    writer.start()
    config = load_config(str(pipe), {"HOME": str(tmp_path)}).config
    writer.join()

    assert "review" == config.mode.value


def test_found_hosts_are_a_right_configuration(tmp_path: Path) -> None:
    """Whatever lies in whatever: what is found alone never makes an error."""
    for place in (".claude/skills", ".openclaw/skills", ".openclaw/workspace/skills", ".agents/skills"):
        a_skill(tmp_path / place, "x")
    (tmp_path / ".hermes").symlink_to(".claude")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/skills").symlink_to("../.agents")

    config = load_config(None, {"HOME": str(tmp_path)}).config

    paths = [os.path.realpath(library.path) for library in config.libraries]
    assert 3 <= len(paths)
    assert not any(a != b and f"{a}/".startswith(f"{b}/") for a in paths for b in paths)


def test_an_absolute_path_needs_no_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services are started in folders that may go (bugs B152); a relative path says what is missing."""
    gone = tmp_path / "gone"
    gone.mkdir()
    named = tmp_path / "config.yaml"
    named.touch()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert str(named) == locate(str(named), {}, str(tmp_path), "linux")
    with pytest.raises(ConfigError, match="the working folder is gone"):
        locate("config.yaml", {}, str(tmp_path), "linux")
