"""
Lessons that were seen once: what a new skill is until a second session says the same.

A `create` that one session alone speaks for is not written but counted, under an id that is made of its library and
its folded name, so that the next session which proposes a skill of that name meets it. It is confirmed by a session of
another *lineage*: a resume, a fork or a sub-agent of the same conversation tells the same story and not a second one.
Only a word that cites what was said in its session counts; one that cites nothing is noted, so that later reviews see
the name, and neither confirms a lesson nor begins its count. What no other session confirms for 90 days is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256

from curatord.core.cheap import dataclass, replace
from curatord.core.distil.names import skeleton
from curatord.core.proposal_id import proposal_id
from curatord.core.values import LibraryName, RelPath, SkillKey, require_aware

__all__ = ["FORGOTTEN_AFTER", "KeptCandidate", "candidate_id", "confirmed_by", "remembered", "seen_again"]

FORGOTTEN_AFTER = timedelta(days=90)  # contract, section 8
MAX_SIGHTINGS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCandidate:
    """
    A lesson that waits to be seen again, as the store keeps it.

    *sightings* are the lineages that spoke for it, each with the time of its newest word, oldest first. The texts are
    those of the newest sighting; *content_sha256* is over the SKILL.md that would be written. *noted_at* is the time of
    the newest word that cited nothing.
    """

    id: str
    library: LibraryName
    name: str
    description: str
    content_sha256: str
    sightings: tuple[tuple[str, datetime], ...]
    noted_at: datetime | None = None

    def __post_init__(self) -> None:
        for _, at in self.sightings:
            require_aware("sightings", at)
        require_aware("noted_at", self.noted_at)
        if not self.sightings and self.noted_at is None:
            raise ValueError("nobody spoke for it")

    @property
    def last_at(self) -> datetime:
        """When it was last spoken for."""
        times = [at for _, at in self.sightings]
        return max(times if self.noted_at is None else [*times, self.noted_at])


def candidate_id(library: LibraryName, name: str) -> str:
    """Return the id of a lesson: the same for every spelling of its name."""
    folded = skeleton(name)
    key = SkillKey(library=library, rel=RelPath(sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()))
    return proposal_id(library, "candidate", (key,), folded)


def remembered(candidates: Iterable[KeptCandidate], now: datetime) -> tuple[KeptCandidate, ...]:
    """Return those of *candidates* that are not forgotten, without the sightings that are; by name."""
    kept = []
    for candidate in candidates:
        sightings = tuple(seen for seen in candidate.sightings if now - seen[1] <= FORGOTTEN_AFTER)
        if sightings or (candidate.noted_at is not None and now - candidate.noted_at <= FORGOTTEN_AFTER):
            kept.append(replace(candidate, sightings=sightings))
    return tuple(sorted(kept, key=lambda candidate: (candidate.library, candidate.name, candidate.id)))


def confirmed_by(candidate: KeptCandidate | None, lineage: str, now: datetime, *, cited: bool = True) -> int:
    """
    Return how many sessions of different lineages speak for a lesson when *lineage* does so now; *cited*: with
    evidence, without which its own word does not count.
    """
    others = () if candidate is None else candidate.sightings
    return int(cited) + len({other for other, at in others if other != lineage and now - at <= FORGOTTEN_AFTER})


def seen_again(
    candidate: KeptCandidate | None,
    *,
    library: LibraryName,
    name: str,
    description: str,
    content_sha256: str,
    lineage: str,
    now: datetime,
    cited: bool = True,
) -> KeptCandidate:
    """Return the lesson with the word of *lineage* added, or its first word; not *cited*: with a note of it alone."""
    before = () if candidate is None else candidate.sightings
    if not cited and candidate is not None and before:
        return replace(candidate, noted_at=now)
    sightings: tuple[tuple[str, datetime], ...] = ()
    noted_at: datetime | None = now
    if cited:
        kept = [seen for seen in before if seen[0] != lineage and now - seen[1] <= FORGOTTEN_AFTER]
        sightings = (*sorted(kept, key=lambda seen: seen[1]), (lineage, now))[-MAX_SIGHTINGS:]
        noted_at = candidate.noted_at if candidate is not None else None
    return KeptCandidate(
        id=candidate_id(library, name),
        library=library,
        name=name,
        description=description,
        content_sha256=content_sha256,
        sightings=sightings,
        noted_at=noted_at,
    )
