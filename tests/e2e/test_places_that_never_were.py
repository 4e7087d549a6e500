"""A host has several default places and lives in one of them: those where it never was hold nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.world import World


def with_source(tmp_path: Path, line: str) -> World:
    """Return a world whose library `claude` has a second source, in a home that has no such host."""
    world = World(tmp_path / "w")
    config = world.folder / "curatord.yaml"
    text = config.read_text(encoding="utf-8")
    first = "  - host: hermes "
    assert 1 == text.count(first)
    config.write_text(text.replace(first, f"  - {{{line}, libraries: [claude]}}\n{first}"), encoding="utf-8")
    world.reopen()
    return world


def held(world: World) -> list[str]:
    """Return why a run lets nothing in the library age."""
    return [words for words in world.run()["warnings"] if words.startswith("library claude: nothing ages")]


def age(world: World) -> str:
    """Hand a skill over that nobody uses, let half a year of work pass, and return its state."""
    world.app.adopt(["claude/sql-explain"], everything=False, agent_made=False, dry_run=False)
    for _ in range(20):
        world.days(7.5)
        world.run()
    return str(world.skill("sql-explain")["state"])


@pytest.mark.parametrize("host", ["openclaw", "pi", "codex"])
def test_default_places_that_never_were_hold_nothing_up(tmp_path: Path, host: str) -> None:
    """Also not where the host is not on this machine at all."""
    world = with_source(tmp_path, f"host: {host}")

    assert [] == held(world)
    assert "archived" == age(world)


def test_a_renamed_host_that_is_there_testifies_alone(tmp_path: Path) -> None:
    """Its home of today exists and was read; its former names do not."""
    (tmp_path / "w").mkdir()
    world = with_source(tmp_path, "host: openclaw")
    (world.folder / "home/.openclaw/agents/main/sessions").mkdir(parents=True)

    assert [] == held(world)


def test_a_place_that_somebody_named_is_waited_for(tmp_path: Path) -> None:
    """What was configured and cannot be found may hold any number of uses."""
    world = with_source(tmp_path, "host: openclaw, path: home/elsewhere")
    world.app.adopt(["claude/sql-explain"], everything=False, agent_made=False, dry_run=False)

    assert 1 == len(held(world))
    assert "active" == age(world)


def test_doctor_says_where_nothing_ages(tmp_path: Path) -> None:
    """A library that is held is told with its reason; one that ages is not."""
    world = with_source(tmp_path, "host: openclaw, path: home/elsewhere")
    world.app.scan()
    checks = {check["check"]: check["found"] for check in world.app.doctor(notices=(), llm=False)}

    assert "nothing in it ages" in checks["library claude"]
    assert "nothing in it ages" not in checks["library hermes"]
