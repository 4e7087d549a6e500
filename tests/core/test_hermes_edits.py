"""Two fields of somebody else's JSON: everything else stays, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.hermes_edits import (
    Rename,
    _dump,
    _Style,
    edit_item,
    field_edits,
    job_changes,
    see_item,
    see_line,
    set_line,
    usage_record,
)
from curatord.core.journal import EditItem, Place, SetLine, inverse
from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.errors import InputError, OwnershipError

FILE = Place(root="/h", path=RelPath(".usage.json"))


def usage(data: bytes | None, name: str, want: dict[str, Any]) -> EditItem:
    record = usage_record(data, name)
    return EditItem(
        file=FILE, format="usage", item=name, edits=field_edits(record, want), item_there=record is not None,
        file_there=data is not None,
    )  # fmt: skip


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
RECORD = st.dictionaries(st.text(max_size=5), VALUES, max_size=3)
# Our own fields hold plain words: a style that only shows in what we replace cannot be known afterwards.
OURS = st.fixed_dictionaries(
    {}, optional={"state": st.sampled_from(["active", "stale", None]), "archived_at": st.sampled_from([None, "2026"])}
)
RECORDS = st.dictionaries(st.text(max_size=5), st.builds(lambda a, b: {**a, **b}, RECORD, OURS), max_size=4)
STYLES = st.sampled_from(
    [
        {"indent": 2, "sort_keys": True, "ensure_ascii": False},
        {"indent": 2, "ensure_ascii": True},
        {"indent": 4, "ensure_ascii": False},
        {},
        {"separators": (",", ":")},
    ]
)


@given(records=RECORDS, name=st.text(max_size=5), style=STYLES, end=st.sampled_from(["", "\n", "\r\n"]))
def test_an_edit_and_its_inverse_give_back_the_very_bytes(
    records: dict[str, Any], name: str, style: dict[str, Any], end: str
) -> None:
    """In any style of JSON, for a record that was there or not; and in between only our fields differ."""
    data = (json.dumps(records, **style) + end).encode("utf-8", "surrogatepass")
    try:
        step = usage(data, name, {"state": "archived", "archived_at": "t"})
    except OwnershipError:  # lone surrogates cannot be written back, so the file is refused
        return
    assert "before" == see_item(data, step).what

    after = edit_item(data, step)

    assert after is not None
    want = {**records, name: {**records.get(name, {}), "state": "archived", "archived_at": "t"}}
    assert want == json.loads(after)
    assert "after" == see_item(after, step).what
    (back,) = inverse((step,))
    assert isinstance(back, EditItem)
    assert data == edit_item(after, back)


def test_a_record_is_made_as_hermes_writes_it() -> None:
    """Sorted at both levels, two spaces, non-ASCII kept."""
    data = json.dumps({"ä": {"b": 1}, "ö": {}}, indent=2, sort_keys=True, ensure_ascii=False).encode()

    after = edit_item(data, usage(data, "m", {"state": "stale", "created_at": "t"}))

    want = {"ä": {"b": 1}, "m": {"state": "stale", "created_at": "t"}, "ö": {}}
    assert json.dumps(want, indent=2, sort_keys=True, ensure_ascii=False).encode() == after


def test_a_file_that_was_not_there_goes_again() -> None:
    """The undo of the first record takes the file with it, but not one that others wrote into since."""
    step = usage(None, "a", {"state": "stale"})
    (back,) = inverse((step,))
    assert isinstance(back, EditItem)
    made = edit_item(None, step)
    assert made is not None

    assert edit_item(made, back) is None
    grown = json.dumps({**json.loads(made), "b": {}}).encode()
    assert {"b": {}} == json.loads(edit_item(grown, back) or b"")


def test_a_field_of_the_host_survives_the_undo_of_a_made_record() -> None:
    """A count that the host wrote into a record of our making is kept."""
    step = usage(b"{}", "a", {"state": "stale"})
    (back,) = inverse((step,))
    assert isinstance(back, EditItem)

    assert {"a": {"use_count": 1}} == json.loads(edit_item(b'{"a": {"state": "stale", "use_count": 1}}', back) or b"")


def test_what_the_host_changed_meanwhile_is_seen() -> None:
    """A third value is neither before nor after; a record gone with all our fields absent before is before."""
    step = usage(b'{"a": {"state": "active"}}', "a", {"state": "archived"})

    assert "other" == see_item(b'{"a": {"state": "stale"}}', step).what
    assert "other" == see_item(b"{}", step).what
    assert "unreadable" == see_item(b'{"a": 1}', step).what
    assert "unreadable" == see_item(b"{", step).what


@pytest.mark.parametrize("text", [b"", b"nul", b"[]", b'{"a": NaN}', b'{"a": {"x": -1e999}}', b"{" * 200_000])
def test_what_cannot_be_written_back_is_refused(text: bytes) -> None:
    """Unreadable, infinite, or endless: an `OwnershipError`, before anything is done."""
    with pytest.raises(OwnershipError):
        usage_record(text, "a")


def key(rel: str) -> SkillKey:
    return SkillKey(library=LibraryName("lib"), rel=RelPath(rel))


RENAMES = [Rename(old=key("cat/old"), new=key("kit")), Rename(old=key("dead"), new=None)]


@pytest.mark.parametrize(
    ("job", "want"),
    [
        ({"skills": ["old"]}, {"skills": ["kit"]}),
        ({"skills": ["a", "old", "dead", "kit", "b"]}, {"skills": ["a", "kit", "b"]}),
        ({"skills": ["old"], "skill": "old"}, {"skills": ["kit"], "skill": "kit"}),
        ({"skills": ["dead"], "skill": "dead"}, {"skills": [], "skill": None}),
        ({"skills": [], "skill": "old"}, {"skills": ["kit"], "skill": "kit"}),
        ({"skill": "cat/old"}, {"skill": "kit"}),
        ({"skills": ["/s/cat/old", "/s//cat/./old/SKILL.md"]}, {"skills": ["/s/kit", "/s/kit/SKILL.md"]}),
        ({"skills": ["/seen/dead"]}, {"skills": []}),
        ({"skills": ["old", {"odd": 1}]}, {"skills": ["kit", {"odd": 1}]}),
    ],
)
def test_jobs_follow(job: dict[str, Any], want: dict[str, Any]) -> None:
    """Names, categories and paths follow; doubles collapse in order; the legacy field is the first of the list."""
    data = json.dumps({"jobs": [{"id": "x", "at": 1, **job}, {"id": "y", "skills": ["z"]}], "updated_at": 5}).encode()

    changes = job_changes(data, RENAMES, ["/s", "/seen"])

    assert ["x"] == [change.job_id for change in changes]
    step = EditItem(file=FILE, format="jobs", item="x", edits=changes[0].edits)
    after = edit_item(data, step)
    assert {"jobs": [{"id": "x", "at": 1, **job, **want}, {"id": "y", "skills": ["z"]}], "updated_at": 5} == json.loads(
        after or b""
    )
    (back,) = inverse((step,))
    assert isinstance(back, EditItem)
    assert data == edit_item(after, back)


@pytest.mark.parametrize(
    "job",
    [
        {"skills": ["older", "old-er", "/s/cat/older", "/other/cat/old"]},
        {"skill": ""},
        {"skill": None},
        {"skills": None},
        {},
    ],
)
def test_jobs_that_name_others_are_left_alone(job: dict[str, Any]) -> None:
    """Parts of names, other folders and empty fields are no references."""
    assert () == job_changes(json.dumps([{"id": "x", **job}]).encode(), RENAMES, ["/s"])


def test_a_schedule_that_cannot_be_followed() -> None:
    """Broken JSON, another shape, or a job without an id of its own stop the action."""
    for data in (b"{", b'{"jobs": {}}', b'[{"skills": ["old"]}]', b'[{"id": 1, "skill": "old"}]',
                 b'[{"id": "a", "skill": "old"}, {"id": "a"}]'):  # fmt: skip
        with pytest.raises(InputError):
            job_changes(data, RENAMES, ["/s"])
    assert () == job_changes(None, RENAMES, ["/s"])


def test_a_job_that_is_gone_needs_nothing() -> None:
    """Recovery and undo find that nothing is left to point wrong."""
    step = EditItem(
        file=FILE, format="jobs", item="x", edits=job_changes(b'[{"id":"x","skill":"old"}]', RENAMES, [])[0].edits
    )

    assert "after" == see_item(b"[]", step).what


@given(lines=st.lists(st.sampled_from(["# note", "a", "b", "", "ab"]), max_size=5), end=st.sampled_from(["", "\n"]))
def test_a_line_goes_in_and_out(lines: list[str], end: str) -> None:
    """Comments and order stay; adding twice adds once; a list that we made goes again."""
    data = ("\n".join(lines) + end).encode()
    add = SetLine(file=FILE, line="new", before=False, after=True)
    (take,) = inverse((add,))
    assert isinstance(take, SetLine)

    added = set_line(data, add)

    assert added is not None
    assert ("before", "after") == (see_line(data, add).what, see_line(added, add).what)
    assert added == set_line(added, add)
    assert data.rstrip(b"\n") == (set_line(added, take) or b"").rstrip(b"\n")
    made = SetLine(file=FILE, line="new", before=True, after=False, file_there=False)
    assert set_line(b"new\n", made) is None


@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=12,
    ),
    indent=st.sampled_from([1, 2, 4]),
    ensure_ascii=st.booleans(),
)
def test_the_quick_way_writes_what_the_slow_one_would(document: Any, indent: int, ensure_ascii: bool) -> None:
    """Byte for byte, so that a file's style is recognised and kept."""
    slow = json.dumps(document, indent=indent, ensure_ascii=ensure_ascii, allow_nan=False).encode()

    assert slow == _dump(document, _Style(indent=indent, ensure_ascii=ensure_ascii))
