"""
Putting together what was said: messages out of records, in order, and only those that are asked for.

A host's teller calls `Telling` for each record that says something; here it is decided what becomes of it:

- **Nothing before, nothing beyond.** Records before the watermark of the last look, or behind the one that ingest has
  reached, are known to the teller (what a record means may stand before it) and not told.
- **One message, one `Said`.** Hosts spread a message over several records, and calls over records of their own. The
  newest message of the model stays open for its further parts and for its calls until somebody else speaks; errors
  that come meanwhile wait behind it. Calls that come before the model says a word belong to what it says next.
- **Silence.** A session that is curatord's own, a sub-agent's or the host's own reviewer's tells nothing at all; this
  may only show after its first records.

Everything is bounded: a text to `MAX_SAID`, the calls of a message and the calls remembered for their errors in number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from curatord.core.distil.said import MAX_SAID, Role, Said, ToolUse
from curatord.core.transcript.lines import printable

__all__ = ["MAX_ARGUMENTS", "Telling", "joined", "members", "one_line", "shortened", "tool_use", "without_tags"]

MAX_ARGUMENTS = 20_000  # characters of one call's arguments
MAX_TOOLS = 256  # of one message
KEEP_CALLS = 1024  # calls remembered for the errors that they may give
KEEP_ERRORS = 256  # behind an open message
MAX_REF = 200
_SPACE = re.compile(r"\s*")
WORDLESS = "[image]"  # what a person said who only showed something


class _Open:
    """The message of the model that may still grow."""

    __slots__ = ("at_ms", "begin", "end", "key", "ref", "size", "texts", "told", "tools")

    def __init__(self, key: str | None, ref: str, at_ms: int | None, begin: int) -> None:
        self.key = key
        self.begin = begin
        self.ref = ref
        self.at_ms = at_ms
        self.texts: list[str] = []
        self.size = 0
        self.tools: list[ToolUse] = []
        self.told = False  # some of it is to be told
        self.end = 0

    def add(self, text: str) -> None:
        if not text.strip() or self.size > MAX_SAID:
            return
        self.texts.append(shortened(text))
        self.size += len(self.texts[-1])


class Telling:
    """
    What one look at one session yields.

    Args:
        session_id: Whose records are told; others in the item are passed over.
        offset: Watermark up to which all is known already.
        at_ms: Time up to which all is known already, where *by_time*.
        until: Watermark beyond which nothing is told.
        by_time: The item is written anew as a whole: a record with a time is told by that, others by their place.
        both: The item may be written anew in parts: what is known by its place or by its time is not told.
    """

    def __init__(
        self,
        session_id: str,
        *,
        offset: int = 0,
        at_ms: int | None = None,
        until: int | None = None,
        by_time: bool = False,
        both: bool = False,
    ) -> None:
        self.session_id = session_id
        self._offset = offset
        self._at_ms = at_ms
        self._until = until
        self.by_time = by_time
        self._both = both
        self._begin = self._end = 0
        self._silent = False
        self._open: _Open | None = None
        self._errors: list[tuple[int, Said]] = []  # behind the open message
        self._early: list[ToolUse] = []  # calls before the message that they belong to
        self._early_at: tuple[int, str, int | None, int] | None = None
        self._calls: dict[str, ToolUse] = {}
        self._ready: list[tuple[int, Said]] = []  # with the offset at which each begins
        self._before_finish: Callable[[], None] = lambda: None

    # -- where we are

    def at(self, begin: int, end: int) -> None:
        """Take what comes from the record between these offsets."""
        self._begin, self._end = begin, end

    def line(self, line: bytes, offset: int) -> None:
        """Take what comes from the *line* at *offset*; its newline, which may be cut off, is no part of it."""
        self.at(offset, offset + len(line) - line.endswith(b"\n"))

    @property
    def place(self) -> tuple[int, int]:
        """Where the record at hand begins and ends."""
        return self._begin, self._end

    @property
    def here(self) -> str:
        """The name of a record without an id: its offset in words."""
        return f"@{self._begin}"

    @property
    def silent(self) -> bool:
        """Whether nothing is told, whatever comes."""
        return self._silent

    def silence(self) -> None:
        """Tell nothing of this session, not even what is ready."""
        self._silent = True
        self.forget()

    def forget(self) -> None:
        """Take back what was told and is not handed on yet: it is another session's."""
        self._ready.clear()
        self._open = None
        self._errors.clear()
        self._early.clear()

    @property
    def beyond(self) -> bool:
        """Whether the record at hand is one that ingest has not counted yet."""
        return self._until is not None and self._end > self._until

    def _wanted(self, at_ms: int | None) -> bool:
        if self._silent or self.beyond:
            return False
        known = self._at_ms is not None and at_ms is not None and at_ms <= self._at_ms
        if self.by_time and at_ms is not None and self._at_ms is not None:
            return not known
        return self._end > self._offset and not (self._both and known)

    # -- what was said

    def user(self, ref: str | None, text: str, at_ms: int | None) -> None:
        """Tell a prompt."""
        self._close()
        if self._wanted(at_ms):
            self._put("user", ref, text if text.strip() else WORDLESS, at_ms)

    def assistant(
        self, key: str | None, ref: str | None, text: str, tools: Iterable[ToolUse], at_ms: int | None, *, new: bool
    ) -> None:
        """
        Tell a message of the model, or a further part of it.

        Args:
            key: What its parts have in common, None where each is a message.
            ref: The record's id.
            text: Its words, without its thoughts.
            tools: Its calls.
            at_ms: Its time.
            new: It was not there before. A further part of a message that is closed by now is passed over.
        """
        open_ = self._open
        if open_ is None or key is None or open_.key != key:
            if not new:
                return
            self._close(keep_early=True)
            open_ = self._open = _Open(key, self._ref(ref), at_ms, self._begin)
            if self._early:
                open_.tools, self._early = self._early, []
                open_.told = True
        if self._wanted(at_ms):
            open_.add(text)
            for tool in tools:
                self._attach(open_.tools, tool)
            open_.told = True
            open_.end = self._end

    def call(self, tool: ToolUse, at_ms: int | None, ref: str | None = None) -> None:
        """Add a call that stands in a record of its own to the message it belongs to."""
        if not self._wanted(at_ms):
            return
        if self._open is not None:
            self._attach(self._open.tools, tool)
            self._open.told = True
            self._open.end = self._end
            return
        self._attach(self._early, tool)
        self._early_at = (self._begin, self._ref(ref), at_ms, self._end)

    def knows(self, call: str | None, tool: ToolUse) -> None:
        """Remember what a call was, for the error that it may give."""
        if call:
            self._calls.pop(call, None)
            self._calls[call] = tool
            if len(self._calls) > KEEP_CALLS:
                del self._calls[next(iter(self._calls))]

    def error(self, ref: str | None, text: str, at_ms: int | None, *, call: str | None = None) -> None:
        """Tell what a failed call gave; *call* names it."""
        if not self._wanted(at_ms) or not text.strip():
            return
        tool = self._calls.get(call) if call else None
        said = Said(self._ref(ref), "error", shortened(text), at_ms, self._end, (tool,) if tool is not None else ())
        if self._open is None:
            self._ready.append((self._begin, said))
        else:
            self._errors.append((self._begin, said))
            if len(self._errors) >= KEEP_ERRORS:
                self._close()

    # -- what is ready

    def before_finish(self, hand_over: Callable[[], None]) -> None:
        """Have *hand_over* called when nothing more comes: for a teller that holds messages back."""
        self._before_finish = hand_over

    def finish(self) -> None:
        """Take what is open as whole: nothing more comes."""
        self._before_finish()
        self._close()

    def take(self) -> list[Said]:
        """
        Return what is ready, and begin anew.

        In order of where each began: a line too long to hold may be handed out behind the lines that follow it.
        """
        ready, self._ready = self._ready, []
        ready.sort(key=lambda each: each[0])
        return [said for _, said in ready]

    def _close(self, *, keep_early: bool = False) -> None:
        open_ = self._open
        self._open = None
        if open_ is not None and open_.told:
            tools = tuple(open_.tools)
            text = shortened("\n".join(open_.texts))
            self._ready.append((open_.begin, Said(open_.ref, "assistant", text, open_.at_ms, open_.end, tools)))
        if self._errors:
            self._ready += self._errors
            self._errors = []
        if self._early and not keep_early and self._early_at is not None:
            # It called, and was stopped before it said a word.
            begin, ref, at_ms, end = self._early_at
            self._ready.append((begin, Said(ref, "assistant", "", at_ms, end, tuple(self._early))))
            self._early = []

    def _put(self, role: Role, ref: str | None, text: str, at_ms: int | None) -> None:
        self._ready.append((self._begin, Said(self._ref(ref), role, shortened(text), at_ms, self._end)))

    def _ref(self, ref: str | None) -> str:
        return printable(ref)[:MAX_REF] if ref else self.here

    @staticmethod
    def _attach(tools: list[ToolUse], tool: ToolUse) -> None:
        if len(tools) < MAX_TOOLS:
            tools.append(tool)


def without_tags(text: str, tags: Sequence[str]) -> str:
    """Return *text* without the sections in one of *tags* that stand whole before or behind it: the program's."""
    text = text.strip()
    begin, end = 0, len(text)
    again = True
    while again:
        again = False
        for tag in tags:
            opens, closes = f"<{tag}>", f"</{tag}>"
            if text.startswith(opens, begin):
                at = text.find(closes, begin, end)
                if at >= 0:
                    begin, again = _SPACE.match(text, at + len(closes)).end(), True  # type: ignore[union-attr]  # matches
            if text.endswith(closes, begin, end):
                at = text.rfind(opens, begin, end)
                if at >= 0:
                    end, again = at, True
                    while end > begin and text[end - 1].isspace():
                        end -= 1
    return text[begin:end]


def shortened(text: str, most: int = MAX_SAID) -> str:
    """Return *text*, of one that is longer than *most* its two ends and how much is left out between them."""
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
    return text if text.isascii() else printable(text)


def one_line(arguments: object) -> str:
    """Return a call's arguments as one line: an object as JSON, a text as it is with its line ends escaped."""
    if arguments is None:
        return ""
    if isinstance(arguments, str):
        text = arguments
    else:
        try:
            text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return ""
    text = shortened(text, MAX_ARGUMENTS)
    return text.replace("\r", "\\r").replace("\n", "\\n")


def tool_use(name: object, arguments: object) -> ToolUse:
    """Return one call; *arguments* may be an object, or text."""
    return ToolUse(printable(name)[:MAX_REF] if isinstance(name, str) and name else "(unnamed)", one_line(arguments))


def joined(value: object) -> str:
    """Return the text of a message's content: a string, or a list of strings and of parts with `text`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ""
    texts: list[str] = []
    for part in value:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(text := part.get("text"), str):
            texts.append(text)
    return "\n".join(texts)


def members(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in the list at *name* of *value*, none where it is no such list."""
    found = value.get(name) if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
