"""`Application`: one method a command, each of them a call into the module that knows how."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["Application"]


class Application:
    """Fills the protocols `curatord.cli.app.App` and `curatord.daemon.DaemonApp` (through `Service`)."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    # -- look

    def status(self) -> Any:
        """Return the contract's `status`."""
        from curatord.application.status import status

        return status(self._parts)

    def skills(self, *, problems: bool, library: str | None) -> Any:
        """Return the contract's list of `skills`."""
        from curatord.application.looking import skill_rows

        return skill_rows(self._parts, problems=problems, library=library)

    def show(self, skill: str) -> Any:
        """Return one entry of `skills` with what else is known of it."""
        from curatord.application.looking import show

        return show(self._parts, skill)

    def sessions(self, *, host: str | None, since: datetime | None) -> Any:
        """Return the contract's list of `sessions`."""
        from curatord.application.looking import session_rows

        return session_rows(self._parts, host=host, since=since)

    def distil_log(self, *, host: str | None, since: datetime | None) -> Any:
        """Return what came of sessions that were distilled, oldest first."""
        from curatord.application.distilling import distil_rows

        return distil_rows(self._parts, host=host, since=since)

    def events(self, *, skill: str | None, host: str | None, since: datetime | None) -> Any:
        """Return the contract's list of `events`, oldest first."""
        from curatord.application.looking import event_rows

        return event_rows(self._parts, skill=skill, host=host, since=since)

    def runs(self) -> Any:
        """Return the contract's list of `runs`, newest first."""
        from curatord.application.looking import run_rows

        return run_rows(self._parts)

    def report(self, run: str) -> Any:
        """Return a run's REPORT.md and run.json."""
        from curatord.application.looking import report

        return report(self._parts, run)

    def cost(self) -> Any:
        """Return the contract's `cost`."""
        from curatord.application.cost import cost

        return cost(self._parts)

    def explain(self, skill: str) -> Any:
        """Return the contract's `explain`."""
        from curatord.application.looking import explain

        return explain(self._parts, skill)

    def doctor(self, *, notices: Sequence[str], llm: bool) -> Any:
        """Return the contract's `doctor`."""
        from curatord.application.doctor import doctor

        return doctor(self._parts, notices=notices, llm=llm)

    # -- work

    def scan(self, *, backfill: bool = False) -> Any:
        """
        Ingest up to now, look at the libraries, and return the contract's `scan`; by the daemon where one runs.

        *backfill*: then distil the backlog, here.
        """
        from curatord.application.handing import hand_over
        from curatord.application.working import scan

        handed = hand_over(self._parts, "scan", {})
        value = scan(self._parts, self._parts.surroundings.stop) if handed is None else handed.value
        if not backfill:
            return value
        from curatord.application.distilling import backfill as distil_backlog

        return {**value, "distil": distil_backlog(self._parts)}

    def refine(self, session: str, *, focus: str | None) -> Any:
        """Distil one session now and return what came of it."""
        from curatord.application.distilling import refine

        return refine(self._parts, session, focus=focus)

    def retry_distil(self, sessions: Sequence[str] | None) -> Any:
        """Take sessions that were put aside (None: all) back to be distilled, and return changes."""
        from curatord.application.distilling import retry_distil

        return retry_distil(self._parts, sessions)

    def run(self, *, dry_run: bool, respect_gates: bool, llm: bool, library: str | None) -> Any:
        """Do one whole curation and return the value of run.json; by the daemon where one runs."""
        from curatord.application.handing import hand_over
        from curatord.application.working import manual_order, run, run_told_by

        order = manual_order(
            self._parts, dry_run=dry_run, respect_gates=respect_gates, llm=llm, library=library
        )  # what cannot be ordered is refused before anybody is asked
        said = {"dry_run": dry_run, "respect_gates": respect_gates, "llm": llm, "library": library}
        handed = hand_over(self._parts, "run", said)
        if handed is None:
            return run(self._parts, order, stop=self._parts.surroundings.stop)
        return run_told_by(self._parts, handed.value)

    def daemon(self) -> int:
        """Run until a signal, and return the exit code."""
        from curatord.application.working import serve

        return serve(self._parts)

    def reload(self) -> Any:
        """Have the running daemon read its configuration again, and return changes."""
        from curatord.application.working import reload

        return reload(self._parts)

    # -- decide

    def pending(self) -> Any:
        """Return the contract's list of `pending`."""
        from curatord.application.deciding import pending

        return pending(self._parts)

    def diff(self, proposal: str) -> Any:
        """Return one entry of `pending` with its diff."""
        from curatord.application.deciding import diff

        return diff(self._parts, proposal)

    def approve(self, proposals: Sequence[str] | None) -> Any:
        """Apply proposals (None: all) and return changes."""
        from curatord.application.deciding import approve

        return approve(self._parts, proposals)

    def reject(self, proposals: Sequence[str], *, reason: str | None) -> Any:
        """Reject proposals and return changes."""
        from curatord.application.deciding import reject

        return reject(self._parts, proposals, reason=reason)

    def undo(self, what: str) -> Any:
        """Take back a run, a proposal or one action, and return changes."""
        from curatord.application.deciding import undo

        return undo(self._parts, what)

    # -- steer

    def pause(self) -> Any:
        """Hold automatic runs until `resume`; return changes."""
        from curatord.application.deciding import pause
        from curatord.application.handing import hand_over

        handed = hand_over(self._parts, "pause", {}, same_config=False)
        return pause(self._parts) if handed is None else handed.value

    def resume(self) -> Any:
        """Let automatic runs begin again; return changes."""
        from curatord.application.deciding import resume
        from curatord.application.handing import hand_over

        handed = hand_over(self._parts, "resume", {}, same_config=False)
        return resume(self._parts) if handed is None else handed.value

    def pin(self, skills: Sequence[str]) -> Any:
        """Pin skills and return changes."""
        from curatord.application.deciding import pin

        return pin(self._parts, skills)

    def unpin(self, skills: Sequence[str]) -> Any:
        """Unpin skills and return changes."""
        from curatord.application.deciding import unpin

        return unpin(self._parts, skills)

    def importance(self, skill: str, level: str) -> Any:
        """Say what a skill is worth and return changes."""
        from curatord.application.deciding import importance

        return importance(self._parts, skill, level)

    def adopt(self, skills: Sequence[str], *, everything: bool, agent_made: bool, dry_run: bool) -> Any:
        """Hand skills over and return changes."""
        from curatord.application.deciding import adopt

        return adopt(self._parts, skills, everything=everything, agent_made=agent_made, dry_run=dry_run)

    def disown(self, skills: Sequence[str]) -> Any:
        """Take skills back from management and return changes."""
        from curatord.application.deciding import disown

        return disown(self._parts, skills)

    def archive(self, skills: Sequence[str]) -> Any:
        """Archive skills now and return changes."""
        from curatord.application.deciding import archive

        return archive(self._parts, skills)

    def restore(self, skills: Sequence[str], *, anyway: bool) -> Any:
        """Bring archived skills back and return changes."""
        from curatord.application.deciding import restore

        return restore(self._parts, skills, anyway=anyway)

    def backup_create(self, *, reason: str | None) -> Any:
        """Make a backup now and say what is in it."""
        from curatord.application.backing_up import backup_create

        return backup_create(self._parts, reason=reason)

    def backup_list(self) -> Any:
        """Return all backups, newest first."""
        from curatord.application.backing_up import backup_list

        return backup_list(self._parts)

    def backup_verify(self, backup: str | None) -> Any:
        """Read all of a backup, or of each, and return what is damaged."""
        from curatord.application.backing_up import backup_verify

        return backup_verify(self._parts, backup)

    def backup_restore(
        self, backup: str, *, library: str | None, skills: Sequence[str], to: str | None, dry_run: bool
    ) -> Any:
        """Take a backup out and return changes."""
        from curatord.application.backing_up import backup_restore

        return backup_restore(self._parts, backup, library=library, skills=skills, to=to, dry_run=dry_run)
