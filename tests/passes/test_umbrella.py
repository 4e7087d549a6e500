"""The umbrella pass on a real library: modes, what is on disk afterwards, proposals, whom it never touches."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatord.core.plan import Skipped
from curatord.core.values import Mode
from curatord.passes.undo import undo
from tests.passes.umbrella_rules import Data, by_rule, decided, merge_all, survey_by_prefix
from tests.umbrella_home import NOW, UmbrellaHome, contents


@pytest.fixture
def home(tmp_path: Path) -> UmbrellaHome:
    """A library with two families and a loner."""
    return two_families(UmbrellaHome(base=tmp_path))


def two_families(home: UmbrellaHome) -> UmbrellaHome:
    """Write the skills that most tests here are about."""
    home.skill(
        "dns-a",
        "# A\n\nSee [b](../dns-b/SKILL.md).\n\n```sh\n# look\nbash scripts/look.sh\n```\n",
        description="DNS zone lookup of A records with dig",
        files={"scripts/look.sh": b"#!/bin/sh\ndig\n"},
        modes={"scripts/look.sh": 0o755},
    )
    home.skill("dns-b", "# B\n\nLook up the zone.\n", description="DNS zone lookup of B records with dig")
    home.skill("dns-c", "# C\n\nLook up more.\n", description="DNS zone lookup of C records with dig")
    home.skill("git-x", "# X\n\nRebase the branch.\n", description="git branch rebase of X commits")
    home.skill("git-y", "# Y\n\nMerge the branch.\n", description="git branch rebase of Y commits")
    home.skill("bread", "# Bread\n\n[zone](../dns-a/scripts/look.sh)\n", description="Bake bread with sourdough")
    return home


def names(home: UmbrellaHome) -> list[str]:
    """Return the live skills."""
    return [str(skill.key.rel) for skill in home.snapshot().skills]


# --- What is done -----------------------------------------------------------------------------------------------------


def test_auto_applies_and_reports_what_is_on_disk(home: UmbrellaHome) -> None:
    """Members are archived whole, the umbrella holds all of them, and each row says where."""
    before = {name: contents(home.root / name) for name in names(home)}

    result = home.run(by_rule())

    assert ["bread", "dns-kit", "git-kit"] == names(home)
    assert "done" == result.state
    assert ["dns-a", "dns-b", "dns-c", "git-x", "git-y"] == sorted(row["name"] for row in result.consolidated)
    first = next(row for row in result.consolidated if row["name"] == "dns-a")
    assert ("dns-kit", "reference", "same work") == (first["into"], first["how"], first["reason"])
    assert "dns-kit/references/dns-a.md" == first["evidence"]["path"]
    assert first["evidence"]["lines"][0] == first["evidence"]["lines"][1] > 0
    assert [1, 1] == first["evidence"]["support_files"]
    assert ["dns-kit", "git-kit"] == [row["name"] for row in result.added]
    for name in ("dns-c", "git-x", "git-y"):
        assert before[name] == contents(home.archive / name)
    script = home.root / "dns-kit" / "references" / "dns-a" / "scripts" / "look.sh"
    assert 0o755 == script.stat().st_mode & 0o777
    assert [] == result.failed


def test_the_archive_holds_the_originals_whatever_else_merged(home: UmbrellaHome) -> None:
    """A member that points at a member of another merge of the same run is archived as it was, not rewritten first."""
    home.skill("git-z", "# Z\n\n[a](../dns-a/SKILL.md) [x](../git-x/SKILL.md)\n", description="git branch rebase Z")
    home.skill("dns-d", "# D\n\n[x](../git-x/SKILL.md)\n", description="DNS zone lookup of D records")
    before = {name: contents(home.root / name) for name in ("git-z", "dns-d", "dns-a")}

    home.run(by_rule())

    assert before == {name: contents(home.archive / name) for name in before}
    assert "[a](../../dns-kit/references/dns-a.md)" in (home.root / "git-kit/references/git-z.md").read_text()
    assert "[x](../../git-kit/references/git-x.md)" in (home.root / "dns-kit/references/dns-d.md").read_text()


def test_references_in_other_skills_follow(home: UmbrellaHome) -> None:
    """A link from a skill that stays leads to the script's new place, and the report names it."""
    result = home.run(by_rule())

    text = (home.root / "bread" / "SKILL.md").read_text(encoding="utf-8")
    assert "[zone](../dns-kit/references/dns-a/scripts/look.sh)" in text
    assert ["../dns-a/scripts/look.sh"] == [row.before for row in result.references]


def test_schedules_of_the_host_follow(tmp_path: Path) -> None:
    """A job that names an absorbed skill names the umbrella afterwards."""
    home = UmbrellaHome(base=tmp_path, layout="hermes")
    home.skill("dns-a", description="DNS zone lookup A")
    home.skill("dns-b", description="DNS zone lookup B")
    jobs = home.root.parent / "cron" / "jobs.json"
    jobs.parent.mkdir()
    jobs.write_text('{"jobs": [{"id": "j1", "skills": ["dns-a", "dns-b"], "skill": "dns-a"}]}', encoding="utf-8")
    home.referenced = {"dns-a"}

    result = home.run(by_rule())

    assert '"skills": ["dns-kit"]' in jobs.read_text(encoding="utf-8")
    assert "dns-kit" in {row.after for row in result.references}


def test_flat_skills_merge_too(tmp_path: Path) -> None:
    """Files beside folders become references; an umbrella that was one file becomes a folder."""
    home = UmbrellaHome(base=tmp_path, layout="flat")
    for name in ("dns", "dns-a", "dns-b"):
        (home.root / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: DNS zone lookup {name}\n---\n\n# {name}\n\n[a](dns-a.md)\n",
            encoding="utf-8",
        )

    home.run(by_rule())

    assert ["dns"] == names(home)
    assert "[a](references/dns-a.md)" in (home.root / "dns" / "SKILL.md").read_text(encoding="utf-8")
    assert "[a](dns-a.md)" in (home.root / "dns" / "references" / "dns-b.md").read_text(encoding="utf-8")


def test_an_existing_umbrella_takes_members_in(home: UmbrellaHome) -> None:
    """Its header keeps every other byte, its body stays, an index stands behind it."""
    home.skill("dns", "# DNS\n\nOwn text.\n", description="All of DNS zone lookup", header="license: MIT  # mine\n")

    home.run(by_rule())

    text = (home.root / "dns" / "SKILL.md").read_text(encoding="utf-8")
    assert "license: MIT  # mine\n" in text
    assert "# DNS\n\nOwn text.\n" in text
    assert "- [Dns a](references/dns-a.md) (was `dns-a`)" in text
    assert ["bread", "dns", "git-kit"] == names(home)


def test_later_rounds_grow_what_this_run_made(home: UmbrellaHome) -> None:
    """The second round sees the planned umbrella and gives it another member; one merge does both."""
    rounds: list[list[str]] = []

    def survey(data: Data) -> Data:
        rounds.append([row["name"] for row in data["skills"]])
        if len(rounds) == 1:
            members = ["dns-a", "dns-b"]
            return {"clusters": [{"umbrella": "dns-kit", "existing": False, "members": members, "why": ""}]}
        if len(rounds) == 2:
            return {"clusters": [{"umbrella": "dns-kit", "existing": True, "members": ["dns-c"], "why": ""}]}
        return {"clusters": []}

    result = home.run(by_rule(survey))

    assert "dns-kit" in rounds[1]
    assert "dns-a" not in rounds[1]
    assert {"dns-a", "dns-b", "dns-c"} == {row["name"] for row in result.consolidated}
    assert 1 == len({row["action"] for row in result.consolidated})


def test_with_bodies_the_model_may_write_the_umbrella(home: UmbrellaHome) -> None:
    """What it left out of a member keeps that member's original as a reference."""

    def merge(data: Data) -> Data:
        reply = merge_all(data, how="section")
        bodies = {member["name"]: member["body"] for member in data["members"]}
        reply["umbrella"]["body"] = f"# Mine\n\n{bodies.get('dns-a', '')}\n\nThe rest in short.\n"
        return reply

    home.run(by_rule(merge=merge), detail="bodies")

    kit = home.root / "dns-kit"
    text = (kit / "SKILL.md").read_text(encoding="utf-8")
    assert "# Mine\n" in text
    assert "The rest in short." in text
    assert "Look up the zone." in (kit / "references" / "dns-b.md").read_text(encoding="utf-8")


# --- What only waits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.REVIEW, Mode.GUARDED])
def test_elsewhere_it_only_proposes(home: UmbrellaHome, mode: Mode) -> None:
    """Nothing changes; each merge waits with a diff that says what goes where."""
    before = contents(home.root)

    result = home.run(by_rule(), mode=mode)

    assert before == contents(home.root)
    assert 2 == len(result.pending)
    assert [] == result.consolidated
    proposal = home.applier().store.proposal(result.pending[0].id)
    assert proposal is not None
    assert "- lib/dns-a\n+ dns-kit: references/dns-a.md, 1 files to references/dns-a/" in proposal.diff
    assert "+++ dns-kit/SKILL.md after" in proposal.diff


def test_an_approved_proposal_does_what_it_showed(home: UmbrellaHome) -> None:
    """Approving is applying: the members are archived and the umbrella stands there."""
    result = home.run(by_rule(), mode=Mode.GUARDED)
    applier = home.applier()

    for row in result.pending:
        proposal = applier.store.proposal(row.id)
        assert proposal is not None
        applier.approve(proposal, now=NOW)

    assert ["bread", "dns-kit", "git-kit"] == names(home)


def test_approving_after_an_edit_is_refused(home: UmbrellaHome) -> None:
    """A member that was edited since keeps the whole merge from happening, and the reason names it."""
    home.run(by_rule(), mode=Mode.GUARDED)
    path = home.root / "dns-b" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    before = contents(home.root)
    applier = home.applier()
    proposal = next(p for p in applier.store.proposals() if "dns" in p.summary)

    (outcome,) = applier.approve(proposal, now=NOW)

    assert before == contents(home.root)
    assert isinstance(outcome, Skipped)
    assert "lib/dns-b: it was edited since this was decided" in outcome.reason


def test_undo_brings_everything_back_byte_for_byte(home: UmbrellaHome) -> None:
    """All of a run's merges are taken back: contents, modes and the texts of other skills."""
    before = contents(home.root)
    home.run(by_rule())

    undo(home.applier(), "20260301-120000", now=NOW)

    assert before == contents(home.root)


def test_a_rejected_merge_is_not_asked_again(home: UmbrellaHome) -> None:
    """Neither in `guarded` nor in `auto`, while no member changes."""
    model = by_rule()
    home.run(model, mode=Mode.GUARDED)
    applier = home.applier()
    for proposal in applier.store.proposals():
        applier.reject(proposal, now=NOW, reason="no")
    before = contents(home.root)

    guarded = home.run(model, mode=Mode.GUARDED)
    auto = home.run(model, mode=Mode.AUTO)

    assert [] == guarded.pending
    assert [] == auto.consolidated
    assert before == contents(home.root)
    assert any("rejected" in row.reason for row in auto.skipped)


def test_an_undone_merge_counts_as_rejected(home: UmbrellaHome) -> None:
    """What a person took back is not done again by the next run."""
    model = by_rule()
    home.run(model)
    undo(home.applier(), "20260301-120000", now=NOW)
    before = contents(home.root)

    result = home.run(model, run_id="20260302-120000")

    assert before == contents(home.root)
    assert [] == result.consolidated


def test_a_proposal_nobody_wants_any_more_is_withdrawn(home: UmbrellaHome) -> None:
    """A pin after the proposal takes it back with the next run."""
    model = by_rule()
    home.run(model, mode=Mode.GUARDED)
    home.pinned = {"git-x"}

    result = home.run(model, mode=Mode.GUARDED)

    assert [row.id for row in result.pending] == [proposal.id for proposal in home.applier().store.proposals()]
    assert 1 == len(result.pending)


def test_a_dry_run_changes_and_stores_nothing(home: UmbrellaHome) -> None:
    """It says what would be done, and no proposal is kept."""
    before = contents(home.root)

    auto = home.run(by_rule(), dry_run=True)
    guarded = home.run(by_rule(), dry_run=True, mode=Mode.GUARDED)

    assert before == contents(home.root)
    assert 5 == len(auto.consolidated)
    assert 2 == len(guarded.pending)
    assert () == home.applier().store.proposals()
    assert "+++ dns-kit/SKILL.md after" in guarded.proposals[0].diff


def test_what_has_nothing_in_common_is_only_proposed(home: UmbrellaHome) -> None:
    """In `auto` too, with the measured likeness in the reason (bugs B008)."""
    home.skill("tcp-dump", "# Dump\n\ntcpdump -i eth0\n", description="Capture packets with tcpdump on an interface")

    def survey(data: Data) -> Data:
        if "bread" not in [row["name"] for row in data["skills"]]:
            return {"clusters": [], "leave": []}
        members = ["bread", "tcp-dump"]
        return {"clusters": [{"umbrella": "things", "existing": False, "members": members, "why": "x"}], "leave": []}

    result = home.run(by_rule(survey))

    assert "bread" in names(home)
    assert [] == result.consolidated
    assert 1 == len(result.pending)
    assert "hardly a word in common" in result.pending[0].reason


def test_a_hand_edit_makes_it_a_proposal(home: UmbrellaHome) -> None:
    """Promise 10: a member that somebody edited is not merged without a yes."""
    home.edited = {"dns-b"}

    result = home.run(by_rule())

    assert ["bread", "dns-a", "dns-b", "dns-c", "git-kit"] == names(home)
    assert "edited by hand" in result.pending[0].reason


# --- Whom it leaves alone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pinned", "unmanaged"])
def test_pinned_and_unmanaged_skills_are_never_shown(home: UmbrellaHome, kind: str) -> None:
    """Not to a model, and their bytes stay (promise 4)."""
    setattr(home, kind, {"dns-c"})
    before = contents(home.root / "dns-c")
    model = by_rule()

    home.run(model)

    assert all('"dns-c"' not in request.text for request in model.asked)
    assert before == contents(home.root / "dns-c")


def test_what_a_pinned_skill_points_at_stays(home: UmbrellaHome) -> None:
    """Its link could not follow, so its target is not moved, with that reason."""
    home.pinned = {"bread"}

    result = home.run(by_rule())

    assert "dns-a" in names(home)
    assert "lib/bread points at it, and that may not be changed" in {row["reason"] for row in result.left}


def test_young_skills_are_left_alone(home: UmbrellaHome) -> None:
    """What a session made yesterday is not settled yet (bugs B007)."""
    home.young = {"dns-b"}

    result = home.run(by_rule())

    assert "dns-b" in names(home)
    assert any("too young" in row["reason"] for row in result.left)


def test_a_skill_with_a_link_in_it_is_left_alone(home: UmbrellaHome) -> None:
    """A link cannot be moved safely; the skill stays with that reason."""
    (home.root / "dns-b" / "link.md").symlink_to("SKILL.md")

    result = home.run(by_rule())

    assert "dns-b" in names(home)
    assert any("holds a link" in row["reason"] for row in result.left)


def test_an_umbrella_of_this_run_never_becomes_a_member(home: UmbrellaHome) -> None:
    """A chain is not made, and the record says what was asked for."""

    def survey(data: Data) -> Data:
        if "dns-kit" in [row["name"] for row in data["skills"]]:
            members = ["dns-kit", "git-kit"]
            return {"clusters": [{"umbrella": "everything", "existing": False, "members": members, "why": ""}]}
        return survey_by_prefix(data)

    result = home.run(by_rule(survey))

    assert ["bread", "dns-kit", "git-kit"] == names(home)
    told = [note for one in result.libraries for row in one["rounds"] for note in row["notes"]]
    assert any("may only gain members" in note for note in told)


def test_keep_and_silence_leave_skills_alone(home: UmbrellaHome) -> None:
    """What is kept, and what an answer does not name, stays with that reason."""
    merge = decided({"dns-a": "section", "dns-b": "section", "git-x": "keep"})

    result = home.run(by_rule(merge=merge))

    assert ["bread", "dns-c", "dns-kit", "git-x", "git-y"] == names(home)
    left = {row["name"]: row["reason"] for row in result.left}
    assert "the answer does not name it" == left["dns-c"]
    assert "same work" == left["git-x"]


def test_only_long_stale_skills_may_be_pruned(home: UmbrellaHome) -> None:
    """A fresh one keeps the whole cluster from being changed; a stale one goes to the archive by itself."""
    merge = decided({"dns-a": "section", "dns-b": "section", "dns-c": "prune"})

    fresh = home.run(by_rule(merge=merge), mode=Mode.AUTO)
    home.stale = {"dns-c": 20}
    stale = home.run(by_rule(merge=merge), run_id="20260302-120000")

    assert any("may not be pruned: it is not stale" in row.reason for row in fresh.skipped)
    assert ["dns-c"] == [row["name"] for row in stale.pruned]
    assert (home.archive / "dns-c").is_dir()


def test_prunes_count_against_the_cap(home: UmbrellaHome) -> None:
    """More than the run has left become one proposal, and the run is held."""
    home.stale = {"dns-c": 20, "git-y": 20}
    merge = decided({"dns-a": "keep", "dns-c": "prune", "git-x": "keep", "git-y": "prune"})

    result = home.run(by_rule(merge=merge), prune_room=1)

    assert result.held
    assert [] == result.pruned
    assert ["prune-held"] == [proposal.kind for proposal in result.proposals]


def test_a_library_that_may_only_be_observed_is_passed_by(home: UmbrellaHome) -> None:
    """With the reason as a warning."""
    (home.root / "SKILL.md").write_text("---\nname: skills\ndescription: d\n---\n", encoding="utf-8")
    model = by_rule()

    result = home.run(model)

    assert [] == model.asked
    assert any("nothing is merged there" in warning for warning in result.warnings)


# --- Without a model --------------------------------------------------------------------------------------------------


def test_without_a_model_the_pass_is_skipped(home: UmbrellaHome) -> None:
    """With the reason, and the way that needs none."""
    result = home.run(None)

    assert "skipped" == result.state
    assert "lexical" in result.reason


def test_the_lexical_planner_needs_no_model(home: UmbrellaHome) -> None:
    """It makes an index page of near skills, every member a reference, and loses nothing."""
    before = {name: contents(home.root / name) for name in names(home)}

    result = home.run(None, planner="lexical")

    assert 3 == len(names(home))
    assert {"reference"} == {row["how"] for row in result.consolidated}
    for row in result.consolidated:
        assert before[row["name"]] == contents(home.archive / row["name"])


def test_the_lexical_planner_comes_to_rest(home: UmbrellaHome) -> None:
    """A second run on what the first made changes nothing."""
    home.run(None, planner="lexical")
    before = contents(home.root)

    home.run(None, planner="lexical", run_id="20260302-120000")

    assert before == contents(home.root)


def test_what_was_spared_follows_what_was_merged(home: UmbrellaHome) -> None:
    """A member whose own merge falls at the last moment does not keep a dead link to what the run absorbed before."""
    home.skill("git-z", "# Z\n\n[a](../dns-a/SKILL.md)\n", description="git branch rebase of Z commits")
    path = home.root / "git-x" / "SKILL.md"

    def edit(_step: str) -> None:
        # The first merge is being written; somebody saves a skill of the second one.
        if (home.root / "dns-kit" / "SKILL.md").exists() and b"mine" not in path.read_bytes():
            path.write_bytes(path.read_bytes() + b"mine\n")

    home.hook = edit

    result = home.run(by_rule())

    assert ["bread", "dns-kit", "git-x", "git-y", "git-z"] == names(home)
    assert "[a](../dns-kit/references/dns-a.md)" in (home.root / "git-z" / "SKILL.md").read_text(encoding="utf-8")
    assert any("git-x" in row.reason for row in result.skipped)
    assert "lib/git-x" not in {str(row) for row in result.warnings}


def test_a_doubtful_answer_withdraws_no_proposal(home: UmbrellaHome) -> None:
    """What was planned before may still be right (promise 9)."""
    home.run(by_rule(), mode=Mode.GUARDED)
    home.skill("git-z", "# Z\n", description="git branch rebase of Z commits")

    home.run(
        by_rule(merge=lambda data: {} if "git" in data["umbrella"]["name"] else merge_all(data)), mode=Mode.GUARDED
    )

    assert 2 == len(home.applier().store.proposals())


def test_a_diff_can_be_read_by_a_person(home: UmbrellaHome) -> None:
    """Nothing in it can move a cursor or forge a line, whatever a skill or a model says."""
    home.skill("dns-d", "# D\x1b[2J\n", description="DNS zone lookup of D records")

    def merge(data: Data) -> Data:
        head = {"name": data["umbrella"]["name"], "description": "DNS \x1b[31m\u202e", "overview": "a\nb"}
        return merge_all(data) | {"umbrella": head}

    result = home.run(by_rule(merge=merge), mode=Mode.GUARDED)

    for proposal in result.proposals:
        assert "\x1b" not in proposal.diff
        assert "\u202e" not in proposal.diff
