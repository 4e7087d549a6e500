"""What a command does not need is not imported: the command line answers quickly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "httpx",
    "apscheduler",
    "watchdog",
    "structlog",
    "rich",
    "msgspec",
    "asyncio",
    "shtab",
    "numpy",
    "pandas",
    "sklearn",
}


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that are loaded after *code* ran in a process of its own."""
    tell = "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.__stderr__)"
    script = f"import sys\n{code}\n{tell}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import curatord.cli.main",
        "from curatord.cli.main import main; main(['--help'])",
        "from curatord.cli.main import main; main(['config', 'check'])",
        "import tests.cli.fake_app as f, curatord.cli.main as m; m.main(['status'], factory=f.FakeApp().opened)",
    ],
    ids=["import", "help", "config", "status"],
)
def test_the_frame_of_the_command_line_is_light(code: str) -> None:
    """No HTTP client, no scheduler, no table library, no logger, nothing numeric."""
    assert set() == loaded_by(code) & HEAVY


def test_the_version_needs_next_to_nothing() -> None:
    """Not even the argument parser."""
    code = "sys.argv = ['curatord', '--version']\nfrom curatord.__main__ import main\nmain()"

    assert set() == loaded_by(code) & (HEAVY | {"argparse", "yaml", "dataclasses", "json"})
