"""A Claude Code tree of any size for benchmarks: the same bytes for the same arguments, shaped like a year of work."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

WORDS = ["build", "test", "fix", "deploy", "the", "file", "error", "value", "retry", "config", "session"]
SKILLS = [
    f"{a}-{b}" for a in ("git", "pdf", "deploy", "review", "sql") for b in ("basics", "notes", "audit", "release")
]


class Maker:
    """Writes sessions whose records are mostly big tool results, some thoughts, few prompts, a skill now and then."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        text = " ".join(self.random.choice(WORDS) for _ in range(200_000))
        self.pool = json.dumps(text.replace(" error ", ' \\n"quoted" '))[1:-1]
        self.at = 1_780_000_000.0

    def text(self, median: int, spread: float = 1.0) -> str:
        """Return JSON string content of about *median* characters."""
        size = min(400_000, int(self.random.lognormvariate(0, spread) * median) + 8)
        begin = self.random.randrange(len(self.pool) - 1000)
        piece = (self.pool[begin:] + self.pool * (size // len(self.pool) + 1))[:size].rstrip("\\")
        return piece if piece.count('"') == piece.count('\\"') else piece.replace('\\"', "'").replace('"', "'")

    def uuid(self) -> str:
        """Return a random UUID."""
        h = f"{self.random.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def time(self) -> str:
        """Return the time of the next record."""
        self.at += self.random.uniform(0.2, 20)
        whole = int(self.at)
        y, rest = divmod(whole - 1_767_225_600, 86_400)  # days since the beginning of 2026
        month, day = divmod(y, 28)
        return (
            f"2026-{month % 12 + 1:02d}-{day + 1:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
            f".{int(self.at * 1000) % 1000:03d}Z"
        )

    def session(self, ident: str, size: int, *, side: bool = False) -> bytes:
        """Return a session of about *size* bytes."""
        out: list[str] = []
        total = 0
        parent = "null"
        side_text = "true" if side else "false"
        skill = self.random.choice(SKILLS)

        def add(body: str) -> None:
            nonlocal total, parent
            uuid = self.uuid()
            line = (
                f'{{"parentUuid":{parent},"isSidechain":{side_text},"userType":"external","cwd":"/home/dev/app",'
                f'"sessionId":"{ident}","version":"2.1.100","gitBranch":"main",{body},'
                f'"uuid":"{uuid}","timestamp":"{self.time()}"}}\n'
            )
            parent = f'"{uuid}"'
            total += len(line)
            out.append(line)

        while total < size:
            add(f'"type":"user","message":{{"role":"user","content":"{self.text(160)}"}}')
            for _ in range(self.random.randint(2, 14)):
                message, call = f"msg_{self.random.getrandbits(80):020x}", f"toolu_{self.random.getrandbits(80):020x}"
                head = (
                    f'"type":"assistant","message":{{"model":"m","id":"{message}","type":"message","role":"assistant"'
                )
                usage = '"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":120,"service_tier":"standard"}'
                if self.random.random() < 0.5:
                    block = f'{{"type":"thinking","thinking":"{self.text(600)}","signature":"{"QUJD" * 200}"}}'
                    add(f'{head},"content":[{block}],{usage}}},"requestId":"req_1"')
                if self.random.random() < 0.03:
                    name, arguments, result = "Skill", f'"skill":"{skill}"', f"Launching skill: {skill}"
                else:
                    name = self.random.choice(("Bash", "Read", "Edit", "Grep", "Write"))
                    arguments = f'"file_path":"/home/dev/app/x.py","command":"make","content":"{self.text(200)}"'
                    result = self.text(1500, 1.3)
                block = f'{{"type":"tool_use","id":"{call}","name":"{name}","input":{{{arguments}}}}}'
                add(f'{head},"content":[{block}],{usage}}},"requestId":"req_1"')
                block = f'{{"tool_use_id":"{call}","type":"tool_result","content":"{result}"}}'
                add(
                    f'"type":"user","message":{{"role":"user","content":[{block}]}},"toolUseResult":{{"stdout":"{result}"}}'
                )
        return "".join(out).encode()


def make(root: Path, *, megabytes: int, sessions: int, seed: int = 1) -> Path:
    """Make the tree at *root* (kept as it is where it is there already) and return its `projects` folder."""
    done = root / f"done-{megabytes}-{sessions}-{seed}"
    projects = root / "projects"
    if done.exists():
        return projects
    maker = Maker(seed)
    share = megabytes * 1024 * 1024 / sessions
    for number in range(sessions):
        ident = maker.uuid()
        folder = projects / f"-home-dev-app-{number % max(1, sessions // 12)}"
        folder.mkdir(parents=True, exist_ok=True)
        size = int(share * maker.random.lognormvariate(-0.3, 0.8))
        path = folder / f"{ident}.jsonl"
        path.write_bytes(maker.session(ident, size))
        os.utime(path, (maker.at, maker.at))
        if number % 5 == 0:
            side = folder / ident / "subagents"
            side.mkdir(parents=True)
            agent = side / f"agent-{number:07x}.jsonl"
            agent.write_bytes(maker.session(ident, size // 4, side=True))
            os.utime(agent, (maker.at, maker.at))
    done.touch()
    return projects


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--sessions", type=int, default=500)
    options = parser.parse_args()
    print(make(options.root, megabytes=options.megabytes, sessions=options.sessions), file=sys.stderr)
