"""
Damage to what is on disk between two commands: our database and plain files, the host's records.

Over 300 skills with decisions of a person: a pin, an importance, an adoption, a rejection. A command may refuse (exit
code 3 or 4, one line, no traceback), nothing in a library changes because of the damage, the damaged file is kept, and
after three commands at the most everything goes on with the decisions as they were.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.campaigns.home import BigHome, Image, differences
from tests.campaigns.processes import Cutter, Ended

DATABASE = "curatord.db"


@pytest.fixture
def decided(big: BigHome, cutting: Cutter) -> BigHome:
    """Return the home after a person decided: pin, importance, adoption and a rejection."""
    proposal = cutting.do(big, order="propose", kind="patch", skills=["cat2/skill-030"]).out.strip()
    for words in (
        ("pin", "skill-100"),
        ("importance", "skill-101", "critical"),
        ("adopt", "skill-102"),
        ("reject", proposal, "--reason", "no"),
        ("archive", "skill-103"),
    ):
        done = cutting.do(big, *words)
        assert done.code == 0, done
    with closing(sqlite3.connect(big.state / DATABASE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return big


def decisions(home: BigHome) -> dict[str, object]:
    """Return what the database knows of what a person decided."""
    with closing(sqlite3.connect(home.state / DATABASE)) as db:
        rows = db.execute(
            "SELECT rel, pinned, importance, owner FROM skills WHERE pinned OR importance != 'normal'"
            " OR owner IS NOT NULL ORDER BY 1"
        ).fetchall()
        return {
            "skills": rows,
            "rejections": db.execute("SELECT id, reason FROM rejections").fetchall(),
            "archive": db.execute("SELECT path, rel FROM archive WHERE action_id != '' ORDER BY 1").fetchall(),
        }


def clear(done: Ended, what: str) -> None:
    """Assert that a command ended as commands may."""
    assert done.code in (0, 3, 4), (what, done)
    assert "Traceback" not in done.err, (what, done)
    if done.code:
        assert done.err.strip() or done.out.strip(), what


def unchanged(home: BigHome, before: Image, what: str) -> None:
    """Assert that nothing of the user's or the hosts' changed."""
    found = home.files()
    assert found == before, (what, differences(found, before))


def goes_on(cutter: Cutter, home: BigHome, what: str) -> None:
    """Assert that the third command at the latest works, and nothing in a library changed meanwhile."""
    before = home.files()
    codes = []
    for words in (("scan",), ("unpin", "skill-200"), ("scan",)):
        done = cutter.do(home, *words)
        clear(done, f"{what}: {words}")
        codes.append(done.code)
    assert codes[-1] == 0, (what, codes)
    unchanged(home, before, what)


def spoil(data: bytes, dice: random.Random, how: str) -> bytes:
    """Return *data*, damaged."""
    match how:
        case "flipped":
            spoiled = bytearray(data)
            for _ in range(dice.choice((1, 4, 64, 1024))):
                spoiled[dice.randrange(len(spoiled))] ^= 1 << dice.randrange(8)
            return bytes(spoiled)
        case "zeroed":
            start = dice.randrange(0, len(data), 4096)
            return data[:start] + b"\0" * 8192 + data[start + 8192 :]
        case "cut":
            return data[: dice.randrange(len(data))]
        case _:
            return dice.randbytes(dice.randrange(1, 40_000))


def _database(home: BigHome, cutter: Cutter, how: str, seed: int) -> None:
    known, before = decisions(home), home.files()
    path = home.state / DATABASE
    path.write_bytes(spoil(path.read_bytes(), random.Random(f"{how} {seed}"), how))
    what = f"database {how}, seed {seed}"
    goes_on(cutter, home, what)
    unchanged(home, before, what)
    found = decisions(home)
    if how != "flipped" or list(home.state.glob("*.damaged-*")):
        assert found == known, what  # a flipped bit inside a value is nothing that anybody could see


DAMAGE = ("flipped", "zeroed", "cut", "replaced")


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_database(decided: BigHome, cutting: Cutter, how: str) -> None:
    """It is set aside, built anew, and has every decision."""
    _database(decided, cutting, how, 0)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1, 16))
@pytest.mark.parametrize("how", DAMAGE)
def test_a_database_damaged_in_many_ways(decided: BigHome, cutting: Cutter, how: str, seed: int) -> None:
    """The same at other places and in other amounts."""
    _database(decided, cutting, how, seed)


def test_a_database_of_another_program(decided: BigHome, cutting: Cutter) -> None:
    """Some other SQLite file in its place is refused (exit code 4) and kept to the byte; moved away, all is known."""
    known, before = decisions(decided), decided.files()
    path = decided.state / DATABASE
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
        db.commit()
    theirs = path.read_bytes()
    for words in (("scan",), ("pin", "skill-030"), ("skills",)):
        done = cutting.do(decided, *words)
        assert done.code == 4, done
        assert "no database of curatord" in done.err, done
    unchanged(decided, before, "another program's database")
    assert path.read_bytes() == theirs

    path.unlink()
    done = cutting.do(decided, "scan")
    assert done.code == 0, done
    assert decisions(decided) == known


def test_a_database_of_a_newer_version(decided: BigHome, cutting: Cutter) -> None:
    """It is refused (exit code 4) naming both versions, and not a byte of it changes."""
    path = decided.state / DATABASE
    with closing(sqlite3.connect(path)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute(f"PRAGMA user_version = {version + 1}")
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before, theirs = decided.files(), path.read_bytes()
    for words in (("scan",), ("pin", "skill-030"), ("run",), ("undo", "last"), ("skills",)):
        done = cutting.do(decided, *words)
        assert done.code == 4, done
        assert str(version + 1) in done.err, done
        assert "Traceback" not in done.err
    unchanged(decided, before, "newer")
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_write_ahead_log(big: BigHome, cutting: Cutter, seed: int) -> None:
    """Commits that can no longer be read are lost from the database and not from the plain file."""
    done = cutting.do(big, "pin", "skill-100")
    assert done.code == 0
    path = big.state / f"{DATABASE}-wal"
    if path.exists() and path.stat().st_size:
        path.write_bytes(spoil(path.read_bytes(), random.Random(seed), ("flipped", "zeroed", "cut")[seed]))
    goes_on(cutting, big, f"wal {seed}")
    done = cutting.do(big, "skills", "--json")
    (row,) = [row for row in json.loads(done.out) if row["name"] == "skill-100"]
    assert row["pinned"] is True


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "zeros": lambda data: b"\0" * len(data),
    "a list": lambda _: b"[]",
    "deep": lambda _: b"[" * 100_000,
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_damaged_plain_file_of_decisions(decided: BigHome, cutting: Cutter, how: str) -> None:
    """What would have to be written into it is refused, naming it; it is never replaced; looking still works."""
    before = decided.files()
    path = decided.state / "decisions.json"
    good, bad = path.read_bytes(), BROKEN[how](path.read_bytes())
    path.write_bytes(bad)
    for words in (("pin", "skill-030"), ("archive", "skill-031"), ("pause",)):
        done = cutting.do(decided, *words)
        assert done.code == 4, done
        assert "decisions.json" in done.err, done
        assert "Traceback" not in done.err, done
    assert cutting.do(decided, "skills").code == 0
    unchanged(decided, before, how)
    assert path.read_bytes() == bad

    path.write_bytes(good)
    done = cutting.do(decided, "pin", "skill-030")
    assert done.code == 0, done
    assert decided.disagreements() == []


@pytest.mark.parametrize(
    ("name", "how"),
    # An empty list of jobs is one of the shapes that the host itself reads.
    [
        (n, h)
        for n in ("skills/.usage.json", "cron/jobs.json")
        for h in BROKEN
        if (n, h) != ("cron/jobs.json", "a list")
    ],
)
def test_damaged_records_of_the_host(big: BigHome, cutting: Cutter, name: str, how: str) -> None:
    """Nothing that they would have to follow is done (exit code 3), nothing is aged, and they are left as they are."""
    merge = cutting.do(big, order="propose", kind="merge", skills=["cat2/skill-030", "cat5/skill-040"]).out.strip()
    path = big.hermes / name
    bad = BROKEN[how](path.read_bytes())
    path.write_bytes(bad)
    before = big.files()
    done = cutting.do(big, "approve", merge)
    clear(done, f"{name} {how}")
    assert done.code == 3, done
    clear(cutting.do(big, "run", "--no-llm"), f"{name} {how}, a run")
    unchanged(big, before, f"{name} {how}")
    assert path.read_bytes() == bad


@pytest.mark.parametrize("how", BROKEN)
def test_a_damaged_intent(big: BigHome, cutting: Cutter, how: str) -> None:
    """It waits for a person and is named; other skills can still be worked on; it is never removed by us."""
    journal = big.state / "journal"
    journal.mkdir(exist_ok=True)
    path = journal / "0123456789ab.json"
    bad = BROKEN[how](b'{"action_id": "0123456789ab", "steps": []}')
    path.write_bytes(bad)
    done = cutting.do(big, "archive", "skill-030")
    clear(done, how)
    assert path.read_bytes() == bad
    assert str(path) in done.err + done.out or done.code == 0, done


@pytest.fixture
def _as_somebody() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may do everything")


Place = Callable[[BigHome], Path]


@pytest.mark.usefixtures("_as_somebody")
@pytest.mark.parametrize("place", [lambda h: h.library / "cat2", lambda h: h.state, lambda h: h.library])
def test_a_folder_that_may_not_be_written(big: BigHome, cutting: Cutter, place: Place) -> None:
    """A permission that is gone ends in a line, with everything as it was."""
    before = big.files()
    folder = place(big)
    mode = folder.stat().st_mode
    folder.chmod(0o500)
    try:
        done = cutting.do(big, "archive", "skill-030")
    finally:
        folder.chmod(mode)
    assert done.code in (3, 4), done
    assert "Traceback" not in done.err
    unchanged(big, before, str(folder))
