"""The ways out: whether notices reach the file and the program that are named, and figures the place for them."""

from __future__ import annotations

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of

__all__ = ["MetricsFacts", "NoticeFacts", "ProgramFacts", "check_metrics", "check_notices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFacts:
    """
    The program of `notices.command`.

    Attributes:
        name: As the configuration says it.
        path: What would be started; None where nothing was found.
        fault: Why it cannot be started, in words that go on after its name, or None; *mend* what helps.
        by_chance: It was found by way of this shell's PATH, in a place that a service's PATH may not have.
    """

    name: str
    path: str | None = None
    fault: str | None = None
    mend: str = ""
    by_chance: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeFacts:
    """Where notices go: *file* with the *fault* that keeps it from being written, *program*; None: not configured."""

    file: str | None = None
    fault: str | None = None
    program: ProgramFacts | None = None


def check_notices(notices: NoticeFacts) -> Check:
    """Return whether a notice would arrive."""
    issues, ways = [], []
    if notices.file is not None:
        ways.append(f"file {notices.file}")
    if notices.fault is not None:
        mend = "let this user write there, or name another `notices.file`, in a folder of its own"
        issues.append(Issue(level="failure", words=f"the file cannot be written: {notices.fault}", mend=mend))
    program = notices.program
    if program is not None:
        ways.append(f"command {program.name if program.fault is not None or program.path is None else program.path}")
        if program.fault is not None:
            words = f"the command cannot be started: {program.name} {program.fault}"
            issues.append(Issue(level="failure", words=words, mend=program.mend))
        elif program.by_chance:
            words = f"{program.name} was found by this shell's PATH, and a service may have another"
            issues.append(Issue(level="note", words=words, mend=f"name it as {program.path} in `notices.command`"))
    return check_of("notices", ", ".join(ways), issues)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFacts:
    """
    Where figures are to be had.

    Attributes:
        listen: The configured place.
        refused: Why nobody could begin to listen there now, in words, or None.
        alive: A daemon of this state folder runs.
        serving: Where it answers, as it says; None: nowhere.
        told: It has said so; one that has only just started says nothing yet.
        silent: It does not answer on its own socket, so nobody is answered there either.
    """

    listen: str
    refused: str | None = None
    alive: bool = False
    serving: str | None = None
    told: bool = False
    silent: bool = False


def check_metrics(metrics: MetricsFacts) -> Check:
    """Return whether figures can be asked for: the daemon refuses to start where it cannot listen."""
    issues = []
    summary = metrics.listen
    if metrics.silent:
        issues.append(Issue(level="note", words="the running daemon does not answer (see `daemon`)"))
    elif metrics.alive and metrics.serving == metrics.listen:
        summary += ", where the running daemon answers"
    elif metrics.alive and not metrics.told:
        issues.append(Issue(level="note", words="the running daemon has not said yet where it answers"))
    elif metrics.refused is not None:
        then = "a reload will be refused" if metrics.alive else "the daemon will not start"
        words = f"it cannot be listened at, so {then}: {metrics.refused}"
        mend = "mend that, or name another place under `metrics.listen`, or none (null)"
        issues.append(Issue(level="failure", words=words, mend=mend))
    elif metrics.alive:
        where = "nowhere" if metrics.serving is None else f"at {metrics.serving}"
        words = f"the running daemon answers {where}: it has not read this configuration yet"
        issues.append(Issue(level="warning", words=words, mend="curatord reload"))
    else:
        summary += " is free for the daemon"
    return check_of("metrics", summary, issues)
