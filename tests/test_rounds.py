"""What the application of a daemon forgets between rounds, and whose files a run may write before it decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatord.adapters.instance import SILENT_AFTER, DaemonInstance
from curatord.application.status import status
from curatord.application.working import Service
from curatord.cli import exits
from curatord.cli.app import Surroundings
from curatord.config import parse
from curatord.core.curation import RunRow
from curatord.core.values import LibraryName, Mode, Outcome, RunId, Trigger
from curatord.core.words import iso
from curatord.wiring import Parts

LIB = LibraryName("lib")


def skill(root: Path, rel: str) -> None:
    (root / rel).mkdir(parents=True)
    (root / rel / "SKILL.md").write_text(f"---\nname: {rel}\ndescription: does\n---\n")


def parts_of(tmp_path: Path, text: str) -> Parts:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    config = f"state_dir: {tmp_path / 'state'}\n{text}"
    loaded = parse(config.encode(), {"HOME": str(home)}, file="curatord.yaml", home=str(home))
    return Parts(loaded.config, Surroundings(), environ={"HOME": str(home)})


def hermes(tmp_path: Path, name: str = "hermes") -> Path:
    root = tmp_path / name / "skills"
    skill(root, "one")
    (root / ".usage.json").write_text("{}")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "hermes" / "skills"


def configured(root: Path, **more: str) -> str:
    options = "".join(f", {name}: {value}" for name, value in more.items())
    return f"libraries:\n  - {{name: lib, path: {root}, host: hermes{options}}}\n"


def test_a_library_that_comes_back_is_its_hosts_again(tmp_path: Path, root: Path) -> None:
    """Away at the start, back later: what is written from then on holds the host's locks and keeps its records."""
    parts = parts_of(tmp_path, configured(root))
    service = Service(parts)
    service.begin_round()
    applier = parts.applier
    before = applier.sites[LIB].home
    hermes(tmp_path)
    service.begin_round()

    assert before is None
    assert str(root.parent) == parts.applier.sites[LIB].home
    assert str(root.parent) == applier.sites[LIB].home  # nor does one that lives on from before keep the doubt
    parts.close()


def test_a_round_keeps_the_database_and_the_readers(tmp_path: Path, root: Path) -> None:
    """An idle minute opens nothing anew."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root) + "sources: [{host: codex}]\n")
    kept = [parts.database, parts.ingest_store, parts.placed_sources, parts.opened_sources, parts.log]

    parts.begin_round()

    assert all(
        one is other
        for one, other in zip(
            kept,
            [parts.database, parts.ingest_store, parts.placed_sources, parts.opened_sources, parts.log],
            strict=True,
        )
    )
    parts.close()


def test_places_are_looked_for_at_each_round(tmp_path: Path, root: Path) -> None:
    """A profile of a host that is made while the daemon runs is read and watched."""
    parts = parts_of(tmp_path, "sources: [{host: hermes}]\n")
    service = Service(parts)
    service.begin_round()
    before = list(service.watch_roots())
    profile = tmp_path / "home" / ".hermes" / "profiles" / "work"
    profile.mkdir(parents=True)
    service.begin_round()

    assert profile not in before
    assert profile in service.watch_roots()
    assert str(profile) in [source.path for source in parts.opened_sources]
    parts.close()


def test_a_library_that_is_away_costs_a_warning(tmp_path: Path, root: Path) -> None:
    """It went between the look at where it is and the writing: the run goes on, and says what it could not do."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root, host_curator="pause"))
    assert parts.sites[LIB].home is not None
    root.rename(tmp_path / "unmounted")

    warnings = parts.keep_house([LIB])

    assert 1 == len(warnings)
    assert "lib" in warnings[0]
    assert "could not be paused" in warnings[0]
    parts.close()


@pytest.mark.parametrize(("manage", "names"), [("all", []), ("none", [LIB])])
def test_a_host_is_left_alone_where_its_library_is(
    tmp_path: Path, root: Path, manage: str, names: list[LibraryName]
) -> None:
    """A library that is no part of this run, or in which nothing is handed over, has no file written."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root, host_curator="pause", manage=manage))

    warnings = parts.keep_house(names)

    assert [] == warnings
    assert not (root / ".curator_state").exists()
    parts.close()


def test_the_host_of_a_library_of_this_run_is_paused(tmp_path: Path, root: Path) -> None:
    """As was asked for."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root, host_curator="pause", manage="all"))

    warnings = parts.keep_house([LIB])

    assert [] == warnings
    assert "paused" in (root / ".curator_state").read_text()
    parts.close()


def status_of(parts: Parts) -> dict[str, object]:
    return dict(status(parts)["daemon"])


def test_a_failed_last_run_is_trouble(tmp_path: Path, root: Path) -> None:
    """A daemon whose every run fails does not pass the health check, until one succeeds."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root))
    now = parts.clock.now()

    def ran(number: int, outcome: Outcome) -> None:
        parts.database  # noqa: B018 - opened for writing
        parts.store.put_run(
            RunRow(
                run_id=RunId(f"2026030{number}-100000"),
                trigger=Trigger.SCHEDULE,
                dry_run=False,
                mode=Mode.AUTO,
                outcome=outcome,
                started_at=now,
                finished_at=now,
                duration_s=1.0,
                summary="it broke" if outcome is Outcome.FAILED else "all well",
            )
        )

    with DaemonInstance(parts.make_state_dir()) as instance:
        instance.publish({"pid": 1, "at": iso(now)})
        codes = [exits.of_status(status(parts), check=True)]
        ran(1, Outcome.FAILED)
        codes.append(exits.of_status(status(parts), check=True))
        words = status_of(parts)["last_error"]
        ran(2, Outcome.OK)
        codes.append(exits.of_status(status(parts), check=True))

    assert "the last run failed: it broke" == words
    assert [exits.OK, exits.SKIPPED, exits.OK] == codes
    parts.close()


def test_a_silent_daemon_is_unhealthy(tmp_path: Path, root: Path) -> None:
    """It holds its lock and says nothing: the check looks at when its worker last did."""
    hermes(tmp_path)
    parts = parts_of(tmp_path, configured(root))
    at = parts.clock.now() - 2 * SILENT_AFTER

    with DaemonInstance(parts.make_state_dir()) as instance:
        instance.publish({"pid": 1, "at": iso(at), "last_error": None})
        shown = status(parts)

    assert iso(at) == shown["daemon"]["at"]
    assert "no sign of life" in shown["daemon"]["last_error"]
    assert exits.SKIPPED == exits.of_status(shown, check=True)
    assert exits.OK == exits.of_status(shown, check=False)
    parts.close()
