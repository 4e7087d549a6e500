"""Commands that only look."""

from __future__ import annotations

from datetime import UTC, datetime

from curatord.cli import exits
from curatord.cli.context import Context, since
from curatord.cli.lean import load_msgspec
from curatord.errors import CuratorError, StoppedError

__all__ = ["cost", "events", "explain", "report", "runs", "sessions", "show", "skills", "status"]


def status(context: Context) -> int:
    """
    Print whether it works, what it did last and what comes next.

    A health check knows well and unwell alone: with `--check` whatever keeps us from telling is 3, not its own code.
    """
    from curatord.cli.views.status import show_status

    check: bool = context.arguments.check
    try:
        with context.app(loaded=context.loaded(links=False)) as app:
            value = app.status()
    except StoppedError:
        raise
    except CuratorError as error:
        if not check:
            raise
        from curatord.cli.main import say

        say(context.out, error)
        return exits.SKIPPED
    context.answer(value, show_status)
    return exits.of_status(value, check=check)


def skills(context: Context) -> int:
    """Print all skills."""
    from curatord.cli.views.look import show_skills

    load_msgspec()
    said = context.arguments
    with context.app() as app:
        value = app.skills(problems=said.problems, library=said.library)
    context.answer(value, show_skills, problems=said.problems)
    return exits.OK


def show(context: Context) -> int:
    """Print what is known of one skill."""
    from curatord.cli.views.look import show_skill

    with context.app() as app:
        context.answer(app.show(context.arguments.skill), show_skill)
    return exits.OK


def sessions(context: Context) -> int:
    """Print sessions."""
    from curatord.cli.views.look import show_sessions

    said = context.arguments
    moment = since(said.since, datetime.now(UTC))
    with context.app() as app:
        context.answer(app.sessions(host=said.host, since=moment), show_sessions)
    return exits.OK


def events(context: Context) -> int:
    """Print skill events, or with --distil what came of sessions that were distilled."""
    from curatord.cli.views.look import show_distil_log, show_events
    from curatord.errors import UsageError

    said = context.arguments
    moment = since(said.since, datetime.now(UTC))
    if said.distil and said.skill is not None:
        raise UsageError("--distil lists sessions, so it has no --skill")
    with context.app() as app:
        if said.distil:
            context.answer(app.distil_log(host=said.host, since=moment), show_distil_log)
            return exits.OK
        context.answer(app.events(skill=said.skill, host=said.host, since=moment), show_events)
    return exits.OK


def runs(context: Context) -> int:
    """Print past runs."""
    from curatord.cli.views.look import show_runs

    with context.app() as app:
        context.answer(app.runs(), show_runs)
    return exits.OK


def report(context: Context) -> int:
    """Print a run's report; with --json its run.json."""
    from curatord.cli.views.look import show_report

    with context.app() as app:
        value = app.report(context.arguments.run)
    if context.arguments.json:
        context.out.json(value["run"])
    else:
        show_report(context.out, value)
    return exits.OK


def cost(context: Context) -> int:
    """Print what the libraries cost, and what curation has cost."""
    from curatord.cli.views.look import show_cost

    with context.app() as app:
        context.answer(app.cost(), show_cost)
    return exits.OK


def explain(context: Context) -> int:
    """Print why a skill is in its state, and what comes next."""
    from curatord.cli.views.look import show_explain

    with context.app() as app:
        context.answer(app.explain(context.arguments.skill), show_explain)
    return exits.OK
