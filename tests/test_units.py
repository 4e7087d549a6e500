"""The service manager's units: they are well-formed, let curatord write where it must, and little else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from curatord.core.layout import archive_of
from curatord.core.service.facts import ServiceFacts
from curatord.core.service.systemd import system_unit, user_unit
from curatord.core.settings import LibrarySettings
from curatord.core.values import LibraryName

UNITS = Path(__file__).resolve().parent.parent / "systemd"
SYSTEM, USER = "curatord-system.service", "curatord.service"
HOME = PurePosixPath("%h")
# These stand together under one reason.
PAIRS = {"ProtectKernelTunables", "ProtectKernelModules", "MemoryHigh"}

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")


def setting(unit: str, name: str) -> list[str]:
    """Return the words of all lines that set *name*, without the `-` that lets a path be absent."""
    lines = (UNITS / unit).read_text().splitlines()
    return [
        word.lstrip("-") for line in lines if line.startswith(f"{name}=") for word in line.partition("=")[2].split()
    ]


def analyze(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return subprocess.run(
        ["systemd-analyze", *arguments],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def open_mount(path: PurePosixPath) -> PurePosixPath | None:
    """Return the innermost writable path of the user unit that *path* lies in or is, unless it is closed again."""
    opened = [one for word in setting(USER, "ReadWritePaths") if path.is_relative_to(one := PurePosixPath(word))]
    closed = [one for word in setting(USER, "ReadOnlyPaths") if path.is_relative_to(one := PurePosixPath(word))]
    best = max(opened, key=lambda one: len(one.parts), default=None)
    return None if best is None or any(len(one.parts) > len(best.parts) for one in closed) else best


@pytest.mark.parametrize(
    "folder", [".claude/skills", ".codex/skills", ".agents/skills", ".pi/agent/skills", ".dsh/skills"]
)
def test_archiving_is_a_rename(folder: str) -> None:
    """A library and its archive lie in one writable mount; between two a move would be a copy."""
    library = HOME / folder
    archive = archive_of(LibrarySettings(name=LibraryName("lib"), path=str(library)), "agent-skills")

    mount = open_mount(library)

    assert mount is not None
    assert mount == open_mount(PurePosixPath(archive))
    assert mount not in (library, PurePosixPath(archive))  # nor is either of them a mount point


def test_hermes_records_lie_with_its_skills() -> None:
    """Its schedules and records follow an archived skill."""
    assert HOME / ".hermes" == open_mount(HOME / ".hermes/skills") == open_mount(HOME / ".hermes/cron")


def test_the_state_folder_must_be_there() -> None:
    """A start without it is refused by the manager in words, instead of a daemon that cannot write its state."""
    lines = (UNITS / USER).read_text().splitlines()

    assert "ReadWritePaths=%h/.local/state/curatord" in lines
    assert HOME / ".local/state/curatord" == open_mount(HOME / ".local/state/curatord/curatord.db")


@pytest.mark.parametrize(
    "path", [".claude/projects/p/s.jsonl", ".codex/sessions/2026/r.jsonl", ".pi/agent/sessions/s.jsonl"]
)
def test_transcripts_are_closed_within_what_is_open(path: str) -> None:
    """The library beside them can change, they cannot."""
    assert open_mount(HOME / path) is None
    assert open_mount(HOME / path.split("/")[0] / "skills") is not None


@pytest.mark.parametrize("unit", [SYSTEM, USER])
def test_every_setting_has_its_reason(unit: str) -> None:
    """A line that holds it back stands under a comment that says why, or right under such a line."""
    sections = (UNITS / unit).read_text().split("[Service]\n")[1].split("[Install]")[0].strip().split("\n\n")

    assert [] == [block.splitlines()[0] for block in sections if not block.startswith("# ")]
    hardening = re.findall(
        r"(?m)^(.*)\n(?:(?:Protect|Restrict|Private|NoNew|Lock|Memory|UMask|RemoveIPC|Keyring)\w*=)",
        "\n".join(sections),
    )
    assert [] == [above for above in hardening if not (above.startswith("# ") or above.partition("=")[0] in PAIRS)]


@pytest.mark.parametrize("path", [".local/bin/curatord", ".local/share/opencode", ".ssh", ".config/systemd", ".bashrc"])
def test_the_rest_of_the_home_is_read_only(path: str) -> None:
    """It cannot replace its own program, nor reach what is none of its business."""
    assert open_mount(HOME / path) is None
    assert ["read-only"] == setting(USER, "ProtectHome")


@needs_systemd
@pytest.mark.parametrize(("unit", "who"), [(SYSTEM, "--system"), (USER, "--user")])
def test_the_unit_is_well_formed(tmp_path: Path, unit: str, who: str) -> None:
    """The service manager knows every line of it."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", (UNITS / unit).read_text(), flags=re.MULTILINE)
    copy = tmp_path / unit
    copy.write_text(text)

    done = analyze(tmp_path, who, "verify", "--man=no", str(copy))

    if "Failed to initialize manager" in done.stderr:
        pytest.skip("no manager can be made here")
    said = [line for line in done.stderr.splitlines() if unit in line]
    assert [] == said


@needs_systemd
@pytest.mark.parametrize(("make", "who"), [(system_unit, "--system"), (user_unit, "--user")])
def test_a_unit_with_any_path_is_well_formed(tmp_path: Path, make: Callable[[ServiceFacts], str], who: str) -> None:
    """Folders with blanks, quotes and signs that mean something in a unit are taken by the manager itself."""
    home = "/home/an na/a%b$c\"d'e\\f;#&é"
    facts = ServiceFacts(
        command=("/bin/true", f"{home}/x"),
        home=home,
        state_dir=f"{home}/state",
        config=f"{home}/config.yaml",
        user="root",
        writable=(f"{home}/.claude", "/mnt/x y"),
        read_only=(f"{home}/.claude/projects",),
        variables={"HERMES_HOME": f"{home}/.hermes"},
        credentials=("openai",),
    )
    (tmp_path / "made.service").write_text(make(facts))

    done = analyze(tmp_path, who, "verify", "--man=no", str(tmp_path / "made.service"))

    if "Failed to initialize manager" in done.stderr:
        pytest.skip("no manager can be made here")
    assert "" == done.stderr


@needs_systemd
def test_the_system_unit_exposes_little(tmp_path: Path) -> None:
    """By the manager's own measure, from 0 (nothing) to 10."""
    done = analyze(tmp_path, "security", "--offline=true", "--threshold=20", "--no-pager", str(UNITS / SYSTEM))

    found = re.search(r"exposure level for .*: ([0-9.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) <= 2.0
    assert 0 == done.returncode
