"""
What the command line asks of the application; `curatord.wiring` gives it.

Every method returns plain JSON values of the shapes in README ("JSON"), so that `--json` prints them as they are and
the text views can be tested without an application. Expected troubles are `CuratorError`s. A command that changes
things returns *changes*::

    {"done":      [{"skill": "library/name", "what": "archived", "action": ID or null}],
     "unchanged": [{"skill": …, "reason": "is pinned already"}],
     "skipped":   [{"skill": …, "reason": …}],      # was asked for, was not done
     "failed":    [{"skill": …, "error": …}],       # was tried
     "hint": "…"}                                   # optional: what one may do next

where *skill* may also be a run, a proposal or whatever was named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from curatord.config import Loaded

__all__ = ["App", "AppFactory", "Json", "Progress", "Surroundings"]

Json = Any
"""A value that `json.dumps` takes: the contract's shapes."""


class Progress(Protocol):
    """Told now and then how far a long work is."""

    def __call__(self, done: int, total: int | None, what: str, /) -> None:
        """Take note that *done* of *total* (None: unknown) is done, now at *what*."""
        ...


class Surroundings(NamedTuple):
    """What an application is opened with besides its configuration."""

    stop: Callable[[], bool] = lambda: False
    progress: Progress | None = None
    log_format: str = "text"
    verbose: int = 0
    say: Callable[[str], None] = lambda _text: None  # a line for the person at the terminal, beside the answer


class App(Protocol):
    """The application as the commands see it. Skills, runs and ids are what the user typed."""

    # look
    def status(self) -> Json:
        """Return the contract's `status`."""
        ...

    def skills(self, *, problems: bool, library: str | None) -> Json:
        """Return the contract's list of `skills`; *problems*: only those that have some."""
        ...

    def show(self, skill: str) -> Json:
        """Return one entry of `skills` with what else is known of it (`events`, `history`, `provenance` …)."""
        ...

    def sessions(self, *, host: str | None, since: datetime | None) -> Json:
        """Return the contract's list of `sessions`."""
        ...

    def events(self, *, skill: str | None, host: str | None, since: datetime | None) -> Json:
        """Return the contract's list of `events`, oldest first."""
        ...

    def distil_log(self, *, host: str | None, since: datetime | None) -> Json:
        """Return what came of sessions that were distilled, oldest first."""
        ...

    def runs(self) -> Json:
        """Return the contract's list of `runs`, newest first."""
        ...

    def report(self, run: str) -> Json:
        """Return `{run_id, path, text, run}`: REPORT.md's text, and the value of run.json."""
        ...

    def explain(self, skill: str) -> Json:
        """Return the contract's `explain`."""
        ...

    def cost(self) -> Json:
        """Return the contract's `cost`."""
        ...

    def doctor(self, *, notices: Sequence[str], llm: bool) -> Json:
        """
        Return the contract's list of `doctor`.

        *notices* are what reading the configuration had to say; *llm*: a model may be asked one small question.
        """
        ...

    # work
    def scan(self, *, backfill: bool) -> Json:
        """Ingest up to now and return the contract's `scan`; *backfill*: then distil the backlog, under `distil`."""
        ...

    def refine(self, session: str, *, focus: str | None) -> Json:
        """Distil one session now and return `{host, session_id, state, reason, operations, …}`."""
        ...

    def retry_distil(self, sessions: Sequence[str] | None) -> Json:
        """Take sessions that were put aside (None: all) back to be distilled, and return changes."""
        ...

    def run(self, *, dry_run: bool, respect_gates: bool, llm: bool, library: str | None) -> Json:
        """Do one whole curation and return the value of run.json."""
        ...

    def daemon(self) -> int:
        """Run until a signal, and return the exit code."""
        ...

    def reload(self) -> Json:
        """Have the running daemon read its configuration again, and return changes."""
        ...

    # decide
    def pending(self) -> Json:
        """Return the contract's list of `pending`."""
        ...

    def diff(self, proposal: str) -> Json:
        """Return one entry of `pending` with `diff`: its text in unified form."""
        ...

    def approve(self, proposals: Sequence[str] | None) -> Json:
        """Apply proposals (None: all) and return changes."""
        ...

    def reject(self, proposals: Sequence[str], *, reason: str | None) -> Json:
        """Reject proposals and return changes."""
        ...

    def undo(self, what: str) -> Json:
        """Take back a run (its id, or `last`) or one action, and return changes."""
        ...

    # steer
    def pause(self) -> Json:
        """Hold automatic runs until `resume`; return changes."""
        ...

    def resume(self) -> Json:
        """Let automatic runs begin again; return changes."""
        ...

    def pin(self, skills: Sequence[str]) -> Json:
        """Pin skills and return changes."""
        ...

    def unpin(self, skills: Sequence[str]) -> Json:
        """Unpin skills and return changes."""
        ...

    def importance(self, skill: str, level: str) -> Json:
        """Say what a skill is worth and return changes."""
        ...

    def adopt(self, skills: Sequence[str], *, everything: bool, agent_made: bool, dry_run: bool) -> Json:
        """Hand skills over and return changes (of a dry run: what would be done)."""
        ...

    def disown(self, skills: Sequence[str]) -> Json:
        """Take skills back from management and return changes."""
        ...

    def archive(self, skills: Sequence[str]) -> Json:
        """Archive skills now and return changes."""
        ...

    def restore(self, skills: Sequence[str], *, anyway: bool) -> Json:
        """Bring archived skills back and return changes; *anyway*: also those that a merge absorbed."""
        ...

    def backup_create(self, *, reason: str | None) -> Json:
        """
        Make a backup now: `{id, at, reason, libraries: [{name, skills, files, bytes}], damaged, left_out: [{path, why,
        ordinary}], left_out_count, failed: [{library, error}], faults, dropped, freed, total_bytes, warnings}`.
        """
        ...

    def backup_list(self) -> Json:
        """Return all backups, newest first: `{id, at, reason, libraries, damaged}`."""
        ...

    def backup_verify(self, backup: str | None) -> Json:
        """Read all of a backup (None: of each) and return `[{id, damaged: [words]}]`."""
        ...

    def backup_restore(
        self, backup: str, *, library: str | None, skills: Sequence[str], to: str | None, dry_run: bool
    ) -> Json:
        """Take a backup out and return changes, with its id as `backup`."""
        ...


class AppFactory(Protocol):
    """Opens the application of a configuration."""

    def __call__(self, loaded: Loaded, surroundings: Surroundings) -> AbstractContextManager[App]:
        """Return a context manager that gives the application and closes it."""
        ...
