"""The examination of the sources."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.adapters.vitals.transcripts import list_transcripts, retention_of
from curatord.application.doctor.ward import Ward
from curatord.core.doctor import Check
from curatord.core.doctor.sources import Counted, SourceFacts, check_sources
from curatord.ports.ingest_store import Known, SourceState

__all__ = ["transcripts"]


def transcripts(ward: Ward) -> Sequence[Check]:
    """Return how each place with transcripts is."""
    from curatord.adapters.sources.places import places

    parts = ward.parts
    why = {
        (settings.host, place.path): place.why
        for settings in parts.config.sources
        for place in places(settings, parts.environ, home=parts.home)
    }
    facts = []
    for placed, source in zip(parts.placed_sources, parts.opened_sources, strict=True):
        state = ward.counted.get(placed.key)
        listing = list_transcripts(source, _known(ward, state))
        unread = listing.unread if state is not None else None
        facts.append(
            SourceFacts(
                host=placed.settings.host,
                path=placed.path,
                why=why.get((placed.settings.host, placed.path), "default"),
                exists=listing.exists,
                error=listing.error,
                files=listing.files,
                unread=None if unread is None else len(unread),
                unseen=listing.unseen,
                near=listing.near,
                counted=None if state is None else _counted(state),
                forgotten=ward.forgot,
                at_work=ward.daemon["alive"] and ward.daemon.get("activity") in ("starting", "scanning"),
                retention=retention_of(placed.settings.host, placed.path, listing.unread, ward.now),
            )
        )
    return check_sources(facts, ward.now)


def _known(ward: Ward, state: SourceState | None) -> dict[str, Known]:
    if state is None:
        return {}
    from curatord.adapters.store.ingest import IngestStore

    return IngestStore(ward.parts.looking_database).known(state.source_id)


def _counted(state: SourceState) -> Counted:
    return Counted(
        sessions=state.sessions,
        records=state.records,
        unreadable=state.unreadable,
        oversize=state.oversize,
        naive_times=state.naive_times,
        future_times=state.future_times,
        unknown=state.unknown,
        versions=state.versions,
        scanned_at=state.scanned_at,
        newest_record_at=state.newest_record_at,
        problems=state.problems,
        failing=state.failing,
        bad=state.bad,
        stretches=state.stretches,
    )
