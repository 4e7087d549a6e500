"""Two hundred planted secrets of twenty kinds, in every place a transcript has words: none leaves, none is kept."""

from __future__ import annotations

import json
import random
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.distil_world import DistilWorld, claude_records, create, patch, reply
from tests.fakes.stub import needs_stub, stub
from tests.planted_secrets import SECRETS, planted

pytestmark = needs_stub
EACH = 10


def _records(name: str, texts: list[str], world: DistilWorld) -> list[dict[str, Any]]:
    """Return a session that says the texts as user, as model, in a tool's arguments, and in a failed call."""
    at = world.clock.at - timedelta(hours=3)
    records = claude_records(name, ["deploy it", "that is wrong, you forgot the log"], at)
    base = {key: records[0][key] for key in ("sessionId", "version", "isSidechain", "cwd")}
    for number, text in enumerate(texts):
        stamp = (at + timedelta(minutes=5, seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        call = f"toolu_{uuid.uuid4().hex}"
        content: dict[int, list[dict[str, Any]]] = {
            0: [{"role": "user", "content": f"use this: {text}"}],
            1: [_model([{"type": "text", "text": f"I used {text} as you said."}])],
            2: [_model([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"cd /x\n{text}"}}])],
            3: [
                _model([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "run"}}]),
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": call, "content": f"failed: {text}", "is_error": True}
                    ],
                },
            ],
        }
        for message in content[number % 4]:
            kind = message["role"]
            records.append({**base, "type": kind, "uuid": str(uuid.uuid4()), "timestamp": stamp, "message": message})
    return records


def _model(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "model": "m", "content": content}


def test_no_planted_secret_is_in_a_request_or_in_a_file_of_ours(tmp_path: Path) -> None:
    """Also where the model's reply repeats one, in a patch, a new skill, or its reason."""
    draw = random.Random(7)
    secrets: list[str] = []
    script: list[Any] = []
    sessions: list[list[str]] = []
    for number in range(EACH):
        texts = []
        for kind in SECRETS:
            text, secret = planted(draw, kind)
            texts.append(text)
            secrets.append(secret)
        sessions.append(texts)
        leaked = texts[number]
        script.append(
            reply(
                patch("deploy", "2. Push it.", f"2. Push it with {leaked}.", evidence=["r1"]),
                create(f"kit-{number}", content=f"# Kit\n\n{leaked}\n", reason=leaked),
                nothing=None,
            )
        )
    with stub(tmp_path, script=script) as server:
        world = DistilWorld(folder=tmp_path, url=server.url)
        world.skill("deploy")
        for number, texts in enumerate(sessions):
            path = world.session(f"s{number}", [], ago=3)
            records = _records(f"s{number}", texts, world)
            path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        world.run()
        world.app.distil_log(host=None, since=None)
        calls = server.calls()
    world.parts.close()

    assert EACH * len(SECRETS) == len(secrets) == 200
    assert EACH == len(calls)
    sent = json.dumps([call["request"] for call in calls], ensure_ascii=False)
    kept = "".join(path.read_bytes().decode("utf-8", "replace") for path in world.state.rglob("*") if path.is_file())
    written = "".join(path.read_text(encoding="utf-8") for path in world.skills.rglob("*.md"))
    for secret in secrets:
        for line in secret.splitlines():
            if line.startswith("-----"):
                continue
            assert line not in sent
            assert line not in kept
            assert line not in written
