"""The stub server's faults, alone and mixed, at any call: the library stays whole, the record says what was."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pytest

from curatord.adapters.model_http import HttpModel
from curatord.adapters.model_openai import OpenAiChat
from curatord.core.agent_skills import violations
from curatord.core.endpoint import Endpoint
from tests.fakes.stub import Stub, needs_stub, stub
from tests.passes.test_umbrella import names, two_families
from tests.umbrella_home import UmbrellaHome, contents

FAULTS = (
    *("400", "401", "404", "429", "429-retry-after", "500", "503", "529", "drop"),
    *("cut-json", "cut-finished", "empty", "null-choices", "not-json", "think", "fence", "prose"),
    *("schema-refused", "no-usage", "wrong-umbrella", "unknown-member", "path-escape", "protected-name"),
    *("dup-member", "cycle", "huge"),
)
HARMLESS = {"think", "fence", "prose", "schema-refused", "no-usage", "protected-name"}

pytestmark = needs_stub


def the_model(home: UmbrellaHome, server: Stub) -> HttpModel:
    """Return the real client of the stub; waits pass at once."""
    endpoint = Endpoint(
        api="openai-chat", base_url=server.url, model="stub", context_tokens=32_000, timeout=timedelta(seconds=3)
    )
    return HttpModel(
        lambda: (endpoint, None),
        dialects={"openai-chat": OpenAiChat()},
        memory=home.endpoint_memory,
        clock=home.clock,
        sleep=home.clock.sleep,
        chance=lambda: 0.0,
    )


def a_home(base: Path) -> UmbrellaHome:
    """Write the library: two families, a loner, and two that must not be touched."""
    home = two_families(UmbrellaHome(base=base, pinned={"pinned-one"}, unmanaged={"bundled-one"}))
    home.skill("pinned-one")
    home.skill("bundled-one")
    return home


TRUTH = {
    "dns-a": "dns-kit",
    "dns-b": "dns-kit",
    "dns-c": "dns-kit",
    "git-x": "git-kit",
    "git-y": "git-kit",
    "bread": None,
}


def run_and_check(tmp_path: Path, faults: list[str]) -> tuple[UmbrellaHome, str, list[str]]:
    """Run once against the stub with *faults*, and hold the library to the promises."""
    base = tmp_path / "h"
    base.mkdir()
    home = a_home(base)
    before = {str(skill.name): contents(home.root / skill.name) for skill in home.snapshot().skills}
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH), encoding="utf-8")
    arguments = [part for fault in faults for part in ("--fault", fault)]
    with stub(tmp_path, "--truth", str(tmp_path / "truth.json"), *arguments) as server:
        result = home.run(home.consultation(the_model(home, server), workers=2))
    live = names(home)
    for name in ("pinned-one", "bundled-one"):
        assert before[name] == contents(home.root / name)
    for name, files in before.items():
        if name not in live:
            assert files == contents(home.archive / name)
        elif name != "bread":
            assert files == contents(home.root / name)
    for name in live:
        assert [] == violations((home.root / name / "SKILL.md").read_bytes(), name, "agent-skills")
    assert {row["name"] for row in result.consolidated} == set(before) - set(live)
    assert result.state in ("done", "failed", "budget")
    if result.state == "failed":
        assert result.reason
        assert sorted(before) == live
    told = [
        *(row.reason for row in result.skipped),
        *(text for one in result.libraries for row in one["rounds"] for text in (*row["violations"], *row["notes"])),
        result.reason,
    ]
    home.close()
    return home, result.state, [text for text in told if text]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_call(tmp_path: Path, fault: str) -> None:
    """Whatever keeps going wrong, nothing is half done, and where nothing could be merged the record says why."""
    home, state, told = run_and_check(tmp_path, [f"{fault}:0"])

    merged = len(names(home)) < 8
    assert merged or told
    if fault in HARMLESS:
        assert merged
        assert "done" == state


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_the_first_call(tmp_path: Path, fault: str) -> None:
    """What passes is repaired or tried again, and the run does its work; what does not pass changes nothing."""
    home, state, told = run_and_check(tmp_path, [f"{fault}:1"])

    if state == "failed":
        assert told
    else:
        assert {"bread", "dns-kit", "git-kit"} <= set(names(home)) or told


@pytest.mark.parametrize("fault", ["unknown-member", "path-escape", "dup-member", "cut-json", "cut-finished", "empty"])
def test_one_bad_cluster_falls_and_the_other_stays(tmp_path: Path, fault: str) -> None:
    """Two bad answers about a cluster: its question and the repair."""
    home, state, _ = run_and_check(tmp_path, [f"{fault}:2:merge"])

    assert "done" == state
    assert len(names(home)) < 8


@pytest.mark.parametrize("seed", range(12))
def test_random_mixtures(tmp_path: Path, seed: int) -> None:
    """Any faults, any number of times, at any task."""
    dice = random.Random(seed)
    faults = [
        f"{dice.choice(FAULTS)}:{dice.randint(1, 3)}:{dice.choice(['survey', 'merge'])}"
        for _ in range(dice.randint(1, 5))
    ]

    run_and_check(tmp_path, faults)
