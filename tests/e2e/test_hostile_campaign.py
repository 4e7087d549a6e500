"""
Attacks at each place where they can stand, and every command over them, as a real process on a real terminal.

Whatever stands in skills, transcripts, the host's files, a model's answers or the configuration: nothing outside the
managed packages and the state folder is written, nothing is executed, nothing hangs, no command ends as a bug, and what
a terminal or a report shows is inert.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.fakes.stub import needs_stub, stub
from tests.hostile import CONFIGS, MARKS, PLACES, RAN, TEXTS, HostileHome, acts, model_answers

ENOUGH_S = 60  # for one command; the machine may be busy, and a hang is for ever

LOOKS = (
    ["status"], ["skills"], ["skills", "--problems"], ["skills", "--json"], ["sessions"], ["sessions", "--json"],
    ["events"], ["events", "--json"], ["runs"], ["report"], ["report", "--json"], ["cost"], ["pending"],
    ["config", "show"], ["config", "check"], ["doctor", "--no-llm"], ["doctor", "--no-llm", "--json"],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed on its terminal, and how it ended."""

    command: tuple[str, ...]
    code: int
    printed: str


def on_terminal(
    home: HostileHome, *command: str, config: Path | None = None, env: dict[str, str] | None = None
) -> Said:
    """Run curatord with all three streams on a terminal of its own, for a bounded time."""
    traps = home.folder / "traps"
    environ = {
        "HOME": str(home.folder / "home"),
        "PATH": f"{traps}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        **(env or {}),
    }
    arguments = [sys.executable, "-m", "curatord", "--config", str(config or home.folder / "curatord.yaml"), *command]
    main, side = pty.openpty()
    with subprocess.Popen(
        arguments, stdin=side, stdout=side, stderr=side, cwd=home.folder, env=environ, start_new_session=True
    ) as process:
        os.close(side)
        pieces: list[bytes] = []
        until = time.monotonic() + ENOUGH_S
        while time.monotonic() < until:
            ready, _, _ = select.select([main], [], [], 0.5)
            if not ready:
                if process.poll() is not None:
                    break
                continue
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            pieces.append(piece)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"{command} hangs; it said {b''.join(pieces)[-500:]!r}")
        code = process.wait(ENOUGH_S)
    os.close(main)
    return Said(command, code, b"".join(pieces).decode("utf-8", "replace"))


def facts(path: Path) -> str:
    """Return kind, mode and content of one path, never following a link and never opening what is no file."""
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return f"link {path.readlink()}"
    if stat.S_ISREG(info.st_mode) and info.st_size < 100_000_000:
        return f"file {stat.S_IMODE(info.st_mode):o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return f"{stat.S_IFMT(info.st_mode):o} {stat.S_IMODE(info.st_mode):o} {info.st_rdev}"


def everything(root: Path) -> dict[str, str]:
    """Return the facts of all below *root*, by path."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(os.fsencode(root)):
        for name in [*names, *files]:
            path = os.path.join(folder, name)  # noqa: PTH118 - names that are no text
            found[os.fsdecode(path)] = facts(Path(os.fsdecode(path)))
    return found


def of_libraries(home: HostileHome, path: str) -> bool:
    """Return whether *path* is where curatord may write."""
    below = (home.folder / "state", home.hermes / "skills", home.claude / "skills", home.claude / ".skills-archive")
    host = (home.hermes / "cron", home.hermes / ".curator")
    return any(path == str(root) or path.startswith(f"{root}{os.sep}") for root in (*below, *host))


def check(home: HostileHome, before: dict[str, str], said: list[Said]) -> None:
    """Hold what happened to the promises."""
    for one in said:
        assert "Traceback" not in one.printed, (one.command, one.printed[-1500:])
        assert 1 != one.code, (one.command, one.printed[-1500:])
        assert [] == acts(one.printed), one.command
    after = everything(home.folder)
    ran = [path for path in after if Path(path).name == RAN]
    assert [] == ran

    def outside(tree: dict[str, str]) -> dict[str, str]:
        return {path: what for path, what in tree.items() if not of_libraries(home, path)}

    assert outside(before) == outside(after)
    kept = {what.split()[-1] for what in after.values() if what.startswith("file")}
    own = (".usage.json", "jobs.json", ".bundled_manifest", ".curator_suppressed", ".curator_state")
    lost = [
        path
        for path, what in before.items()
        if what.startswith("file") and not path.endswith(own) and what.split()[-1] not in kept
    ]
    assert [] == lost
    for report in (home.folder / "state" / "runs").glob("*/REPORT.md"):
        inert_markdown(report.read_text(encoding="utf-8"))
    for record in (home.folder / "state" / "runs").glob("*/run.json"):
        json.loads(record.read_bytes())
    state = home.folder / "state"
    for path in (state, *state.rglob("*")) if state.exists() else ():
        assert 0 == stat.S_IMODE(path.lstat().st_mode) & 0o077, path


def inert_markdown(text: str) -> None:
    """A report has no HTML, image or link, and nothing that acts on a terminal; autolinks count as links."""
    assert [] == [found.group() for found in re.finditer(MARKS, text)][:3]
    tokens = list(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text))
    kinds = {token.type for token in tokens} | {part.type for token in tokens for part in token.children or ()}
    assert set() == kinds & {"html_block", "html_inline", "link_open", "image"}
    plain = [part.content for token in tokens for part in token.children or () if part.type == "text"]
    assert [] == [each for each in plain if re.search(r"(?i)\bhttps?://|\bwww\.", each) and _linked(text, each)]


def _linked(text: str, words: str) -> bool:
    """Return whether a bare address in *words* stands in *text* as it is, so that renderers make a link of it."""
    return any(found.group() in text for found in re.finditer(r"(?i)https?://\S+|\bwww\.\S+", words))


def campaign(home: HostileHome, *, skills: list[str], options: tuple[str, ...] = ()) -> list[Said]:
    """Run every command over *home*, those that only look side by side."""
    said = [
        on_terminal(home, "scan"),
        on_terminal(home, "run", "--dry-run", *options),
        on_terminal(home, "run", *options),
    ]
    looks = [*LOOKS, *(["show", name] for name in skills), *(["explain", name] for name in skills)]
    with ThreadPoolExecutor(3) as pool:
        said += pool.map(lambda command: on_terminal(home, *command), looks)
    waiting = on_terminal(home, "pending", "--json")
    ids = re.findall(r'"id": ?"([0-9a-f]+)"', waiting.printed)
    said += [waiting, *(on_terminal(home, "diff", each) for each in ids[:2])]
    for command in (
        ["approve", "--all"], ["run", *options], ["pin", *(skills or ["x"])], ["unpin", *(skills or ["x"])],
        ["importance", (skills or ["x"])[0], "low"], ["adopt", "--agent-made", "--dry-run"],
        ["archive", (skills or ["x"])[0]], ["restore", (skills or ["x"])[0]], ["undo", "last"], ["pause"], ["resume"],
        ["run", "--respect-gates", *options], ["report"],
    ):  # fmt: skip
        said.append(on_terminal(home, *command))
    return said


def hostile_home(tmp_path: Path) -> HostileHome:
    """Make the home; programs that an attack may call are traps that tell that they were called."""
    home = HostileHome(tmp_path / "w", datetime.now(UTC))
    traps = home.folder / "traps"
    traps.mkdir()
    for name in ("curl", "wget", "nc", "bash", "rm", "touch"):
        (traps / name).write_text(f"#!/bin/sh\n: > {home.folder}/{RAN}\n")
        (traps / name).chmod(0o755)
    return home


@pytest.mark.parametrize("place", PLACES)
def test_attacks_at_a_place(tmp_path: Path, place: str) -> None:
    """All attacks that can stand there, together."""
    home = hostile_home(tmp_path)
    home.config()
    PLACES[place](home, TEXTS)
    before = everything(home.folder)
    skills = sorted(path.name for path in (home.claude / "skills").iterdir() if len(os.fsencode(path.name)) < 200)[:6]
    names = [name for name in skills if name.isprintable() and not name.startswith("-")]

    check(home, before, campaign(home, skills=[*names, "no\x1b[2Jsuch"]))


@pytest.mark.campaign
@pytest.mark.parametrize("attack", TEXTS)
@pytest.mark.parametrize("place", PLACES)
def test_one_attack_at_a_place(tmp_path: Path, place: str, attack: str) -> None:
    """Each by itself, so that none hides behind what another one did."""
    home = hostile_home(tmp_path)
    home.config()
    PLACES[place](home, {attack: TEXTS[attack]})
    before = everything(home.folder)

    check(home, before, campaign(home, skills=["pdf-forms"]))


@needs_stub
@pytest.mark.parametrize("detail", ["cards", "bodies"])
def test_a_model_that_means_harm(tmp_path: Path, detail: str) -> None:
    """Its answers ask for pins, deletion and files outside, and hold every text: the library is whole afterwards."""
    home = hostile_home(tmp_path)
    PLACES["bodies"](home, TEXTS)
    with stub(tmp_path, "--how", "section", script=model_answers()) as model:
        home.config("llm:", "  primary:", f"    base_url: {model.url}", "    model: stub", umbrella="llm")
        config = home.folder / "curatord.yaml"
        config.write_text(config.read_text().replace("detail: cards", f"detail: {detail}"))
        before, decided = everything(home.folder), decisions(home)

        said = [*campaign(home, skills=["pdf-forms"]), on_terminal(home, "doctor")]
        asked = len(model.calls())

    check(home, before, said)
    assert asked > 2
    after = decisions(home)
    assert {name: decided[name] for name in after if name in decided} == {
        name: what for name, what in after.items() if name in decided
    }


def decisions(home: HostileHome) -> dict[str, Any]:
    """Return what only a person may decide, by skill, but of the one that the campaign itself steers."""
    rows: list[Any] = json.loads(re.sub(r"(?s)^.*?\[", "[", on_terminal(home, "skills", "--json").printed, count=1))
    return {row["path"]: (row["pinned"], row["importance"], row["why"]) for row in rows if row["name"] != "pdf-forms"}


@pytest.mark.parametrize("attack", CONFIGS)
def test_a_configuration_that_means_harm(tmp_path: Path, attack: str) -> None:
    """It is refused in bounded time, and what is said about it is inert; no key that stands in it is repeated."""
    home = hostile_home(tmp_path)
    config = home.folder / "evil.yaml"
    config.write_text(CONFIGS[attack], encoding="utf-8")
    before = everything(home.folder)

    said = [
        on_terminal(home, *command, config=config) for command in (["config", "check"], ["status"], ["run"], ["scan"])
    ]

    check(home, before, said)
    assert {2} == {one.code for one in said}
    assert "sk-canary" not in "".join(one.printed for one in said)
