"""The command that examines everything."""

from __future__ import annotations

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.errors import ConfigError

__all__ = ["doctor"]


def doctor(context: Context) -> int:
    """Print a page of checks; a configuration that cannot be read is one of them, and not an end."""
    from curatord.cli.views.doctor import show_doctor

    try:
        loaded = context.loaded()
    except ConfigError as error:
        from curatord.application.doctor import doctor_without_config

        checks = doctor_without_config(error)
    else:
        with context.app(loaded=loaded, bar="examining") as app:
            checks = app.doctor(notices=loaded.notices, llm=not context.arguments.no_llm)
    context.answer(checks, show_doctor, verbose=context.arguments.verbose > 0)
    return exits.of_doctor(checks)
