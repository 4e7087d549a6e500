"""Imports point one way: core <- ports <- passes <- wiring <- cli, daemon; adapters are named only in wiring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "curatord"
MODULES = sorted(path.relative_to(ROOT.parent) for path in ROOT.rglob("*.py"))

# What core may use of the standard library does no I/O and reads no clock; the others are pure libraries.
CORE_MAY_NOT = {
    "os", "io", "pathlib", "subprocess", "socket", "shutil", "tempfile", "sqlite3", "time", "threading", "logging",
    "asyncio", "random", "httpx", "watchdog", "apscheduler", "structlog", "rich", "glob", "fcntl", "signal",
}  # fmt: skip


def imported(path: Path) -> set[str]:
    """Return the dotted names of all modules that *path* imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT.parent / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("path", [m for m in MODULES if "core" in m.parts], ids=str)
def test_core_does_no_io(path: Path) -> None:
    """A module of core imports nothing that does I/O or reads a clock, and nothing of curatord but core and errors."""
    names = imported(path)

    ours = {n for n in names if n.startswith("curatord.")}
    foreign = {n.split(".")[0] for n in names}
    assert set() == foreign & CORE_MAY_NOT
    assert set() == {n for n in ours if not n.startswith(("curatord.core", "curatord.errors"))}


@pytest.mark.parametrize("path", [m for m in MODULES if "passes" in m.parts], ids=str)
def test_passes_are_handed_their_adapters(path: Path) -> None:
    """A pass names no adapter, no wiring and no command line."""
    names = imported(path)

    assert set() == {
        n for n in names if n.startswith(("curatord.adapters", "curatord.wiring", "curatord.cli", "curatord.daemon"))
    }


@pytest.mark.parametrize("path", [m for m in MODULES if "adapters" in m.parts], ids=str)
def test_adapters_know_core_and_ports_only(path: Path) -> None:
    """An adapter uses core, ports, errors, its configuration values and its siblings."""
    names = imported(path)

    assert set() == {
        n for n in names if n.startswith(("curatord.passes", "curatord.wiring", "curatord.cli", "curatord.daemon"))
    }
