"""
The ladder of migrations: small, named, in order, never changed once released; `PRAGMA user_version` counts them.

Until the first release migration 1 may still be edited in place. Each area of the product keeps its tables in a module
of its own; this one only puts them in order.
"""

from __future__ import annotations

from curatord.adapters.store.schema_answers import ANSWERS_1
from curatord.adapters.store.schema_curation import CURATION_1
from curatord.adapters.store.schema_distil import DISTIL_1, DISTIL_2
from curatord.adapters.store.schema_ingest import INGEST_1, INGEST_2
from curatord.adapters.store.schema_library import LIBRARY_1
from curatord.adapters.store.schema_stretches import STRETCHES_1
from curatord.core.cheap import dataclass

__all__ = ["MIGRATIONS", "Migration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the ladder: *statements* run in one transaction together with the step's number."""

    name: str
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(name="ingest: sources, files, sessions, events", statements=INGEST_1),
    Migration(name="curation: skills, runs, actions, proposals", statements=CURATION_1),
    Migration(name="library: kept readings of packages", statements=LIBRARY_1),
    Migration(name="umbrella: remembered answers of models", statements=ANSWERS_1),
    Migration(name="stretches: what was read by version and day", statements=STRETCHES_1),
    Migration(name="distil: sessions that were looked at, candidates", statements=DISTIL_1),
    Migration(name="waits: how often in a row a session could not be looked at", statements=DISTIL_2),
    Migration(name="left: files that went while something in them waited", statements=INGEST_2),
)
