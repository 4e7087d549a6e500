"""Commands that work: scan, run, refine, daemon."""

from __future__ import annotations

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.cli.lean import load_msgspec
from curatord.errors import CuratorError, StoppedError

__all__ = ["daemon", "refine", "reload", "run", "scan"]


def scan(context: Context) -> int:
    """Ingest up to now."""
    from curatord.cli.views.work import show_scan

    load_msgspec()
    loaded = context.loaded()
    _notices(context, loaded.notices)
    with context.stopping.listening(), context.app(loaded=loaded, bar="scanning") as app:
        try:
            value = app.scan(backfill=context.arguments.backfill)
        except StoppedError:
            return _stopped(context)
    context.answer(value, show_scan)
    return _stopped(context) or exits.of_scan(value)


def run(context: Context) -> int:
    """Do one whole curation now."""
    from curatord.cli.views.work import show_run

    load_msgspec()
    said = context.arguments
    loaded = context.loaded()
    _notices(context, loaded.notices)
    with context.stopping.listening(), context.app(loaded=loaded, bar="running") as app:
        try:
            value = app.run(
                dry_run=said.dry_run, respect_gates=said.respect_gates, llm=not said.no_llm, library=said.library
            )
        except StoppedError:  # before it was begun, so there is nothing to tell
            return _stopped(context)
    context.answer(value, show_run)
    return _stopped(context) or exits.of_run(value)


def refine(context: Context) -> int:
    """Distil one session now, or take some back that were put aside."""
    from curatord.cli.views.work import show_changes, show_refined
    from curatord.errors import UsageError

    said = context.arguments
    if said.session is None and not said.retry:
        raise UsageError("which session?", hint="curatord sessions lists them; --retry alone takes back what was aside")
    if said.retry and said.focus is not None:
        raise UsageError("--retry only takes sessions back, so it has no --focus")
    loaded = context.loaded()
    _notices(context, loaded.notices)
    with context.stopping.listening(), context.app(loaded=loaded, bar="distilling") as app:
        if said.retry:
            value = app.retry_distil(None if said.session is None else [said.session])
        else:
            value = app.refine(said.session, focus=said.focus)
    context.answer(value, show_changes if said.retry else show_refined)
    return _stopped(context) or (exits.of_changes(value) if said.retry else exits.of_refined(value))


def daemon(context: Context) -> int:
    """Run until a signal; the daemon takes signals itself."""
    plainly = context.arguments.exit_zero_if_final
    try:
        loaded = context.loaded()
        _notices(context, loaded.notices)
        with context.app(loaded=loaded) as app:
            code = app.daemon()
    except CuratorError as error:
        code = exits.of_daemon(error)
        if code == exits.of_error(error) and not (plainly and exits.is_final(code)):
            raise
        from curatord.cli.main import say

        say(context.out, error)
    return exits.OK if plainly and exits.is_final(code) else code


def reload(context: Context) -> int:
    """Have the running daemon read its configuration again; a wrong one is told before anybody is asked."""
    from curatord.cli.views.work import show_changes

    with context.app(loaded=context.loaded()) as app:
        changes = app.reload()
    context.answer(changes, show_changes)
    return exits.of_changes(changes)


def _notices(context: Context, notices: tuple[str, ...]) -> None:
    for notice in notices:
        context.out.note(("note: ", "yellow"), notice)


def _stopped(context: Context) -> int:
    return 128 + context.stopping.number if context.stopping.asked() else 0
