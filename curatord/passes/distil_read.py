"""
What was said in a session since it was last looked at, over all files that hold something of it, as one digest.

A session may lie in several files: resumed, copied, mirrored. They are read in the order of their newest records, each
up to the watermark that ingest has counted and no further, so that what the digest holds and what the counts say is the
same stretch. A record that a copy repeats is taken once, by its own id. What lies before the last look is context: a
small file is read from its start for it, of a large one it is left out (bugs K05).

A file that was replaced or cut since the last look is read anew, and what is not newer than the last look is context.
One that was gone at the last look is noted as unread: when it comes back all of it is new, but for what the session's
other files said already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

from curatord.core.cheap import dataclass
from curatord.core.distil.digest import Digest, DigestBuilder
from curatord.core.distil.said import Said
from curatord.errors import CuratorError, InputError
from curatord.ports.conversation import Conversations, Since
from curatord.ports.distil_store import UNREAD, FilePart, LookedTo, SessionToDistil

__all__ = ["Reading", "read_session"]

CONTEXT_BYTES = 4 * 1024 * 1024  # a file that was looked at further than this is not read again for its context
MAX_REFS = 200_000  # records that are remembered by their ids, 8 bytes each, so that copies count once


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    The digest, and how far each file was read for it.

    *problem*: why nothing could be read, in words; then the digest is empty. *lasting*: it will not be otherwise.
    """

    digest: Digest
    offsets: Mapping[int, LookedTo]
    problem: str | None = None
    lasting: bool = False


def read_session(
    session: SessionToDistil,
    opened: Callable[[FilePart], Conversations | None],
    builder: DigestBuilder,
    *,
    whole: bool,
    stop: Callable[[], bool],
) -> Reading:
    """
    Return what was said in *session* since its last look.

    Args:
        session: With its files and their watermarks.
        opened: Gives the reader of a file's place; None where that is not configured any more.
        builder: Fresh; takes what is read.
        whole: From the start, whatever was looked at.
        stop: Asked between records.
    """
    seen: set[bytes] = set()
    offsets: dict[int, LookedTo] = dict(session.look.offsets)
    problems: list[str] = []
    lasting = True
    read = 0
    looks = {} if whole else session.look.offsets
    back = any(not file.gone and file.records and looks.get(file.file_id) == UNREAD for file in session.files)
    # What was looked at comes first: by it the rest is known for a copy.
    for file in sorted(session.files, key=lambda file: looks.get(file.file_id) == UNREAD):
        if not file.records:
            continue  # a copy of what lies elsewhere
        looked = looks.get(file.file_id)
        seen_whole = looked is not None and looked == (file.offset, file.head)
        if seen_whole and not (back and not file.gone and file.offset <= CONTEXT_BYTES):
            read += 1
            if not file.gone:
                offsets[file.file_id] = LookedTo(file.offset, file.head)
            continue
        conversations = opened(file)
        if conversations is None:
            problems.append(f"{file.path}: its place is not configured any more")
            continue
        try:
            _take(session, file, looked, conversations, builder, seen, whole=whole, stop=stop)
        except FileNotFoundError:
            # What a scan has already missed is the host's own pruning; else it may be back in a moment.
            lasting = lasting and file.gone
            problems.append(f"{file.path} is gone")
            if file.file_id not in offsets:
                offsets[file.file_id] = UNREAD
            continue
        except InputError as error:
            problems.append(f"{file.path}: {error}")
            continue
        except (OSError, CuratorError) as error:
            lasting = False
            problems.append(f"{file.path}: {getattr(error, 'strerror', None) or error}")
            continue
        read += 1
        offsets[file.file_id] = LookedTo(file.offset, file.head)
    # A part that cannot be read just now holds up the whole: settling the rest would pass over what it says.
    problem = "; ".join(problems[:3]) if problems and not (read and lasting) else None
    return Reading(digest=builder.build(), offsets=offsets, problem=problem, lasting=lasting)


def _take(
    session: SessionToDistil,
    file: FilePart,
    looked: LookedTo | None,
    conversations: Conversations,
    builder: DigestBuilder,
    seen: set[bytes],
    *,
    whole: bool,
    stop: Callable[[], bool],
) -> None:
    through = None if whole else session.look.through_ms
    same = looked is not None and looked.head == file.head and looked.offset <= file.offset
    reached = looked.offset if looked is not None and same else 0
    by_time = looked != UNREAD and (looked is not None or bool(session.look.offsets))
    since = Since(offset=reached if reached > CONTEXT_BYTES else 0)
    for said in conversations.said(file.path, session.session_id, since, until=file.offset, stop=stop):
        if _repeated(said, seen):
            continue
        if _is_old(said, reached=reached, through=through, by_time=by_time):
            builder.context(said)
        else:
            builder.add(said)


def _is_old(said: Said, *, reached: int, through: int | None, by_time: bool) -> bool:
    """
    Return whether *said* lies before the last look: by its offset where that is known, else by its time.

    A reader whose offsets mean nothing gives 0 for each; then the time decides.
    """
    if reached and said.offset:
        return said.offset <= reached
    return by_time and through is not None and said.at_ms is not None and said.at_ms <= through


def _repeated(said: Said, seen: set[bytes]) -> bool:
    """Return whether a record with the same id of its own came before; one that is known by its place never does."""
    if said.ref.startswith("@"):
        return False
    # An assistant's one message may be told in several pieces under one id, and an error bears its call's.
    key = blake2b(f"{said.role}\0{said.ref}\0{said.text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    if key in seen:
        return True
    if len(seen) < MAX_REFS:
        seen.add(key)
    return False
