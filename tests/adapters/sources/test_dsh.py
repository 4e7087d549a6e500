"""DSH: frames that are torn, damaged or packed anew, format versions, forks, sub-agents, compactions and skills."""

from __future__ import annotations

import json
import os
import random
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from curatord.core.settings import SourceSettings
from curatord.core.transcript.dsh import DshParser
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import LineSplitter
from tests.dsh_log import DshLog, line, packed
from tests.scanned import Scanner, traces

SKILL = "/home/dev/app/.dsh/skills/probe/SKILL.md"


@pytest.fixture(autouse=True, params=["alone", "zstandard"])
def with_either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed logs are read with the one decompressor for all frames, and with one for each."""
    if request.param == "alone":
        monkeypatch.setitem(sys.modules, "zstandard", None)
    else:
        pytest.importorskip("zstandard")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home."""
    folder = tmp_path / "dsh"
    (folder / "sessions").mkdir(parents=True)
    return folder


@pytest.fixture
def scanner(tmp_path: Path, home: Path) -> Iterator[Scanner]:
    """Return a scanner of that home."""
    made = Scanner(tmp_path / "state", ("dsh", home))
    yield made
    made.close()


def kinds(scanner: Scanner) -> list[tuple[str, str, str]]:
    """Return skill, kind and way of all events."""
    return [event[1:] for event in scanner.events()]


def a_log(*, version: int = 0, session: str = "session-1") -> DshLog:
    """Return a log with a bit of everything: two turns of a person, two of the model, two uses."""
    log = DshLog(session, version=version)
    log.batch(("permission/preset", {"preset": "x"}), ("agent/inbox/spliced", {"inserted": []}))
    log.said("/probe please")
    log.said("…", kind="skill-catalog")
    log.said("Base directory for this skill: /x/probe\n", kind="skill-invocation", name="probe", form="instructions")
    log.batch(("request/header", {"header": {"system": "s" * 5000}}))
    log.model()
    log.skill("other")
    log.said("and on")
    log.model()
    log.batch(("turn/end", {"reason": {"kind": "completed"}}), ("session/title", {"title": "t"}))
    return log


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("plain", [True, False])
def test_versions(home: Path, scanner: Scanner, version: int, plain: bool) -> None:
    """All format versions, packed or plain, say the same."""
    log = a_log(version=version)
    suffix = f".v{version}" if version else ""
    log.write(home, name=f"session{suffix}.jsonl" + ("" if plain else ".zstd"))

    assert {"session-1": (18, 2, 2, {"skill": 1})} == scanner.scan().counts()
    assert [("probe", "use", "slash"), ("other", "use", "skill")] == kinds(scanner)
    assert ["/x/probe", None] == scanner.paths()
    assert {} == scanner.source().unknown
    assert (f"v{version}",) == scanner.source().versions


@pytest.mark.parametrize(
    ("tool", "arguments", "meta", "expected"),
    [
        ("skill", {"name": "probe"}, None, ("probe", "use", "skill")),
        ("read", {"file_path": ".dsh/skills/probe/SKILL.md"}, None, ("probe", "view", "read")),
        ("edit", {"file_path": SKILL}, None, ("probe", "patch", "edit")),
        ("write", {"file_path": SKILL}, {"diffs": [{"path": SKILL, "oldText": "x"}]}, ("probe", "patch", "write")),
        ("write", {"file_path": SKILL}, {"diffs": [{"path": SKILL, "newText": "x"}]}, ("probe", "create", "write")),
        ("write", {"file_path": SKILL}, None, ("probe", "patch", "write")),
        ("str_replace_editor", {"command": "view", "path": SKILL}, None, ("probe", "view", "str_replace_editor")),
        ("str_replace_editor", {"command": "insert", "path": SKILL}, None, ("probe", "patch", "str_replace_editor")),
        ("bash", {"command": f"cat {SKILL}"}, None, ("probe", "view", "shell")),
        ("bash", {"command": f"echo x >> {SKILL}"}, None, ("probe", "patch", "shell")),
        ("bash", {"command": f"cat {SKILL}"}, {"exitCode": 2}, None),
        ("read", {"file_path": "/home/dev/app/README.md"}, None, None),
    ],
)  # fmt: skip
def test_forms_of_use(
    home: Path,
    scanner: Scanner,
    tool: str,
    arguments: dict[str, Any],
    meta: dict[str, Any] | None,
    expected: tuple[str, str, str] | None,
) -> None:
    """Each tool shows a skill in its own way, and a call that failed shows none."""
    log = DshLog()
    log.said()
    log.result(log.call(tool, **arguments), meta=meta)
    log.result(log.call(tool, **arguments), meta=meta, error=True)
    log.write(home)

    assert [expected] * (expected is not None) == kinds(scanner.scan())
    assert {tool: 2} == scanner.counts()["session-1"][3]


def test_injected_messages_are_no_turns(home: Path, scanner: Scanner) -> None:
    """Only the source of kind `user` is a person; what a compaction repeats is nobody."""
    log = DshLog()
    for kind in ("skill-catalog", "plugin", "goal", "tool", "subagent", "system-prompt"):
        log.said("x", kind=kind)
    log.said("please")
    log.said("summary", surfaceOp={"op": "replace", "start": 0, "end": 5})
    log.said("…", kind="skill-invocation", name="probe", surfaceOp={"op": "replace", "startSeq": 0, "endSeq": 5})
    log.write(home)

    assert {"session-1": (1, 0)} == scanner.scan().turns()
    assert [] == scanner.events()


def test_pruned_results_change_nothing(home: Path, scanner: Scanner) -> None:
    """A result that is written again by pruning neither makes a second event nor takes the first back."""
    log = DshLog()
    call = log.call("skill", name="probe")
    log.result(call)
    log.result(call, surfaceOp={"op": "replace", "start": 2, "end": 2})
    log.write(home)

    assert [("probe", "use", "skill")] == kinds(scanner.scan())


def test_sub_agents(home: Path, scanner: Scanner) -> None:
    """A sub-agent is a session with a parent: its prompts are no turns and show no work."""
    log = DshLog("session-below", parentSession="session-1", origin="subagent", delegationDepth=1)
    log.said("clean it")
    log.model()
    log.skill()
    log.write(home)

    assert {"session-below": (0, 1)} == scanner.scan().turns()
    row = scanner.sessions()["session-below"]
    assert ("session-1", "subagent") == (row.parent, row.kind)
    assert [("probe", "use", "skill")] == kinds(scanner)
    assert scanner.newest_work() is None


@pytest.mark.parametrize("version", [0, 1])
def test_a_fork_by_length(home: Path, scanner: Scanner, version: int) -> None:
    """In the older formats the header says how many rows are the origin's; packed rows cover several."""
    origin = a_log(version=version)
    chunks = {"type": "text-chunks", "seq0": origin.seq, "time0": origin.ms, "data": {"texts": ["a", "b"]}}
    fork = DshLog("session-2", version=version, parentSession="session-1", seedLength=origin.seq + 2)
    fork.batches += [*origin.batches[1:], [line(chunks)]]
    fork.seq = origin.seq + 2
    fork.ms = origin.ms + 60_000
    fork.said("another way")
    fork.model()
    origin.write(home)
    fork.write(home)

    assert {"session-1": (2, 2), "session-2": (1, 1)} == scanner.scan().turns()
    assert 2 == len(scanner.events())
    assert 5 == scanner.counts()["session-2"][0]
    assert fork.ms - 60_000 > origin.ms - 1000


@pytest.mark.parametrize("marks", [1, 2])
def test_a_fork_by_mark(home: Path, scanner: Scanner, marks: int) -> None:
    """In the newer formats all up to the last inherited mark is the origin's, and of its origin."""
    origin = a_log(version=3)
    fork = DshLog("session-2", version=3, parentSession="session-1", isSeeded=True)
    for _ in range(marks):
        fork.batches += origin.batches[1:]
        fork.batch(("session/end-seed", {"inherited": True}))
    fork.ms = origin.ms + 60_000
    fork.said("another way")
    fork.skill()
    fork.batch(("session/end-seed", {}))
    fork.said("after a restart")
    origin.write(home)
    fork.write(home)

    assert {"session-1": (2, 2), "session-2": (2, 0)} == scanner.scan().turns()
    assert (6, 2, 0, {"skill": 1}) == scanner.counts()["session-2"]
    assert 3 == len(scanner.events())


@pytest.mark.parametrize("renumbered", [True, False])
@pytest.mark.parametrize("scanned_before", [True, False])
def test_a_format_upgrade(home: Path, scanner: Scanner, scanned_before: bool, renumbered: bool) -> None:
    """The new file beside the old one holds the same again; only it is read, and nothing counts twice."""
    old = a_log()
    old.write(home)
    if scanned_before:
        scanner.scan()
    new = a_log(version=4)
    if renumbered:
        # Rows that the newer format leaves out shift all numbers.
        new.batches = [
            [line({**row, "seq": row["seq"] - 1}) if "seq" in (row := json.loads(text)) else text for text in lines]
            for lines in new.batches
        ]
    new.said("in the new format")
    new.skill("later")
    new.write(home)

    scanner.scan()

    assert {"session-1": (3, 2)} == scanner.turns()
    assert ["probe", "other", "later"] == [event[0] for event in kinds(scanner)]
    assert [1] == [source.files for source in scanner.report.sources]
    assert scanner.sources[0].item_at(str(home / "sessions/--home-dev-app--/session-1/session.jsonl.zstd")) is None


def test_a_torn_frame_waits(home: Path, scanner: Scanner) -> None:
    """Whatever is cut off, no frame is taken before it is whole, and none is lost or taken twice."""
    log = a_log()
    frames = log.frames()
    data = b"".join(frames)
    for size in [*range(0, len(data), 37), len(data)]:
        log.write(home, data=data[:size])
        whole = 0
        done = 0
        for frame in frames:
            done += len(frame)
            whole += done <= size
        scanner.scan(settled=False)
        records = scanner.counts().get("session-1", (0,))[0]
        assert sum(len(lines) for lines in log.batches[:whole]) == records
        assert not [note for note in scanner.notes if note.startswith(("failed", "restart"))]

    assert {"session-1": (18, 2, 2, {"skill": 1})} == scanner.counts()
    assert 2 == len(scanner.events())


def test_an_append_costs_its_own_frames(home: Path, scanner: Scanner) -> None:
    """What was read is not unpacked again."""
    log = DshLog()
    for _ in range(200):
        log.said("z" * 3000)
    path = log.write(home)
    scanner.scan(settled=False)
    first = scanner.report.sources[0].bytes
    begin = len(log.batches)
    log.said("one more")
    with path.open("ab") as file:
        file.write(b"".join(log.frames(begin)))
    scanner.scan(settled=False)

    assert first > 600_000
    assert scanner.report.sources[0].bytes < 1000
    assert {"session-1": (201, 0)} == scanner.turns()


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("damage", ["torn", "flipped", "junk"])
def test_a_damaged_frame_costs_itself_alone(home: Path, scanner: Scanner, damage: str, settled: bool) -> None:
    """Reading goes on at the next frame, and the loss is counted once, with its place."""
    log = DshLog()
    for n in range(6):
        log.said(f"prompt {n} " + os.urandom(400).hex())
    frames = log.frames()
    bad = bytearray(frames[3])
    if damage == "torn":
        frames[3] = bytes(bad[:-9])
    elif damage == "flipped":
        bad[60] ^= 0xFF
        frames[3] = bytes(bad)
    else:
        frames.insert(3, b"\0" * 300)
    log.write(home, data=b"".join(frames))
    scanner.scan(settled=settled)
    if not settled:
        begin = len(log.batches)
        log.said("later")
        path = log.write(home, data=b"".join([*frames, *log.frames(begin)]))
        os.utime(path, (1_772_366_400, 1_772_366_400))
        scanner.scan()

    said = 6 - (damage != "junk") + (not settled)
    assert (said, 0) == scanner.turns()["session-1"]
    assert 1 == scanner.sessions()["session-1"].unreadable
    ((_, offset, reason),) = scanner.source().bad
    assert sum(map(len, frames[:3])) == offset
    assert "no whole frame" in reason
    assert (said, 0) == scanner.scan().turns()["session-1"]


def test_a_torn_end_is_kept_for_later(home: Path, scanner: Scanner) -> None:
    """A file that ends in a half frame, settled, still goes on when the host writes it anew."""
    log = DshLog()
    log.said("one")
    log.said("two")
    frames = log.frames()
    log.write(home, data=b"".join(frames[:2]) + frames[2][:20])
    assert {"session-1": (1, 0)} == scanner.scan().turns()
    log.write(home, data=b"".join(frames))
    assert {"session-1": (2, 0)} == scanner.scan().turns()
    assert 0 == scanner.sessions()["session-1"].unreadable


def test_lines_over_frames(home: Path, scanner: Scanner) -> None:
    """Frames need not end where lines do, nor a log be many frames: a user may have packed it anew."""
    log = a_log()
    data = log.plain()
    rng = random.Random(7)
    cuts = sorted(rng.randrange(len(data)) for _ in range(20))
    frames = [packed(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    for count in range(1, len(frames) + 1):
        log.write(home, data=b"".join(frames[:count]))
        scanner.scan(settled=False)
    assert {"session-1": (18, 2, 2, {"skill": 1})} == scanner.counts()
    before = scanner.counts()
    log.write(home, data=zstd.compress(data))
    assert before == scanner.scan().counts()
    path = log.write(home, name="session.jsonl")
    path.with_suffix(".jsonl.zstd").unlink()
    assert before == scanner.scan().counts()
    assert 2 == len(scanner.events())


def test_an_archive_in_one_frame_needs_little_memory(home: Path, scanner: Scanner) -> None:
    """A frame of hundreds of megabytes is read as it comes, and its end may be missing."""
    log = DshLog()
    for n in range(40):
        log.said(f"{n}" + "z" * 1_500_000)
    data = zstd.compress(log.plain())
    log.write(home, data=data[: len(data) - 3])
    tracemalloc.start()
    scanner.scan(settled=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    log.write(home, data=data)

    assert {"session-1": (40, 0)} == scanner.scan().turns()
    assert peak < 120_000_000


def test_a_bomb_is_bounded(home: Path, scanner: Scanner) -> None:
    """A line that unpacks to gigabytes is streamed past."""
    log = DshLog()
    log.said()
    compressor = zstd.ZstdCompressor()
    bomb = b"".join(compressor.compress(b"{" + b" " * 1_000_000) for _ in range(400)) + compressor.flush()
    later = DshLog()
    later.said("after it", ident="a-later-message")
    log.write(home, data=b"".join(log.frames()) + bomb + packed(b"}\n") + later.frames()[1])
    tracemalloc.start()
    scanner.scan()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert {"session-1": (2, 0)} == scanner.turns()
    assert 1 == scanner.source().oversize
    assert peak < 120_000_000


def test_rubbish_before_between_and_behind(home: Path, scanner: Scanner) -> None:
    """Lines that are no rows are counted, each alone; values of other types do no harm."""
    log = DshLog()
    log.batches[0].insert(0, b"\xef\xbb\xbf\n\nrubbish\r\n")
    log.said("one")
    log.batches.append([b'{"type":"user/mess\n', b"[" * 20_000 + b"\n", b"[1]\n", b"null\n"])
    log.batches.append([b'{"type":5,"seq":"x","time":{},"data":[]}\n', b'{"type":"hologram","seq":99,"time":1}\n'])
    log.batches.append([b'{"type":"user/message","seq":100,"time":2,"data":{"id":7,"source":"x","content":{}}}\n'])
    log.said("half \ud83d an emoji")
    glued = [text for lines in DshLog("session-1", start_ms=1_772_366_500_000).batches for text in lines]
    log.batches.append([glued[0].rstrip() + line({"type": "step/end", "seq": 101, "time": 3})])
    log.write(home)

    scanner.scan()

    assert (2, 0) == scanner.turns()["session-1"]
    assert {"hologram": 1, "(none)": 1} == scanner.source().unknown
    assert 3 == scanner.sessions()["session-1"].unreadable


def test_own_sessions_do_not_count(home: Path, scanner: Scanner) -> None:
    """What curatord itself asked through this host is left out."""
    log = DshLog()
    log.said("Look at this.\n<curatord-data>\n{}\n</curatord-data>")
    log.skill()
    log.write(home)

    assert {} == scanner.scan().counts()
    assert [] == scanner.events()


def test_a_call_that_never_ends(home: Path, scanner: Scanner) -> None:
    """Once settled it is taken as done, and taken back when it shows to have failed after all."""
    log = DshLog()
    log.call_prefix = "call_of_no_other_session_"  # a short one might be another call by then
    call = log.call("skill", name="probe")
    log.write(home)
    assert [] == scanner.scan(settled=False).events()
    assert [("probe", "use", "skill")] == kinds(scanner.scan())
    log.result(call, error=True)
    log.write(home)

    assert [] == scanner.scan().events()


@pytest.mark.parametrize("name", ["session.jsonl", "session.jsonl.zstd"])
def test_a_call_that_waits_in_a_file_that_is_gone(home: Path, scanner: Scanner, name: str) -> None:
    """It is taken as done once settled, and taken back when the file comes back and shows that it failed."""
    log = DshLog()
    log.call_prefix = "call_of_no_other_session_"
    call = log.call("skill", name="probe")
    path = log.write(home, name=name)
    scanner.scan(settled=False)
    path.unlink()
    assert [] == scanner.scan(settled=False).events()
    assert [("probe", "use", "skill")] == kinds(scanner.scan())
    assert [("probe", "use", "skill")] == kinds(scanner.scan())
    log.result(call, error=True)
    log.write(home, name=name)

    assert [] == scanner.scan().events()


@pytest.mark.parametrize("version", [0, 4])
def test_whole_in_random_chunks_and_byte_by_byte(version: int) -> None:
    """However its lines come in, the parser finds the same, and goes on from its state."""
    data = a_log(version=version).plain()

    def found(cuts: list[int], *, with_state: bool) -> tuple[Any, ...]:
        state = b""
        parser = fresh = None
        totals = [0, 0, 0]
        keys = b""
        events: list[tuple[str, int | None]] = []
        splitter = LineSplitter()
        for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True):
            if parser is None or with_state:
                parser = DshParser(
                    "x/session.jsonl", state=state, fresh=fresh is None, guard=Guard(), before=Guard(), now_ms=0
                )
                fresh = False
            parser.feed(splitter.feed(data[a:b]))
            told = parser.findings()
            keys += told.keys
            for tally in told.sessions.values():
                totals = [x + y for x, y in zip(totals, (tally.records, tally.user_turns, tally.assistant_turns),
                                                strict=True)]  # fmt: skip
                events += [(s.skill, s.at_ms) for s in tally.sightings]
            state = parser.state()
            assert len(state) < 4096
        return totals, keys, events

    whole = found([], with_state=False)
    rng = random.Random(version)
    assert [18, 2, 2] == whole[0]
    assert whole == found(list(range(1, len(data))), with_state=False)
    for _ in range(20):
        cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(1, 12)))
        assert whole == found(cuts, with_state=True)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_changes_comes_to_the_same(home: Path, scanner: Scanner, seed: int) -> None:
    """Appended to, cut, moved, forked and packed anew, logs give each row once."""
    rng = random.Random(seed)
    logs = [DshLog("session-0")]
    held = {"session-0": 0}
    expected = {"session-0": [0, 0, 0]}
    for _ in range(60):
        log = rng.choice(logs)
        own = expected[log.session]
        act = rng.random()
        if act < 0.35:
            log.said(f"say {rng.random()}")
            own[0] += 1
        elif act < 0.55:
            log.model()
            own[1] += 1
        elif act < 0.7:
            bad = rng.random() < 0.4
            log.skill(error=bad)
            own[2] += not bad
        elif act < 0.75 and len(logs) < 4:
            fork = DshLog(f"session-{len(logs)}", parentSession=log.session, seedLength=log.seq)
            fork.batches += log.batches[1:]
            fork.seq, fork.ms, fork._calls = log.seq, log.ms, log._calls
            logs.append(fork)
            expected[fork.session] = [0, 0, 0]
            log = fork
        data = b"".join(log.frames())
        if rng.random() < 0.4:
            data = data[: rng.randrange(len(data))]
        held[log.session] = len(data)
        if rng.random() < 0.1:
            data = zstd.compress(log.plain())
        log.write(home, data=data)
        if rng.random() < 0.6:
            scanner.scan(settled=False)
    for log in logs:
        log.write(home)

    scanner.scan()

    turns = scanner.turns()
    assert {s: tuple(v[:2]) for s, v in expected.items()} == {s: turns.get(s, (0, 0)) for s in expected}
    uses = [event[0] for event in scanner.events()]
    assert {s: v[2] for s, v in expected.items()} == {s: uses.count(s) for s in expected}


def test_nothing_is_left_behind(home: Path, scanner: Scanner) -> None:
    """Not a byte, mode or time of a log changes."""
    a_log().write(home)
    before = traces(home)
    scanner.scan()
    assert before == traces(home)
    assert [0] == [source.changed for source in scanner.scan().report.sources]


def test_without_the_module_it_is_reported(home: Path, scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where zstd cannot be unpacked, the file is told of, plain ones are read."""
    a_log().write(home)
    plain = a_log(session="session-2")
    plain.write(home, name="session.jsonl")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("curatord.adapters.sources.compressed.importlib.import_module", missing)
    assert {"session-2": (2, 2)} == scanner.scan().turns()
    assert [note for note in scanner.notes if "no module is installed" in note]


def test_default_places(tmp_path: Path) -> None:
    """The host's variable, a blank one being none."""
    from curatord.adapters.sources.places import places

    def found(**env: str) -> list[str]:
        return [place.path for place in places(SourceSettings(host="dsh"), env, home=tmp_path)]

    assert [str(tmp_path / ".dsh" / "sessions")] == found() == found(DSH_HOME=" ")
    assert ["/data/dsh/sessions"] == found(DSH_HOME="/data/dsh")
