"""The examination of the libraries."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from curatord.adapters.vitals.daemons import other_daemons
from curatord.adapters.vitals.mounts import existing
from curatord.application.doctor.ward import Ward
from curatord.core.cheap import replace
from curatord.core.doctor import Check
from curatord.core.doctor.libraries import HostCurator, LibraryFacts, check_libraries
from curatord.core.ownership import LibraryView, decide
from curatord.core.small_facts import library_facts
from curatord.core.values import LibraryName

if TYPE_CHECKING:
    from curatord.core.settings import LibrarySettings

__all__ = ["libraries"]

_UNSEEN = frozenset({"missing", "unreadable"})
_RIGHTS = frozenset({"read-only"})  # told by what is asked of the disk here, with what hangs on it


def libraries(ward: Ward) -> Sequence[Check]:
    """Return how each configured library is."""
    ours = [(settings.name, settings.path) for settings in ward.parts.config.libraries]
    found, _ = other_daemons(ward.parts.state_dir, ours)
    facts = []
    testimony = None if ward.forgot else ward.parts.testimony({})
    for settings, library in ward.parts.libraries:
        others = [
            f"process {other.pid} with the state folder {other.state_dir}"
            for other in found
            if settings.name in other.shared
        ]
        seen = _facts(ward, settings, ward.parts.library_view(settings, library), others)
        if testimony is not None:
            seen = replace(seen, held=testimony.clock(settings, first_scan_at=None, doubts=()).doubts)
        facts.append(seen)
    return check_libraries(facts)


def _facts(ward: Ward, settings: LibrarySettings, view: LibraryView, others: Sequence[str]) -> LibraryFacts:
    snapshot, hermes = view.snapshot, view.hermes
    records = ward.parts.store.skills(LibraryName(settings.name))
    conflicts = [problem for problem in ward.parts.conflicts if problem.library == settings.name]
    problems = [*snapshot.problems, *conflicts]
    missing = next((problem.words for problem in problems if problem.code in _UNSEEN), None)
    archive = existing(snapshot.archive)
    # What is handed over is, also while the library can only be looked at; that is what makes it matter.
    whose = replace(view.facts, observed=())
    return LibraryFacts(
        name=settings.name,
        path=settings.path,
        host=settings.host,
        layout=snapshot.layout,
        manage=settings.manage,
        missing=missing,
        conflicts=[
            (problem.words, problem.hint)
            for problem in problems
            if problem.severity != "note" and problem.code not in _UNSEEN | _RIGHTS
        ],
        skills=len(snapshot.skills),
        managed=sum(decide(skill, whose, records.get(skill.key), settings).managed for skill in snapshot.skills),
        managed_unknown=ward.forgot,
        broken=[f"{skill.key.rel}: {skill.broken}" for skill in snapshot.skills if skill.broken is not None],
        archived=len(snapshot.archived),
        archive=snapshot.archive,
        unjudged=view.facts.unjudged,
        writable=None if missing else _may_write(snapshot.root),
        archive_apart=None if missing else archive.stat().st_dev != os.stat(snapshot.root).st_dev,  # noqa: PTH116 - text
        archive_writable=None if missing else _may_write(str(archive)),
        unlisted=[problem.words for problem in problems if problem.code == "unlisted"],
        schedule_unreadable=None if hermes is None else hermes.schedule_unreadable,
        warnings=[
            *(() if hermes is None else hermes.warnings),
            *(p.words for p in problems if p.severity == "note" and p.code != "unlisted"),
        ],
        curator=None
        if hermes is None
        else HostCurator(
            enabled=hermes.config.curator_enabled,
            paused=hermes.curator.paused,
            at_work=hermes.claim is not None and hermes.claim.holds(ward.now),
            asked=settings.host_curator,
        ),
        others=others,
        recorded=[words for words in _recorded(ward, settings) if words not in {problem.words for problem in problems}],
    )


def _recorded(ward: Ward, settings: LibrarySettings) -> list[str]:
    """Return what the newest look that was remembered found wrong with the library."""
    told: list[str] = json.loads(ward.parts.store.meta(library_facts(settings.name)) or "{}").get("problems", [])
    return told


def _may_write(path: str) -> bool:
    return os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
