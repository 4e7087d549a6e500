"""
Looks for the agent hosts and skill libraries of this machine, in the places that `core.hosts` names.

It only looks: folders are asked for, nothing is opened, and a folder that cannot be asked counts as not there, with its
reason. Two names for one folder (a linked `~/.claude/skills`) are one library.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from curatord.adapters.sources.places import places as transcript_places
from curatord.config.parse import Found
from curatord.core.hosts import HOST_PLACES, host_home, library_places
from curatord.core.settings import HostName, LibrarySettings, SourceSettings

__all__ = ["Discovery", "FoundHost", "FoundLibrary", "discover"]

MAX_PROFILES = 100
MAX_LEDGER_BYTES = 16 * 2**20


class FoundHost(NamedTuple):
    """
    A host whose home, or whose transcripts, are there; *why* is the environment variable that named it, or `default`.

    *named* are the places that variables name: a process without those variables would not find them.
    """

    host: HostName
    home: str
    why: str
    named: tuple[str, ...] = ()


class FoundLibrary(NamedTuple):
    """
    A skill library that is there.

    *skills* counts its `SKILL.md` files, *handed_over* those that the host's own ledger marks as an agent's; *same_as*
    are other names of the folder.
    """

    name: str
    path: str
    host: HostName | None
    skills: int
    handed_over: int = 0
    same_as: tuple[str, ...] = ()


class Discovery(NamedTuple):
    """What was found; *problems* are `(path, reason)` of what could not be looked at."""

    hosts: tuple[FoundHost, ...] = ()
    libraries: tuple[FoundLibrary, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()

    def as_settings(self) -> Found:
        """Return the sources and libraries as settings: every default place of each host, nothing handed over."""
        return Found(
            sources=tuple(SourceSettings(host=host.host) for host in self.hosts),
            libraries=tuple(LibrarySettings(name=lib.name, path=lib.path, host=lib.host) for lib in self.libraries),
        )


def discover(environ: Mapping[str, str], home: str | None, *, count: bool = False) -> Discovery:
    """
    Return the hosts and libraries of this machine.

    *count* also counts skills (a bounded walk), for people; settings need no count.
    """
    problems: list[tuple[str, str]] = []
    hosts: list[FoundHost] = []
    for places in HOST_PLACES:
        base = host_home(places, environ, home)
        if base is None:
            continue
        paths = [base[0]]
        if base[1] == "default" and home is not None:
            paths += [str(Path(home) / other) for other in places.others]
        there = next((path for path in paths if _is_folder(path, problems)), None)
        named = _named(places.host, environ, home, base, there)
        if there is not None or named:
            why = base[1] if base[1] != "default" or not named else named[0][1]
            found = FoundHost(host=places.host, home=there or named[0][0], why=why, named=tuple(p for p, _ in named))
            hosts.append(found)

    wanted = [(place.name, place.path, place.host) for place in library_places(environ, home)]
    for host in hosts:
        if host.host == "hermes":
            wanted += _profiles(host.home, problems)
        table = next(places for places in HOST_PLACES if places.host == host.host)
        if host.why == "default" and any(host.home == str(Path(home or "/") / other) for other in table.others):
            wanted.append((f"{table.library}-old", str(Path(host.home) / "skills"), host.host))
    seen: dict[str, FoundLibrary] = {}
    for name, path, owner in wanted:
        if not _is_folder(path, problems):
            continue
        real = str(Path(path).resolve())
        if real in seen:
            first = seen[real]
            seen[real] = FoundLibrary(
                name=first.name,
                path=first.path,
                host=first.host,
                skills=first.skills,
                handed_over=first.handed_over,
                same_as=(*first.same_as, path),
            )
            continue
        outer = next((lib for other, lib in seen.items() if _overlap(real, other)), None)
        if outer is not None:
            problems.append((path, f"overlaps {outer.path}; each skill must belong to one library"))
            continue
        skills = _count_skills(path) if count else 0
        handed = _agent_made(path) if count and owner != "dsh" else 0  # whose libraries have no ledger (`core.layout`)
        seen[real] = FoundLibrary(name=name, path=path, host=owner, skills=skills, handed_over=handed)
    return Discovery(hosts=tuple(hosts), libraries=tuple(seen.values()), problems=tuple(problems))


def _named(
    host: HostName, environ: Mapping[str, str], home: str | None, base: tuple[str, str], there: str | None
) -> list[tuple[str, str]]:
    """
    Return the existing places of *host* that variables name, with the variable: its home, and what lies elsewhere.

    *base* is its home and why, *there* the home if it exists. Profiles of a named home are places of their own.
    """
    named = [(there, base[1])] if there is not None and base[1] != "default" else []
    for place in transcript_places(SourceSettings(host=host), environ, home=Path(home or "/")):
        variable = place.why.rpartition("$")[2]
        if place.why == "default" or not variable or not Path(place.path).exists():
            continue
        inside = any(f"{place.path}/".startswith(f"{above}/") for above, _ in named)
        if "$" in place.why and (not inside or place.why.startswith("profile")):
            named.append((place.path, variable))
    return named


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other.rstrip("/") + "/") or other.startswith(one.rstrip("/") + "/")


def _agent_made(path: str) -> int:
    """Return how many skills Hermes' ledger hands over, for people to read; what cannot be read hands over none."""
    import json

    try:
        with (Path(path) / ".usage.json").open("rb") as handle:
            records = json.loads(handle.read(MAX_LEDGER_BYTES))
    except (OSError, ValueError, RecursionError):
        return 0
    if not isinstance(records, dict):
        return 0
    return sum(isinstance(record, dict) and record.get("created_by") == "agent" for record in records.values())


def _is_folder(path: str, problems: list[tuple[str, str]]) -> bool:
    try:
        return (Path(path).is_dir() and os.access(path, os.R_OK | os.X_OK)) or _unreadable(path, problems)
    except (OSError, ValueError) as error:
        problems.append((path, str(error)))
        return False


def _unreadable(path: str, problems: list[tuple[str, str]]) -> bool:
    if Path(path).is_dir():
        problems.append((path, "the folder is there but cannot be read"))
    return False


def _profiles(hermes_home: str, problems: list[tuple[str, str]]) -> list[tuple[str, str, HostName | None]]:
    """Return the libraries of Hermes' named profiles: each profile is a home of its own."""
    folder = Path(hermes_home) / "profiles"
    if not _is_folder(str(folder), problems):
        return []
    names = sorted(path.name for path in folder.iterdir())[:MAX_PROFILES]
    return [(f"hermes-{name}", str(folder / name / "skills"), "hermes") for name in names if _is_name(name)]


def _is_name(text: str) -> bool:
    return text.isprintable() and not text.startswith(".") and len(text) <= 64


def _count_skills(path: str, limit: int = 20_000) -> int:
    """Return how many `SKILL.md` lie below *path*, hidden folders left out, after at most *limit* folders."""
    skills = 0
    for number, (_, folders, files) in enumerate(os.walk(path)):
        if number >= limit:
            break
        folders[:] = [name for name in folders if not name.startswith(".")]
        skills += "SKILL.md" in files
        if "SKILL.md" in files:
            folders.clear()
    return skills
