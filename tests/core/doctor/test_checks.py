"""The checks of `doctor`, each passing and failing: what is found, how bad it is, and that a mend is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from curatord.core.cheap import replace
from curatord.core.doctor.check import Check, Issue, check_of, worst
from curatord.core.doctor.libraries import HostCurator, LibraryFacts, check_libraries, check_library
from curatord.core.doctor.model import ModelFacts, check_model, no_model
from curatord.core.doctor.outlets import MetricsFacts, NoticeFacts, ProgramFacts, check_metrics, check_notices
from curatord.core.doctor.running import (
    DaemonFacts,
    OtherDaemon,
    ServiceFacts,
    check_daemon,
    check_others,
    check_service,
)
from curatord.core.doctor.setup import (
    DatabaseFacts,
    DiskFacts,
    StateFacts,
    VersionFacts,
    check_clock,
    check_config,
    check_database,
    check_disk,
    check_state,
    check_unreadable_config,
    check_version,
)
from curatord.core.doctor.sources import Counted, Retention, SourceFacts, check_source, check_sources
from curatord.core.doctor.watching import EventFacts, InotifyFacts, WatchedPlace, check_events, check_inotify
from curatord.core.drift import Stretch
from curatord.core.model import Fault, FaultKind

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
GIB = 2**30


def test_a_check_is_as_bad_as_its_worst_issue() -> None:
    """The worst comes first in words and mends; each mend is said once, a line each."""
    check = check_of(
        "x",
        "as it is",
        [
            Issue(level="note", words="b", mend="one"),
            Issue(level="failure", words="a", mend="two"),
            Issue(level="warning", words="c", mend="two"),
        ],
    )

    assert ("failure", False) == (check.level, check.ok)
    assert ("as it is; a; c; b", "two\none") == (check.found, check.mend)


def test_the_contracts_keys_are_there() -> None:
    """`check`, `ok`, `found`, `mend`, and two more."""
    value = check_of("x", "fine", []).as_json()

    assert {"check": "x", "ok": True, "level": "fine", "found": "fine", "mend": "", "details": []} == value


@pytest.mark.parametrize("level", ["warning", "failure"])
def test_nothing_is_wrong_without_a_mend(level: Any) -> None:
    """A page of complaints helps nobody; a check that says no way out is a bug of ours."""
    with pytest.raises(ValueError, match="without a mend"):
        Check(check="x", level=level, found="broken")


def test_the_worst_of_checks() -> None:
    """None at all is fine."""
    assert "warning" == worst([check_of("a", "", [Issue(level="warning", words="w", mend="m")]), check_of("b", "", [])])
    assert "fine" == worst([])


def level_of(check: Check) -> tuple[str, str]:
    """Return a check's name and level, once a mend is known to be said where one is needed."""
    assert check.found
    return check.check, check.level


VERSION = VersionFacts(curatord="1.0", python=(3, 12, 1), sqlite=(3, 45, 0), platform="Linux 6")
STATE = StateFacts(path="/s", exists=True, mode=0o700, owner=1000, user=1000, file_system="ext4")
DATABASE = DatabaseFacts(path="/s/curatord.db", exists=True, schema=5, newest=5, size=4096)
DISK = DiskFacts(holds=("the state",), free=50 * GIB, size=100 * GIB, inodes_free=10**6)
LIBRARY = LibraryFacts(
    name="claude",
    path="/h/.claude/skills",
    host="claude-code",
    layout="agent-skills",
    manage="owned",
    skills=9,
    managed=3,
    archive="/h/.claude/.skills-archive",
    writable=True,
    archive_writable=True,
    archive_apart=False,
)
HERMES = HostCurator(enabled=True, paused=False, at_work=False, asked="warn")
COUNTED = Counted(
    sessions=3,
    records=1000,
    unreadable=0,
    oversize=0,
    naive_times=0,
    future_times=0,
    unknown={},
    versions=("2.1.9",),
    scanned_at=NOW,
    newest_record_at=NOW - timedelta(hours=1),
)
SOURCE = SourceFacts(host="codex", path="/h/.codex", why="default", exists=True, files=3, unread=0, counted=COUNTED)
PLACE = WatchedPlace("/h/.codex", "events", "", "ext4")
EVENTS = EventFacts(probe_s=0.01, unprobed=None, waited_s=3.0, places=(PLACE,), by_daemon=False, mode="auto")
INOTIFY = InotifyFacts(max_watches=8192, max_instances=128, folders=100)
MODEL = ModelFacts(role="primary", name="m", api="openai-chat", url="http://h/v1", tokens=500, price_known=True)
DAEMON = DaemonFacts(alive=True, pid=7, since="2026-09-01T10:00:00Z", activity="idle")

DRIFTED = (
    Stretch(date(2026, 8, 1), "2.1.9", 1000, 0, 100, {}),
    Stretch(date(2026, 9, 1), "2.2.0", 100, 0, 10, {"turn_v2": 50}),
)

NOTICES = NoticeFacts(file="/h/notice", program=ProgramFacts(name="mail", path="/usr/bin/mail"))
METRICS = MetricsFacts(listen="127.0.0.1:1")
CASES: list[tuple[str, Callable[..., Check], Any, dict[str, Any], str]] = [
    ("version", check_version, VERSION, {}, "fine"),
    ("version", check_version, VERSION, {"python": (3, 10, 9)}, "failure"),
    ("version", check_version, VERSION, {"sqlite": (3, 36, 0)}, "warning"),
    ("version", check_version, VERSION, {"platform": "win32"}, "failure"),
    ("version", check_version, VERSION, {"lacking": ("no zstd",)}, "note"),
    ("state", check_state, STATE, {}, "fine"),
    ("state", check_state, STATE, {"exists": False}, "note"),
    ("state", check_state, STATE, {"exists": False, "makeable": "/ cannot be written"}, "failure"),
    ("state", check_state, STATE, {"error": "it is no folder"}, "failure"),
    ("state", check_state, STATE, {"mode": 0o755}, "failure"),
    ("state", check_state, STATE, {"owner": 1}, "failure"),
    ("state", check_state, STATE, {"owner": 1, "user": 0}, "fine"),
    ("state", check_state, STATE, {"writable": False}, "failure"),
    ("state", check_state, STATE, {"file_system": "nfs4"}, "failure"),
    ("state", check_state, STATE, {"decisions": ("it holds no object", "mend it")}, "failure"),
    ("state", check_state, STATE, {"unfinished": 1}, "note"),
    ("database", check_database, DATABASE, {}, "fine"),
    ("database", check_database, DATABASE, {"exists": False}, "note"),
    ("database", check_database, DATABASE, {"damage": "malformed"}, "failure"),
    ("database", check_database, DATABASE, {"error": "unable to open"}, "failure"),
    ("database", check_database, DATABASE, {"schema": 6}, "failure"),
    ("database", check_database, DATABASE, {"schema": 4}, "note"),
    ("database", check_database, DATABASE, {"looked_whole": False}, "fine"),
    ("database", check_database, DATABASE, {"wal": GIB}, "warning"),
    ("library claude", check_library, LIBRARY, {}, "fine"),
    ("library claude", check_library, LIBRARY, {"missing": "/h is no folder"}, "failure"),
    ("library claude", check_library, LIBRARY, {"conflicts": (("at one path", "separate them"),)}, "failure"),
    ("library claude", check_library, LIBRARY, {"writable": False}, "failure"),
    ("library claude", check_library, LIBRARY, {"writable": False, "managed": 0}, "note"),
    ("library claude", check_library, LIBRARY, {"writable": False, "managed": 0, "manage": "all"}, "failure"),
    ("library claude", check_library, LIBRARY, {"writable": False, "manage": "none"}, "fine"),
    ("library claude", check_library, LIBRARY, {"unjudged": (".usage.json is damaged",)}, "failure"),
    ("library claude", check_library, LIBRARY, {"schedule_unreadable": "jobs.json"}, "failure"),
    ("library claude", check_library, LIBRARY, {"archive_apart": True}, "warning"),
    ("library claude", check_library, LIBRARY, {"archive_apart": True, "managed": 0}, "note"),
    ("library claude", check_library, LIBRARY, {"archive_writable": False}, "failure"),
    ("library claude", check_library, LIBRARY, {"archive_writable": False, "managed": 0}, "fine"),
    ("library claude", check_library, LIBRARY, {"broken": ("a: no fence", "b: no fence", "c: x")}, "warning"),
    ("library claude", check_library, LIBRARY, {"unlisted": ("sub: denied",)}, "warning"),
    ("library claude", check_library, LIBRARY, {"recorded": ("it cannot be written",)}, "warning"),
    ("library claude", check_library, LIBRARY, {"recorded": ("it cannot be written",), "managed": 0}, "note"),
    ("library claude", check_library, LIBRARY, {"recorded": ("it cannot be written",), "manage": "none"}, "fine"),
    ("library claude", check_library, LIBRARY, {"others": ("process 9",)}, "failure"),
    ("library claude", check_library, LIBRARY, {"others": ("process 9",), "manage": "none"}, "warning"),
    ("library claude", check_library, LIBRARY, {"curator": HERMES}, "warning"),
    ("library claude", check_library, LIBRARY, {"curator": HERMES, "manage": "none"}, "fine"),
    ("library claude", check_library, LIBRARY, {"curator": replace(HERMES, asked="pause")}, "note"),
    ("library claude", check_library, LIBRARY, {"curator": replace(HERMES, paused=True)}, "fine"),
    ("library claude", check_library, LIBRARY, {"curator": replace(HERMES, enabled=False)}, "fine"),
    ("library claude", check_library, LIBRARY, {"curator": replace(HERMES, enabled=False, at_work=True)}, "note"),
    ("events", check_events, EVENTS, {}, "fine"),
    ("events", check_events, EVENTS, {"mode": "poll"}, "note"),
    ("events", check_events, EVENTS, {"probe_s": None}, "warning"),
    ("events", check_events, EVENTS, {"probe_s": None, "unprobed": "no state folder"}, "note"),
    ("events", check_events, EVENTS, {"places": (WatchedPlace("/x", "poll", "it cannot be watched"),)}, "warning"),
    ("events", check_events, EVENTS, {"places": (WatchedPlace("/x", "waiting", "not there"),)}, "fine"),
    ("events", check_events, EVENTS, {"places": (WatchedPlace("/x", "events", "", "9p"),)}, "note"),
    ("inotify", check_inotify, INOTIFY, {}, "fine"),
    ("inotify", check_inotify, INOTIFY, {"max_watches": None}, "note"),
    ("inotify", check_inotify, INOTIFY, {"folders": 8193}, "failure"),
    ("inotify", check_inotify, INOTIFY, {"used_watches": 8150}, "failure"),
    ("inotify", check_inotify, INOTIFY, {"used_watches": 8150, "ours": 100}, "warning"),
    ("inotify", check_inotify, INOTIFY, {"folders": 8000}, "warning"),
    ("inotify", check_inotify, INOTIFY, {"used_instances": 128}, "failure"),
    ("inotify", check_inotify, INOTIFY, {"used_instances": 128, "ours": 1}, "fine"),
    ("daemon", check_daemon, DAEMON, {}, "fine"),
    ("daemon", check_daemon, DAEMON, {"alive": False}, "note"),
    ("daemon", check_daemon, DAEMON, {"silence": "no sign of life since 10:00"}, "failure"),
    ("daemon", check_daemon, DAEMON, {"trouble": "disk full"}, "failure"),
    ("daemon", check_daemon, DAEMON, {"last_run_failed": "no space"}, "failure"),
    ("daemon", check_daemon, DAEMON, {"paused": True}, "note"),
    ("daemon", check_daemon, DAEMON, {"version": "0.9", "ours": "1.0"}, "warning"),
    ("daemon", check_daemon, DAEMON, {"version": "1.0", "ours": "1.0"}, "fine"),
    ("notices", check_notices, NOTICES, {}, "fine"),
    ("notices", check_notices, NOTICES, {"program": None}, "fine"),
    ("notices", check_notices, NOTICES, {"fault": "/h is no folder"}, "failure"),
    ("notices", check_notices, NOTICES, {"program": ProgramFacts(name="x", fault="is gone", mend="m")}, "failure"),
    ("notices", check_notices, NOTICES, {"program": ProgramFacts(name="x", path="/h/x", by_chance=True)}, "note"),
    ("metrics", check_metrics, METRICS, {}, "fine"),
    ("metrics", check_metrics, METRICS, {"refused": "taken"}, "failure"),
    ("metrics", check_metrics, METRICS, {"alive": True, "told": True, "serving": "127.0.0.1:1"}, "fine"),
    ("metrics", check_metrics, METRICS, {"alive": True, "told": True, "serving": None}, "warning"),
    ("metrics", check_metrics, METRICS, {"alive": True, "told": True, "refused": "taken"}, "failure"),
    ("metrics", check_metrics, METRICS, {"alive": True, "refused": "taken"}, "note"),
    ("metrics", check_metrics, METRICS, {"alive": True, "silent": True, "serving": "127.0.0.1:1"}, "note"),
    ("service", check_service, ServiceFacts(installed=("/u",), command="c"), {}, "fine"),
    ("service", check_service, ServiceFacts(installed=(), command="c"), {}, "note"),
    ("service", check_service, ServiceFacts(installed=("/u",), command="c", idle=(("/u", "enable"),)), {}, "note"),
    ("model", check_model, MODEL, {}, "fine"),
    ("model fallback", check_model, MODEL, {"role": "fallback"}, "fine"),
    ("model", check_model, MODEL, {"price_known": False}, "note"),
    ("model", check_model, MODEL, {"unasked": "--no-llm"}, "note"),
    ("model", check_model, MODEL, {"repaired": True}, "warning"),
    ("model", check_model, MODEL, {"breaker": "payment until noon"}, "warning"),
    ("model", check_model, MODEL, {"notes": ("goes unencrypted",)}, "note"),
]


@pytest.mark.parametrize(("name", "check", "facts", "changes", "level"), CASES)
def test_every_check_passes_and_fails(
    name: str, check: Callable[..., Check], facts: Any, changes: dict[str, Any], level: str
) -> None:
    """From facts that are fine, one is changed at a time."""
    assert (name, level) == level_of(check(replace(facts, **changes)))


SOURCES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "fine"),
    ({"counted": None}, {}, "note"),
    ({"counted": None, "at_work": True}, {}, "note"),
    ({"error": "permission denied"}, {}, "failure"),
    ({"exists": False}, {}, "failure"),  # it was there before
    ({"exists": False, "counted": None}, {}, "note"),
    ({"exists": False, "counted": None, "why": "configured"}, {}, "warning"),
    ({"forgotten": True, "counted": None}, {}, "note"),
    ({"unseen": ("/h/.codex/sessions: denied",)}, {}, "warning"),
    ({"unseen": ("/h/.codex/sessions: denied",), "counted": None}, {}, "warning"),
    ({"unseen": ("/h/.codex/sessions: denied",), "forgotten": True}, {}, "warning"),
    ({"files": 0, "near": ("/h/.codex/old.jsonl",), "counted": None}, {}, "warning"),
    ({"files": 0, "near": ("/h/.codex/old.jsonl",)}, {}, "warning"),
    ({"retention": Retention(days=30, where="default", at_risk=2)}, {}, "warning"),
    ({"retention": Retention(days=30, where="default")}, {}, "fine"),
    ({}, {"unreadable": 9}, "fine"),
    ({}, {"unreadable": 11}, "warning"),
    ({}, {"unknown": {"progress": 400}}, "fine"),  # of all times; what is unusual is asked of the stretches
    ({}, {"stretches": DRIFTED}, "failure"),
    ({}, {"failing": 1, "problems": ("/h/a: denied",)}, "warning"),
    ({}, {"failing": 3, "problems": ("/h/a: denied",)}, "failure"),
    ({}, {"newest_record_at": NOW + timedelta(days=3)}, "warning"),
    ({}, {"future_times": 12}, "warning"),
    ({}, {"naive_times": 1000}, "fine"),
]


@pytest.mark.parametrize(("place", "counted", "level"), SOURCES)
def test_every_thing_that_may_be_wrong_with_a_source(
    place: dict[str, Any], counted: dict[str, Any], level: str
) -> None:
    """One fact is changed at a time."""
    source = replace(SOURCE, counted=replace(COUNTED, **counted))
    check = check_source(replace(source, **place), NOW)

    assert ("source codex", level) == level_of(check)


def test_drift_names_types_shares_and_what_to_do() -> None:
    """The sentence stands by itself, and the mend says why to pause."""
    check = check_source(replace(SOURCE, counted=replace(COUNTED, stretches=DRIFTED)), NOW)

    assert "since version 2.2.0, 50 % of the records are of types that are not known here" in check.found
    assert "turn_v2 (50)" in check.found
    assert "curatord pause" in check.mend


def test_the_details_of_a_source() -> None:
    """Place, versions, unknown types with their share, offsets, clock sense: what a report of a bug needs."""
    counted = replace(
        COUNTED,
        unknown={"progress": 25},
        unreadable=1,
        bad=(("/h/.codex/a.jsonl", 17, "not JSON"),),
        oversize=2,
        naive_times=3,
        future_times=4,
    )
    details = check_source(replace(SOURCE, counted=counted), NOW).details

    assert (
        "place: default",
        "last scan: 2026-09-01 12:00 UTC",
        "versions seen: 2.1.9",
        "unknown type progress: 25 records, 2.5 %",
        "unreadable: /h/.codex/a.jsonl at offset 17: not JSON",
        "2 records were too long to hold, and read by their ends",
        "3 times without a zone, taken as UTC",
        "4 times in the future, taken as unknown",
    ) == details


def test_the_summary_of_a_source() -> None:
    """Found, read, last record and both shares in one line."""
    assert (
        "/h/.codex: 3 files, 3 sessions, 1,000 records up to 2026-09-01 11:00 UTC; unknown 0 %, unreadable 0 %"
        == check_source(SOURCE, NOW).found
    )


def test_default_places_that_a_host_does_not_use_are_no_lines_of_their_own() -> None:
    """Former names of a home; one that was read before is told all the same."""
    former = replace(SOURCE, path="/h/.old", exists=False, counted=None)
    lost = replace(SOURCE, path="/h/.lost", exists=False)
    checks = check_sources([SOURCE, former, lost], NOW)

    assert ["fine", "failure"] == [check.level for check in checks]
    assert "not used by the host: /h/.old" in checks[0].details


def test_without_sources_or_libraries_nothing_can_be_done() -> None:
    """One warning each."""
    assert [("sources", "warning")] == [level_of(check) for check in check_sources([], NOW)]
    assert [("libraries", "warning")] == [level_of(check) for check in check_libraries([])]


def test_no_model_is_fine() -> None:
    """Rules need none."""
    assert ("model", "fine") == level_of(no_model())


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_fault_of_a_model_has_a_mend(kind: FaultKind) -> None:
    """Whatever goes wrong; only what passes by itself is a warning."""
    check = check_model(replace(MODEL, fault=Fault(kind=kind, message="m", words="theirs"), key="the file k"))

    assert (kind not in (FaultKind.RATE, FaultKind.DEFERRED)) == (check.level == "failure")


def test_an_answer_in_another_form_is_told_apart_from_a_server_that_cannot_be_reached() -> None:
    """Key and address are right then, and the model is the trouble."""
    check = check_model(replace(MODEL, fault=Fault(kind=FaultKind.INVALID, message="no JSON object")))

    assert "it can be reached and takes the key, but gave no answer in the asked form" in check.found


def test_config_names_its_file_or_where_one_was_looked_for() -> None:
    """Without a file nothing is wrong."""
    assert ("fine", "/c.yaml") == (check_config("/c.yaml", [], []).level, check_config("/c.yaml", [], []).found)
    assert "note" == check_config("/c.yaml", ["odd"], []).level
    assert ("looked for: /c.yaml",) == check_config(None, [], ["/c.yaml"]).details


def test_a_wrong_config_tells_all_its_mistakes() -> None:
    """One line of the page; a mend is said even where the error has none."""
    check = check_unreadable_config("c.yaml:1: a\nc.yaml:2: b", "")

    assert ("failure", "c.yaml:1: a; c.yaml:2: b") == (check.level, check.found)


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "fine"),
        ({"free": 600 * 2**20}, "fine"),
        ({"free": 500 * 2**20}, "warning"),
        ({"free": 60 * 2**20}, "failure"),
        ({"inodes_free": 999}, "failure"),
        ({"inodes_free": None}, "fine"),
    ],
)
def test_room_on_a_disk(changes: dict[str, Any], level: str) -> None:
    """The worst of several counts, and what lies there is named."""
    other = DiskFacts(holds=("the library a", "the library b"), free=GIB, size=GIB)

    assert ("disk", level) == level_of(check_disk([other, replace(DISK, **changes)]))


@pytest.mark.parametrize(
    ("record", "stored", "level"),
    [
        (None, None, "fine"),
        (NOW + timedelta(hours=47), NOW + timedelta(minutes=4), "fine"),
        (NOW + timedelta(hours=49), None, "failure"),
        (None, NOW + timedelta(minutes=6), "failure"),
    ],
)
def test_a_clock_that_stands_before_its_own_past(record: datetime | None, stored: datetime | None, level: str) -> None:
    """Records may come from machines in other zones; what we wrote ourselves may not be to come."""
    check = check_clock(NOW, newest_record_at=record, newest_stored=None if stored is None else (stored, "a run"))

    assert ("clock", level) == level_of(check)


def test_a_clock_is_not_praised_for_what_is_not_known() -> None:
    """Without a usable database there is no past to hold it against."""
    check = check_clock(NOW, newest_record_at=None, newest_stored=None, forgotten=True)

    assert ("clock", "note") == level_of(check)


@pytest.mark.parametrize(
    ("others", "can_see", "level"),
    [
        ((), True, "fine"),
        ((), False, "note"),
        ((OtherDaemon(pid=9, state_dir="/o"),), True, "note"),
        ((OtherDaemon(pid=9, state_dir="/o", shared=("claude",)),), True, "failure"),
    ],
)
def test_other_daemons_matter_where_they_share_a_library(
    others: tuple[OtherDaemon, ...], can_see: bool, level: str
) -> None:
    """Two of them for two homes are usual."""
    assert ("others", level) == level_of(check_others(others, can_see=can_see))


def test_sessions_that_were_put_aside_and_long_silence_are_told() -> None:
    """Both are warnings with what mends them; switched off is a note."""
    from curatord.core.doctor.distil import DistilFacts, check_distil

    now = datetime(2026, 3, 1, tzinfo=UTC)
    fine = check_distil(DistilFacts(due=2, last_at=now - timedelta(days=1)), now)
    aside = check_distil(DistilFacts(aside=["pi:s1: no usable reply"], last_at=now), now)
    waiting = check_distil(DistilFacts(waiting=["pi:s2: the disk is full"], last_at=now), now)
    silent = check_distil(DistilFacts(due=1, since=now - timedelta(days=8)), now)
    off = check_distil(DistilFacts(off="no model is configured"), now)

    levels = [check.level for check in (fine, aside, waiting, silent, off)]
    assert ["fine", "warning", "warning", "warning", "note"] == levels
    assert ("pi:s2: the disk is full",) == waiting.details
    assert "refine --retry" in aside.mend
    assert ("pi:s1: no usable reply",) == aside.details
    assert "since 2026-02-21" in silent.found


def test_the_size_of_a_database_counts_what_was_not_brought_into_it() -> None:
    """Beside a running daemon most of a new one lies there."""
    assert "512 KiB" in check_database(replace(DATABASE, size=4096, wal=508 * 1024)).found


@pytest.mark.parametrize(("at_work", "words"), [(False, "never scanned; `curatord scan` reads it"), (True, "just now")])
def test_each_source_that_was_never_scanned_says_what_becomes_of_it(at_work: bool, words: str) -> None:
    """In its own line, since the page tells an advice once; while the daemon reads, nothing is to be done."""
    check = check_source(replace(SOURCE, counted=None, at_work=at_work), NOW)

    assert words in check.found
    assert ("" if at_work else "curatord scan") == check.mend
