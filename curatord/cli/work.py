"""Commands that work: scan, run, daemon."""

from __future__ import annotations

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.errors import CuratorError

__all__ = ["daemon", "run", "scan"]


def scan(context: Context) -> int:
    """Ingest up to now."""
    from curatord.cli.views.work import show_scan

    loaded = context.loaded()
    _notices(context, loaded.notices)
    with context.stopping.listening(), context.app(loaded=loaded, bar="scanning") as app:
        value = app.scan()
    context.answer(value, show_scan)
    return _stopped(context) or exits.of_scan(value)


def run(context: Context) -> int:
    """Do one whole curation now."""
    from curatord.cli.views.work import show_run

    said = context.arguments
    loaded = context.loaded()
    _notices(context, loaded.notices)
    with context.stopping.listening(), context.app(loaded=loaded, bar="running") as app:
        value = app.run(
            dry_run=said.dry_run, respect_gates=said.respect_gates, llm=not said.no_llm, library=said.library
        )
    context.answer(value, show_run)
    return _stopped(context) or exits.of_run(value)


def daemon(context: Context) -> int:
    """Run until a signal; the daemon takes signals itself."""
    plainly = context.arguments.exit_zero_if_final
    try:
        loaded = context.loaded()
        _notices(context, loaded.notices)
        with context.app(loaded=loaded) as app:
            code = app.daemon()
    except CuratorError as error:
        code = exits.of_error(error)
        if not (plainly and exits.is_final(code)):
            raise
        from curatord.cli.main import say

        say(context.out, error)
    return exits.OK if plainly and exits.is_final(code) else code


def _notices(context: Context, notices: tuple[str, ...]) -> None:
    for notice in notices:
        context.out.note(("note: ", "yellow"), notice)


def _stopped(context: Context) -> int:
    return 128 + context.stopping.number if context.stopping.asked() else 0
