"""The shared tailer: what it reads in one go is what it reads as a stream, and what is known is not listed again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from curatord.adapters.sources import json_lines
from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.adapters.sources.registry import open_source
from curatord.core.settings import SourceSettings
from curatord.ports.ingest_store import Known
from curatord.ports.source import Item, Slice, Start
from tests.claude_log import Log

NOW_MS = 1_800_000_000_000


def a_source(projects: Path) -> JsonLinesSource:
    """Return the source over *projects*."""
    source = open_source(SourceSettings(host="claude-code"), str(projects))
    assert isinstance(source, JsonLinesSource)
    return source


def item_of(source: JsonLinesSource, path: Path) -> Item:
    """Return the file at *path* as it is now."""
    item = source.item_at(str(path))
    assert item is not None
    return item


def never() -> bool:
    """Do not stop."""
    return False


def a_log(said: int = 12) -> Log:
    """A session with some prompts and a skill."""
    log = Log()
    for number in range(said):
        log.said(f"{number} " + "x" * (number * 37 % 400))
    log.skill("pdf-forms")
    return log


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were opened, in order."""
    paths: list[str] = []
    real: Callable[[str], int] = json_lines.open_quietly

    def noting(path: str) -> int:
        paths.append(path)
        return real(path)

    monkeypatch.setattr(json_lines, "open_quietly", noting)
    return paths


def test_a_file_that_has_grown_is_opened_once(tmp_path: Path, opened: list[str]) -> None:
    """The look that tells whether it may be read on takes the rest along."""
    source = a_source(tmp_path)
    log = a_log()
    path = log.write(tmp_path)
    (before,) = source.read(item_of(source, path), Start(now_ms=NOW_MS), never)
    log.said("more")
    log.write(tmp_path)
    item = item_of(source, path)
    opened.clear()

    marks = source.examine(item, before.offset)
    (after,) = source.read(item, Start(offset=before.offset, state=before.state, now_ms=NOW_MS), never)

    assert [str(path)] == opened
    assert before.marks == marks
    assert (1, item.size) == (after.findings.records, after.offset)


@pytest.mark.parametrize("torn", [b"", b'{"type":"user","uu', b"\r\n\r\n"])
def test_read_whole_or_as_a_stream_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bytes) -> None:
    """From each line on, examined before or not: the same slices with the same marks."""
    path = a_log().write(tmp_path)
    path.write_bytes(path.read_bytes() + torn)
    data = path.read_bytes()
    offsets = [0, *(at + 1 for at, byte in enumerate(data) if byte == 10)]

    def slices(offset: int, *, examine: bool) -> list[Slice]:
        source = a_source(tmp_path)
        item = item_of(source, path)
        if examine:
            source.examine(item, offset)
        return list(source.read(item, Start(offset=offset, now_ms=NOW_MS), never))

    whole = [slices(offset, examine=examine) for offset in offsets for examine in (False, True)]
    monkeypatch.setattr(json_lines, "WHOLE", -1)
    monkeypatch.setattr(json_lines, "AHEAD", -1)

    assert [slices(offset, examine=examine) for offset in offsets for examine in (False, True)] == whole


@pytest.mark.parametrize("offset", [1, 255, 256, 257, 1000])
def test_marks_do_not_depend_on_what_is_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    """Wherever the watermark stands: also behind the end of a file that was cut."""
    source = a_source(tmp_path)
    path = a_log(said=1).write(tmp_path)
    item = item_of(source, path)
    ahead = source.examine(item, offset)
    monkeypatch.setattr(json_lines, "AHEAD", -1)

    assert source.examine(item, offset) == ahead
    assert bool(ahead.tail) == (offset <= item.size)


def test_a_file_that_was_cut_behind_the_look_is_read_as_it_is(tmp_path: Path) -> None:
    """What its stat promised is no longer there: nothing is made up, nothing raised."""
    source = a_source(tmp_path)
    path = a_log().write(tmp_path)
    item = item_of(source, path)
    first = path.read_bytes().index(b"\n") + 1
    os.truncate(path, first)

    (found,) = source.read(item, Start(now_ms=NOW_MS), never)

    assert (1, first, True) == (found.findings.records, found.offset, found.last)


def test_another_item_does_not_get_what_was_read_ahead(tmp_path: Path) -> None:
    """The file was examined as it was then; the item of a later listing is read as it is now."""
    source = a_source(tmp_path)
    log = a_log()
    path = log.write(tmp_path)
    source.examine(item_of(source, path), 0)
    log.said("more")
    log.write(tmp_path)
    item = item_of(source, path)

    (found,) = source.read(item, Start(now_ms=NOW_MS), never)

    assert item.size == found.offset


def rows_of(source: JsonLinesSource, *, special: int = 0) -> dict[str, Known]:
    """Return what is there as rows of the store."""
    return {
        item.path: (item.path, number, item.dev, item.ino, item.size, item.mtime_ns, special)
        for number, item in enumerate(source.items())
    }


def test_news_takes_out_what_is_as_it_was(tmp_path: Path) -> None:
    """Yielded are the new and the changed; what is left of the rows besides them is gone."""
    same = Log("same", name="same")
    grown = Log("grown", name="grown")
    gone = Log("gone", name="gone")
    for log in (same, grown, gone):
        log.said()
        log.write(tmp_path)
    source = a_source(tmp_path)
    known = rows_of(source)
    grown.said("more")
    grown_path = grown.write(tmp_path)
    new = Log("new", name="new")
    new.said()
    new_path = new.write(tmp_path)
    gone_path = grown_path.with_name("gone.jsonl")
    gone_path.unlink()

    news = {item.path for item in source.news(known)}

    assert {str(grown_path), str(new_path)} == news
    assert {str(grown_path), str(gone_path)} == set(known)


def test_news_yields_what_is_special_or_has_several_names(tmp_path: Path) -> None:
    """Both need a second look: something waits in the one, the other may be counted under another name."""
    source = a_source(tmp_path)
    path = a_log().write(tmp_path)
    special = rows_of(source, special=1)
    assert [str(path)] == [item.path for item in source.news(special)]
    plain = rows_of(source)
    os.link(path, tmp_path / "link.txt")

    assert [str(path)] == [item.path for item in source.news(plain)]


class Failing:
    """What `os.scandir` gives for a folder that can be opened, and fails before its second entry is read."""

    def __init__(self, folder: str) -> None:
        self._entries = list(REAL_SCANDIR(folder))[:1]

    def __enter__(self) -> Self:
        return self

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        yield from self._entries
        raise OSError(errno.EIO, "Input/output error")

    def __exit__(self, *error: object) -> None:
        """Nothing is held open."""


REAL_SCANDIR = os.scandir


def test_a_folder_that_fails_while_it_is_listed_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of it is there, so are the other folders, and it is told."""
    for folder in ("-bad", "-good"):
        for number in range(2):
            Log(f"{folder}-{number}").write(tmp_path, folder=folder)
    bad = str(tmp_path / "-bad")
    monkeypatch.setattr(os, "scandir", lambda folder: (Failing if folder == bad else REAL_SCANDIR)(folder))
    source = a_source(tmp_path)

    found = [Path(item.path).parent.name for item in source.items()]

    assert ["-bad", "-good", "-good"] == sorted(found)
    assert [f"cannot list {bad}: Input/output error"] == source.problems


@pytest.mark.parametrize("target", ["/", ".."])
def test_a_link_to_a_folder_above_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """It would lead through everything else there is, and the root has no name to begin with."""
    Log("s-1").write(tmp_path, folder="-a")
    (tmp_path / "-a" / "above").symlink_to(target)
    listed: list[str] = []

    def scandir(folder: str) -> Any:
        listed.append(folder)
        return REAL_SCANDIR(folder if len(listed) < 3 else tmp_path / "-a")

    monkeypatch.setattr(os, "scandir", scandir)
    source = a_source(tmp_path)

    assert 1 == len(list(source.items()))
    assert [str(tmp_path), str(tmp_path / "-a")] == listed
