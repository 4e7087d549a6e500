"""The stub model server as a real process on loopback; tests that need it are skipped where it is not there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

STUB = Path(__file__).resolve().parents[2].parent / "shared" / "stub_model.py"
needs_stub = pytest.mark.skipif(not STUB.is_file(), reason=f"no stub model server at {STUB}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """A running stub: its base *url* with `/v1`, and what it was asked."""

    url: str
    log: Path

    def calls(self) -> list[dict[str, Any]]:
        """Return what was logged, oldest first; a row may come a moment after its reply."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@contextmanager
def stub(folder: Path, *arguments: str, script: list[Any] | None = None) -> Iterator[Stub]:
    """Run the stub with *arguments* and end it afterwards."""
    log = folder / "calls.jsonl"
    log.touch()
    command = [sys.executable, str(STUB), "--log", str(log), *arguments]
    if script is not None:
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        command += ["--script", str(folder / "script.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield Stub(url=process.stdout.readline().strip(), log=log)
            time.sleep(0.02)
        finally:
            process.kill()
