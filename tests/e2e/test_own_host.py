"""The sample of a host of one's own reads what it says it reads."""

from __future__ import annotations

import json
from pathlib import Path

from curatord.application import Application
from curatord.cli.app import Surroundings
from curatord.config import parse
from curatord.wiring import Parts

SAMPLE = Path(__file__).resolve().parent.parent.parent / "config" / "samples" / "jsonl.yaml"


def test_the_sample_reads_turns_calls_and_skills(tmp_path: Path) -> None:
    """A failed call is no event; a loaded skill is a use, a read SKILL.md a view, a saved one a patch."""
    sessions = tmp_path / ".my-agent" / "sessions"
    sessions.mkdir(parents=True)
    skill = tmp_path / ".my-agent" / "skills" / "tidy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: Tidies a folder.\n---\nTidy it.\n")
    at = iter(f"2026-11-01T10:00:{second:02}Z" for second in range(60))

    def record(uid: str, speaker: str, **more: object) -> dict[str, object]:
        return {"meta": {"session": "s1"}, "uid": uid, "from": speaker, "at": next(at), **more}

    def calls(uid: str, call: str, tool: str, **arguments: str) -> dict[str, object]:
        return record(uid, "agent", body="", calls=[{"tool": tool, "input": arguments, "id": call}])

    records = [
        record("1", "human", body="tidy up please"),
        calls("2", "c1", "load_skill", name="tidy"),
        record("3", "tool", answers="c1", body="ok"),
        calls("4", "c2", "open_file", path=str(skill)),
        record("5", "tool", answers="c2", body="…"),
        calls("6", "c3", "save_file", path=str(skill)),
        record("7", "tool", answers="c3", body="no", error=True),
        calls("8", "c4", "save_file", path=str(skill)),
        record("9", "tool", answers="c4", body="ok"),
    ]
    (sessions / "one.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    loaded = parse(
        SAMPLE.read_bytes(), {"CURATORD_STATE_DIR": str(tmp_path / "state")}, file=str(SAMPLE), home=str(tmp_path)
    )
    parts = Parts(loaded.config, Surroundings(), environ={"HOME": str(tmp_path)})
    app = Application(parts)

    app.scan()

    (session,) = app.sessions(host=None, since=None)
    assert (1, 4) == (session["user_turns"], session["assistant_turns"])
    assert {"load_skill": 1, "open_file": 1, "save_file": 2} == session["tool_calls"]
    assert [("mine", "tidy", "use"), ("mine", "tidy", "view"), ("mine", "tidy", "patch")] == [
        (event["library"], event["skill"], event["kind"]) for event in app.events(skill=None, host=None, since=None)
    ]
    parts.close()
