"""What no single key can know: settings that contradict each other, and such as are allowed but odd."""

from __future__ import annotations

from collections.abc import Iterator

from curatord.config.nodes import Origin
from curatord.config.reader import Problem, nearest
from curatord.core.listen import why_not
from curatord.core.settings import Config, LlmEndpoint
from curatord.core.units import format_duration

__all__ = ["cross_check", "notices_of"]


def _problem(key: str, what: str, hint: str = "") -> Problem:
    return Problem(key=key, what=what, origin=Origin(), hint=hint)


def cross_check(config: Config) -> Iterator[Problem]:
    """Yield what contradicts; the origin of each is the caller's to add."""
    yield from _times(config)
    yield from _libraries(config)
    yield from _sources(config)
    yield from _llm(config)
    yield from _outlets(config)
    digest = config.distill.digest
    if digest.max_chars < digest.message_chars:
        yield _problem("distill.digest.max_chars", f"is less than message_chars ({digest.message_chars})")


def _times(config: Config) -> Iterator[Problem]:
    life, gates = config.lifecycle, config.gates
    if life.archive_after < life.stale_after:
        yield _problem(
            "lifecycle.archive_after",
            f"{format_duration(life.archive_after)} is less than stale_after ({format_duration(life.stale_after)})",
            "a skill is stale first, and archived later",
        )
    if gates.session_force < gates.session_quiet:
        yield _problem(
            "gates.session_force",
            f"{format_duration(gates.session_force)} is less than session_quiet "
            f"({format_duration(gates.session_quiet)})",
        )


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _libraries(config: Config) -> Iterator[Problem]:
    for index, library in enumerate(config.libraries):
        here = f"libraries[{index}]"
        for earlier in config.libraries[:index]:
            if earlier.name.casefold() == library.name.casefold():
                yield _problem(f"{here}.name", f"there is a library {earlier.name!r} already")
            if earlier.path == library.path:
                yield _problem(f"{here}.path", f"is the path of the library {earlier.name!r} already")
            elif _inside(library.path, earlier.path) or _inside(earlier.path, library.path):
                yield _problem(
                    f"{here}.path",
                    f"lies within the library {earlier.name!r}, or that in it",
                    "each skill must belong to one library",
                )
        if _inside(config.state_dir, library.path):
            yield _problem("state_dir", f"lies within the library {library.name!r}")
        if _inside(library.path, config.state_dir):
            yield _problem(f"{here}.path", "lies within state_dir, which is curatord's own")
        if library.archive is not None:
            if library.archive == library.path or _inside(library.path, library.archive):
                yield _problem(f"{here}.archive", "the library cannot be (in) its own archive")
            for other in config.libraries:
                if other is not library and _inside(library.archive, other.path):
                    yield _problem(f"{here}.archive", f"lies within the library {other.name!r}")


def _sources(config: Config) -> Iterator[Problem]:
    names = [library.name for library in config.libraries]
    for index, source in enumerate(config.sources):
        here = f"sources[{index}]"
        if source.host == "jsonl" and source.path is None:
            yield _problem(f"{here}.path", "must be set: the host jsonl has no default place")
        if source.host != "jsonl" and source.fields is not None:
            yield _problem(f"{here}.fields", "is for the host jsonl only")
        for at, name in enumerate(source.libraries or ()):
            if name not in names:
                near = nearest(name, names)
                hint = f"did you mean {near}?" if near else f"known: {', '.join(names) or 'none'}"
                yield _problem(f"{here}.libraries[{at}]", f"there is no library {name!r}", hint)
        for earlier in config.sources[:index]:
            if (earlier.host, earlier.path) == (source.host, source.path):
                yield _problem(f"{here}.{'path' if source.path else 'host'}", "is a source already")
        if source.path is None:
            continue
        for library in config.libraries:
            if _inside(source.path, library.path):
                yield _problem(f"{here}.path", f"lies within the library {library.name!r}")
        if _inside(source.path, config.state_dir):
            yield _problem(f"{here}.path", "lies within state_dir, which is curatord's own")


def _outlets(config: Config) -> Iterator[Problem]:
    """Yield what is wrong with the ways out: notices and metrics."""
    notices, listen = config.notices, config.metrics.listen
    if notices.command is not None and (not notices.command or not notices.command[0].strip()):
        yield _problem("notices.command", "names no program", "[PROGRAM, ARGUMENT, …], or null")
    written = {"notices.file": notices.file}
    if listen is not None and listen.startswith("unix:"):
        written["metrics.listen"] = listen.removeprefix("unix:")
    for key, path in written.items():
        if path is None:
            continue
        for library in config.libraries:
            if _inside(path, library.path):
                yield _problem(key, f"lies within the library {library.name!r}")
        for source in config.sources:
            if source.path is not None and _inside(path, source.path):
                yield _problem(key, f"lies within a source of {source.host}, which is only read")
    if notices.file is not None and _inside(notices.file, config.state_dir):
        yield _problem("notices.file", "lies within the state folder, whose files are curatord's own")
    if listen is not None:
        what = why_not(listen)
        if what is not None:
            yield _problem("metrics.listen", what, "127.0.0.1:9464, '[::1]:9464' or unix:/run/user/1000/curatord.sock")
        elif listen.startswith("unix:") and _inside(listen.removeprefix("unix:"), config.state_dir):
            yield _problem("metrics.listen", "lies within the state folder, whose sockets are curatord's own")


def _llm(config: Config) -> Iterator[Problem]:
    llm = config.llm
    if llm is None:
        return
    if llm.from_host is not None and (llm.primary is not None or llm.fallback is not None):
        yield _problem("llm.from_host", "excludes primary and fallback", "keep one of them")
    if llm.from_host is None and llm.primary is None:
        yield _problem("llm", "needs primary, or from_host", "leave llm out to work without a model")
    for name, endpoint in (("primary", llm.primary), ("fallback", llm.fallback)):
        if endpoint is not None:
            yield from _endpoint(f"llm.{name}", endpoint)


def _endpoint(key: str, endpoint: LlmEndpoint) -> Iterator[Problem]:
    context = endpoint.context_tokens
    if context is not None and context < 1024:
        yield _problem(f"{key}.context_tokens", f"{context} is too little for any request", "1024 at least")


def notices_of(config: Config, *, sources_said: bool) -> Iterator[str]:
    """Yield what is allowed, but perhaps not meant; plain sentences."""
    life, llm = config.lifecycle, config.llm
    if life.stale_after + life.notice > life.archive_after:
        first = format_duration(life.stale_after + life.notice)
        yield f"stale_after and notice together are longer than archive_after: nothing is archived before {first} idle"
    if not config.libraries:
        yield "no library is configured and none was found: there is nothing to curate"
    if not config.sources:
        found = "sources is empty" if sources_said else "no agent host was found"
        yield f"{found}: no usage will be seen"
    if llm is not None:
        budget = llm.budget
        if budget.tokens_per_day < budget.tokens_per_run or budget.usd_per_day < budget.usd_per_run:
            yield "llm.budget: the budget of a day is less than that of a run; the day's ends runs"
    for library in config.libraries:
        inside = library.archive is not None and _inside(library.archive, library.path)
        if library.archive is not None and inside and not library.archive.removeprefix(library.path).startswith("/."):
            yield f"the archive of {library.name} lies within it and is not hidden: hosts may go on offering its skills"
