"""Which sources speak of which libraries (contract, section 4, `sources.libraries`)."""

from __future__ import annotations

from collections.abc import Iterable

from curatord.core.cheap import dataclass
from curatord.core.settings import HostName, LibrarySettings, SourceSettings

__all__ = ["PlacedSource", "host_of", "libraries_of", "speaks_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSource:
    """One place of one configured source."""

    settings: SourceSettings
    path: str

    @property
    def key(self) -> tuple[str, str]:
        """What the store knows it by."""
        return self.settings.host, self.path


def host_of(library: LibrarySettings) -> HostName | None:
    """Return whose library it is: as configured, else as its path tells, else None."""
    if library.host is not None:
        return library.host
    from curatord.core.layout import host_of_path

    return host_of_path(library.path)


def libraries_of(source: SourceSettings, libraries: Iterable[LibrarySettings]) -> tuple[str, ...]:
    """Return the names of the libraries whose skills the sessions of *source* use: as said, its host's, or all."""
    if source.libraries is not None:
        return source.libraries
    known = list(libraries)
    own = tuple(library.name for library in known if host_of(library) == source.host)
    return own or tuple(library.name for library in known)


def speaks_of(source: SourceSettings, library: LibrarySettings, libraries: Iterable[LibrarySettings]) -> bool:
    """Return whether the sessions of *source* use the skills of *library*, one of *libraries*."""
    return library.name in libraries_of(source, libraries)
