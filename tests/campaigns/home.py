"""A Hermes home with 300 skills and a Claude Code home beside it, as a folder that can be put back as it was."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.demo.make import make_demo

__all__ = ["SKILLS", "START", "BigHome", "Image"]

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SKILLS = 300
AGED = 8  # of them were made half a year ago and never used, so that rules have something to do
# What comes and goes with locks, or is only a cache of what is elsewhere.
PASSING = (".locks", ".usage.json.lock", ".jobs.lock", ".curator.lock", "work.lock", "run.lock", "scan.lock")

Entry = tuple[int, bytes]
Image = dict[str, Entry]


@dataclass(slots=True, kw_only=True)
class BigHome:
    """Everything below *folder*: `home/.hermes`, `home/.claude`, `state`, `curatord.yaml`."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    clock: datetime = START

    # -- places

    @property
    def hermes(self) -> Path:
        """Hermes' home."""
        return self.folder / "home" / ".hermes"

    @property
    def library(self) -> Path:
        """Its skills."""
        return self.hermes / "skills"

    @property
    def state(self) -> Path:
        """curatord's own folder."""
        return self.folder / "state"

    @property
    def environ(self) -> dict[str, str]:
        """What a process over this home is started with."""
        return {"HOME": str(self.folder / "home"), "CURATORD_CONFIG": str(self.folder / "curatord.yaml")} | {
            "CURATORD_UMBRELLA__ENABLED": "false",
            **self.settings,
        }

    # -- making

    def make(self, skills: int = SKILLS) -> BigHome:
        """Write it: the demonstration, and *skills* more of many shapes, handed over by Hermes' own ledger."""
        make_demo(self.folder, self.clock)
        usage = json.loads((self.library / ".usage.json").read_text(encoding="utf-8"))
        jobs = json.loads((self.hermes / "cron" / "jobs.json").read_text(encoding="utf-8"))
        for number in range(skills):
            name = f"skill-{number:03}"
            born = self.clock - timedelta(days=180 if number < AGED else 5)
            usage[name] = {
                "created_by": "agent", "use_count": 0, "view_count": 0, "patch_count": 0, "last_used_at": None,
                "last_viewed_at": None, "last_patched_at": None, "created_at": born.isoformat(timespec="seconds"),
                "state": "active", "pinned": False, "archived_at": None, "x-unknown": {"ü": number},
            }  # fmt: skip
            self._package(number, name)
            if number >= AGED and number % 10 == 0:
                jobs["jobs"].append({"id": f"big{number:03}", "name": name, "skills": [name, "deploy-checklist"]})
        (self.library / ".usage.json").write_text(
            json.dumps(usage, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
        )
        (self.hermes / "cron" / "jobs.json").write_text(json.dumps(jobs, indent=2) + "\n", encoding="utf-8")
        return self

    def _package(self, number: int, name: str) -> None:
        folder = self.library / f"cat{number % 7}" / name
        (folder / "scripts").mkdir(parents=True)
        header = f"---\nname: {name}\ndescription: Use when task number {number} is asked for.\n---\n\n"
        link = f"\nSee [the next](../skill-{number + 7:03}/SKILL.md).\n" if number % 50 == 20 else ""
        text = f"{header}# {name}\n\nThe text of {name}.\n{link}"
        (folder / "SKILL.md").write_bytes(text.replace("\n", "\r\n").encode() if number % 9 == 1 else text.encode())
        (folder / "scripts" / "run.sh").write_bytes(f"#!/bin/sh\necho {number}\n".encode())
        (folder / "scripts" / "run.sh").chmod(0o755)
        if number % 3 == 0:
            (folder / "references").mkdir()
            (folder / "references" / "ünï.md").write_bytes(b"a\r\n\xff" * (1 + number % 40))
        if number % 5 == 0:
            (folder / "link").symlink_to("../../nowhere")
            (folder / "empty").mkdir(mode=0o750)

    def name(self, number: int) -> str:
        """Return the path of a skill in the library."""
        return f"cat{number % 7}/skill-{number:03}"

    # -- looking

    def image(self) -> Image:
        """Return kind, mode and content of everything there is, curatord's state too."""
        return image_of(self.folder)

    def files(self, of: Image | None = None) -> Image:
        """Return of an image what is the user's and the hosts': all but curatord's state."""
        return {
            path: entry
            for path, entry in (self.image() if of is None else of).items()
            if path.startswith("home/") and path.rpartition("/")[2] not in PASSING and "/.locks" not in path
        }

    def records(self) -> dict[str, Any]:
        """Return what the database says that matters, without ids and times of its own."""
        with closing(sqlite3.connect(self.state / "curatord.db")) as db:
            return {
                "skills": db.execute(
                    "SELECT library, rel, state, pinned, importance, owner, archive_path, absorbed_into, missing_since"
                    " FROM skills ORDER BY 1, 2"
                ).fetchall(),
                "archive": db.execute("SELECT library, path, rel, absorbed_into FROM archive ORDER BY 1, 2").fetchall(),
                "proposals": db.execute("SELECT id, status FROM proposals ORDER BY 1").fetchall(),
                "rejections": db.execute("SELECT id FROM rejections ORDER BY 1").fetchall(),
                "actions": db.execute("SELECT kind, status, targets FROM actions ORDER BY seq").fetchall(),
                "paused": db.execute("SELECT count(*) FROM meta WHERE key = 'paused_since'").fetchall(),
            }

    def last_action(self) -> str | None:
        """Return the id of the newest action that can be undone."""
        with closing(sqlite3.connect(self.state / "curatord.db")) as db:
            row = db.execute(
                "SELECT action_id FROM actions WHERE status = 'done' AND undoes IS NULL ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        return None if row is None else str(row[0])

    def texts(self) -> Counter[str]:
        """Return how often each skill's own text stands anywhere below Hermes' home."""
        found: Counter[str] = Counter()
        for path in self.library.rglob("*"):
            if path.is_file() and path.suffix == ".md":
                for line in path.read_bytes().splitlines():
                    if line.startswith(b"The text of "):
                        found[line.decode()] += 1
        return found

    def disagreements(self) -> list[str]:
        """Return where disk, database and the plain file say different things; empty: nothing was lost between."""
        found: list[str] = []
        with closing(sqlite3.connect(self.state / "curatord.db")) as db:
            for rel, state, path in db.execute("SELECT rel, state, archive_path FROM skills WHERE library = 'hermes'"):
                there = os.path.lexists(self.library / rel)
                if there == (state == "archived"):
                    found.append(f"{rel} is {state} by the record, and {'there' if there else 'not there'}")
                if path is not None and not Path(path).exists():
                    found.append(f"{rel} should stand at {path}")
            archive = set(db.execute("SELECT library, path FROM archive"))
            decided = {
                (library, rel): (bool(pinned), importance, owner)
                for library, rel, pinned, importance, owner in db.execute(
                    "SELECT library, rel, pinned, importance, owner FROM skills"
                )
            }
            rejected = {row[0] for row in db.execute("SELECT id FROM rejections")}
            paused = db.execute("SELECT value FROM meta WHERE key = 'paused_since'").fetchone()
        plain = self.state / "decisions.json"
        told = json.loads(plain.read_bytes()) if plain.exists() else {}
        written = {(library, path) for library, paths in told.get("archive", {}).items() for path in paths}
        if archive != written:
            found.append(f"archive: database and file differ by {archive ^ written}")
        if rejected != set(told.get("rejected", {})):
            found.append(f"rejections: database and file differ by {rejected ^ set(told.get('rejected', {}))}")
        if told.get("paused_since") is not None and paused is None:
            found.append("the file says that it is paused, the database does not")
        for (library, rel), (pinned, importance, owner) in decided.items():
            said = told.get("skills", {}).get(library, {}).get(rel, {})
            have = (bool(said.get("pinned")), said.get("importance", "normal"), said.get("owner"))
            if have != (pinned, importance, owner):
                found.append(f"{rel}: database says {(pinned, importance, owner)}, file {have}")
        return found

    def leftovers(self) -> list[str]:
        """Return temporary names, intents and claims that a kill may have left."""
        found = [str(path) for path in self.folder.rglob(".curatord-*") if path.name != ".curatord-archive"]
        found += [str(path) for path in self.state.rglob(".*.tmp")]
        return found + [str(path) for path in self.state.glob("journal/*.json")]

    # -- putting back

    def put_back(self, image: Image) -> None:
        """Make everything as it was when *image* was taken; what is so already is not touched."""
        have = self.image()
        for path in sorted(set(have) - set(image), reverse=True):
            there = self.folder / path
            if not os.path.lexists(there):
                continue
            if there.is_dir() and not there.is_symlink():
                shutil.rmtree(there)
            else:
                there.unlink()
        for path, entry in sorted(image.items()):
            if have.get(path) != entry:
                self._put(path, entry, have.get(path))

    def _put(self, path: str, entry: Entry, instead: Entry | None) -> None:
        mode, data = entry
        there = self.folder / path
        if instead is not None and stat.S_IFMT(instead[0]) != stat.S_IFMT(mode):
            if there.is_dir() and not there.is_symlink():
                shutil.rmtree(there)
            else:
                there.unlink()
        if stat.S_ISDIR(mode):
            there.mkdir(exist_ok=True)
        elif stat.S_ISLNK(mode):
            there.unlink(missing_ok=True)
            there.symlink_to(os.fsdecode(data))
            return
        else:
            there.write_bytes(data)
        there.chmod(stat.S_IMODE(mode))


def image_of(root: Path) -> Image:
    """Return mode and content (a link's target) of everything below *root*, by path."""
    found: Image = {}

    def walk(folder: str, prefix: str) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                path = prefix + entry.name
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    found[path] = (mode, b"")
                    walk(entry.path, path + "/")
                elif stat.S_ISLNK(mode):
                    found[path] = (mode, os.fsencode(os.readlink(entry.path)))  # noqa: PTH115 - in the hot loop
                elif stat.S_ISREG(mode):
                    with open(entry.path, "rb") as file:  # noqa: PTH123 - in the hot loop
                        found[path] = (mode, file.read())

    walk(str(root), "")
    return found


def differences(found: Image, wanted: Image) -> list[str]:
    """Return what differs between two images, for a message."""
    return [
        f"{path}: {wanted.get(path)!r:.200} -> {found.get(path)!r:.200}"
        for path in sorted({*found, *wanted})
        if found.get(path) != wanted.get(path)
    ][:8]
