"""A progress bar on standard error, on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curatord.cli.app import Progress
from curatord.cli.output import Output, line_text

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(out: Output, title: str) -> Iterator[Progress | None]:
    """Give a `Progress` that moves a bar called *title*; None where nobody would see it."""
    if not title or not out.error_terminal:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not out.error_colour, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def move(done: int, total: int | None, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{title} {line_text(what)[:60]}".rstrip())

        yield move
