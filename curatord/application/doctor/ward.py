"""What the examinations share: the parts, opened for looking only, and one reading of the clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from curatord.core.doctor.setup import DatabaseFacts
    from curatord.ports.ingest_store import SourceState
    from curatord.wiring import Parts

__all__ = ["Ward"]


class Ward:
    """
    The patient, as every examination finds it.

    The database is looked at once, before anything else; where it cannot be used, an empty one in memory stands in for
    it (*forgot*), so that sources and libraries can be examined all the same.

    Args:
        parts: Nothing was asked of its database yet.
        notices: What the reading of the configuration had to say.
        asks: Whether a model may be asked.
    """

    def __init__(self, parts: Parts, *, notices: Sequence[str], asks: bool) -> None:
        from curatord.adapters.store.database import open_empty_database
        from curatord.adapters.vitals.database_file import look_into

        self.parts = parts
        self.notices = tuple(notices)
        self.asks = asks
        self.now = parts.clock.now()
        self.database: DatabaseFacts
        self.database, opened = look_into(parts.state_dir)
        self.remembers = opened is not None
        self.forgot = self.database.exists and not self.remembers
        parts.look_with(opened or open_empty_database())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.parts.close()

    @cached_property
    def daemon(self) -> dict[str, Any]:
        """What is known of the running daemon, as `status` has it: `alive`, `control`, what it says or published."""
        from curatord.application.status import daemon_now

        return daemon_now(self.parts.state_dir)

    @cached_property
    def counted(self) -> dict[tuple[str, str], SourceState]:
        """What is stored of each source, by host and path."""
        return {(state.host, state.path): state for state in self.parts.ingest_reader.sources()}
