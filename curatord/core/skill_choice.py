"""
Which skill a person means by `name`, `category/name`, `library/name` or `library/category/name`; which run by its id.

A doubtful name is an error that lists the choices: acting on the wrong one of two would be worse than asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from curatord.core.values import RunId, SkillKey
from curatord.errors import UsageError

__all__ = ["choose_run", "choose_skill"]

MAX_SHOWN = 10


def choose_skill(said: str, known: Iterable[SkillKey]) -> SkillKey:
    """
    Return the one of *known* that *said* names.

    The whole `library/path` names one at once, even where its text is another's short name too.

    Raises:
        UsageError: None is called so (with near ones), or several are (with all of them).
    """
    keys = sorted(set(known))
    for key in keys:
        if str(key) == said:
            return key
    called = [key for key in keys if said in (key.name, key.rel, f"{key.library}/{key.name}")]
    if len(called) == 1:
        return called[0]
    if called:
        shown = ", ".join(str(key) for key in called[:MAX_SHOWN])
        more = f" and {len(called) - MAX_SHOWN} more" if len(called) > MAX_SHOWN else ""
        raise UsageError(f"{said!r} is the name of several skills: {shown}{more}", hint="name it with its library")
    raise UsageError(f"there is no skill {said!r}", hint=_near(said, keys))


def _near(said: str, keys: Sequence[SkillKey]) -> str:
    import difflib

    by_word: dict[str, SkillKey] = {}
    for key in keys:
        for word in (key.name, str(key), key.rel):
            by_word.setdefault(word.casefold(), key)
    close = difflib.get_close_matches(said.casefold(), by_word, n=3, cutoff=0.6)
    names = list(dict.fromkeys(str(by_word[word]) for word in close))
    return f"did you mean {', '.join(names)}?" if names else "curatord skills lists them"


def choose_run(said: str, known: Iterable[RunId]) -> RunId:
    """
    Return the run that *said* names: its id, or `last`.

    Raises:
        UsageError: There is none, or none with that id.
    """
    ids = sorted(known, key=_in_order)
    if said == "last":
        if not ids:
            raise UsageError("there was no run yet", hint="curatord run makes one; with --dry-run it changes nothing")
        return ids[-1]
    if said in ids:
        return RunId(said)
    near = [run_id for run_id in ids if run_id.startswith(said)] if said else []
    hint = f"did you mean {near[-1]}?" if near else "curatord runs lists them; last is the newest"
    raise UsageError(f"there is no run {said!r}", hint=hint)


def _in_order(run_id: str) -> tuple[str, int]:
    """Return what sorts ids by age: `-10` comes after `-9` within a second."""
    stamp, _, number = run_id[15:].partition("-")
    return run_id[:15] + stamp, int(number) if number.isdigit() else 0
