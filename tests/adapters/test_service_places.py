"""Which folders a service gets to see and to write, from a configuration and the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.service_files import make_folder
from curatord.adapters.service_places import facts_of
from curatord.config import parse
from curatord.core.service.facts import ServiceFacts
from curatord.core.service.needs import needs_notes
from curatord.errors import StateError


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

    expected = [tmp_path / "home/.cache/curatord", tmp_path / "home/.claude", tmp_path / "run"]
    assert [str(path) for path in expected] == list(made.writable)
    assert [False, False] == [need.there for need in made.needs]


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


def test_a_notice_beside_the_prompts_stays_writable(tmp_path: Path) -> None:
    """What is only read is closed again, but for a folder that holds what is written."""
    own = tmp_path / "home/.claude/own"
    own.mkdir(parents=True)
    made = facts(tmp_path, prompts=str(own), notices={"file": str(own / "notice")})

    assert [str(tmp_path / "home/.claude")] == list(made.writable)
    assert str(own) not in made.read_only


def test_a_key_behind_a_link_is_shown_with_its_link(tmp_path: Path) -> None:
    """A container sees nothing but what is mounted, and a link in it leads nowhere by itself."""
    for name in ("links", "keys"):
        (tmp_path / name).mkdir()
    (tmp_path / "keys/k").write_text("x")
    (tmp_path / "links/k").symlink_to(tmp_path / "keys/k")
    primary = {"base_url": "http://localhost:1/v1", "model": "m", "api_key": {"file": str(tmp_path / "links/k")}}
    made = facts(tmp_path, llm={"primary": primary})

    assert {str(tmp_path / "keys"), str(tmp_path / "links")} <= set(made.read_only)
    assert [True, True] == [need.there for need in made.needs]


def test_a_key_in_the_home_itself_shows_no_home(tmp_path: Path) -> None:
    """Nor is one looked for behind a folder that is not there."""
    primary = {"base_url": "http://localhost:1/v1", "model": "m", "api_key": {"file": "~/key"}}
    fallback = {**primary, "api_key": {"file": str(tmp_path / "none/key")}}

    assert [] == list(facts(tmp_path, llm={"primary": primary, "fallback": fallback}).read_only)


def test_a_lone_file_of_a_source_shows_no_home(tmp_path: Path) -> None:
    """A database in the home itself is not seen by a container, which is told; one in a folder of its own is."""
    state = {"state_dir": str(tmp_path / "elsewhere")}
    fields = {"session": "s", "time": "t", "role": "r", "text": "x"}
    (tmp_path / "home/logs").mkdir(parents=True)
    for name in ("home/all.jsonl", "home/logs/all.jsonl"):
        (tmp_path / name).write_text("")
    wide, own = (
        facts(tmp_path, **state, sources=[{"host": "jsonl", "path": str(tmp_path / name), "fields": fields}])
        for name in ("home/all.jsonl", "home/logs/all.jsonl")
    )
    notes = [
        needs_notes(
            made.needs, "docker", home=made.home, writable=made.writable, seen=[*made.writable, *made.read_only]
        )
        for made in (wide, own)
    ]

    assert ([], [str(tmp_path / "home/logs")]) == (list(wide.read_only), list(own.read_only))
    assert notes[0][0].startswith(
        f"sources: {tmp_path}/home/all.jsonl is not seen by the container, since {tmp_path}/home holds a whole home: "
    )
    assert (1, []) == (len(notes[0]), notes[1])
    assert [] == needs_notes(wide.needs, "launchd", home=wide.home, writable=wide.writable, seen=[])


def test_places_that_cannot_be_looked_at_are_not_there(tmp_path: Path) -> None:
    """A name too long for the disk stands here for a folder of another user's: neither ends the command."""
    long = str(tmp_path / ("x" * 300))
    primary = {"base_url": "http://localhost:1/v1", "model": "m", "api_key": {"file": f"{long}/k"}}
    made = facts(
        tmp_path,
        prompts=f"{long}/p",
        llm={"primary": primary},
        notices={"file": f"{long}/n"},
        metrics={"listen": f"unix:{long}/m"},
    )

    assert [False] * 4 == [need.there for need in made.needs]
    with pytest.raises(StateError, match="cannot make"):
        make_folder(long)


def test_the_home_of_a_host_that_brings_the_model_is_shown(tmp_path: Path) -> None:
    """Model and key stand in Hermes' own files, also where none of its skills is managed."""
    made = facts(tmp_path, llm={"from_host": "hermes"})
    before = [(need.key, need.there) for need in made.needs], list(made.read_only)
    (tmp_path / "home/.hermes").mkdir()
    after = facts(tmp_path, llm={"from_host": "hermes"})

    assert ([("llm.from_host", False)], []) == before
    assert [str(tmp_path / "home/.hermes")] == list(after.read_only)
