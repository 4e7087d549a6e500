"""Decision commands about several things tell what became of each, whatever becomes of one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.cli import exits
from curatord.cli.app import Surroundings
from curatord.core.curation import Proposal, content_of
from curatord.core.plan import Archive
from curatord.core.proposal_id import proposal_id
from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.errors import BusyError, UsageError
from curatord.passes.apply import Applier
from curatord.passes.proposals import KIND_ARCHIVE, Asked, ask
from curatord.ports.decisions import Rejection
from tests.e2e.world import World


def proposals(world: World) -> list[Proposal]:
    """Return proposals to archive three adopted skills, as a run makes them."""
    look = world.parts.look(remember=True)
    made = []
    for number in range(3):
        key = SkillKey(library=LibraryName("hermes"), rel=RelPath(f"old/unused-{number}"))
        action = Archive(key=key, reason="it is idle", expected=look.live[key].fingerprint)
        made.append(
            Proposal(
                id=proposal_id(key.library, KIND_ARCHIVE, [key], content_of([action])),
                kind=KIND_ARCHIVE,
                library=key.library,
                targets=(key,),
                summary=f"archive {key}",
                reason="it is idle",
                created_at=world.clock.at,
                actions=(action,),
            )
        )
    return made


def ask_for(world: World) -> Asked:
    return ask(world.parts.store, proposals(world), now=world.clock.at, libraries=[LibraryName("hermes")])


def waiting(world: World) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = world.app.pending()
    return rows


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "demo")
    names = [f"unused-{number}" for number in range(3)]
    for name in names:
        package = made.hermes / "skills" / "old" / name
        package.mkdir(parents=True)
        (package / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Old {name}.\n---\nOld.\n")
    made.app.adopt(names, everything=False, agent_made=False, dry_run=False)
    assert 3 == len(ask_for(made).pending)
    return made


def test_one_that_was_decided_already_is_a_row_beside_what_was_done(world: World) -> None:
    """`approve A B` where B was rejected: A is archived and told, B is skipped with its reason, and the code is 3."""
    a, b, _ = (row["id"] for row in waiting(world))
    world.app.reject([b], reason=None)

    changes = world.app.approve([a, b])

    assert 1 == len(changes["done"])
    assert ["rejected already" in row["reason"] for row in changes["skipped"]] == [True]
    assert exits.SKIPPED == exits.of_changes(changes)


def test_an_unknown_id_stops_a_command_before_it_does_anything(world: World) -> None:
    """`approve A nosuch`, `reject A nosuch`, `restore a nosuch`: nothing is done, and it is said which is unknown."""
    a = waiting(world)[0]["id"]
    world.app.archive(["hermes/old/unused-1"])
    commands: list[Callable[[], Any]] = [
        lambda: world.app.approve([a, "nosuch"]),
        lambda: world.app.reject([a, "nosuch"], reason=None),
        lambda: world.app.restore(["unused-1", "nosuch"], anyway=False),
    ]
    for command in commands:
        with pytest.raises(UsageError, match="nosuch"):
            command()

    assert a in [row["id"] for row in waiting(world)]
    assert "archived" == world.skill("unused-1")["state"]


def test_a_lock_that_is_held_midway_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two rejections finds the lock held: the first is told, the second skipped as busy."""
    a, b, _ = (row["id"] for row in waiting(world))
    reject = Applier.reject

    def busy(self: Applier, proposal: Any, **more: Any) -> None:
        if proposal.id == b:
            raise BusyError("somebody is at work")
        reject(self, proposal, **more)

    monkeypatch.setattr(Applier, "reject", busy)
    changes = world.app.reject([a, b], reason=None)

    assert 1 == len(changes["done"])
    assert ["busy"] == [row["code"] for row in changes["skipped"]]


def test_a_stop_is_asked_between_two_proposals(world: World) -> None:
    """What was not begun is told as skipped, and waits on."""
    ids = [row["id"] for row in waiting(world)]
    answers = iter([False, False, True])
    world.parts.surroundings = Surroundings(stop=lambda: next(answers, True))

    changes = world.app.approve(ids)

    assert 1 == len(changes["done"])
    assert ["stopped", "stopped"] == [row["code"] for row in changes["skipped"]]


def test_approved_restored_and_due_again_is_asked_again(world: World) -> None:
    """A yes was about that time: after a restore, the same content that is due again waits for a new one."""
    first = waiting(world)[0]
    world.app.approve([first["id"]])
    world.app.restore(["unused-0"], anyway=False)
    world.clock.at += timedelta(days=150)

    assert first["id"] in [row.id for row in ask_for(world).pending]
    assert first["id"] in [row["id"] for row in waiting(world)]
    assert 1 == len(world.app.approve([first["id"]])["done"])
    assert "archived" == world.skill("unused-0")["state"]


def test_what_the_host_archived_comes_back_under_its_pin(tmp_path: Path) -> None:
    """B033: restored by us it stands where it stood, and what was said of it still holds."""
    world = World(tmp_path / "demo")
    world.app.scan()
    skills = world.hermes / "skills"
    (skills / ".archive").mkdir(exist_ok=True)
    (skills / "devops" / "nginx-reload").rename(skills / ".archive" / "nginx-reload")
    world.app.scan()
    world.app.pin(["nginx-reload"])

    changes = world.app.restore(["nginx-reload"], anyway=False)

    assert ["hermes/devops/nginx-reload"] == [row["skill"] for row in changes["done"]]
    assert (skills / "devops" / "nginx-reload" / "SKILL.md").exists()
    assert world.skill("nginx-reload")["pinned"]
    assert "active" == world.skill("nginx-reload")["state"]


def test_a_no_and_a_pause_of_which_half_was_written_hold(tmp_path: Path) -> None:
    """A kill after the plain file and before the database: the next start brings both to their end."""
    world = World(tmp_path / "demo")
    world.app.scan()
    world.parts.decisions.reject(Rejection(id="0123456789", at=world.clock.at, reason="no"))
    world.parts.decisions.pause(world.clock.at.isoformat())
    world.reopen()

    world.app.scan()

    assert "no" == world.parts.store.rejections()["0123456789"].reason
    assert world.app.status()["paused"]
