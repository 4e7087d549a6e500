"""Small forms that all views share: times, periods, states, counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from curatord.cli.output import Cell
from curatord.core.units import format_duration

__all__ = ["STATE_STYLES", "as_period", "count", "days", "joined", "state_cell", "when"]

STATE_STYLES = {"active": "green", "stale": "yellow", "archived": "dim"}


def when(at: str | None, *, missing: str = "never") -> str:
    """Return an ISO time as `2026-11-30 20:18 UTC`; what is no time as it is."""
    if at is None:
        return missing
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return at
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def as_period(value: Any) -> str:
    """Return a period: text (`7d`) as it is, seconds as the shortest text."""
    return format_duration(timedelta(seconds=value)) if isinstance(value, int | float) else str(value)


def days(value: float | None) -> str:
    """Return days with at most one decimal; nothing for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 skill`, `2 skills`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def joined(parts: list[str], *, missing: str = "") -> str:
    """Return *parts* with commas, the empty ones left out."""
    return ", ".join(part for part in parts if part) or missing


def state_cell(state: str) -> Cell:
    """Return a state in its colour."""
    return state, STATE_STYLES.get(state, "")
