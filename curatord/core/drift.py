"""
Whether a host has begun to write its transcripts in another way than we read them.

*Wanted.* A host that changes its format makes no error: records of a type that nobody knows are counted and passed
over, and a reader that understands nothing of a file looks as healthy as one that has nothing to do (bugs B098: four
days, healthy by every check, nothing taken in). It should be seen on the day it happens, and nobody should be woken for
a host that brings one new kind of record every few weeks, as they all do.

*What can go wrong.* Shares over all that was ever read move too slowly: after a year of history a host that became
unreadable today is a tenth of a percent. Shares of one file are too jumpy: a short session may hold one record of an
odd type and nothing else.

*The plan.* What was read is kept per *stretch*: one version of the host program (or of its format, where records name
one) on one day of reading. What is new is the newest version, or where that has too few records yet the newest days,
until there are enough to speak of shares; everything before is what is usual. New is held against usual, and against
fixed bounds where nothing is usual yet. Three things are looked at: types that are unknown, records that are
unreadable, and whether turns are understood at all.

The bounds are judgement, not theory. The readers know every type of the samples they were written after, so the usual
share of unknown types is near nothing; a tenth of all records is a host's main traffic in any format we have seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple

from curatord.core.cheap import dataclass, field

__all__ = ["Drift", "Stretch", "Sum", "drift_of", "newest_version", "version_order"]

ENOUGH = 50
"""Records from which on a share says something."""

FEW = 20
"""So many unknown records must there be before they are called unusual; unreadable ones half of that."""

SILENT = 200
"""Records without a single turn of anybody from which on nothing is understood."""

UNKNOWN_SHARE = 0.10
UNREADABLE_SHARE = 0.05
TIMES_USUAL = 3.0

SHOWN = 5


class Stretch(NamedTuple):
    """
    What was read of one source, of one *version* (empty where records name none), on one UTC *day* of reading.

    *turns* are those of people and models together; *unknown* counts records by type that the reader does not know.
    """

    day: date
    version: str
    records: int
    unreadable: int
    turns: int
    unknown: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Stretches together."""

    records: int = 0
    unreadable: int = 0
    turns: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def unknown_records(self) -> int:
        """Records of unknown types."""
        return sum(self.unknown.values())

    @property
    def unknown_share(self) -> float:
        """Their share of all records, 0 to 1."""
        return min(self.unknown_records / self.records, 1.0) if self.records else float(bool(self.unknown))

    @property
    def unreadable_share(self) -> float:
        """The share of records that could not be read, of all that were there, 0 to 1."""
        seen = self.records + self.unreadable
        return self.unreadable / seen if seen else 0.0

    @classmethod
    def of(cls, stretches: Iterable[Stretch]) -> Sum:
        """Return the sum of *stretches*."""
        records = unreadable = turns = 0
        unknown: dict[str, int] = {}
        for stretch in stretches:
            records += stretch.records
            unreadable += stretch.unreadable
            turns += stretch.turns
            for name, count in stretch.unknown.items():
                unknown[name] = unknown.get(name, 0) + count
        return cls(records=records, unreadable=unreadable, turns=turns, unknown=unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """
    What is unusual of late. *what* it is, *since* when in words (`since version 2.2.0`), *sentence* the finding.

    *types* are the unknown types of late, most frequent first.
    """

    what: Literal["unknown", "unreadable", "silent"]
    since: str
    sentence: str
    types: tuple[tuple[str, int], ...] = ()


def version_order(version: str) -> tuple[tuple[int, ...], str]:
    """Return what versions are sorted by: their numbers, `2.1.10` after `2.1.9`; a text without any comes first."""
    return tuple(int(number[:9]) for number in re.findall(r"\d+", version)), version


def newest_version(versions: Collection[str]) -> str:
    """Return the highest of *versions*, the empty text where there is none."""
    return max(versions, key=version_order, default="")


def drift_of(stretches: Sequence[Stretch]) -> list[Drift]:
    """Return what is unusual of late in *stretches* of one source, in any order; empty where nothing is."""
    new, usual, since = _parted(stretches)
    late, before = Sum.of(new), Sum.of(usual)
    found: list[Drift] = []
    # Which types were always unknown does not matter to a share, but a person looks for the new ones.
    types = sorted(late.unknown.items(), key=lambda item: (-item[1], item[0]))
    if late.unknown_records >= FEW and late.unknown_share >= _bound(UNKNOWN_SHARE, before, before.unknown_share):
        names = ", ".join(f"{name} ({count})" for name, count in types[:SHOWN])
        sentence = (
            f"{since}, {percent(late.unknown_share)} of the records are of types that are not known here"
            f"{_usually(before, before.unknown_share)}: {names}"
        )
        found.append(Drift(what="unknown", since=since, sentence=sentence, types=tuple(types)))
    if late.unreadable >= FEW // 2 and late.unreadable_share >= _bound(
        UNREADABLE_SHARE, before, before.unreadable_share
    ):
        sentence = (
            f"{since}, {percent(late.unreadable_share)} of the records cannot be read"
            f"{_usually(before, before.unreadable_share)}"
        )
        found.append(Drift(what="unreadable", since=since, sentence=sentence))
    if late.records >= SILENT and late.turns == 0:
        told = ", though there were some before" if before.turns else ""
        sentence = f"{since}, {late.records:,} records were read and not one turn was understood{told}"
        found.append(Drift(what="silent", since=since, sentence=sentence))
    return found


def percent(share: float) -> str:
    """Return a share as people read it: `0 %`, `under 0.1 %`, `2.5 %`, `31 %`."""
    points = share * 100
    if points == 0:
        return "0 %"
    if points < 0.1:
        return "under 0.1 %"
    return f"{points:.1f} %" if points < 10 else f"{points:.0f} %"


def _bound(least: float, before: Sum, share: float) -> float:
    """Return the share from which on it is unusual: never less than *least*, never out of reach."""
    if before.records < ENOUGH:
        return least
    # Where much was always passed over, three times that may be more than all: half-way to all is unusual then.
    return max(least, min(TIMES_USUAL * share, (1 + share) / 2))


def _usually(before: Sum, share: float) -> str:
    return f" (before: {percent(share)})" if before.records >= ENOUGH else ""


def _parted(stretches: Sequence[Stretch]) -> tuple[list[Stretch], list[Stretch], str]:
    """Return the stretches that are new, those before, and since when in words."""
    if not stretches:
        return [], [], ""
    first_day: dict[str, date] = {}
    for stretch in stretches:
        first_day[stretch.version] = min(first_day.get(stretch.version, stretch.day), stretch.day)
    # Old transcripts may be found late, so what was first read last is newest, and among what came together (a first
    # scan) the higher number.
    newest = max(first_day, key=lambda version: (bool(version), first_day[version], version_order(version)))
    new = [stretch for stretch in stretches if stretch.version == newest]
    if newest and Sum.of(new).records + Sum.of(new).unreadable >= ENOUGH and len(first_day) > 1:
        usual = [stretch for stretch in stretches if stretch.version != newest]
        return new, usual, f"since version {newest}"
    ordered = sorted(stretches, key=lambda stretch: (stretch.day, version_order(stretch.version)))
    for place in range(len(ordered) - 1, 0, -1):
        late = Sum.of(ordered[place:])
        if ordered[place].day != ordered[place - 1].day and late.records + late.unreadable >= ENOUGH:
            return ordered[place:], ordered[:place], f"since {ordered[place].day:%Y-%m-%d}"
    return list(ordered), [], "over all that was read"
