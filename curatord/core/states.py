"""
The life of a skill as one table: (state, signal) -> state.

A signal is what the rules found, or what a person asked for; the table alone says what comes of it, and a missing row
means "stays". So no rule, however wrong, can archive an active skill or wake an archived one: those rows do not exist.
README's diagram is drawn from this table by `diagram`.
"""

from __future__ import annotations

import enum

from curatord.core.values import State

__all__ = ["TRANSITIONS", "Signal", "after", "diagram"]


class Signal(enum.StrEnum):
    """What was found about a skill; the values are the words on the arrows of the diagram."""

    EXEMPT = "exempt"  # rule 1: broken, unmanaged, protected, not found
    PINNED = "pinned or critical"  # rule 2
    REFERENCED = "named by a schedule or another skill"  # rule 3
    UNKNOWN = "no usage signal"  # rule 4: idle cannot be told
    YOUNG = "never used, but still young"  # rule 5
    LONG_IDLE = "idle for archive_after, stale for notice"  # rule 6
    SPARED = "as long idle, but spared"  # rule 6: important, or a person said no
    IDLE = "idle for stale_after"  # rule 7
    RECENT = "idle for less than stale_after"  # rule 8
    ABSORBED = "merged into an umbrella"
    ARCHIVE_ASKED = "archive"  # a person's command
    RESTORE_ASKED = "restore or undo"  # a person's command


TRANSITIONS: dict[tuple[State, Signal], State] = {
    (State.ACTIVE, Signal.IDLE): State.STALE,
    (State.STALE, Signal.RECENT): State.ACTIVE,
    (State.STALE, Signal.YOUNG): State.ACTIVE,
    (State.STALE, Signal.REFERENCED): State.ACTIVE,
    (State.STALE, Signal.LONG_IDLE): State.ARCHIVED,
    (State.ACTIVE, Signal.ABSORBED): State.ARCHIVED,
    (State.STALE, Signal.ABSORBED): State.ARCHIVED,
    (State.ACTIVE, Signal.ARCHIVE_ASKED): State.ARCHIVED,
    (State.STALE, Signal.ARCHIVE_ASKED): State.ARCHIVED,
    (State.ARCHIVED, Signal.RESTORE_ASKED): State.ACTIVE,
}


def after(state: State, signal: Signal) -> State:
    """Return the state that follows *signal* in *state*: the same where the table has no row."""
    return TRANSITIONS.get((state, signal), state)


def diagram() -> str:
    """Return the table as a mermaid state diagram, an arrow per pair of states, for README."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, signal), to in TRANSITIONS.items():
        arrows.setdefault((state, to), []).append(signal.value)
    lines = ["stateDiagram-v2", f"    [*] --> {State.ACTIVE}: first seen"]
    lines += [f"    {state} --> {to}: {'; '.join(signals)}" for (state, to), signals in arrows.items()]
    return "\n".join(lines)
