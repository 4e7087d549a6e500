"""
Which verdicts of a run are carried out, which wait for a person, and when there are too many.

A run that would archive an unlikely share of a library is more likely to be wrong than the library: counters that
broke, a source that vanished, a project that rests. So when more are due than the cap allows none of them goes; all
become one proposal that a person decides, and the run is `held`. Stale marks and reactivations touch no file and have
no cap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

from curatord.core.cheap import dataclass
from curatord.core.lifecycle import Verdict
from curatord.core.settings import ArchiveCap
from curatord.core.values import LibraryName, Mode, State
from curatord.core.words import plural

__all__ = ["LEAST_CAP", "Held", "Selection", "cap_of", "select"]

LEAST_CAP = 3  # a share of a small library is less than anybody would call unlikely


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Archivings of one library that are more than the cap: one proposal for all of *due*, with its reason."""

    library: LibraryName
    due: tuple[Verdict, ...]
    cap: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """
    What a run does with its verdicts. All lists are in order of what they do, then by library and path.

    Attributes:
        apply: Carried out now: reactivations, then stale marks, then archivings.
        propose: Each becomes a pending proposal of its own, with the reason why it is not simply done.
        held: Per library, archivings beyond the cap; any makes the run's outcome `held`.
        warnings: What a person should hear of though nothing happens.
    """

    apply: tuple[Verdict, ...] = ()
    propose: tuple[tuple[Verdict, str], ...] = ()
    held: tuple[Held, ...] = ()
    warnings: tuple[str, ...] = ()


_ORDER = {State.ACTIVE: 0, State.STALE: 1, State.ARCHIVED: 2}


def cap_of(cap: ArchiveCap, managed: int) -> int:
    """
    Return how many of *managed* live skills of one library may be archived in one run.

    The smaller of *cap*'s count and its share (rounded down), but at least `LEAST_CAP`.
    """
    share = Decimal(str(cap.share)) * managed  # as written: 0.29 of 100 are 29, not 28.999…
    return max(LEAST_CAP, min(cap.count, int(share)))


def select(
    verdicts: Iterable[Verdict],
    cap: ArchiveCap,
    mode: Mode,
    prunes: Mapping[LibraryName, int] | None = None,
) -> Selection:
    """
    Return what to do with a run's *verdicts*.

    Args:
        verdicts: Of all skills of all libraries, those that stay too, since the cap is a share of all managed ones.
        cap: How many may go per library.
        mode: `review` lets archivings wait for a person; stale marks and reactivations are applied in every mode.
        prunes: Per library, how many more a model's plan wants to archive; they count, merges do not.

    A hand-edited skill waits for a person in every mode and so does not count: unanswered, it would hold all others.
    In mode `review` the others do count: what waits one by one must not grow past the cap unseen.
    """
    verdicts = list(verdicts)
    alive = Counter([v.key.library for v in verdicts if v.managed and v.state is not State.ARCHIVED])
    moving = sorted([v for v in verdicts if v.moves], key=lambda verdict: (_ORDER[verdict.to], verdict.key.place))
    warned = sorted([v for v in verdicts if v.warning is not None], key=lambda verdict: verdict.key.place)
    due: dict[LibraryName, list[Verdict]] = {}
    apply: list[Verdict] = []
    propose: list[tuple[Verdict, str]] = []
    held: list[Held] = []
    for verdict in moving:
        if verdict.needs_yes is not None:
            propose.append((verdict, verdict.needs_yes))
        elif verdict.to is State.ARCHIVED:
            due.setdefault(verdict.key.library, []).append(verdict)
        else:
            apply.append(verdict)
    for library in sorted(due):
        archivings = due[library]
        allowed = cap_of(cap, alive[library])
        count = len(archivings) + (prunes or {}).get(library, 0)
        if count > allowed:
            reason = (
                f"{plural(count, 'skill')} of library {library!r} would be archived in one run, and max_archive allows "
                f"{allowed} of its {plural(alive[library], 'managed skill')}: none was archived"
            )
            held.append(Held(library=library, due=tuple(archivings), cap=allowed, reason=reason))
            continue
        if mode is Mode.REVIEW:
            propose.extend((verdict, "mode `review` asks before a skill is archived") for verdict in archivings)
        else:
            apply.extend(archivings)
    return Selection(
        apply=tuple(apply),
        propose=tuple(sorted(propose, key=lambda waiting: waiting[0].key)),
        held=tuple(held),
        warnings=tuple(v.warning for v in warned if v.warning is not None),
    )
