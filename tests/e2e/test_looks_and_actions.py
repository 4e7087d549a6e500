"""An action of one process in the middle of another's look: the action's word stands, and history tells the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.errors import BusyError
from tests.e2e.world import World

KEY = SkillKey(library=LibraryName("hermes"), rel=RelPath("devops/docker-cleanup"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "demo")
    made.run()
    return made


def look_while(world: World, act: Callable[[World], object], *, at: str = "testimony") -> None:
    """Look and remember, as a scan does, with *act* done by another process when it comes to the part *at*."""
    other = World.__new__(World)
    other.folder, other.settings, other.clock = world.folder, world.settings, world.clock
    other.open()
    world.reopen()
    world.parts.database  # noqa: B018 - opened for writing
    part = getattr(world.parts, at)

    def slow(read: Any) -> Any:
        act(other)
        other.parts.close()
        return part(read)

    setattr(world.parts, at, slow)
    world.parts.look(remember=True)
    world.reopen()


def test_an_archiving_during_a_look_is_not_told_as_somebody_elses(world: World) -> None:
    """It is archived, by its user, and no host and no hand put it anywhere."""
    look_while(world, lambda other: other.app.archive([str(KEY)]))
    world.parts.look(remember=True)
    record = world.parts.store.skill(KEY)

    assert record is not None
    assert ("archived", None) == (record.state.value, record.restored_at)
    reasons = [row.reason for row in world.parts.store.history(KEY)]
    assert [] == [reason for reason in reasons if "host" in reason or "by hand" in reason]


def test_a_restore_during_a_look_is_not_told_as_somebody_elses(world: World) -> None:
    """The look that still had it archived does not find it "put back by hand"."""
    world.app.archive([str(KEY)])
    look_while(world, lambda other: other.app.restore([str(KEY)], anyway=False))
    world.parts.look(remember=True)
    record = world.parts.store.skill(KEY)

    assert record is not None
    assert "active" == record.state.value
    reasons = [row.reason for row in world.parts.store.history(KEY)]
    assert [] == [reason for reason in reasons if "host" in reason or "by hand" in reason]


def test_an_adoption_during_a_look_keeps_the_content_it_was_given(world: World) -> None:
    """A skill that was edited and adopted as it is does not count as edited again."""
    path = world.hermes / "skills" / KEY.rel / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nmine\n", encoding="utf-8")

    def adopt(other: World) -> object:
        return other.app.adopt([str(KEY)], everything=False, agent_made=False, dry_run=False)

    look_while(world, adopt, at="host_words")
    record = world.parts.store.skill(KEY)

    assert record is not None
    assert "adopted" == record.owner
    assert record.trusted_fingerprint == record.seen_fingerprint
    assert None is world.app.show(str(KEY))["edited"]


def test_remembering_waits_for_the_work_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a look is written while somebody does an action."""
    monkeypatch.setattr("curatord.adapters.lock.work_lock.__wrapped__.__defaults__", (0.1,))
    path = world.hermes / "skills" / "devops" / "brand-new" / "SKILL.md"
    path.parent.mkdir()
    path.write_text("---\nname: brand-new\ndescription: d\n---\n", encoding="utf-8")
    with world.parts.applier.mutator.hold(None), pytest.raises(BusyError):
        world.parts.look(remember=True)

    assert world.parts.store.skill(SkillKey(library=KEY.library, rel=RelPath("devops/brand-new"))) is None
