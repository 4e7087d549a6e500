"""Trees, manifests and retention of backups: one text for one folder, nothing else is taken, nothing leads out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curatord.core.backup import (
    Entry,
    HostFile,
    LeftOut,
    LibraryBackup,
    Manifest,
    StoredItem,
    StoredSkill,
    content_id,
    entry_at,
    is_backup_id,
    manifest_from_bytes,
    manifest_to_bytes,
    new_backup_id,
    packages_in,
    parse_tree,
    quoted,
    render_tree,
    spared,
    unquoted,
    why_left_out,
)
from curatord.core.values import BlobId

AT = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
HASH = BlobId("ab" * 32)

hashes = st.binary(min_size=32, max_size=32).map(lambda data: BlobId(data.hex()))
names = st.binary(min_size=1, max_size=20).filter(lambda n: n not in (b".", b"..") and b"/" not in n and b"\0" not in n)
modes = st.integers(0, 0o7777)
entries = st.one_of(
    st.builds(Entry, name=names, kind=st.just("dir"), mode=modes, ref=hashes, attributes=st.just("") | hashes),
    st.builds(
        Entry,
        name=names,
        kind=st.just("file"),
        mode=modes,
        ref=hashes,
        size=st.integers(0, 2**40),
        mtime_ns=st.integers(-(10**18), 10**19),
        attributes=st.just("") | hashes,
    ),
    st.builds(
        Entry, name=names, kind=st.just("link"), target=st.binary(max_size=30).map(lambda t: t.replace(b"\0", b"x"))
    ),
)
folders = st.lists(entries, max_size=8, unique_by=lambda entry: entry.name)


@given(folders)
def test_a_folder_comes_back_as_it_was(folder: list[Entry]) -> None:
    """Whatever the names, modes and targets, in whatever order, there is one text, and it says them all."""
    text = render_tree(folder)

    assert tuple(sorted(folder, key=lambda entry: entry.name)) == parse_tree(text)
    assert text == render_tree(reversed(folder))
    assert text.isascii()
    assert len(folder) + 1 == text.count(b"\n")


@given(folders, st.data())
def test_a_changed_folder_is_another_or_damaged(folder: list[Entry], data: st.DataObject) -> None:
    """A byte changed, added or taken away is either refused or says something else: no two texts mean the same."""
    text = bytearray(render_tree(folder))
    place = data.draw(st.integers(0, len(text) - 1))
    change = data.draw(st.sampled_from(["flip", "cut", "add"]))
    if change == "flip":
        text[place] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del text[place:]
    else:
        text.insert(place, data.draw(st.integers(0, 255)))
    try:
        found = parse_tree(bytes(text))
    except ValueError:
        return
    assert bytes(text) == render_tree(found)
    assert found != tuple(sorted(folder, key=lambda entry: entry.name))


@given(st.binary(max_size=300))
@example(b"curatord-tree 1\nl .. ..\n")
@example(b"curatord-tree 1\nd 755 " + b"ab" * 32 + b" %2E%2E\n")
@example(b"curatord-tree 1\nd 755 " + b"ab" * 32 + b" a%2Fb\n")
@example(b"curatord-tree 1\nd 755 " + b"ab" * 32 + b" a/b\n")
@example(b"curatord-tree 1\nd 99999 " + b"ab" * 32 + b" a\n")
@example(b"curatord-tree 1\nd 755 ../../etc a\n")
@example(b"curatord-tree 1\nf 644 " + b"ab" * 32 + b" 9" * 5000 + b"\n")
def test_anything_else_is_no_folder(data: bytes) -> None:
    """Rubbish is a `ValueError` and nothing worse; what is taken names nothing outside of its folder."""
    for text in (data, b"curatord-tree 1\n" + data):
        try:
            found = parse_tree(text)
        except ValueError:
            continue
        for entry in found:
            assert b"/" not in entry.name
            assert entry.name not in (b".", b"..", b"")
            assert entry.kind == "link" or len(entry.ref) == 64


@given(st.binary(max_size=40))
def test_names_are_quoted_one_way(name: bytes) -> None:
    """A name has one quoted form, without blanks or line ends, and no other form is taken for it."""
    text = quoted(name)

    assert name == unquoted(text)
    assert text.isascii()
    assert set() == set(text) & set(" \n\t%") - {"%"}


@pytest.mark.parametrize("text", ["%2e", "%41", "a b", "%", "%0", "ä"])
def test_another_form_of_a_name_is_refused(text: str) -> None:
    """Lower-case escapes, escapes of plain signs and signs that need one are not what `quoted` makes."""
    with pytest.raises(ValueError, match="quoted"):
        unquoted(text)


# -- looking into trees


def a_store() -> tuple[Entry, dict[BlobId, tuple[Entry, ...]]]:
    """Return a library of two skills, one in a category with a nested SKILL.md, and the trees it is made of."""
    trees: dict[BlobId, tuple[Entry, ...]] = {}

    def folder(name: bytes, *below: Entry) -> Entry:
        import hashlib

        ref = BlobId(hashlib.sha256(render_tree(below)).hexdigest())
        trees[ref] = parse_tree(render_tree(below))
        return Entry(name=name, kind="dir", mode=0o755, ref=ref)

    skill = Entry(name=b"SKILL.md", kind="file", mode=0o644, ref=HASH, size=3, mtime_ns=5)
    inner = folder(b"deep", folder(b"inner", skill), skill)
    top = folder(b"top", folder(b"cat", folder(b"a", skill, folder(b"references", inner))), folder(b"b", skill), skill)
    return top, trees


def test_packages_are_found_and_none_within_another() -> None:
    """Folders with a SKILL.md, categories entered, packages not; the library's own SKILL.md makes it none."""
    top, trees = a_store()

    assert [b"b", b"cat/a"] == sorted(packages_in(top, trees.__getitem__))


def test_an_entry_is_found_by_its_path() -> None:
    """Down to a file; through a file, or where nothing is, there is nothing."""
    top, trees = a_store()

    found = entry_at(top, b"cat/a/SKILL.md", trees.__getitem__)
    assert found is not None
    assert "file" == found.kind
    assert top == entry_at(top, b"", trees.__getitem__)
    assert None is entry_at(top, b"cat/a/SKILL.md/x", trees.__getitem__)
    assert None is entry_at(top, b"cat/z", trees.__getitem__)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"mtime_ns": 9}, True),
        ({"mode": 0o755}, False),
        ({"ref": "cd" * 32}, False),
        ({"attributes": "cd" * 32}, False),
    ],
)
def test_content_is_the_same_whatever_its_times(change: dict[str, object], same: bool) -> None:
    """Bytes, modes and attributes make the identity; the time of a file does not, nor the folder's own name."""
    import dataclasses

    top, trees = a_store()
    skill = next(entry for entry in trees[top.ref] if entry.name == b"SKILL.md")
    changed = dataclasses.replace(skill, **change)  # type: ignore[arg-type]  # the fields of the table above
    twin = {**trees, top.ref: tuple(changed if entry == skill else entry for entry in trees[top.ref])}
    renamed = dataclasses.replace(top, name=b"other")

    assert same == (content_id(renamed, twin.__getitem__) == content_id(top, trees.__getitem__))


@pytest.mark.parametrize(
    ("name", "folder", "out"),
    [
        (b"__pycache__", True, True),
        (b".git", True, True),
        (b".git", False, True),
        (b"node_modules", True, True),
        (b".venv", True, True),
        (b"venv", True, True),
        (b"x.pyc", False, True),
        (b".curatord-a1-x", True, True),
        (b".gitignore", False, False),
        (b"venv", False, False),
        (b"__pycache__", False, False),
        (b".env", False, False),
        (b"x.pyc", True, False),
        (b"\xff\n", False, False),
    ],
)
def test_what_is_in_no_backup(name: bytes, folder: bool, out: bool) -> None:
    """Caches, version control, environments and our own files, by name and kind; all else is in it."""
    assert out == (why_left_out(name, folder=folder) is not None)


# -- manifests


def a_manifest() -> Manifest:
    return Manifest(
        id="20260301-100000-1",
        at=AT,
        reason="made by hand, ü",
        version="1",
        libraries=(
            LibraryBackup(
                name="lib",
                root=quoted(b"/home/\xff/skills"),
                archive="/a",
                layout="hermes",
                tree=HASH,
                mode=0o755,
                archive_tree=HASH,
                skills=(StoredSkill(path=quoted(b"cat/\xff"), form="folder"),),
                items=(StoredItem(path="x", rel="cat/x", at=AT, reason="r", action_id="a"),),
                host_files=(HostFile(path="cron/jobs.json", ref=HASH, mode=0o600),),
                files=3,
                bytes=9,
            ),
        ),
        left_out=(LeftOut(path="/x", why="a pipe", ordinary=True),),
        left_out_count=1,
    )


def test_a_manifest_comes_back_as_it_was() -> None:
    """Names that are no UTF-8 too."""
    assert a_manifest() == manifest_from_bytes(manifest_to_bytes(a_manifest()))


@given(st.data())
def test_a_damaged_manifest_is_found(data: st.DataObject) -> None:
    """Any byte changed, added or taken away is found by the hash or by the shape, never by a crash."""
    text = bytearray(manifest_to_bytes(a_manifest()))
    place = data.draw(st.integers(0, len(text) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "add"])):
        case "flip":
            text[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del text[place:]
        case _:
            text.insert(place, data.draw(st.integers(0, 255)))

    with pytest.raises(ValueError):  # noqa: PT011 - what it says depends on where the damage is
        manifest_from_bytes(bytes(text))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "at", "libraries", "tree", "name", "skills", "x"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
@example({"id": "../../x", "at": "2026-01-01T00:00:00Z", "reason": "", "version": "", "libraries": []})
def test_a_forged_manifest_with_a_right_hash_is_none(value: object) -> None:
    """Whoever writes rubbish and hashes it rightly gets a `ValueError` all the same, or a manifest of right shape."""
    import hashlib
    import json

    body = json.dumps(value).encode()
    text = b"curatord-backup 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    try:
        manifest = manifest_from_bytes(text)
    except ValueError:
        return
    assert is_backup_id(manifest.id)


def test_two_backups_of_one_second_have_two_ids() -> None:
    """The second gets a number; the id is that of UTC."""
    first = new_backup_id(AT, ())

    assert "20260301-100000" == first
    assert "20260301-100000-1" == new_backup_id(AT, [first])
    assert "20260301-100000-2" == new_backup_id(AT, [first, "20260301-100000-1"])


# -- retention


@pytest.mark.parametrize(
    ("sizes", "keep", "max_bytes", "stays"),
    [
        ([], 3, 10, 0),
        ([{"a": 5}], 1, 10, 1),
        ([{"a": 50}], 1, 10, 1),
        ([{"a": 50}, {"b": 1}], 5, 10, 1),
        ([{"a": 5}, {"a": 5}, {"a": 5}], 5, 5, 3),
        ([{"a": 5}, {"a": 5}, {"a": 5}], 2, 5, 2),
        ([{"a": 5}, {"a": 5, "b": 6}, {"a": 5}], 5, 10, 1),
        ([{"a": 5}, {"a": 5, "b": 5}, {"c": 1}], 5, 10, 2),
    ],
)
def test_the_newest_stay(sizes: list[dict[str, int]], keep: int, max_bytes: int, stays: int) -> None:
    """As many as may be kept, and as fit, what they share counted once; the newest whatever its size."""
    assert stays == spared(sizes, keep=keep, max_bytes=max_bytes)


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdef"), st.just(3), max_size=5), max_size=12),
    st.integers(1, 12),
    st.integers(0, 30),
)
def test_retention_keeps_its_bounds(sizes: list[dict[str, int]], keep: int, max_bytes: int) -> None:
    """Never more than *keep*, never larger than allowed but for the newest, and never fewer than would be right."""
    count = spared(sizes, keep=keep, max_bytes=max_bytes)

    def together(number: int) -> int:
        return sum({ref: size for one in sizes[:number] for ref, size in one.items()}.values())

    assert min(1, len(sizes)) <= count <= max(keep, 1)
    assert count <= 1 or together(count) <= max_bytes
    assert count == len(sizes) or count == keep or together(count + 1) > max_bytes


def test_ids_are_in_order_of_their_number_too() -> None:
    """The eleventh of one second is newer than the second."""
    from curatord.core.backup import age_key

    ids = [f"20260301-100000{number}" for number in ("", "-1", "-2", "-10")]

    assert ids == sorted([ids[3], ids[1], ids[0], ids[2]], key=age_key)
    assert "20260302-000000" == max([*ids, f"{AT + timedelta(hours=14):%Y%m%d-%H%M%S}"], key=age_key)
