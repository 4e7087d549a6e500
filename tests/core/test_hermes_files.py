"""Hermes' files: what each says, and that an odd field costs no more than itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.hermes_files import (
    RunClaim,
    UsageRow,
    parse_claim,
    parse_config,
    parse_curator_state,
    parse_hub_lock,
    parse_ledger_line,
    parse_manifest,
    parse_schedule,
    parse_suppressed,
    parse_time,
    parse_usage,
)
from curatord.errors import OwnershipError

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def dumped(value: object) -> bytes:
    """Return *value* as JSON."""
    return json.dumps(value).encode()


def test_usage() -> None:
    """A row as Hermes writes it."""
    rows, warnings = parse_usage(
        dumped(
            {
                "a": {
                    "created_by": "agent", "use_count": 3, "view_count": 2, "last_used_at": "2026-03-04T05:06:07+00:00",
                    "last_viewed_at": None, "last_patched_at": "2026-03-04T05:06:08+00:00", "state": "stale",
                    "pinned": True, "patch_generation": 4, "later_key": {"x": 1},
                }
            }
        )
    )  # fmt: skip

    assert {
        "a": UsageRow(
            created_by="agent", use_count=3, view_count=2, last_used_at=AT,
            last_patched_at=AT + timedelta(seconds=1), state="stale", pinned=True,
        )
    } == rows  # fmt: skip
    assert ([], True, AT + timedelta(seconds=1)) == (warnings, rows["a"].agent_made, rows["a"].last_activity_at)


def test_odd_times_cost_themselves() -> None:
    """Float seconds, ISO with Z, null and `soon`: three usable, one warned (bugs B039)."""
    rows, warnings = parse_usage(
        dumped(
            {
                "float": {"last_used_at": AT.timestamp(), "created_by": "agent"},
                "iso": {"last_used_at": "2026-03-04T05:06:07Z"},
                "null": {"last_used_at": None},
                "soon": {"last_used_at": "soon", "use_count": 2, "pinned": "true"},
            }
        )
    )

    assert [AT, AT, None, None] == [row.last_used_at for row in rows.values()]
    assert (True, 2, True) == (rows["float"].agent_made, rows["soon"].use_count, rows["soon"].pinned)
    assert [".usage.json: `soon.last_used_at` is no time: 'soon'"] == warnings


@pytest.mark.parametrize(
    ("raw", "row"),
    [
        ({"use_count": 2.0}, UsageRow(agent_created=False, use_count=2)),
        ({"use_count": -1, "created_by": 7}, UsageRow(agent_created=False)),
        ({"use_count": True}, UsageRow(agent_created=False)),
        ({"pinned": None, "state": 3}, UsageRow(agent_created=False)),
        ({"pinned": 1}, UsageRow(agent_created=False, pinned=True)),
        ({"pinned": "false"}, UsageRow(agent_created=False)),
        ({"agent_created": True, "created_by": None}, UsageRow(agent_created=True)),
        ({"agent_created": "true"}, UsageRow(agent_created=False)),
        ({"created_at": "2026-03-04T05:06:07"}, UsageRow(agent_created=False, created_at=AT)),
        ({"created_at": "0001-01-01T00:00:00+00:00"}, UsageRow(agent_created=False)),
        ({"created_at": "9999-12-31T23:59:59-12:00"}, UsageRow(agent_created=False)),
        ({"created_at": 1e300}, UsageRow(agent_created=False)),
        ({"created_at": [1]}, UsageRow(agent_created=False)),
    ],
)  # fmt: skip
def test_odd_fields(raw: dict[str, Any], row: UsageRow) -> None:
    """Whatever a field holds, the others are read, and only a boolean true is the older licence."""
    rows, _ = parse_usage(dumped({"odd": {"created_at": "x"}, "a": raw}))

    assert row == rows["a"]


def test_rows_that_are_none() -> None:
    """A value that is no record is passed over and told; a byte-order mark is fine."""
    rows, warnings = parse_usage(b"\xef\xbb\xbf" + dumped({"a": 3, "b": {}}))

    assert (["b"], 1) == (list(rows), len(warnings))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": ' * 5000, b'{"a": {"pinned": tr', b"[" * 100_000]
)
def test_damaged_ownership_files_are_never_read_as_empty(data: bytes) -> None:
    """A cut, empty or foreign file is an error that protects the library, for each file that protects."""
    for parse in (parse_usage, parse_hub_lock):
        with pytest.raises(OwnershipError):
            parse(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    )
)
@settings(max_examples=200, deadline=None)
def test_any_json_is_read_or_refused(value: object) -> None:
    """No JSON makes a reader fall over."""
    keys = ["created_by", "use_count", "last_used_at", "pinned", "state"]
    data = dumped(
        {"a": dict.fromkeys(keys, value), "installed": value, "jobs": value, "paused": value, "skills": value}
    )
    for parse in (parse_usage, parse_hub_lock, parse_schedule, parse_curator_state, parse_ledger_line):
        try:
            parse(data)
        except OwnershipError:
            continue


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-04T05:06:07Z", AT),
        ("2026-03-04T07:06:07+02:00", AT),
        ("2026-03-04 05:06:07", AT),
        (AT.timestamp(), AT),
        (int(AT.timestamp() * 1000), AT),
        ("", None),
        (None, None),
    ],
)
def test_times(value: object, expected: datetime | None) -> None:
    """ISO with and without zone, seconds, milliseconds."""
    assert expected == parse_time(value)


@pytest.mark.parametrize("value", ["soon", True, -5, 0, "1969-01-01", float("nan"), float("inf"), {}, b"x"])
def test_what_is_no_time(value: object) -> None:
    """Nonsense is refused, not taken for 1970."""
    with pytest.raises((ValueError, OverflowError)):
        parse_time(value)


def test_manifest() -> None:
    """With hashes, without, with blanks; the name alone counts."""
    digest = "0123456789abcdef" * 2

    assert frozenset({"a", "b", "c:d"}) == parse_manifest(f"a:{digest}\r\n\n b \nc:d:{digest}\n# x\n".encode())
    with pytest.raises(OwnershipError):
        parse_manifest(b"\xff")


def test_suppressed() -> None:
    """Names by line; comments are none."""
    assert frozenset({"a", "b"}) == parse_suppressed(b"a\n# c\n\n b \n")


def test_hub_lock() -> None:
    """Key, source and path; odd entries still protect by their key, bad bytes are replaced."""
    data = (
        b'{"installed": {"b": {"install_path": "/tools/b/", "source": "o/\xff"}, "a": null, "c": {"install_path": 3}}}'
    )

    assert [("a", None), ("b", "tools/b"), ("c", None)] == [
        (entry.name, entry.install_path) for entry in parse_hub_lock(data)
    ]
    assert () == parse_hub_lock(b"{}")
    with pytest.raises(OwnershipError):
        parse_hub_lock(b'{"installed": []}')


def test_curator_state() -> None:
    """Paused only where it says true; a naive time is UTC; a damaged file says nothing and is told."""
    state, warnings = parse_curator_state(
        dumped({"paused": True, "last_run_at": "2026-03-04T05:06:07", "run_count": 3})
    )

    assert (True, AT, 3, []) == (state.paused, state.last_run_at, state.run_count, warnings)
    assert (False, 1) == (parse_curator_state(b"{")[0].paused, len(parse_curator_state(b"{")[1]))
    assert 1 == len(parse_curator_state(dumped({"last_run_at": "x"}))[1])


def test_claim() -> None:
    """A claim stands for an hour from its file's time, whatever is written in it."""
    claim = parse_claim(b'{"pid": 4242}', AT)

    assert RunClaim(pid=4242, at=AT) == claim
    assert (True, False) == (claim.holds(AT + timedelta(minutes=59)), claim.holds(AT + timedelta(minutes=61)))
    assert None is parse_claim(b"", AT).pid


def test_ledger_lines() -> None:
    """An entry with its files; a line that makes no sense is none."""
    entry = parse_ledger_line(
        dumped(
            {
                "id": "0a", "ts": "2026-03-04T05:06:07+00:00", "actor": "agent", "action": "patch", "skill": "a",
                "evidence": {"session_id": "s"}, "before": [{"path": "/a/SKILL.md", "sha256": None}, 3],
                "after": [{"path": "/a/SKILL.md", "sha256": "ff"}],
            }
        )
    )  # fmt: skip

    assert entry is not None
    assert (AT, "agent", "patch", "a", "s") == (entry.at, entry.actor, entry.action, entry.skill, entry.session_id)
    assert ((("/a/SKILL.md", None),), (("/a/SKILL.md", "ff"),)) == (entry.before, entry.after)
    for line in (
        b"",
        b"{",
        b"3",
        b'{"ts": "x", "skill": "a", "action": "b"}',
        b'{"ts": null, "skill": "a", "action": "b"}',
    ):
        assert None is parse_ledger_line(line)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("bare", [False, True])
def test_schedule(bom: bytes, bare: bool) -> None:
    """Both fields, paused jobs, a bare list, a byte-order mark; what holds no name is told."""
    jobs = [
        {"id": "1", "name": "close", "skills": ["a", "/x/skills/b", "", 3], "enabled": False},
        {"id": "2", "skill": "c"},
        {"id": "3", "skill": None, "skills": None},
        "no job",
    ]
    references, warnings = parse_schedule(bom + dumped(jobs if bare else {"jobs": jobs}))

    assert [("close", "skills", "a", False), ("close", "skills", "/x/skills/b", False), ("2", "skill", "c", True)] == [
        (reference.job, reference.place, reference.target, reference.enabled) for reference in references
    ]
    assert 2 == len(warnings)


@pytest.mark.parametrize("data", [b"", b"{", b"3", b'{"jobs": {}}'])
def test_a_schedule_that_cannot_be_read_is_an_error(data: bytes) -> None:
    """Who is scheduled must be known before anything is archived."""
    with pytest.raises(OwnershipError):
        parse_schedule(data)


@pytest.mark.parametrize(
    ("text", "external", "enabled"),
    [
        ("skills:\n  external_dirs: [~/team, /x]\ncurator:\n  enabled: false\n", ("~/team", "/x"), False),
        ("---\nskills:\n  external_dirs: ~/team\n", ("~/team",), True),
        ("dirs: &d [/x]\nskills:\n  external_dirs: *d\n", ("/x",), True),
        ("model: x\n", (), True),
        ("", (), True),
        ("skills: []\ncurator: yes\n", (), True),
    ],
)
def test_config(text: str, external: tuple[str, ...], enabled: bool) -> None:
    """External folders and the curator's switch; aliases are taken here."""
    config = parse_config(text.encode())

    assert (external, enabled) == (config.external_dirs, config.curator_enabled)


def test_a_config_that_cannot_be_read_is_an_error() -> None:
    """What is external must be known before anything is moved."""
    with pytest.raises(OwnershipError, match="line 2"):
        parse_config(b"a: b\nc: d: e\n")


def test_zones_are_utc() -> None:
    """Whatever zone was written, the moment is the same."""
    rows, _ = parse_usage(dumped({"a": {"last_used_at": AT.astimezone(timezone(timedelta(hours=5))).isoformat()}}))

    assert AT == rows["a"].last_used_at
