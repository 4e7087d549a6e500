"""The commands of backups; each calls one method of the application and prints what it answers."""

from __future__ import annotations

from curatord.cli import exits
from curatord.cli.context import Context

__all__ = ["create", "list_", "restore", "verify"]


def create(context: Context) -> int:
    """Make a backup."""
    from curatord.cli.views.backup import show_created

    with context.app() as app:
        made = app.backup_create(reason=context.arguments.reason)
    context.answer(made, show_created)
    return exits.SKIPPED if made["failed"] or made["faults"] or made["warnings"] else exits.OK


def list_(context: Context) -> int:
    """List backups."""
    from curatord.cli.views.backup import show_backups

    with context.app() as app:
        rows = app.backup_list()
    context.answer(rows, show_backups)
    return exits.SKIPPED if any(row["damaged"] for row in rows) else exits.OK


def verify(context: Context) -> int:
    """Read backups and say what is damaged."""
    from curatord.cli.views.backup import show_verified

    with context.app() as app:
        rows = app.backup_verify(context.arguments.backup)
    context.answer(rows, show_verified)
    return exits.SKIPPED if any(row["damaged"] for row in rows) else exits.OK


def restore(context: Context) -> int:
    """Take a backup out."""
    from curatord.cli.views.backup import show_restored

    said = context.arguments
    with context.stopping.listening(), context.app() as app:
        changes = app.backup_restore(
            said.backup, library=said.library, skills=said.skill or (), to=said.to, dry_run=said.dry_run
        )
    context.answer(changes, show_restored)
    return exits.of_changes(changes)
