"""
A reply that was paid for and is being carried out: kept with its session until the outcome is settled.

A kill between the reply and the outcome leaves it there. The next look at the session then takes it up again: it reads
the same stretch, asks nothing, and does what was not done yet. What was done is known from the journal, by the ids
under which changes were begun; those are written here before the change begins.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from curatord.core.cheap import replace
from curatord.core.replies import DistilReply
from curatord.ports.distil_store import UNREAD, LookedTo, SessionToDistil

__all__ = ["Begun", "KeptAnswer"]


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was begun: its skill, `library/path`, and the id it is journaled under."""

    skill: str
    proposal: str


class KeptAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """
    The reply with the stretch that it is about.

    *digest* is the digest's hash; *offsets*, *through_ms*, *user_turns*, *tool_calls* are of the session as it was
    read. *whole*: it was read from its start. *simple*: the reply came in the simple form.
    """

    digest: str
    reply: DistilReply
    offsets: Mapping[int, tuple[int, str]]
    through_ms: int | None
    user_turns: int
    tool_calls: int
    whole: bool = False
    simple: bool = False
    request_sha256: str = ""
    tokens: int = 0
    begun: tuple[Begun, ...] = ()

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, data: bytes | None) -> KeptAnswer | None:
        """Return what *data* holds, or None: there is none, or it is of another version and is asked for again."""
        try:
            return None if data is None else msgspec.json.decode(data, type=cls)
        except msgspec.DecodeError:
            return None

    def as_it_was(self, session: SessionToDistil) -> SessionToDistil:
        """Return *session* with the watermarks and counts that the answer is about; what came later is seen later."""
        files = tuple(
            file
            if file.offset <= self.offsets[file.file_id][0]
            else replace(file, offset=self.offsets[file.file_id][0], counts=None)
            for file in session.files
            if self.offsets.get(file.file_id, UNREAD) != UNREAD  # what was away then is seen later too
        )
        grown = session.user_turns != self.user_turns or session.tool_calls != self.tool_calls
        return replace(
            session,
            files=files,
            user_turns=self.user_turns,
            tool_calls=self.tool_calls,
            touches=-1 if grown else session.touches,
        )

    def looked_to(self) -> dict[int, LookedTo]:
        """Return how far each file was read."""
        return {file_id: LookedTo(*looked) for file_id, looked in self.offsets.items()}
