"""
The bounded, redacted text of one session that a model is shown: its newest messages whole, the oldest cut first.

What is wanted: a session of three lines and one of a hundred thousand records give a digest in the same memory and
nearly the same time; nothing that opens a door is in it, wherever it was cut; what was left out is said, with its
count; and each row can be named as evidence and found again in the transcript.

How: messages arrive in order and are kept raw, in windows, in one queue. The newest `tail_messages` of them may later
show `message_chars` each, older ones less, so the queue is bounded by what could be shown at all, and what falls out of
it is only counted. Redacting and cutting wait for `build`, which goes from the newest message to the oldest and stops
where the cap is reached: of a long session only the end is ever redacted, which is the costly part.

Redact, then cut: a secret that is cut first is no secret to a detector any more, but half of one. A text that is longer
than what is shown of it is redacted in two windows that reach `MARGIN` characters, more than the longest secret, beyond
what is shown, so that no secret lies over the edge of a window and within what is shown. Where redacting itself made a
window so short that this does not hold, less is shown.

Only what a person or the model said is evidence. Errors are shown, as edges, since that is where lessons are; the few
messages before the last look are shown as context. Neither can be cited.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from hashlib import sha256
from json import dumps
from typing import Any, Literal, TypeAlias

from curatord.core.cheap import dataclass, field, replace
from curatord.core.distil.correction import corrects
from curatord.core.distil.said import Said, ToolUse
from curatord.core.redact import redacted
from curatord.core.settings import DigestSettings

__all__ = ["Digest", "DigestBuilder", "Entry", "EntryRole"]

EntryRole: TypeAlias = Literal["user", "assistant", "error"]

MARGIN = 20_200  # a private key block is the longest that `core.redact` knows: 20,000 characters and its two lines
HEAD_SHARE = 0.65  # the rest is the tail: how a message begins says more than how it ends
CONTEXT_MESSAGES = 20
CONTEXT_CHARS = 200
ERROR_EDGE = 200
ARGUMENT_CHARS = 300
TOOL_NAME_CHARS = 80
TOOLS_SHOWN = 6
TOOL_CHARS = 1_000  # of all calls of one message together
OLDER_TOOL_CHARS = 200
ERRORS_IN_A_ROW = 6  # the first three and the last three of a run of failures
SMALLEST_CAP = 600  # what one row with its marks takes at least
SLACK = 2  # redacting may shorten what is kept, so twice as much as can be shown is kept
ROW_CHARS = 40  # a row's own quoting
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One row of a digest.

    *id* is `r` and the message's number since the last look, or `c` and a number for context; *ref* the record's own
    name in the transcript. *text* is redacted and cut. Only where *evidence* is true may it be cited. *at_ms* is the
    record's time, None where it has none.
    """

    id: str
    role: EntryRole
    text: str
    evidence: bool
    at_ms: int | None = None
    ref: str = ""

    def row(self) -> dict[str, str]:
        """Return what is sent of it."""
        return {"id": self.id, "role": self.role, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """
    What a model is shown of a session, and what was counted on the way.

    Attributes:
        entries: Oldest first; the first is never an error.
        cut_messages: Messages since the last look that are not shown at all; *cut_chars*: characters left out of those
            that are.
        redacted: How many secrets of each kind were replaced in what is shown.
        first_ms, last_ms: Times of the oldest and newest message since the last look, where they have any.
        through: Offset of the end of the newest record that was looked at; 0 where there was none.
        sha256: Lower-case hex over `text()`.
        user_messages, assistant_messages, errors, tool_calls: Of all messages since the last look, shown or not.
        longest_assistant: Characters of the longest thing that the model said.
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
    longest_assistant: int = 0
    corrected: bool = False
    fixed: bool = False
    asked: bool = False

    @property
    def refs(self) -> dict[str, str]:
        """The records' own names by the ids of the rows."""
        return {entry.id: entry.ref for entry in self.entries}

    def rows(self) -> list[dict[str, str]]:
        """Return the rows as they are sent: `{id, role, text}`, with how many messages are missing in the first."""
        return _rows(self.entries, self.cut_messages)

    def text(self) -> str:
        """Return what is kept of it under its hash: one JSON object a line, the same rows as are sent."""
        return _text(self.rows())

    def shortened(self, max_chars: int) -> Digest:
        """
        Return the digest with its oldest rows left out until it has at most *max_chars* characters.

        The newest message stays whole whatever its length.
        """
        entries, cut = list(self.entries), self.cut_messages
        newest = _newest(entries)
        if newest is None:
            return self
        sizes = deque(_size(entry) for entry in entries)
        total = sum(sizes) + len(_missing(cut))
        dropped = 0
        while total > max_chars and dropped < newest:
            total -= sizes.popleft()
            cut += entries[dropped].id[0] == "r"
            dropped += 1
        kept = entries[dropped:]
        while len(kept) > 1 and total > max_chars:
            total -= _size(kept.pop())  # failures behind the newest message
            cut += 1
        while len(kept) > 1 and kept[0].role == "error":
            kept.pop(0)
            cut += 1
        if len(kept) == len(entries):
            return self
        return _sealed(replace(self, entries=tuple(kept), cut_messages=cut))


@dataclass(frozen=True, slots=True)
class _Window:
    """The two ends of a text; between them *skipped* characters are not kept. *tail* is empty where all is in *head*."""

    head: str
    skipped: int = 0
    tail: str = ""

    def __len__(self) -> int:
        return len(self.head) + self.skipped + len(self.tail)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A message that waits to be shown."""

    number: int
    ref: str
    role: EntryRole
    text: _Window
    tools: tuple[tuple[str, _Window], ...]
    more_tools: int
    at_ms: int | None


class DigestBuilder:
    """
    Takes what was said, message by message, and returns the digest; see the module.

    Args:
        settings: How much is shown.
        emails: Replace e-mail addresses too.
        wishes: Tells whether a user's text holds a wish; what `Digest.asked` is made of.
    """

    def __init__(self, settings: DigestSettings, *, emails: bool = False, wishes: Any = None) -> None:
        self._settings = settings
        self._emails = emails
        self._wishes = wishes
        self._window = MARGIN + max(
            settings.message_chars, settings.older_user_chars, settings.older_assistant_chars, 2 * ERROR_EDGE
        )
        self._cap = max(settings.max_chars, SMALLEST_CAP)
        self._context: deque[_Kept] = deque(maxlen=CONTEXT_MESSAGES)
        self._tail: deque[_Kept] = deque()
        self._tail_messages = 0
        self._older: deque[_Kept] = deque()
        self._older_chars = 0
        self._row_of_errors = 0
        self._dropped = 0
        self._number = 0
        self._context_number = 0
        self._counts: Counter[str] = Counter()
        self._longest = 0
        self._first_ms: int | None = None
        self._last_ms: int | None = None
        self._through = 0
        self._corrected = False
        self._fixed = False
        self._failed: set[str] = set()
        self._retried: set[str] = set()
        self._answered = False

    def context(self, said: Said) -> None:
        """Take a message from before the last look; the last 20 that are no errors are shown, 200 characters each."""
        if said.role == "error":
            return
        self._context_number += 1
        kept = self._kept(said, self._context_number)
        self._context.append(replace_tools(kept))

    def add(self, said: Said) -> None:
        """Take the next message since the last look."""
        self._number += 1
        self._through = max(self._through, said.offset)
        if said.at_ms is not None:
            self._first_ms = said.at_ms if self._first_ms is None else min(self._first_ms, said.at_ms)
            self._last_ms = said.at_ms if self._last_ms is None else max(self._last_ms, said.at_ms)
        self._learn(said)
        kept = self._kept(said, self._number)
        self._tail.append(kept)
        if said.role == "error":
            self._row_of_errors += 1
            if self._row_of_errors > ERRORS_IN_A_ROW:
                del self._tail[-1 - ERRORS_IN_A_ROW // 2]
                self._row_of_errors -= 1
                self._dropped += 1
            return
        self._row_of_errors = 0
        self._tail_messages += 1
        while self._tail_messages > self._settings.tail_messages:
            self._age()

    def _age(self) -> None:
        """Move the oldest message of the tail, and the failures behind it, to the older ones."""
        while self._tail:
            kept = self._tail.popleft()
            self._older.append(kept)
            self._older_chars += self._least(kept)
            if kept.role != "error":
                self._tail_messages -= 1
                break
        while self._tail and self._tail[0].role == "error":
            kept = self._tail.popleft()
            self._older.append(kept)
            self._older_chars += self._least(kept)
        while self._older_chars > SLACK * self._cap:
            self._older_chars -= self._least(self._older.popleft())
            self._dropped += 1

    def _least(self, kept: _Kept) -> int:
        """Return about how much of the cap *kept* takes as an older message."""
        return min(len(kept.text), self._limit(kept.role, older=True)) + ROW_CHARS

    def _limit(self, role: EntryRole, *, older: bool) -> int:
        if role == "error":
            return 2 * ERROR_EDGE
        if not older:
            return self._settings.message_chars
        return self._settings.older_user_chars if role == "user" else self._settings.older_assistant_chars

    def _learn(self, said: Said) -> None:
        """Count *said*, and see whether it corrects or mends something."""
        self._counts[said.role] += 1
        if said.role == "error":
            names = {tool.name for tool in said.tools} or {""}
            self._failed |= names
            self._retried -= names if names != {""} else self._retried
            return
        self._counts["tools"] += len(said.tools)
        if self._retried:
            self._fixed, self._retried = True, set()
        if said.role == "assistant":
            self._answered = True
            self._longest = max(self._longest, len(said.text.strip()))
            called = {tool.name for tool in said.tools}
            self._retried = called if "" in self._failed else called & self._failed
        elif self._answered and not self._corrected:
            self._corrected = corrects(said.text)

    def _kept(self, said: Said, number: int) -> _Kept:
        shown = said.tools[:TOOLS_SHOWN] if said.role != "error" else ()
        return _Kept(
            number,
            said.ref,
            said.role,
            self._windowed(said.text),
            tuple((tool.name[:TOOL_NAME_CHARS], self._windowed_argument(tool)) for tool in shown),
            len(said.tools) - len(shown) if said.role != "error" else 0,
            said.at_ms,
        )

    def _windowed(self, text: str) -> _Window:
        if len(text) <= 2 * self._window:
            return _Window(text)
        skipped = len(text) - 2 * self._window
        return _Window(text[: self._window], skipped, text[-self._window :])

    def _windowed_argument(self, tool: ToolUse) -> _Window:
        room = ARGUMENT_CHARS + MARGIN
        if len(tool.arguments) <= room:
            return _Window(tool.arguments)
        return _Window(tool.arguments[:room], len(tool.arguments) - room)

    def build(self) -> Digest:
        """Return the digest of all that was taken; the builder may go on and build another."""
        if self._retried:
            fixed = True
        else:
            fixed = self._fixed
        counts: Counter[str] = Counter()
        entries, cut_chars = self._chosen(counts)
        shown = sum(entry.id[0] == "r" for entry in entries)
        digest = Digest(
            entries=tuple(entries),
            cut_messages=self._number - shown,
            cut_chars=cut_chars,
            redacted=dict(sorted(counts.items())),
            first_ms=self._first_ms,
            last_ms=self._last_ms,
            through=self._through,
            user_messages=self._counts["user"],
            assistant_messages=self._counts["assistant"],
            errors=self._counts["error"],
            tool_calls=self._counts["tools"],
            longest_assistant=self._longest,
            corrected=self._corrected,
            fixed=fixed,
            asked=self._wishes is not None
            and any(e.evidence and e.role == "user" and self._wishes.found(e.text) is not None for e in entries),
        )
        return _sealed(digest)

    def _chosen(self, counts: Counter[str]) -> tuple[list[Entry], int]:
        """Return the rows that fit, oldest first, and how many characters are missing in them."""
        room = self._cap - len(_missing(self._number))
        newest = next((kept for kept in reversed(self._tail) if kept.role != "error"), None)
        if newest is None:
            return [], 0
        whole, missing, found = self._entry(newest, older=False, counts=None)
        whole, more, found = self._fitted(newest, whole, missing, found, room)
        counts.update(found)
        room -= _size(whole)
        cut = more
        chosen: list[Entry] = []
        behind = True
        for kept in self._newest_first():
            if kept is newest:
                chosen.append(whole)
                behind = False
                continue
            entry, missing, found = self._entry(kept, older=kept.number < self._tail[0].number, counts=None)
            if _size(entry) > room:
                if behind:
                    continue
                break
            room -= _size(entry)
            cut += missing
            counts.update(found)
            chosen.append(entry)
        else:
            room, cut = self._with_context(chosen, room, cut, counts)
        while chosen and chosen[-1].role == "error":
            chosen.pop()
        chosen.reverse()
        return chosen, cut

    def _with_context(self, chosen: list[Entry], room: int, cut: int, counts: Counter[str]) -> tuple[int, int]:
        """Add context behind *chosen* (newest first) where all of the session's messages are shown."""
        while chosen and chosen[-1].role == "error":
            chosen.pop()
        if self._dropped:
            return room, cut
        for kept in reversed(self._context):
            text, _, found = self._cut(kept.text, CONTEXT_CHARS)
            entry = Entry(
                id=f"c{kept.number}", role=kept.role, text=text, evidence=False, at_ms=kept.at_ms, ref=kept.ref
            )
            if _size(entry) > room:
                break
            room -= _size(entry)
            counts.update(found)
            chosen.append(entry)
        return room, cut

    def _newest_first(self) -> Iterable[_Kept]:
        yield from reversed(self._tail)
        yield from reversed(self._older)

    def _fitted(
        self, kept: _Kept, entry: Entry, missing: int, found: Mapping[str, int], room: int
    ) -> tuple[Entry, int, Mapping[str, int]]:
        """Return the row of the newest message, cut further only where the whole cap is too small for it."""
        limit = len(entry.text)
        while _size(entry) > room and limit > 0:
            limit = min(limit - 1, limit * room // max(_size(entry), 1))
            text, missing, found = self._cut(kept.text, max(limit, 0))
            entry = replace(entry, text=text)
        return entry, missing, found

    def _entry(self, kept: _Kept, *, older: bool, counts: None) -> tuple[Entry, int, Mapping[str, int]]:
        found: Counter[str] = Counter()
        text, missing, its = self._cut(kept.text, self._limit(kept.role, older=older))
        found.update(its)
        calls = self._calls(kept, OLDER_TOOL_CHARS if older else TOOL_CHARS, found)
        whole = f"{text}\n{calls}" if text and calls else text or calls
        entry = Entry(
            id=f"r{kept.number}",
            role=kept.role,
            text=whole,
            evidence=kept.role != "error",
            at_ms=kept.at_ms,
            ref=kept.ref,
        )
        return entry, missing, found

    def _calls(self, kept: _Kept, room: int, found: Counter[str]) -> str:
        """Return the calls of a message, one a line, in at most *room* characters."""
        lines: list[str] = []
        more = kept.more_tools
        for name, arguments in kept.tools:
            head = redacted(" ".join(_clean(name).split()), emails=self._emails).text
            text, _, its = self._cut(arguments, ARGUMENT_CHARS, head_only=True)
            line = f"[call {head}] {' '.join(text.split())}".rstrip()
            if len(line) + 1 > room:
                line = f"[call {head}]"
                if len(line) + 1 > room:
                    more += 1
                    continue
            else:
                found.update(its)
            room -= len(line) + 1
            lines.append(line)
        if more:
            lines.append(f"[{more} more calls]")
        return "\n".join(lines)

    def _cut(self, text: _Window, limit: int, *, head_only: bool = False) -> tuple[str, int, Mapping[str, int]]:
        """
        Return *text* redacted and in at most *limit* characters, how many are missing, and what was redacted.

        The number in the mark counts characters of the text as redacted.
        """
        found: Counter[str] = Counter()
        head = self._redacted(text.head, found)
        if not text.skipped and len(head) <= limit:
            return head, 0, found
        safe_head = len(head) if not text.skipped else max(0, len(head) - MARGIN)
        if not text.skipped:
            tail, safe_tail = head, len(head)
            total = len(head)
        else:
            tail = self._redacted(text.tail, found)
            safe_tail = max(0, len(tail) - MARGIN)
            total = len(head) + text.skipped + len(tail)
        return _ends(head, tail, safe_head, safe_tail, total, limit, head_only=head_only), max(0, total - limit), found

    def _redacted(self, text: str, found: Counter[str]) -> str:
        result = redacted(_clean(text), emails=self._emails)
        found.update(result.counts)
        return result.text


def replace_tools(kept: _Kept) -> _Kept:
    """Return *kept* without its calls, as context is shown."""
    return _Kept(kept.number, kept.ref, kept.role, kept.text, (), 0, kept.at_ms)


def _ends(head: str, tail: str, safe_head: int, safe_tail: int, total: int, limit: int, *, head_only: bool) -> str:
    """Return the two ends of a text with a mark between them that says how many characters are missing."""
    mark = _gap(total)
    room = limit - len(mark)
    if room <= 0:
        return head[: min(limit, safe_head)]
    front = room if head_only else int(room * HEAD_SHARE)
    front = min(front, safe_head)
    back = 0 if head_only else min(room - int(room * HEAD_SHARE), safe_tail)
    mark = _gap(total - front - back)
    return head[:front] + mark + (tail[len(tail) - back :] if back else "")


def _gap(count: int) -> str:
    return f" […{count} characters left out…] "


def _missing(count: int) -> str:
    return f"[…{count} earlier messages left out…]\\n" if count else ""


def _clean(text: str) -> str:
    """Return *text* without halves of characters, which no file and no request can hold."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def _newest(entries: list[Entry]) -> int | None:
    """Return the place of the newest row that is no error."""
    return next((place for place in reversed(range(len(entries))) if entries[place].role != "error"), None)


def _size(entry: Entry) -> int:
    """Return the characters that a row takes in `text()`, its line end too."""
    return len(dumps(entry.row(), ensure_ascii=False, separators=(",", ":"))) + 1


def _rows(entries: tuple[Entry, ...], cut: int) -> list[dict[str, str]]:
    rows = [entry.row() for entry in entries]
    if cut:
        place = next((i for i, entry in enumerate(entries) if entry.id[0] == "r"), None)
        if place is not None:
            rows[place]["text"] = f"[…{cut} earlier messages left out…]\n{rows[place]['text']}"
    return rows


def _text(rows: list[dict[str, str]]) -> str:
    return "".join(dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def _sealed(digest: Digest) -> Digest:
    return replace(digest, sha256=sha256(digest.text().encode()).hexdigest())
