"""Commands by which a person steers; each calls one method of the application and prints the changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from curatord.cli import exits
from curatord.cli.app import App
from curatord.cli.context import Context
from curatord.errors import UsageError

__all__ = ["adopt", "archive", "disown", "importance", "pause", "pin", "restore", "resume", "unpin"]


def _change(context: Context, call: Callable[[App], Any]) -> int:
    from curatord.cli.views.work import show_changes

    with context.stopping.listening(), context.app() as app:
        changes = call(app)
    context.answer(changes, show_changes)
    return exits.of_changes(changes)


def pause(context: Context) -> int:
    """Hold automatic runs."""
    return _change(context, lambda app: app.pause())


def resume(context: Context) -> int:
    """Let automatic runs begin again."""
    return _change(context, lambda app: app.resume())


def pin(context: Context) -> int:
    """Pin skills."""
    return _change(context, lambda app: app.pin(context.arguments.skills))


def unpin(context: Context) -> int:
    """Unpin skills."""
    return _change(context, lambda app: app.unpin(context.arguments.skills))


def importance(context: Context) -> int:
    """Say what a skill is worth."""
    return _change(context, lambda app: app.importance(context.arguments.skill, context.arguments.level))


def adopt(context: Context) -> int:
    """Hand skills over."""
    said = context.arguments
    if said.all + said.agent_made + bool(said.skills) != 1:
        raise UsageError("adopt takes either names, --all or --agent-made", hint="curatord skills lists the names")
    return _change(
        context,
        lambda app: app.adopt(said.skills, everything=said.all, agent_made=said.agent_made, dry_run=said.dry_run),
    )


def disown(context: Context) -> int:
    """Take skills back from management."""
    return _change(context, lambda app: app.disown(context.arguments.skills))


def archive(context: Context) -> int:
    """Archive skills now."""
    return _change(context, lambda app: app.archive(context.arguments.skills))


def restore(context: Context) -> int:
    """Bring archived skills back."""
    return _change(context, lambda app: app.restore(context.arguments.skills, anyway=context.arguments.anyway))
