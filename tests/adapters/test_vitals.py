"""What `doctor` gathers of the machine: real files, real watches, and made-up tables of the kernel."""

from __future__ import annotations

import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import NEWEST, open_database
from curatord.adapters.vitals.daemons import other_daemons
from curatord.adapters.vitals.database_file import look_into, newest_times
from curatord.adapters.vitals.inotify import count_folders, limits, used_by
from curatord.adapters.vitals.mounts import existing, file_system_of
from curatord.adapters.vitals.outlets import look_at_program, why_unwritable
from curatord.adapters.vitals.service_files import look_for_services, service_command
from curatord.adapters.vitals.state_folder import look_at_disks, look_at_state
from curatord.adapters.vitals.transcripts import list_transcripts, retention_of
from curatord.adapters.vitals.watch_trial import try_watching
from curatord.adapters.watch import Watcher
from curatord.core.settings import SourceSettings

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


def test_the_file_system_is_that_of_the_longest_mount(tmp_path: Path) -> None:
    """Blanks in mounts are escaped; the last one at a place hides those before."""
    (tmp_path / "a b/c").mkdir(parents=True)
    escaped = str(tmp_path / "a b").replace(" ", r"\040")
    table = "\n".join(
        [
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
            f"2 1 0:40 / {escaped} rw,relatime shared:2 - xfs /dev/sdb rw",
            f"3 1 0:41 / {escaped} rw,relatime shared:2 master:1 - nfs4 server:/x rw",
            "garbage",
        ]
    )

    assert "nfs4" == file_system_of(str(tmp_path / "a b/c"), table)
    assert "nfs4" == file_system_of(str(tmp_path / "a b/not/there/yet"), table)
    assert "ext4" == file_system_of(str(tmp_path), table)
    assert "" == file_system_of("/", "")


def test_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    """What is not there yet would be made below it."""
    assert tmp_path == existing(str(tmp_path / "a/b"))
    assert tmp_path == existing(str(tmp_path))


def test_a_state_folder_in_order(tmp_path: Path) -> None:
    """Private, ours, writable."""
    tmp_path.chmod(0o700)
    facts = look_at_state(tmp_path)

    assert (True, 0o700, os.geteuid(), True) == (facts.exists, facts.mode, facts.owner, facts.writable)
    assert (None, 0) == (facts.decisions, facts.unfinished)


def test_state_folders_that_are_none(tmp_path: Path) -> None:
    """A file in its place, a file above it, nothing yet."""
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert "it is no folder" == look_at_state(tmp_path / "file").error
    assert f"{tmp_path}/file is no folder" == look_at_state(tmp_path / "file/state").makeable
    assert (False, None) == (look_at_state(tmp_path / "new").exists, look_at_state(tmp_path / "new").makeable)
    assert not (tmp_path / "new").exists()


def test_actions_left_half_way_and_decisions_that_cannot_be_read(tmp_path: Path) -> None:
    """Both are looked at without a lock."""
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/a1.json").write_text("{}", encoding="utf-8")
    (tmp_path / "decisions.json").write_text("{", encoding="utf-8")
    facts = look_at_state(tmp_path)

    assert 1 == facts.unfinished
    assert facts.decisions is not None
    assert "decisions.json" in facts.decisions[0]


def test_a_disk_is_told_once(tmp_path: Path) -> None:
    """Two places on one file system, one of them not there yet."""
    (disk,) = look_at_disks([(str(tmp_path), "the state"), (str(tmp_path / "new"), "the library a")])

    assert ("the state", "the library a") == disk.holds
    assert 0 < disk.free <= disk.size


def test_looking_at_a_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """Not even the shared-memory file that every other way of opening it makes."""
    open_database(tmp_path, now=NOW).close()
    before = sorted(tmp_path.iterdir())
    facts, database = look_into(tmp_path)

    assert database is not None
    assert (NEWEST, None, True) == (facts.schema, facts.damage, facts.looked_whole)
    assert newest_times(database) is None
    database.close()
    assert before == sorted(tmp_path.iterdir())


def test_a_look_without_time_says_that_it_was_not_whole(tmp_path: Path) -> None:
    """A database of gibibytes must not hold up the page; what was looked at was sound."""
    database = open_database(tmp_path, now=NOW)
    with database.transaction() as connection:
        connection.executemany(
            "INSERT INTO meta (key, value) VALUES (?, ?)", [(f"k{n}", "x" * 500) for n in range(20_000)]
        )
    database.close()
    facts, opened = look_into(tmp_path, seconds=-1)

    assert opened is not None
    opened.close()
    assert (None, False) == (facts.damage, facts.looked_whole)


def test_a_database_that_is_marked_is_not_opened(tmp_path: Path) -> None:
    """Somebody met the damage while reading; the mark says so until the file is set aside."""
    database = open_database(tmp_path, now=NOW)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    database.failure(error)
    database.close()

    assert ("malformed", None) == (look_into(tmp_path)[0].damage, look_into(tmp_path)[1])


def test_a_database_that_cannot_even_be_looked_for(tmp_path: Path) -> None:
    """A folder without the right to enter it, or a name that no file system takes: an error, and not its absence."""
    facts, database = look_into(tmp_path / ("x" * 300))

    assert (True, "File name too long", None) == (facts.exists, facts.error, database)


def test_a_real_probe_is_told_of_and_removed(tmp_path: Path) -> None:
    """Real watches on real folders; one that does not exist waits."""
    (tmp_path / "state").mkdir()
    (tmp_path / "projects").mkdir()
    states, took = try_watching([tmp_path / "projects", tmp_path / "none"], tmp_path / "state", wait_s=20)

    assert took is not None
    assert ["events", "waiting"] == [state.how for state in states]
    assert [] == list((tmp_path / "state").iterdir())


def test_without_a_place_for_a_probe_only_watches_are_tried(tmp_path: Path) -> None:
    """Nothing is made anywhere."""
    states, took = try_watching([tmp_path], None)

    assert (None, ["events"]) == (took, [state.how for state in states])


def test_a_probe_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """It is no silence of the kernel."""
    with pytest.raises(OSError, match="gone"):
        try_watching([], tmp_path / "gone")


def test_limits_are_the_kernels(tmp_path: Path) -> None:
    """None where there are none, or where nobody can read them."""
    (tmp_path / "sys/fs/inotify").mkdir(parents=True)
    (tmp_path / "sys/fs/inotify/max_user_watches").write_text("8192\n", encoding="ascii")

    assert (8192, None) == limits(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="needs proc(5)")
def test_watches_in_use_are_counted(tmp_path: Path) -> None:
    """A watcher over four folders holds four more than before, in one more instance."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    before = used_by(os.getuid(), only=os.getpid())
    watcher = Watcher([tmp_path], lambda _: None, mode="events")
    watcher.start()
    during = used_by(os.getuid(), only=os.getpid())
    watcher.stop()

    assert (4, 1) == (during.watches - before.watches, during.instances - before.instances)
    assert used_by(os.getuid()).instances >= during.instances - 1


def test_folders_are_counted_once_and_in_bounded_time(tmp_path: Path) -> None:
    """Links are not followed; a file (a database) takes one watch; what does not exist none."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "state.db").write_text("", encoding="utf-8")

    assert (3, True, (str(tmp_path / "loop"),)) == count_folders([tmp_path])
    assert (1, True, ()) == count_folders([tmp_path / "state.db"])
    assert (0, True, ()) == count_folders([tmp_path / "none"])
    assert (0, False, ()) == count_folders([tmp_path], seconds=-1)


def test_without_proc_nobody_can_look_for_others(tmp_path: Path) -> None:
    """That is said, since it is not the same as that there are none."""
    assert ([], False) == other_daemons(tmp_path, [], tmp_path / "proc")


def test_installed_services_are_found_by_their_files(tmp_path: Path) -> None:
    """The user's own units wherever their manager looks, the system's, agents of launchd, a container's."""
    system, other = tmp_path / "etc", tmp_path / "xdg"
    paths = [
        other / "systemd/user/curatord-work.service",
        tmp_path / ".config/systemd/user/curatord.service",
        system / "curatord-system.service",
        tmp_path / "Library/LaunchAgents/curatord.plist",
        tmp_path / "Library/LaunchAgents/org.curatord.agent.plist",
        tmp_path / ".config/curatord/docker/compose.yaml",
    ]
    for path in (*paths, system / "other.service"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")

    assert [str(path) for path in paths] == list(look_for_services(tmp_path, str(other), system=system).installed)
    assert () == look_for_services(tmp_path / "none", None, system=tmp_path / "none").installed


@pytest.mark.parametrize(
    "name", ["curatord.service.before", "curatord.service.before-2", ".curatord.service.new", "not-curatord.service"]
)
def test_what_no_manager_would_start_is_no_service(tmp_path: Path, name: str) -> None:
    """What `--replace` set aside, for one."""
    units = tmp_path / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / name).write_text("", encoding="utf-8")

    assert () == look_for_services(tmp_path, None, system=tmp_path / "none").installed


def test_a_unit_that_nothing_starts_is_told(tmp_path: Path) -> None:
    """Until `enable` has made its link."""
    units, system = tmp_path / ".config/systemd/user", tmp_path / "etc"
    for folder in (units / "default.target.wants", system):
        folder.mkdir(parents=True)
    for folder in (units, system):
        (folder / "curatord.service").write_text("", encoding="utf-8")
    before = look_for_services(tmp_path, None, system=system).idle
    (units / "default.target.wants/curatord.service").symlink_to(units / "curatord.service")
    after = look_for_services(tmp_path, None, system=system).idle

    of_system = (str(system / "curatord.service"), "sudo systemctl enable --now curatord")
    assert ((str(units / "curatord.service"), "systemctl --user enable --now curatord"), of_system) == before
    assert (of_system,) == after


def test_the_command_for_a_service_is_that_of_the_system() -> None:
    """launchd on macOS."""
    assert "curatord service install launchd" == service_command("darwin")


def program(path: Path, text: bytes = b"#!/bin/sh\n", mode: int = 0o755) -> Path:
    """Make a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.chmod(mode)
    return path


def test_a_program_by_its_path(tmp_path: Path) -> None:
    """As the system would start it: it is there, it may be executed, and something runs it."""
    good = program(tmp_path / "good")
    binary = program(tmp_path / "binary", b"\x7fELF\0")
    told = {
        "none": "does not exist",
        "folder": "is a folder",
        "plain": "may not be executed by this user",
        "text": "is a text, and its first line does not say what runs it",
        "lost": f"names {tmp_path}/gone in its first line, which is not there",
    }
    (tmp_path / "folder").mkdir()
    program(tmp_path / "plain", mode=0o644)
    program(tmp_path / "text", b"echo\n")
    program(tmp_path / "lost", f"#! {tmp_path}/gone -x\n".encode())
    found = {name: look_at_program([str(tmp_path / name)], {}, Path("/h")) for name in told}

    assert [None, None] == [look_at_program([str(path), "-x"], {}, Path("/h")).fault for path in (good, binary)]
    assert told == {name: facts.fault for name, facts in found.items()}
    assert all(facts.mend for facts in found.values())


def test_a_program_by_its_name(tmp_path: Path) -> None:
    """On the PATH that its command would get; one in the user's own home is there by chance."""
    mine = program(tmp_path / "home/bin/tell-the-team")
    environ = {"PATH": f"{mine.parent}:/usr/bin:/bin"}
    told = look_at_program(["tell-the-team"], environ, tmp_path / "home")
    common = look_at_program(["sh", "-c", "x"], environ, tmp_path / "home")

    assert (str(mine), None, True) == (told.path, told.fault, told.by_chance)
    assert (None, False) == (common.fault, common.by_chance)
    assert "is not found on PATH" == look_at_program(["tell-the-team"], {"PATH": "/bin"}, tmp_path).fault


@pytest.mark.parametrize("name", ["~/bin/tell", "bin/tell", "./tell"])
def test_a_program_is_not_looked_for_below_home_or_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell reads the words, and the command is started in the root."""
    for path in ("~/bin/tell", "bin/tell", "tell"):
        program(tmp_path / path)
    monkeypatch.chdir(tmp_path)
    told = look_at_program([name], {"HOME": str(tmp_path)}, tmp_path)

    assert "does not exist" == told.fault
    assert "full path" in told.mend


def test_a_notice_file_that_can_be_written(tmp_path: Path) -> None:
    """Or made, with the folders above it; nothing is made by the look."""
    (tmp_path / "there").write_text("old")

    assert why_unwritable(str(tmp_path / "there")) is None
    assert why_unwritable(str(tmp_path / "a/b/notice")) is None
    assert why_unwritable(str(tmp_path / ("x" * 300))) is None  # pathlib would raise, as where it may not look
    assert f"{tmp_path} is a folder" == why_unwritable(str(tmp_path))
    assert f"{tmp_path}/there is no folder" == why_unwritable(str(tmp_path / "there/notice"))
    assert ["there"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_notice_file_in_a_folder_of_others(tmp_path: Path) -> None:
    """The folder that is not open is named."""
    tmp_path.chmod(0o500)

    assert f"{tmp_path} cannot be written by this user" == why_unwritable(str(tmp_path / "a/notice"))


def codex(folder: Path, *names: str) -> Path:
    """Make transcripts of Codex below *folder*."""
    day = folder / "sessions/2026/09/01"
    day.mkdir(parents=True)
    for name in names:
        (day / name).write_text('{"type":"session_meta","payload":{"id":"x"}}\n', encoding="utf-8")
    return folder


def test_transcripts_are_listed_and_unread_ones_told(tmp_path: Path) -> None:
    """Without anything known all are unread."""
    home = codex(tmp_path / "h", "rollout-2026-09-01T10-00-00-a.jsonl", "rollout-2026-09-01T11-00-00-b.jsonl")
    listing = list_transcripts(open_source(SourceSettings(host="codex"), str(home)), {})

    assert (True, None, 2, 2) == (listing.exists, listing.error, listing.files, len(listing.unread or ()))
    assert () == listing.near


def test_near_misses_are_named_where_nothing_is_found(tmp_path: Path) -> None:
    """Transcripts of another host, or another depth than this one's (bugs B102)."""
    (tmp_path / "h/sessions").mkdir(parents=True)
    (tmp_path / "h/other").mkdir()
    (tmp_path / "h/other/chat.jsonl").write_text("{}\n", encoding="utf-8")
    listing = list_transcripts(open_source(SourceSettings(host="codex"), str(tmp_path / "h")), {})

    assert (0, (str(tmp_path / "h/other/chat.jsonl"),)) == (listing.files, listing.near)


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    """No error: it waits."""
    listing = list_transcripts(open_source(SourceSettings(host="pi"), str(tmp_path / "none")), {})

    assert (False, None) == (listing.exists, listing.error)


@pytest.mark.parametrize(
    ("told", "days"), [(None, 30), ({"cleanupPeriodDays": 5}, 5), ({"cleanupPeriodDays": "x"}, 30), ([], 30)]
)
def test_how_long_claude_code_keeps_its_transcripts(tmp_path: Path, told: object, days: int) -> None:
    """Its settings, else its default; unread files that go within three days are counted (bugs B095)."""
    if told is not None:
        (tmp_path / "settings.json").write_text(json.dumps(told), encoding="utf-8")
    day = 86400.0
    unread = tuple(NOW.timestamp() - age * day for age in (days - 2, days - 4, 0))
    kept = retention_of("claude-code", str(tmp_path / "projects"), unread, NOW)

    assert kept is not None
    assert (days, 1) == (kept.days, kept.at_risk)


def test_other_hosts_delete_nothing_that_we_know_of(tmp_path: Path) -> None:
    """Nothing is claimed where nothing is known."""
    assert retention_of("codex", str(tmp_path), (), NOW) is None
