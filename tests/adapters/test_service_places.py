"""Which folders a service gets to see and to write, from a configuration and the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from curatord.adapters.service_places import facts_of
from curatord.config import parse
from curatord.core.service.facts import ServiceFacts


def facts(tmp_path: Path, **sections: Any) -> ServiceFacts:
    """Return the facts of a configuration with one library and no source."""
    (tmp_path / "home/.claude/skills").mkdir(parents=True, exist_ok=True)
    library = {"name": "claude", "path": str(tmp_path / "home/.claude/skills"), "host": "claude-code"}
    text = json.dumps({"sources": [], "libraries": [library], **sections})
    config = parse(text.encode(), {}, file=str(tmp_path / "c.yaml"), home=str(tmp_path / "home")).config
    return facts_of(
        config, {}, command=("/x/curatord",), home=str(tmp_path / "home"), state_dir=str(tmp_path / "state")
    )


def test_what_it_tells_others_can_be_written(tmp_path: Path) -> None:
    """The folders of the notice and of the metrics' socket are opened, beside that of the library."""
    made = facts(
        tmp_path,
        notices={"file": str(tmp_path / "home/.cache/curatord/notice")},
        metrics={"listen": f"unix:{tmp_path}/run/curatord.sock"},
    )

    expected = [tmp_path / "home/.claude", tmp_path / "home/.cache/curatord", tmp_path / "run"]
    assert [str(path) for path in expected] == list(made.writable)


def test_a_notice_in_the_home_itself_opens_no_home(tmp_path: Path) -> None:
    """Better no notice than a service that may write everything of its user."""
    assert [str(tmp_path / "home/.claude")] == list(facts(tmp_path, notices={"file": "~/notice"}).writable)


def test_what_it_consults_can_be_read(tmp_path: Path) -> None:
    """Prompts of the user's own and the folder of a key file are there where a service sees nothing else."""
    for name in ("prompts", "keys"):
        (tmp_path / name).mkdir()
    primary = {"base_url": "http://localhost:1/v1", "model": "m", "api_key": {"file": str(tmp_path / "keys/k")}}
    made = facts(tmp_path, prompts=str(tmp_path / "prompts"), llm={"primary": primary})

    assert {str(tmp_path / "keys"), str(tmp_path / "prompts")} <= set(made.read_only)
