"""What `Conversations` promises, of every host in each form that it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curatord.adapters.sources.conversations import TELLERS, open_conversations
from curatord.adapters.sources.registry import READERS
from curatord.core.settings import SourceSettings
from curatord.core.transcript.events import OWN_MARK
from curatord.errors import TranscriptError
from curatord.ports.conversation import Since
from tests.told import FIRST, SECOND, WORLDS, Lines, World, short, watermark


@pytest.fixture(params=WORLDS, ids=lambda made: made.__name__)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Return a place of one host."""
    made: Callable[[Path], World] = request.param
    world = made(tmp_path / "home")
    yield world
    world.close()


def test_every_host_that_is_read_is_told() -> None:
    """No host has a reader and no teller."""
    assert set(READERS) == set(TELLERS)


def test_what_was_said_is_told(world: World) -> None:
    """Prompts, answers with their calls, and what failed calls gave, each once and in order; nothing else."""
    world.first()
    world.second()

    assert world.expected(FIRST, SECOND) == short(world.said())


def test_arguments_are_one_line(world: World) -> None:
    """A call's arguments are told as one line."""
    world.first()

    tools = [tool for said in world.said() for tool in said.tools if said.role == "assistant"]

    assert ["look"] == [tool.name for tool in tools]
    assert "\n" not in tools[0].arguments


def test_nothing_before_the_last_look(world: World) -> None:
    """From the watermark and the newest time of the last look on, only what came behind them is told."""
    world.first()
    seen = watermark(world)
    newest = max((said.at_ms for said in world.said() if said.at_ms is not None), default=None)
    world.second()

    assert world.expected(SECOND) == short(world.said(Since(offset=seen, at_ms=newest)))


def test_nothing_beyond_the_watermark(world: World) -> None:
    """What ingest has not counted yet is not told."""
    world.first()
    seen = watermark(world)
    world.second()

    assert world.expected(FIRST) == short(world.said(until=seen))


def test_the_offset_of_the_last_word_is_a_watermark(world: World) -> None:
    """Read on from where the last message ended, nothing is told twice and nothing is lost."""
    world.first()
    last = world.said()[-1]
    world.second()

    assert world.expected(SECOND) == short(world.said(Since(offset=last.offset, at_ms=last.at_ms)))


def test_offsets_rise(world: World) -> None:
    """No user's or model's message ends before the one that was told before it, nor beyond ingest's watermark."""
    world.first()
    world.second()

    ends = [said.offset for said in world.said() if said.role != "error"]

    assert sorted(ends) == ends
    assert ends[-1] <= watermark(world, settled=True)


def test_references_name_one_message(world: World) -> None:
    """Each message of a person or of the model has a reference of its own, the same at every look."""
    world.first()
    world.second()

    refs = [said.ref for said in world.said() if said.role != "error"]

    assert len(refs) == len(set(refs))
    assert refs == [said.ref for said in world.said() if said.role != "error"]


def test_other_sessions_are_not_told(world: World) -> None:
    """Asked for a session that the item does not hold, nothing is told."""
    world.first()

    assert [] == world.said(session="another")


def test_a_vanished_item(world: World, tmp_path: Path) -> None:
    """An item that is gone is an error that says so."""
    world.first()
    path = Path(world.item)
    world.close()
    for companion in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        companion.unlink(missing_ok=True)

    conversations = open_conversations(world.settings, str(world.root))

    with pytest.raises(FileNotFoundError):
        list(conversations.said(str(path), world.session, Since(), until=None, stop=lambda: False))


def test_stopped(world: World) -> None:
    """Asked to stop, it ends without an error and tells nothing that was not said."""
    world.first()
    conversations = open_conversations(world.settings, str(world.root))

    told = list(conversations.said(world.item, world.session, Since(), until=None, stop=lambda: True))

    assert [] == [each for each in short(told) if each not in world.expected(FIRST)]


def test_the_item_is_left_alone(world: World) -> None:
    """Reading changes not a byte, mode or time of the item, and leaves nothing beside it."""
    world.first()
    world.close()
    root = world.root

    def told() -> dict[str, tuple[int, int, int, bytes]]:
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {
            str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.stat().st_atime_ns, path.read_bytes())
            for path in files
        }

    told()  # access times move with our own first look
    before = told()
    world.said()

    assert before == told()


LINES = [made for made in WORLDS if isinstance(made, type) and issubclass(made, Lines)]
lines = pytest.mark.parametrize("made", LINES, ids=lambda made: made.__name__)


@lines
def test_a_half_line_waits(made: Callable[[Path], World], tmp_path: Path) -> None:
    """A line without its end is told once that is there, and not before."""
    world = made(tmp_path)
    world.first()
    seen = watermark(world)
    world.second()
    whole = Path(world.item).read_bytes()
    for cut in range(seen + 1, len(whole)):
        if b"\n" in whole[seen:cut]:
            break
        Path(world.item).write_bytes(whole[:cut])
        if cut % 7 == 0:
            assert world.expected(FIRST) == short(world.said())

    Path(world.item).write_bytes(whole)

    assert world.expected(FIRST, SECOND) == short(world.said())


@lines
def test_a_settled_last_line_without_its_end(made: Callable[[Path], World], tmp_path: Path) -> None:
    """A last line that ingest took without its newline is told with its watermark."""
    world = made(tmp_path)
    world.first()
    world.second()
    path = Path(world.item)
    path.write_bytes(path.read_bytes()[:-1])
    whole = watermark(world, settled=True)

    assert world.expected(FIRST, SECOND) == short(world.said(until=whole))


@lines
def test_rubbish_between(made: Callable[[Path], World], tmp_path: Path) -> None:
    """Lines that are no record cost nothing but themselves."""
    world = made(tmp_path)
    world.first()
    world.second()
    path = Path(world.item)
    rubbish = [
        b"\xff\xfe\n", b"{\n", b"[]\n", b"null\n", b"\0\0\0\n", b"\r\n", b'{"a":' * 2000 + b"\n", b'"text"\n', b"{}\n",
        b'{"type":7,"message":[],"payload":"x","role":{},"timestamp":{}}\n',
    ]  # fmt: skip
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rubbish[at % len(rubbish)] + line for at, line in enumerate(kept)) + b"".join(rubbish))

    assert world.expected(FIRST, SECOND) == short(world.said())


@lines
def test_one_wrong_byte(made: Callable[[Path], World], tmp_path: Path) -> None:
    """Whatever byte is wrong, nothing is raised, and the records of other lines are told as ever."""
    world = made(tmp_path)
    world.first()
    world.second()
    path = Path(world.item)
    good = path.read_bytes()
    last = world.expected(SECOND)[-1]
    for at in range(0, good.rfind(b"\n", 0, -1), 13):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])

        told = short(world.said()) if good[at] != 10 else [last]

        assert [last] == told[-1:] or world.session.encode() in good[max(0, at - 60) : at + 60]


@lines
def test_a_folder_in_its_place(made: Callable[[Path], World], tmp_path: Path) -> None:
    """What is no file tells nothing."""
    world = made(tmp_path)
    Path(world.item).mkdir(parents=True)

    assert [] == world.said()


@pytest.mark.parametrize(
    ("host", "name"), [("hermes", "state.db"), ("opencode", "opencode.db"), ("openclaw", "openclaw-agent.sqlite")]
)
def test_a_database_that_is_none(host: str, name: str, tmp_path: Path) -> None:
    """A file that is no database of the host is told of as such."""
    folder = tmp_path / "agents" / "main" / "agent" if host == "openclaw" else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"no database at all, but long enough to look like one" * 100)
    conversations = open_conversations(SourceSettings(host=host), str(tmp_path))  # type: ignore[arg-type]

    with pytest.raises(TranscriptError):
        list(conversations.said(str(folder / name), "s-1", Since(), until=None, stop=lambda: False))


def test_our_own_sessions_tell_nothing(world: World) -> None:
    """A session that curatord itself began is out whole, whatever is said in it later."""
    world.opening = f"{OWN_MARK} merge these"
    world.first()
    world.second()

    assert [] == world.said()


@lines
def test_no_prompt_is_lost_or_doubled_at_any_watermark(made: Callable[[Path], World], tmp_path: Path) -> None:
    """Wherever ingest stood at the last look, each prompt and each error is told before it or behind it, once."""
    world = made(tmp_path)
    world.first()
    world.second()
    data = Path(world.item).read_bytes()
    whole = [each for each in world.said() if each.role != "assistant"]
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]

    for end in ends:
        before = [each for each in world.said(until=end) if each.role != "assistant"]
        newest = max((each.at_ms for each in before if each.at_ms is not None), default=None)
        behind = [each for each in world.said(Since(offset=end, at_ms=newest)) if each.role != "assistant"]

        assert whole == before + behind
