"""
The bounded, redacted text of one session that a model is shown: its newest messages whole, the oldest cut first.

What is wanted: a session of three lines and one of a hundred thousand records give a digest in the same memory and
nearly the same time; nothing that opens a door is in it, wherever it was cut; what was left out is said, with its
count; and each row can be named as evidence and found again in the transcript.

How: messages arrive in order and are kept as written, in windows (`cutting`), in one queue. The newest `tail_messages`
of them may later show `message_chars` each, older ones less, so the queue is bounded by what could be shown at all, and
what falls out of it is only counted. Redacting and cutting wait for `build`, which goes from the newest message to the
oldest and stops where the cap is reached: of a long session only the end is ever redacted, which is the costly part.

The cap holds for the rows as JSON, ids and quoting included, which is what is sent and kept. Whatever it is, the newest
message is shown; and the first row is never an error, whose cause would be missing.

Only what a person or the model said is evidence. Errors are shown, as edges, since that is where lessons are; the few
messages before the last look are shown as context. Neither can be cited.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import Literal, TypeAlias

from curatord.core.cheap import dataclass, field, replace
from curatord.core.distil.correction import corrects
from curatord.core.distil.cutting import Cut, Window, windowed
from curatord.core.distil.said import Said
from curatord.core.distil.wishes import Wishes
from curatord.core.settings import DigestSettings

__all__ = ["Digest", "DigestBuilder", "Entry", "EntryRole"]

EntryRole: TypeAlias = Literal["user", "assistant", "error"]

CONTEXT_MESSAGES = 20  # peers, "Newest part survives the cap", as are the next three
CONTEXT_CHARS = 200
ERROR_CHARS = 440  # its first and last 200, and the mark between them
ARGUMENT_CHARS = 300
TOOL_NAME_CHARS = 80
TOOLS_SHOWN = 6
TOOL_CHARS = 1_000  # of all calls of one message together
OLDER_TOOL_CHARS = 200
ERRORS_IN_A_ROW = 6  # the first three and the last three of a run of failures
SMALLEST_CAP = 600  # what one row with its marks takes at least
SLACK = 2  # redacting may shorten what is kept, so twice as much as can be shown is kept
ROW_CHARS = 40  # a row's own quoting


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One row of a digest.

    *id* is `r` and the message's number since the last look, or `c` and a number for context; *ref* the record's own
    name in the transcript. *text* is redacted and cut, *cut_chars* of it left out. Only where *evidence* is true may it
    be cited. *at_ms* is the record's time, None where it has none.
    """

    id: str
    role: EntryRole
    text: str
    evidence: bool
    at_ms: int | None = None
    ref: str = ""
    cut_chars: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)

    def row(self) -> dict[str, str]:
        """Return what is sent of it."""
        return {"id": self.id, "role": self.role, "text": self.text}

    @property
    def size(self) -> int:
        """Characters of its row in `Digest.text()`, the line end too."""
        return len(_dumped(self.row())) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """
    What a model is shown of a session, and what was counted on the way.

    Attributes:
        entries: Oldest first; the first is never an error.
        cut_messages: Messages since the last look that are not shown at all; *cut_chars*: characters left out of those
            that are.
        redacted: How many secrets of each kind were replaced in the rows' texts before they were cut.
        first_ms, last_ms: Times of the oldest and newest message since the last look, where they have any.
        through: Offset of the end of the newest record that was looked at; 0 where there was none.
        sha256: Lower-case hex over `text()`.
        user_messages, assistant_messages, errors, tool_calls: Of all messages since the last look, shown or not.
        corrected: The user put the model right. *fixed*: a call failed, and the same tool worked later.
        asked: A user's record that is shown holds a wish to keep something (`core.distil.wishes`).
    """

    entries: tuple[Entry, ...] = ()
    cut_messages: int = 0
    cut_chars: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)
    first_ms: int | None = None
    last_ms: int | None = None
    through: int = 0
    sha256: str = ""
    user_messages: int = 0
    assistant_messages: int = 0
    errors: int = 0
    tool_calls: int = 0
    corrected: bool = False
    fixed: bool = False
    asked: bool = False

    @property
    def refs(self) -> dict[str, str]:
        """The records' own names by the ids of the rows."""
        return {entry.id: entry.ref for entry in self.entries}

    def rows(self) -> list[dict[str, str]]:
        """Return the rows as they are sent: `{id, role, text}`; the first that is no context says what is missing."""
        rows = [entry.row() for entry in self.entries]
        for row in rows if self.cut_messages else ():
            if row["id"].startswith("r"):
                row["text"] = _missing(self.cut_messages) + row["text"]
                break
        return rows

    def text(self) -> str:
        """Return what is kept of it under its hash: one JSON object a line, the same rows as are sent."""
        return "".join(f"{_dumped(row)}\n" for row in self.rows())

    def shortened(self, max_chars: int) -> Digest:
        """
        Return the digest in at most *max_chars* characters, its oldest rows left out.

        The newest message stays as it is, whatever its length.
        """
        room = max_chars - _missing_size(self.cut_messages + len(self.entries))
        return self._with(_newest_that_fit(self.entries[::-1], room))

    def _with(self, entries: Sequence[Entry]) -> Digest:
        """Return the digest with *entries* of its own alone."""
        gone = sum(entry.id.startswith("r") for entry in self.entries)
        gone -= sum(entry.id.startswith("r") for entry in entries)
        counts: Counter[str] = Counter()
        for entry in entries:
            counts.update(entry.redacted)
        digest = replace(
            self,
            entries=tuple(entries),
            cut_messages=self.cut_messages + gone,
            cut_chars=sum(entry.cut_chars for entry in entries),
            redacted=dict(sorted(counts.items())),
        )
        return replace(digest, sha256=sha256(digest.text().encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class _Kept:
    """A message that waits to be shown; *tools* are the first of its calls, *more_tools* how many others it has."""

    id: str
    ref: str
    role: EntryRole
    at_ms: int | None
    text: Window
    tools: tuple[tuple[Window, Window], ...] = ()
    more_tools: int = 0


class DigestBuilder:
    """
    Takes what was said, message by message, and returns the digest; see the module.

    Args:
        settings: How much is shown.
        emails: Replace e-mail addresses too.
        wishes: How users ask that something be kept, for `Digest.asked`.
    """

    def __init__(self, settings: DigestSettings, *, emails: bool = False, wishes: Wishes | None = None) -> None:
        self._settings = settings
        self._emails = emails
        self._wishes = wishes or Wishes()
        self._cap = max(settings.max_chars, SMALLEST_CAP)
        self._context: deque[_Kept] = deque(maxlen=CONTEXT_MESSAGES)
        self._older: deque[_Kept] = deque()
        self._older_chars = 0
        self._tail: deque[_Kept] = deque()
        self._tail_messages = 0
        self._forgotten = False
        self._errors_in_a_row = 0
        self._numbers = Counter({"r": 0, "c": 0})
        self._signs = _Signs()
        self._first_ms: int | None = None
        self._last_ms: int | None = None
        self._through = 0

    def context(self, said: Said) -> None:
        """Take a message from before the last look; the last 20 that are no errors are shown, 200 characters each."""
        self._signs.spoke = self._signs.spoke or said.role == "assistant"
        if said.role != "error" and said.text.strip():
            self._context.append(self._kept(said._replace(tools=()), "c", CONTEXT_CHARS))

    def add(self, said: Said) -> None:
        """Take the next message since the last look."""
        self._through = max(self._through, said.offset)
        if not said.text.strip() and not said.tools:
            return
        if said.at_ms is not None:
            self._first_ms = said.at_ms if self._first_ms is None else min(self._first_ms, said.at_ms)
            self._last_ms = said.at_ms if self._last_ms is None else max(self._last_ms, said.at_ms)
        self._signs.learn(said)
        self._tail.append(self._kept(said, "r", self._limit(said.role)))
        if said.role == "error":
            self._errors_in_a_row += 1
            if self._errors_in_a_row > ERRORS_IN_A_ROW:
                del self._tail[-1 - ERRORS_IN_A_ROW // 2]
            return
        self._errors_in_a_row = 0
        self._tail_messages += 1
        if self._tail_messages > self._settings.tail_messages:
            self._age()

    def build(self) -> Digest:
        """Return the digest of all that was taken."""
        room = self._cap - _missing_size(self._numbers["r"])
        entries = _newest_that_fit(self._newest_first(), room, shorten=self._shortened)
        signs = self._signs
        digest = Digest(
            cut_messages=self._numbers["r"],
            first_ms=self._first_ms,
            last_ms=self._last_ms,
            through=self._through,
            user_messages=signs.counts["user"],
            assistant_messages=signs.counts["assistant"],
            errors=signs.counts["error"],
            tool_calls=signs.tool_calls,
            corrected=signs.corrected,
            fixed=signs.fixed or bool(signs.retried),
            asked=any(e.role == "user" and e.evidence and self._wishes.found(e.text) for e in entries),
        )
        return digest._with(entries)

    # -- taking

    def _kept(self, said: Said, kind: str, shown: int) -> _Kept:
        self._numbers[kind] += 1
        calls = () if said.role == "error" else said.tools
        return _Kept(
            f"{kind}{self._numbers[kind]}",
            said.ref,
            said.role,
            said.at_ms,
            windowed(said.text, shown),
            tuple(
                (windowed(tool.name, TOOL_NAME_CHARS), windowed(tool.arguments, ARGUMENT_CHARS))
                for tool in calls[:TOOLS_SHOWN]
            ),
            max(0, len(calls) - TOOLS_SHOWN),
        )

    def _limit(self, role: EntryRole, *, older: bool = False) -> int:
        if role == "error":
            return ERROR_CHARS
        if not older:
            return self._settings.message_chars
        return self._settings.older_user_chars if role == "user" else self._settings.older_assistant_chars

    def _age(self) -> None:
        """Move the oldest message of the tail to the older ones, with the failures around it."""
        messages = 0
        while self._tail and (self._tail[0].role == "error" or not messages):
            kept = self._tail.popleft()
            messages += kept.role != "error"
            self._older.append(kept)
            self._older_chars += self._least(kept)
        self._tail_messages -= 1
        while self._older_chars > SLACK * self._cap:
            self._older_chars -= self._least(self._older.popleft())
            self._forgotten = True

    def _least(self, kept: _Kept) -> int:
        """Return about how much of the cap *kept* takes as an older message."""
        return min(len(kept.text), self._limit(kept.role, older=True)) + ROW_CHARS

    # -- showing

    def _newest_first(self) -> Iterator[Entry]:
        for kept in reversed(self._tail):
            yield self._entry(kept, self._limit(kept.role), TOOL_CHARS)
        for kept in reversed(self._older):
            yield self._entry(kept, self._limit(kept.role, older=True), OLDER_TOOL_CHARS)
        if not self._forgotten:  # else what came before it would stand for what is missing
            for kept in reversed(self._context):
                yield self._entry(kept, CONTEXT_CHARS, 0)

    def _shortened(self, entry: Entry, room: int) -> Entry:
        """Return the newest message in *room* characters, where the cap is too small for what it may have else."""
        kept = next(kept for kept in self._tail if kept.id == entry.id)
        limit = min(len(entry.text), room)
        while limit > 0:
            entry = self._entry(kept, limit, 0)
            if entry.size <= room:
                break
            limit = min(limit - 1, limit * room // entry.size)
        return entry

    def _entry(self, kept: _Kept, limit: int, tool_room: int) -> Entry:
        counts: Counter[str] = Counter()
        said = self._cut(kept.text, limit, counts)
        calls = self._calls(kept, tool_room, counts) if tool_room else ""
        return Entry(
            id=kept.id,
            role=kept.role,
            text="\n".join(part for part in (said.text, calls) if part),
            evidence=kept.id.startswith("r") and kept.role != "error",
            at_ms=kept.at_ms,
            ref=kept.ref,
            cut_chars=said.missing,
            redacted=counts,
        )

    def _calls(self, kept: _Kept, room: int, counts: Counter[str]) -> str:
        """Return the calls of a message, one a line, in about *room* characters."""
        lines: list[str] = []
        more = kept.more_tools
        for name, arguments in kept.tools:
            head = " ".join(self._cut(name, TOOL_NAME_CHARS, counts, head_only=True).text.split())
            said = " ".join(self._cut(arguments, ARGUMENT_CHARS, counts, head_only=True).text.split())
            line = f"[call {head}] {said}".rstrip()
            if len(line) >= room:
                line = f"[call {head}]"
            if len(line) >= room:
                more += 1
                continue
            room -= len(line) + 1
            lines.append(line)
        if more:
            lines.append(f"[{more} more calls]")
        return "\n".join(lines)

    def _cut(self, text: Window, limit: int, counts: Counter[str], *, head_only: bool = False) -> Cut:
        cut = text.cut(limit, emails=self._emails, head_only=head_only)
        counts.update(cut.redacted)
        return cut


class _Signs:
    """What is counted and noticed of all messages, shown or not."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tool_calls = 0
        self.corrected = False
        self.spoke = False  # the model, at any time: also what was looked at before can be put right now
        self.fixed = False
        self.retried: set[str] = set()
        self._failed: set[str] = set()

    def learn(self, said: Said) -> None:
        """Take the next message."""
        self.counts[said.role] += 1
        if said.role == "error":
            names = {tool.name for tool in said.tools}
            self._failed |= names or {""}
            self.retried = self.retried - names if names else set()
            return
        self.fixed = self.fixed or bool(self.retried)
        self.retried = set()
        if said.role == "assistant":
            self.spoke = True
            self.tool_calls += len(said.tools)
            called = {tool.name for tool in said.tools}
            self.retried = called if "" in self._failed else called & self._failed
        elif self.spoke and not self.corrected:
            self.corrected = corrects(said.text)


def _newest_that_fit(
    newest_first: Iterable[Entry], room: int, *, shorten: Callable[[Entry, int], Entry] | None = None
) -> list[Entry]:
    """
    Return the newest entries that take at most *room* characters, oldest first, no error at the beginning.

    The newest message is among them in any case, shortened by *shorten* where it alone takes more; errors behind it are
    where there is room for them.
    """
    behind: list[Entry] = []
    chosen: list[Entry] = []
    for entry in newest_first:
        if not chosen and entry.role == "error":
            behind.append(entry)
            continue
        if not chosen:
            newest = shorten(entry, room) if shorten and entry.size > room else entry
            room -= newest.size
            for error in behind:
                if error.size <= room:
                    room -= error.size
                    chosen.append(error)
            chosen.append(newest)
        elif entry.size <= room:
            room -= entry.size
            chosen.append(entry)
        else:
            break
    while chosen and chosen[-1].role == "error":
        chosen.pop()
    return chosen[::-1]


def _missing(count: int) -> str:
    return f"[…{count} messages left out…]\n" if count else ""


def _missing_size(count: int) -> int:
    return len(_dumped(_missing(count))) - 2


def _dumped(value: object) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
