"""Commands by which a person decides: pending, diff, approve, reject, undo."""

from __future__ import annotations

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.errors import UsageError

__all__ = ["approve", "diff", "pending", "reject", "undo"]


def pending(context: Context) -> int:
    """Print what waits."""
    from curatord.cli.views.work import show_pending

    with context.app() as app:
        context.answer(app.pending(), show_pending)
    return exits.OK


def diff(context: Context) -> int:
    """Print one proposal and its diff."""
    from curatord.cli.views.work import show_diff

    with context.app() as app:
        context.answer(app.diff(context.arguments.proposal), show_diff)
    return exits.OK


def approve(context: Context) -> int:
    """Apply proposals."""
    from curatord.cli.views.work import show_changes

    said = context.arguments
    if said.all == bool(said.proposals):
        raise UsageError("approve takes either ids or --all", hint="curatord pending lists the ids")
    with context.stopping.listening(), context.app() as app:
        changes = app.approve(None if said.all else said.proposals)
    context.answer(changes, show_changes)
    return exits.of_changes(changes)


def reject(context: Context) -> int:
    """Reject proposals."""
    from curatord.cli.views.work import show_changes

    said = context.arguments
    with context.app() as app:
        changes = app.reject(said.proposals, reason=said.reason)
    context.answer(changes, show_changes)
    return exits.of_changes(changes)


def undo(context: Context) -> int:
    """Take back a run or an action."""
    from curatord.cli.views.work import show_changes

    with context.stopping.listening(), context.app() as app:
        changes = app.undo(context.arguments.what)
    context.answer(changes, show_changes)
    return exits.of_changes(changes)
