"""The plain file of decisions: what others wrote in it stays, and its bytes do not depend on how they were made."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.decisions import DecisionsFile
from curatord.ports.decisions import Rejection

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("name", ["café", os.fsdecode(b"caf\xe9")], ids=["UTF-8", "not UTF-8"])
def test_the_file_is_what_the_standard_library_would_write(tmp_path: Path, name: str) -> None:
    """Sorted, indented, readable; names that are no UTF-8 and what this version does not know are carried along."""
    known = {"version": 1, "later": {"b": [1, {}], "a": []}, "skills": {"lib": {name: {"pinned": True, "new": 1.5}}}}
    file = DecisionsFile(state_dir=tmp_path)
    file.path.write_bytes(json.dumps(known, ensure_ascii=False).encode("utf-8", "surrogateescape"))

    file.reject(Rejection(id="abc", at=AT, reason="no"))

    known["rejected"] = {"abc": {"at": AT.isoformat(), "reason": "no"}}
    expected = json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert expected.encode("utf-8", "surrogateescape") == file.path.read_bytes()
    assert [name] == [key.rel for key, decision in file.load().skills.items() if decision.pinned]


def test_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """Recovery says it once more; the file is left alone."""
    file = DecisionsFile(state_dir=tmp_path)
    file.reject(Rejection(id="abc", at=AT))
    before = file.path.stat()

    file.reject(Rejection(id="abc", at=AT))

    assert (before.st_ino, before.st_mtime_ns) == (file.path.stat().st_ino, file.path.stat().st_mtime_ns)
