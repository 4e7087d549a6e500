"""Where the configured paths really lead, for `core.places`."""

from __future__ import annotations

from collections.abc import Iterator

from curatord.adapters.true_path import true_path
from curatord.core.layout import archive_of
from curatord.core.library import LibraryProblem
from curatord.core.places import Place, conflicts
from curatord.core.settings import Config

__all__ = ["look_for_conflicts"]


def look_for_conflicts(config: Config) -> list[LibraryProblem]:
    """
    Return every conflict between the paths of *config*, with links resolved; `config check`, `doctor` and runs ask.

    Sources without a path, which stand for a host's own places, are left out: their adapters know those.
    """
    return conflicts(list(_places(config)))


def _places(config: Config) -> Iterator[Place]:
    for library in config.libraries:
        yield Place(kind="library", label=library.name, path=library.path, real=true_path(library.path))
        archive = archive_of(library, "hermes" if library.layout == "hermes" else "agent-skills")
        yield Place(kind="archive", label=library.name, path=archive, real=true_path(archive))
    for source in config.sources:
        if source.path is not None:
            yield Place(kind="source", label=source.host, path=source.path, real=true_path(source.path))
    yield Place(kind="state", label="state", path=config.state_dir, real=true_path(config.state_dir))
