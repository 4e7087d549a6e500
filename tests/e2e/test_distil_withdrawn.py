"""Proposals on what is not there any more, or is another text now: taken back with their reason, or with a way out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as struct_replace

from curatord.application.metering import gauges_of
from curatord.core.curation import WITHDRAWN, Proposal
from curatord.core.library import LibraryProblem
from curatord.core.plan import Archive, Patch
from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.passes.proposals import KIND_ARCHIVE, KIND_HELD
from curatord.passes.withdrawing import withdraw_gone
from tests.distil_world import DistilWorld, patch, reply
from tests.fakes.dead_disk import dead_disk
from tests.fakes.stub import needs_stub, stub

pytestmark = needs_stub

CORRECTED = ["deploy it", "that is wrong, you forgot the log", "now it works, thanks"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DistilWorld]:
    """Yield a world in which a change of `deploy`'s description waits for a yes."""
    script = [reply(patch("deploy", "Use when deploying", "Use when deploying the app"))]
    with stub(tmp_path, script=script) as server:
        world = DistilWorld(folder=tmp_path, url=server.url)
        world.skill("deploy", description="Use when deploying it.")
        world.skill("notes", "# Notes\n\n1. Write them.\n")
        world.session("s1", CORRECTED)
        world.run()
        assert ["patch"] == [row["kind"] for row in world.app.pending()]
        yield world


def status(world: DistilWorld) -> tuple[str, str]:
    """Return how the one proposal was decided, and why."""
    (proposal,) = world.parts.store.proposals(None)
    row = world.parts.database.connection.execute(
        "SELECT status, decided_reason FROM proposals WHERE id = ?", (proposal.id,)
    ).fetchone()
    return str(row[0]), str(row[1])


def test_many_lessons_on_one_skill_are_one_question_of_one_page(tmp_path: Path) -> None:
    """Whatever the kinds: one waits, and a person can read why; a run counts what waits, and not what was replaced."""
    many = 30
    script = [
        reply(
            {
                "op": "write_file",
                "skill": "deploy",
                "path": f"scripts/check-{n}.sh",
                "content": f"#!/bin/sh\nmake check-{n}\n",
                "reason": f"reason {n} " * 20,
            }
            if n % 2
            else patch("deploy", "Use when deploying", f"Use when {n} deploying")
            if n == 0
            else patch("deploy", "1. Build it.", f"1. Build it {n}.\n1. Build it.")
        )
        for n in range(many)
    ]
    with stub(tmp_path, script=script) as server:
        world = DistilWorld(folder=tmp_path, url=server.url)
        world.skill("deploy", description="Use when deploying it.")
        for number in range(many):
            world.session(f"s{number}", CORRECTED, ago=60 - number)
        record = world.run()

        (waiting,) = world.app.pending()
        assert [waiting["id"]] == record["pending"]
        assert "1 waiting for your decision" in record["summary"]
        assert 2_500 > len(waiting["reason"])
        assert 1 == waiting["reason"].count("another change of it waits already")
        assert "it changes the description" in waiting["reason"]
        assert "it touches scripts/check-1.sh" in waiting["reason"]
        assert 1 == len(world.app.approve([waiting["id"]])["done"])
        assert 15 == len(list((world.skills / "deploy" / "scripts").iterdir()))
        assert "Build it 28" in world.text("deploy")


def test_archiving_the_skill_withdraws_what_waits_on_it(world: DistilWorld) -> None:
    """At once, with the reason; `status` counts it no more."""
    world.app.archive(["deploy"])

    assert [] == world.app.pending()
    assert ("superseded", "withdrawn: lib/deploy was archived") == status(world)
    assert 0 == world.app.status()["pending"]


def test_bringing_the_skill_back_brings_back_what_waited(world: DistilWorld) -> None:
    """An archiving by mistake costs no lesson; where the skill came back as another text, it stays withdrawn."""
    path = world.skills / "deploy" / "SKILL.md"
    world.app.archive(["deploy"])
    world.app.restore(["deploy"], anyway=False)
    record = world.run(llm=False)
    (waiting,) = world.app.pending()
    world.app.archive(["deploy"])
    world.app.restore(["deploy"], anyway=False)
    path.write_text(path.read_text(encoding="utf-8") + "\nMine.\n", encoding="utf-8")
    world.run(llm=False)

    assert "waits again" in " ".join(record["warnings"])
    assert "patch" == waiting["kind"]
    assert [] == world.app.pending()
    assert "superseded" == world.app.diff(waiting["id"])["status"]
    assert "withdrawn" in world.app.diff(waiting["id"])["decided_reason"]


def test_deleting_the_skill_withdraws_what_waits_on_it(world: DistilWorld) -> None:
    """It is not listed from then on, and the next look says why."""
    shutil.rmtree(world.skills / "deploy")
    listed = world.app.pending()
    record = world.run(llm=False)

    assert [] == listed
    assert "is not asked any more: lib/deploy is not in the library any more" in " ".join(record["warnings"])
    assert ("superseded", "withdrawn: lib/deploy is not in the library any more") == status(world)


def test_a_yes_to_what_is_gone_withdraws_it(world: DistilWorld) -> None:
    """Whoever names it is told, and it does not stay for good."""
    (waiting,) = world.app.pending()
    shutil.rmtree(world.skills / "deploy")

    changes = world.app.approve([waiting["id"]])

    assert ["gone"] == [row["code"] for row in changes["skipped"]]
    assert "superseded" == status(world)[0]


def test_a_new_skill_that_somebody_made_meanwhile_is_not_asked_any_more(tmp_path: Path) -> None:
    """Its name is taken; what it would have said is in the proposal's diff still."""
    with stub(tmp_path) as server:
        world = DistilWorld(
            folder=tmp_path, url=server.url, sections={"mode": "review", "umbrella": {"enabled": False}}
        )
        world.skill("notes", "# Notes\n\n1. Write them.\n")
        world.wish("s1", "deploy-kit")
        world.run()
        (waiting,) = world.app.pending()
        world.skill("deploy-kit")
        world.run(llm=False)

        assert "create" == waiting["kind"]
        assert [] == world.app.pending()
        assert ("superseded", "withdrawn: lib/deploy-kit stands there by now") == status(world)
        assert "+# deploy-kit" in world.app.diff(waiting["id"])["diff"]


def test_a_library_that_is_away_withdraws_nothing(world: DistilWorld) -> None:
    """An empty folder may be one that is not mounted; what waits is listed, and stays."""
    aside = world.folder / "aside"
    world.skills.rename(aside)
    world.skills.mkdir()
    world.run(llm=False)
    listed = [row["kind"] for row in world.app.pending()]
    world.skills.rmdir()
    aside.rename(world.skills)

    (waiting,) = world.app.pending()
    assert ["patch"] == listed
    assert 1 == len(world.app.approve([waiting["id"]])["done"])


def test_what_waits_on_another_skill_stays(world: DistilWorld) -> None:
    """Only the proposals on the skill that went are taken back."""
    world.app.archive(["notes"])

    assert 1 == len(world.app.pending())


def test_a_yes_that_an_edit_overtook_says_what_to_do(world: DistilWorld) -> None:
    """The edit wins, and the way out is named; following it empties the list."""
    path = world.skills / "deploy" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nMine.\n", encoding="utf-8")
    (waiting,) = world.app.pending()

    changes = world.app.approve([waiting["id"]])
    world.app.reject([waiting["id"]], reason=None)

    assert ["edited"] == [row["code"] for row in changes["skipped"]]
    assert f"curatord diff {waiting['id']}" in changes["hint"]
    assert f"curatord reject {waiting['id']}" in changes["hint"]
    assert [] == world.app.pending()


def test_a_dry_run_withdraws_nothing_and_says_what_a_run_would(world: DistilWorld) -> None:
    """No proposal is decided by looking: the next run that is none does what was said."""
    shutil.rmtree(world.skills / "deploy")
    dry = world.run(dry_run=True, llm=False)
    left = [proposal.status for proposal in world.parts.store.proposals(None)]
    world.run(llm=False)

    assert ["pending"] == left
    assert "would not be asked any more: lib/deploy is not in the library" in " ".join(dry["warnings"])
    assert "superseded" == status(world)[0]


def test_a_dry_run_asks_nothing_again_and_says_what_a_run_would(world: DistilWorld) -> None:
    """What was withdrawn and could be done now stays as it is, and is named."""
    world.app.archive(["deploy"])
    world.app.restore(["deploy"], anyway=False)
    dry = world.run(dry_run=True, llm=False)
    left = [proposal.status for proposal in world.parts.store.proposals(None)]
    world.run(llm=False)

    assert ["superseded"] == left
    assert "would wait again" in " ".join(dry["warnings"])
    assert ["patch"] == [row["kind"] for row in world.app.pending()]


def test_a_look_that_tells_nobody_withdraws_nothing(world: DistilWorld) -> None:
    """Commands that look and remember, but have no word for it, leave it to the next run."""
    shutil.rmtree(world.skills / "deploy")
    world.app.adopt(["notes"], everything=False, agent_made=False, dry_run=True)

    assert "pending" == world.parts.store.proposals(None)[0].status


def test_a_batch_that_is_a_run_says_what_it_withdraws(tmp_path: Path) -> None:
    """What waits on a skill that is gone is taken back between runs too, and the batch's record names it."""
    script = [
        reply(patch("deploy", "Use when deploying", "Use when deploying the app")),
        reply(patch("notes", "1. Write them.", "1. Write them.\n1. Read them.")),
    ]
    with stub(tmp_path, script=script) as server:
        world = DistilWorld(folder=tmp_path, url=server.url)
        world.skill("deploy", description="Use when deploying it.")
        world.skill("notes", "# Notes\n\n1. Write them.\n")
        world.session("s1", CORRECTED)
        world.run()
        (waiting,) = world.app.pending()
        shutil.rmtree(world.skills / "deploy")
        world.session("s2", CORRECTED)
        world.batch()
        batch = world.parts.folders.read(world.parts.store.runs(1)[0].run_id)

        assert "Read them" in world.text("notes")
        assert "distil" == batch["trigger"]
        assert f"{waiting['summary']} ({waiting['id']}) is not asked any more" in " ".join(batch["warnings"])
        assert "superseded" == status(world)[0]


def test_a_run_of_one_library_leaves_what_waits_on_another(world: DistilWorld) -> None:
    """Nothing is taken back there, and nothing asked again; the run of all does both."""
    other = {"name": "other", "path": str(world.folder / "other"), "host": "claude-code"}
    (world.folder / "other").mkdir()
    world.reopen(sections={"libraries": [world.config()["libraries"][0], other]})
    away = (world.skills / "deploy").rename(world.folder / "deploy")

    assert "is not asked any more" not in str(world.run(library="other", llm=False)["warnings"])
    assert "pending" == status(world)[0]
    assert "is not asked any more" in str(world.run(llm=False)["warnings"])
    assert "superseded" == status(world)[0]

    away.rename(world.skills / "deploy")
    assert "waits again" not in str(world.run(library="other", llm=False)["warnings"])
    assert "superseded" == status(world)[0]
    assert "waits again" in str(world.run(library="lib", llm=False)["warnings"])
    assert "pending" == status(world)[0]


def test_status_counts_what_pending_lists(world: DistilWorld) -> None:
    """Also before a run has taken back what nobody can say yes to, and so do the figures."""
    before = world.app.status()["pending"]
    shutil.rmtree(world.skills / "deploy")

    assert 1 == before
    assert [] == world.app.pending()
    assert 0 == world.app.status()["pending"]
    assert 0 == gauges_of(world.parts).pending


def test_a_dead_disk_keeps_no_status_waiting(world: DistilWorld) -> None:
    """Nobody can tell whether the skill is there, so what waits on it is counted, and in the figures too."""
    shutil.rmtree(world.skills / "deploy")
    with dead_disk(world.skills):
        assert 1 == world.app.status()["pending"]
        assert 1 == gauges_of(world.parts).pending

    assert 0 == world.app.status()["pending"]


def test_what_nobody_can_look_at_may_be_there(world: DistilWorld) -> None:
    """What waits on a skill in a folder that cannot be entered is listed and counted; here a loop stands for one."""
    (waiting,) = world.parts.store.proposals("pending")
    (action,) = waiting.actions
    assert isinstance(action, Patch)
    key = replace(action.key, rel=RelPath("closed/deploy"))
    world.parts.store.propose(
        replace(waiting, id="closed", kind="closed", targets=(key,), actions=(struct_replace(action, key=key),))
    )
    (world.skills / "closed").symlink_to("closed")

    assert ["closed", waiting.id] == sorted(row["id"] for row in world.app.pending())
    assert 2 == world.app.status()["pending"]


def test_what_waits_is_read_once_however_much_was_withdrawn(
    world: DistilWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of what was withdrawn only that which may be asked again."""
    store = world.parts.store
    (waiting,) = store.proposals("pending")
    for number in range(5):
        store.propose(replace(waiting, id=f"id{number}", kind=f"kind{number}"))
        store.decide(f"id{number}", "superseded", now=world.clock.at, reason=WITHDRAWN + "gone")
    look = world.parts.look()
    asked: list[str | timedelta | None] = []
    proposals, withdrawn = store.proposals, store.withdrawn

    def counted(_: object, status: str | None = "pending") -> tuple[Proposal, ...]:
        asked.append(status)
        return proposals(status)

    def since(_: object, *, since: datetime) -> tuple[Proposal, ...]:
        asked.append(look.now - since)
        return withdrawn(since=since)

    monkeypatch.setattr(type(store), "proposals", counted)
    monkeypatch.setattr(type(store), "withdrawn", since)

    assert () == withdraw_gone(store, look)
    assert ["pending", timedelta(days=90)] == asked


@pytest.mark.parametrize("doubt", ["not whole", "only looked at"])
def test_a_library_that_leaves_a_doubt_withdraws_nothing(world: DistilWorld, doubt: str) -> None:
    """What was not found may be in a part that could not be read, or behind what makes it be looked at only."""
    shutil.rmtree(world.skills / "deploy")
    look = world.parts.look()
    ((name, library),) = look.libraries.items()
    problem = LibraryProblem(library=name, code="x", severity="observe", words="it is odd")
    seen: dict[str, Any] = {"complete": False} if doubt == "not whole" else {"problems": (problem,)}
    doubted = replace(look, libraries={name: replace(library, snapshot=replace(library.snapshot, **seen))})

    assert () == withdraw_gone(world.parts.store, doubted)
    assert 1 == len(withdraw_gone(world.parts.store, look))


def test_of_several_withdrawn_on_one_skill_one_is_asked_again(world: DistilWorld) -> None:
    """Which of them could still be done after the other, nobody knows."""
    store = world.parts.store
    (waiting,) = store.proposals("pending")
    store.propose(replace(waiting, id="second", kind="second"))
    for proposal in store.proposals("pending"):
        store.decide(proposal.id, "superseded", now=world.clock.at, reason=WITHDRAWN + "gone")

    assert 1 == len(withdraw_gone(store, world.parts.look()))
    assert 1 == len(store.proposals("pending"))


@pytest.mark.parametrize("kind", [KIND_ARCHIVE, KIND_HELD])
def test_archivings_are_not_asked_again_but_by_the_rules(world: DistilWorld, kind: str) -> None:
    """Whether of one or of many: the skill that is back may be in use, and the rules judge it anew."""
    key = SkillKey(library=LibraryName("lib"), rel=RelPath("notes"))
    look = world.parts.look()
    action = Archive(key=key, reason="r", expected=look.live[key].fingerprint)
    proposal = Proposal(
        id="held", kind=kind, library=key.library, targets=(key,), summary="s", reason="r", created_at=look.now,
        actions=(action,),
    )  # fmt: skip
    world.parts.store.propose(proposal)
    world.parts.store.decide("held", "superseded", now=look.now, reason=WITHDRAWN + "it was gone")

    assert () == withdraw_gone(world.parts.store, look)
    assert "superseded" == world.app.diff("held")["status"]
