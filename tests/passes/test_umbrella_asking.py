"""What the umbrella pass asks: remembered answers, budget, endings, parallel questions, contexts of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curatord.core.model import Fault, FaultKind
from curatord.core.settings import LlmBudget
from curatord.core.values import Mode
from tests.fakes.model import ScriptedModel
from tests.passes.test_umbrella import names, two_families
from tests.passes.umbrella_rules import Data, by_rule, merge_all, tasks
from tests.umbrella_home import UmbrellaHome, contents


@pytest.fixture
def home(tmp_path: Path) -> UmbrellaHome:
    """A library with two families and a loner."""
    return two_families(UmbrellaHome(base=tmp_path))


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing(home: UmbrellaHome) -> None:
    """In `auto` the library after a run is known, the closing survey too."""
    model = by_rule()
    home.run(model)
    asked = len(model.asked)

    result = home.run(model, run_id="20260301-130000")

    assert asked == len(model.asked)
    assert [] == result.consolidated
    assert "done" == result.state


def test_a_second_run_with_proposals_waiting_asks_nothing(home: UmbrellaHome) -> None:
    """The same proposals are made again of remembered answers, each still once."""
    model = by_rule()
    first = home.run(model, mode=Mode.GUARDED)
    asked = len(model.asked)

    second = home.run(model, mode=Mode.GUARDED)

    assert asked == len(model.asked)
    assert [row.id for row in first.pending] == [row.id for row in second.pending]
    assert 2 == len(home.applier().store.proposals())


def test_states_do_not_make_a_question_new(home: UmbrellaHome) -> None:
    """A skill that turned stale meanwhile is the same to a survey."""
    model = by_rule()
    home.run(model, mode=Mode.GUARDED)
    asked = len(model.asked)
    home.stale = {"dns-a": 3, "bread": 8}

    home.run(model, mode=Mode.GUARDED)

    assert asked == len(model.asked)


@pytest.mark.parametrize("mode", [Mode.GUARDED, Mode.AUTO])
def test_a_change_asks_only_about_what_it_touches(home: UmbrellaHome, mode: Mode) -> None:
    """A new skill is surveyed among its like, and only its own cluster is asked about."""
    for number in range(20):
        home.skill(f"solo{number}", description=f"Thing {number} of its own kind, word{number} other{number}")
    model = by_rule()
    home.run(model, mode=mode)
    asked = len(model.asked)
    home.skill("dns-d", "# D\n\nLook up even more.\n", description="DNS zone lookup of D records with dig")

    home.run(model, mode=mode, run_id="20260302-120000")

    new = model.asked[asked:]
    assert "survey" == new[0].task
    assert all("solo7" not in request.text for request in new)
    assert 1 == [request.task for request in new].count("merge")
    assert "dns-d" in next(request.text for request in new if request.task == "merge")
    asked = len(model.asked)
    home.run(model, mode=mode, run_id="20260303-120000")
    assert asked == len(model.asked)


def test_a_skill_that_is_gone_asks_nothing_about_the_rest(home: UmbrellaHome) -> None:
    """What was said of the others still holds."""
    model = by_rule()
    home.run(model, mode=Mode.GUARDED)
    asked = len(model.asked)
    for path in sorted((home.root / "bread").rglob("*"), reverse=True):
        path.unlink()
    (home.root / "bread").rmdir()

    result = home.run(model, mode=Mode.GUARDED)

    assert asked == len(model.asked)
    assert 2 == len(result.pending)


def test_a_users_prompt_takes_the_place_of_ours(home: UmbrellaHome, tmp_path: Path) -> None:
    """It is what the model is told, its hash is in the record, and old answers are not heard."""
    model = by_rule()
    first = home.run(model, mode=Mode.GUARDED)
    asked = len(model.asked)
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "survey.md").write_text("Find twins.", encoding="utf-8")

    second = home.run(model, mode=Mode.GUARDED, prompts=str(folder))

    assert model.asked[asked].system.startswith("Find twins.")
    assert first.prompts["survey.md"] != second.prompts["survey.md"]
    assert first.prompts["merge.md"] == second.prompts["merge.md"]


def test_the_prompt_stands_first_and_is_the_same_for_all(home: UmbrellaHome) -> None:
    """So that a server's prompt cache keeps it."""
    model = by_rule()

    home.run(model)

    assert 1 == len({request.system for request in model.asked if request.task == "merge"})
    assert all("<curatord-data>" not in request.system.partition("## Form")[0] for request in model.asked)


# --- Endings ----------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_fails_changes_nothing(home: UmbrellaHome) -> None:
    """Not even the merges that were answered before it failed."""
    before = contents(home.root)
    answered: list[str] = []

    def merge(data: Data) -> Any:
        answered.append(data["umbrella"]["name"])
        return merge_all(data) if len(answered) == 1 else Fault(kind=FaultKind.AUTH, message="key refused")

    result = home.run(home.consultation(by_rule(merge=merge), workers=1))

    assert "failed" == result.state
    assert "key refused" in result.reason
    assert before == contents(home.root)
    assert [] == result.consolidated


def test_the_answers_before_a_failure_are_not_paid_twice(home: UmbrellaHome) -> None:
    """The next run asks what is left."""
    failing = [Fault(kind=FaultKind.AUTH, message="key refused")]

    def merge(data: Data) -> Any:
        if data["umbrella"]["name"] == "git-kit" and failing:
            return failing.pop()
        return merge_all(data)

    model = by_rule(merge=merge)
    home.run(home.consultation(model, workers=1))
    asked = len(model.asked)

    home.run(home.consultation(model, workers=1, bypass_breaker=True))

    assert ["merge", "survey"] == tasks(model)[asked:]
    assert ["bread", "dns-kit", "git-kit"] == names(home)


def test_the_fallback_takes_over(home: UmbrellaHome) -> None:
    """Once per run, and the run goes on."""
    broken = ScriptedModel(rule=lambda _: Fault(kind=FaultKind.NETWORK, message="no route"))
    consultation = home.consultation(broken, fallback=by_rule())

    result = home.run(consultation)

    assert "done" == result.state
    assert ["bread", "dns-kit", "git-kit"] == names(home)
    assert consultation.record()["fallback_used"]


def test_a_budget_that_runs_out_uses_what_was_decided(home: UmbrellaHome) -> None:
    """Two calls: the survey and one cluster, which is merged; the other waits."""
    consultation = home.consultation(by_rule(), limits=LlmBudget(calls_per_run=2), workers=1)

    result = home.run(consultation)

    assert "budget" == result.state
    assert "calls_per_run" in result.reason
    assert ["bread", "dns-kit", "git-x", "git-y"] == names(home)


def test_a_stop_is_heard_between_two_calls(home: UmbrellaHome) -> None:
    """Nothing further is asked, and nothing is changed."""
    model = by_rule()
    before = contents(home.root)

    result = home.run(home.consultation(model, workers=1), stop=lambda: len(model.asked) >= 2)

    assert "stopped" == result.state
    assert 2 == len(model.asked)
    assert before == contents(home.root)


def test_an_answer_that_stays_bad_costs_its_own_cluster(home: UmbrellaHome) -> None:
    """It gets one repair, in which the reasons stand; the other cluster is merged."""

    def merge(data: Data) -> Data:
        reply = merge_all(data)
        if data["umbrella"]["name"] == "git-kit":
            reply["members"].append({"name": "never-heard-of", "how": "reference", "reason": "x"})
        return reply

    model = by_rule(merge=merge)

    result = home.run(model)

    assert ["bread", "dns-kit", "git-x", "git-y"] == names(home)
    assert any("`never-heard-of` is not among the members" in request.text for request in model.asked)
    assert any("never-heard-of" in row.reason for row in result.skipped)


# --- Sizes ------------------------------------------------------------------------------------------------------------


def test_questions_are_open_beside_each_other(home: UmbrellaHome) -> None:
    """As many as the consultation has workers, once the survey is answered."""
    for word in ("aa", "bb", "cc", "dd"):
        for letter in "xy":
            home.skill(f"{word}-{letter}", description=f"{word} work of {word} kind {letter}")
    model = by_rule()

    home.run(home.consultation(model, workers=3), mode=Mode.GUARDED)

    assert model.most_open <= 3
    assert 6 == tasks(model).count("merge")


def test_a_small_context_still_merges(tmp_path: Path) -> None:
    """With 8,192 tokens surveys and clusters are split, and one umbrella is made all the same."""
    home = UmbrellaHome(base=tmp_path)
    for number in range(60):
        told = f"DNS zone lookup number {number} with dig, name servers, caches and records " + "of the zone " * 20
        home.skill(f"dns-{number:02}", "# Title\n\n" + "Look at the zone and its records. " * 40, description=told)
    model = by_rule(context_tokens=8_192, output_limit=2_048)

    result = home.run(model)

    assert ["dns-kit"] == names(home)
    assert "done" == result.state
    assert tasks(model).count("merge") > 1
