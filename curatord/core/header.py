"""
The YAML header of a SKILL.md: found, read as text, and edited one value at a time with every other byte kept.

What is wanted: one reader that reading and writing share, so that no skill can be used but never maintained (bugs
B056). It must take what people really write (a byte-order mark, any line end, fences with blanks behind them, an
unquoted colon in a description) and must not be hurt by what they should not (aliases that grow without end, nesting
without end, a fence that never closes).

How: the text between the fences is read as a stream of YAML *events* and never constructed: values stay the text that
was written (`007`, `1.10`, `yes`, a date), aliases and tags are refused where they occur, nesting is cut at a depth,
so time and memory are bounded by the header's own 64 KiB. Strict first; when that fails, one narrow retry in which
plain `name` and `description` values are quoted (bugs B055). Whatever fails then is a `Fault` with its line.

An edit replaces the characters of one value, then reads the result again: the edited key must have the new value and
every other key its old one, else the edit is refused. So a wrong guess about where a value ends can cost an edit, but
never a byte.

U+0085, U+2028 and U+2029 are line ends to YAML 1.1, ordinary characters to YAML 1.2 and to every editor. They are
ordinary here (a stand-in is shown to the YAML reader), so that no key can hide behind one.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from curatord.core.cheap import dataclass, replace

__all__ = [
    "HEADER_CAP",
    "Entry",
    "Fault",
    "Header",
    "HeaderValue",
    "Lines",
    "SplitText",
    "read_mapping",
    "render_value",
    "set_header_value",
    "split_text",
]

HEADER_CAP = 64 * 1024  # characters between the fences; real ones reach some 6 KB (bugs B074)
MAX_DEPTH = 16

HeaderValue: TypeAlias = "str | Sequence[HeaderValue] | Mapping[str, HeaderValue] | None"

_FENCE = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")
_BREAK = re.compile(r"\r\n|\r|\n")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_MENDABLE = re.compile(r"(name|description)[ \t]*:[ \t]+")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
# What stays text, whatever the reader, without quotes. Words that some YAML reader takes for something else are out.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.()/'’–—+-]*\Z")
_TYPED_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_ESCAPED_TOO = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a SKILL.md cannot be taken as it is; *line* is 1-based."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One top-level key of a header.

    Attributes:
        value: Text as written (quotes and folding undone), None for nothing or `~`, lists and mappings of such.
        line: 1-based line of the key in the file.
        start, end: Where the value stands in the whole text, in characters; equal where there is none.
    """

    key: str
    value: HeaderValue
    style: Literal["plain", "single", "double", "block", "nested"]
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """
    A header that could be read; *mended* are the keys whose values had to be quoted for it.

    *start* and *end* are the characters between the fences, in the whole text.
    """

    entries: tuple[Entry, ...]
    start: int
    end: int
    mended: tuple[str, ...] = ()

    def entry(self, key: str) -> Entry | None:
        """Return the entry of *key*, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def text(self, key: str) -> str | None:
        """Return the value of *key* where it is text, else None."""
        entry = self.entry(key)
        return entry.value if entry is not None and isinstance(entry.value, str) else None

    def values(self) -> dict[str, HeaderValue]:
        """Return all values by key, in the order of the file."""
        return {entry.key: entry.value for entry in self.entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """
    The whole text of a SKILL.md, taken apart.

    Attributes:
        text: Everything, with a leading U+FEFF where the file has a byte-order mark.
        header: None where the file has no header at all.
        body_start: Where the body begins in *text*, in characters.
        eol: The line end of its first line, or LF.
    """

    text: str
    header: Header | None
    body_start: int
    eol: str

    @property
    def body(self) -> str:
        """Everything behind the header."""
        return self.text[self.body_start :]


class Lines:
    """Offsets of a text's lines, with LF, CRLF and CR all ending one."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._starts.extend(found.end() for found in _BREAK.finditer(text))

    def number(self, offset: int) -> int:
        """Return the 1-based line that holds the character at *offset*."""
        return bisect.bisect_right(self._starts, offset)


def split_text(data: bytes) -> SplitText | Fault:
    """
    Return the text of a SKILL.md with its header read, or the first reason why it cannot be.

    A file without a header is no fault; one whose header does not close is (bugs B061), and its body is not read as
    a header.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = len(_BREAK.findall(data[: error.start].decode("utf-8", "replace"))) + 1
        return Fault(line=line, reason=f"not UTF-8 (byte {data[error.start]:#04x} at offset {error.start})")
    return _split(text)


def read_mapping(data: bytes) -> dict[str, HeaderValue] | Fault:
    """
    Return a whole YAML file (a mapping) as text, lists and mappings, for configurations of others.

    Unlike in a header, aliases are taken; each stands for the one object it names.
    """
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Fault(line=data.count(b"\n", 0, error.start) + 1, reason="not UTF-8")
    odd = _UNPRINTABLE.search(source)
    if odd:
        return Fault(line=Lines(source).number(odd.start()), reason=f"character U+{ord(odd[0]):04X} is not allowed")
    read = _read_yaml(source, aliases=True)
    if isinstance(read, _YamlFault):
        return Fault(line=Lines(source).number(read.offset), reason=read.reason)
    return {entry.key: entry.value for entry in read}


def set_header_value(data: bytes, key: str, value: str) -> bytes | Fault:
    """
    Return *data* with *key* set to *value* in its header and every other byte as it was.

    A key that is not there is added as the header's last line. The old value's way of quoting is kept where it can
    hold the new one; comments, order, line ends and a byte-order mark stay.

    Raises:
        ValueError: *key* is no plain word, or *value* holds a lone surrogate.
    """
    if _KEY.match(key) is None:
        raise ValueError(f"not a key for a header: {key!r}")
    split = split_text(data)
    if isinstance(split, Fault):
        return Fault(line=split.line, reason=f"existing header fault: {split.reason}")
    if split.header is None:
        return Fault(line=1, reason="there is no header to edit")
    entry = split.header.entry(key)
    if entry is None:
        edited = _insert(split, f"{key}: {render_value(value)}")
    elif entry.style == "nested":
        return Fault(line=entry.line, reason=f"`{key}` is a list or a mapping, not text")
    else:
        edited = _replace(split.text, entry, value)
    result = edited.encode("utf-8")
    return result if _only_changed(split.header, result, key, value) else _no_edit(split, entry, key)


def render_value(value: str, style: str = "plain") -> str:
    """
    Return *value* as one line of YAML that every reader takes for this text.

    Unquoted only with *style* `plain` and where no reader could take it for a number, a date, a boolean or a comment.

    Raises:
        ValueError: *value* holds a lone surrogate, which no UTF-8 file can hold.
    """
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("a lone surrogate cannot be written")
    if (
        style == "plain"
        and _PLAIN.match(value)
        and not value.endswith(" ")
        and "  " not in value
        and value.casefold() not in _TYPED_WORDS
    ):
        return value
    if style == "single" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    quoted = json.dumps(value, ensure_ascii=False)
    return _ESCAPED_TOO.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _split(text: str) -> SplitText | Fault:
    first = 1 if text.startswith("\ufeff") else 0
    nul = text.find("\0")
    if nul >= 0:
        return Fault(line=Lines(text[: nul + 1]).number(nul), reason="holds a NUL character: not a text file")
    newline = _BREAK.search(text)
    eol = newline[0] if newline else "\n"
    opening = _FENCE.match(text, first)
    if opening is None:
        return SplitText(text=text, header=None, body_start=first, eol=eol)
    closing = _find_closing(text, opening.end())
    if closing is None:
        return Fault(line=1, reason="no closing fence: the header begun with `---` never ends")
    start, end = opening.end(), closing.start()
    if end - start > HEADER_CAP:
        return Fault(line=1, reason=f"header of {end - start} characters; at most {HEADER_CAP} are read")
    header = _read_header(text, start, end)
    if isinstance(header, Fault):
        return header
    return SplitText(text=text, header=header, body_start=closing.end(), eol=eol)


def _find_closing(text: str, start: int) -> re.Match[str] | None:
    """Return the fence at the start of a line at or behind *start*; `find` first, since it is far quicker than `re`."""
    at = start
    while (at := text.find("---", at)) >= 0:
        if (at == start or text[at - 1] in "\r\n") and (found := _FENCE.match(text, at)):
            return found
        at += 3
    return None


def _read_header(text: str, start: int, end: int) -> Header | Fault:
    source = text[start:end]
    odd = _UNPRINTABLE.search(source)
    if odd:
        line = Lines(text[: start + odd.start() + 1]).number(start + odd.start())
        return Fault(line=line, reason=f"character U+{ord(odd[0]):04X} is not allowed in a header")
    lines = Lines(text[:end])
    read = _read_yaml(source)
    if not isinstance(read, _YamlFault):
        return Header(entries=tuple(_placed(read, source, start, lines)), start=start, end=end)
    strict = Fault(line=lines.number(start + min(read.offset, len(source))), reason=read.reason)
    if not read.mendable:
        return strict
    mended = _mend(source)
    if mended is None:
        return strict
    again = _read_yaml(mended.source)
    if isinstance(again, _YamlFault):
        return strict
    entries = [mended.place_back(entry) for entry in again]
    # Both were quoted, but only what could not be read by itself is worth telling.
    keys = tuple(
        patch.key
        for patch in mended.patches
        if isinstance(_read_yaml(f"{patch.key}: {source[patch.start : patch.end]}\n"), _YamlFault)
    )
    return Header(entries=tuple(_placed(entries, source, start, lines)), start=start, end=end, mended=keys)


# --- YAML as events ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _YamlFault:
    offset: int
    reason: str
    mendable: bool = False  # only what YAML itself cannot read may get better by quoting


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawEntry:
    """An entry with offsets into the header's own text; *key_at* is where its key starts."""

    key: str
    value: HeaderValue
    style: Literal["plain", "single", "double", "block", "nested"]
    key_at: int
    start: int
    end: int


class _Refusal(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


def _read_yaml(source: str, *, aliases: bool = False) -> list[_RawEntry] | _YamlFault:
    """Return the top-level entries of *source*; every node is text, a list or a mapping of such."""
    import yaml  # 25 ms that a library without changes does not need

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    stand_ins = _stand_ins(source)
    try:
        events = iter(yaml.parse(source.translate(stand_ins), Loader=loader))
        entries = _entries(events, yaml, {} if aliases else None)
    except _Refusal as refusal:
        return _YamlFault(offset=refusal.offset, reason=refusal.reason)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        return _YamlFault(offset=mark.index if mark else 0, reason=f"not YAML: {problem}", mendable=True)
    except (yaml.YAMLError, RecursionError) as error:
        return _YamlFault(offset=0, reason=f"not YAML: {type(error).__name__}", mendable=True)
    if not stand_ins:
        return entries
    back = {new: old for old, new in stand_ins.items()}
    return [replace(entry, key=entry.key.translate(back), value=_translated(entry.value, back)) for entry in entries]


def _stand_ins(source: str) -> dict[int, int]:
    """Return, for each character that is a line end to YAML 1.1 alone, a private one that *source* does not hold."""
    odd = [char for char in "\x85\u2028\u2029" if char in source]
    free = (code for code in range(0xE000, 0xF8FF) if chr(code) not in source)
    return {ord(char): next(free) for char in odd}


def _translated(value: HeaderValue, table: Mapping[int, int]) -> HeaderValue:
    if value is None or isinstance(value, str):
        return value.translate(table) if value else value
    if isinstance(value, Mapping):
        return {key.translate(table): _translated(inner, table) for key, inner in value.items()}
    return [_translated(inner, table) for inner in value]


def _entries(events: Iterator[Any], yaml: Any, anchors: dict[str, HeaderValue] | None) -> list[_RawEntry]:
    entries: list[_RawEntry] = []
    seen: dict[str, int] = {}
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _Refusal(event.start_mark.index, "a second YAML document begins here")
        elif isinstance(event, yaml.MappingStartEvent):
            _check_node(event)
            for key_event in events:
                if isinstance(key_event, yaml.MappingEndEvent):
                    break
                entry = _entry(key_event, events, yaml, anchors)
                if entry.key in seen:
                    raise _Refusal(entry.key_at, f"`{entry.key}` stands twice")
                seen[entry.key] = entry.key_at
                entries.append(entry)
        elif isinstance(event, yaml.NodeEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "":
                continue  # nothing but comments between the fences
            raise _Refusal(event.start_mark.index, "the header is not a mapping of `key: value` lines")
    return entries


def _entry(key_event: Any, events: Iterator[Any], yaml: Any, anchors: dict[str, HeaderValue] | None) -> _RawEntry:
    key = _key_text(key_event, yaml)
    event = next(events)
    if isinstance(event, yaml.ScalarEvent):
        _check_node(event)
        if anchors is not None and event.anchor:
            anchors[event.anchor] = _scalar(event)
        style = {"'": "single", '"': "double", "|": "block", ">": "block"}.get(event.style or "", "plain")
        return _RawEntry(
            key=key,
            value=_scalar(event),
            style=style,  # type: ignore[arg-type]  # the values of the dict above
            key_at=key_event.start_mark.index,
            start=event.start_mark.index,
            end=event.end_mark.index,
        )
    value, end = _node(event, events, yaml, anchors, depth=1)
    return _RawEntry(
        key=key,
        value=value,
        style="nested",
        key_at=key_event.start_mark.index,
        start=event.start_mark.index,
        end=end,
    )


def _node(
    event: Any, events: Iterator[Any], yaml: Any, anchors: dict[str, HeaderValue] | None, *, depth: int
) -> tuple[HeaderValue, int]:
    """Return the value that *event* begins and the offset behind it; *depth* is bounded, so recursion is."""
    if anchors is not None and isinstance(event, yaml.AliasEvent):
        # One object however often it is named: nothing grows.
        return anchors.get(event.anchor), event.end_mark.index
    value, end = _new_node(event, events, yaml, anchors, depth=depth)
    if anchors is not None and event.anchor:
        anchors[event.anchor] = value
    return value, end


def _new_node(
    event: Any, events: Iterator[Any], yaml: Any, anchors: dict[str, HeaderValue] | None, *, depth: int
) -> tuple[HeaderValue, int]:
    _check_node(event)
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event), event.end_mark.index
    if depth >= MAX_DEPTH:
        raise _Refusal(event.start_mark.index, f"nested more than {MAX_DEPTH} deep")
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[HeaderValue] = []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                return items, item.end_mark.index
            items.append(_node(item, events, yaml, anchors, depth=depth + 1)[0])
    mapping: dict[str, HeaderValue] = {}
    for key_event in events:
        if isinstance(key_event, yaml.MappingEndEvent):
            return mapping, key_event.end_mark.index
        key = _key_text(key_event, yaml)
        if key in mapping:
            raise _Refusal(key_event.start_mark.index, f"`{key}` stands twice")
        mapping[key] = _node(next(events), events, yaml, anchors, depth=depth + 1)[0]
    raise _Refusal(event.start_mark.index, "the header ends too early")


def _key_text(event: Any, yaml: Any) -> str:
    _check_node(event)
    if not isinstance(event, yaml.ScalarEvent):
        raise _Refusal(event.start_mark.index, "a key is a list or a mapping")
    key = str(event.value)
    _check_text(key, event.start_mark.index)
    return key


def _check_node(event: Any) -> None:
    """Refuse what lets a small header grow (aliases) or ask for objects (tags)."""
    if type(event).__name__ == "AliasEvent":
        raise _Refusal(event.start_mark.index, "YAML aliases are not taken")
    if event.tag not in (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"):
        raise _Refusal(event.start_mark.index, f"YAML tags are not taken: {event.tag[:80]}")


def _scalar(event: Any) -> str | None:
    value = str(event.value)
    _check_text(value, event.start_mark.index)
    if not event.style and event.tag is None and value in ("", "~", "null", "Null", "NULL"):
        return None
    return value


def _check_text(value: str, offset: int) -> None:
    # The reader in pure Python lets "\ud800" through, the one in C does not.
    if "\0" in value or (not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)):
        raise _Refusal(offset, "an escape stands for something that is no character")


def _placed(entries: Sequence[_RawEntry], source: str, start: int, lines: Lines) -> Iterator[Entry]:
    for raw in entries:
        end = raw.end if raw.style != "block" else _block_end(source, raw.start)
        yield Entry(
            key=raw.key,
            value=raw.value,
            style=raw.style,
            line=lines.number(start + raw.key_at),
            start=start + raw.start,
            end=start + end,
        )


def _block_end(source: str, start: int) -> int:
    """
    Return the end of the last line with content of the block scalar whose `|` or `>` stands at *start*.

    A line indented less than the first is no content any more; blank lines behind the last are left out.
    """
    first = _BREAK.search(source, start)
    if first is None:
        return len(source)
    end, at = first.start(), first.end()
    given = re.match(r"[|>][+-]?([1-9])", source[start:end])
    indent = int(given[1]) if given else None
    while at < len(source):
        found = _BREAK.search(source, at)
        stop = found.start() if found else len(source)
        line = source[at:stop]
        bare = line.lstrip(" ")
        if bare.strip():
            depth = len(line) - len(bare)
            if depth == 0 or (indent is not None and depth < indent):
                break
            indent = depth if indent is None else indent
            end = stop
        at = found.end() if found else len(source)
    return end


# --- The narrow retry -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patch:
    key: str
    start: int  # in the original header text
    end: int
    new_start: int  # in the mended one
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mended:
    source: str
    patches: tuple[_Patch, ...]

    def place_back(self, entry: _RawEntry) -> _RawEntry:
        """Return *entry* with its offsets in the original header text."""
        patch = next((patch for patch in self.patches if patch.new_start == entry.start), None)
        start, end = (patch.start, patch.end) if patch else (self._back(entry.start), self._back(entry.end))
        return _RawEntry(
            key=entry.key,
            value=entry.value,
            style="plain" if patch else entry.style,
            key_at=self._back(entry.key_at),
            start=start,
            end=end,
        )

    def _back(self, offset: int) -> int:
        delta = 0
        for patch in self.patches:
            if patch.new_end <= offset:
                delta = patch.end - patch.new_end
        return offset + delta


def _mend(source: str) -> _Mended | None:
    """Return *source* with its plain `name` and `description` values quoted, or None where there are none."""
    pieces: list[str] = []
    patches: list[_Patch] = []
    copied = length = at = 0
    while at < len(source):
        found = _MENDABLE.match(source, at)
        plain = _plain_value(source, found.end()) if found else None
        if found and plain:
            value, end = plain
            quoted = render_value(value, "double")
            length += found.end() - copied
            patches.append(
                _Patch(key=found[1], start=found.end(), end=end, new_start=length, new_end=length + len(quoted))
            )
            pieces += (source[copied : found.end()], quoted)
            length += len(quoted)
            copied = at = end
        newline = _BREAK.search(source, at)
        at = newline.end() if newline else len(source)
    if not patches:
        return None
    pieces.append(source[copied:])
    return _Mended(source="".join(pieces), patches=tuple(patches))


def _plain_value(source: str, start: int) -> tuple[str, int] | None:
    """Return the plain text that starts at *start*, folded over its indented lines, and its end; None: not plain."""
    if start >= len(source) or source[start] in "\"'|>[{&*!#\r\n":
        return None
    words: list[str] = []
    at, end = start, start
    while True:
        newline = _BREAK.search(source, at)
        stop = newline.start() if newline else len(source)
        line = source[at:stop]
        comment = re.search(r"[ \t]#", line)
        kept = line[: comment.start()] if comment else line
        stripped = kept.strip(" \t")
        if stripped:
            words.append(stripped)
            end = at + len(kept.rstrip(" \t"))
        following = newline.end() if newline else len(source)
        if comment or following >= len(source) or source[following] != " " or not stripped:
            return " ".join(words), end
        at = following


# --- Edits ------------------------------------------------------------------------------------------------------------


def _replace(text: str, entry: Entry, value: str) -> str:
    old = text[entry.start : entry.end]
    if entry.style != "block":
        rendered = render_value(value, entry.style if entry.value is not None else "plain")
        gap = " " if entry.start > 0 and text[entry.start - 1] == ":" else ""
        return text[: entry.start] + gap + rendered + text[entry.end :]
    # `| # why` keeps its comment: only the indicator and the lines below it go.
    newline = _BREAK.search(old)
    first_line = old[: newline.start()] if newline else old
    comment = re.search(r"[ \t]+#", first_line)
    kept = first_line[comment.start() :] if comment else ""
    return text[: entry.start] + render_value(value) + kept + text[entry.end :]


def _insert(split: SplitText, line: str) -> str:
    assert split.header is not None
    at = split.header.end
    return split.text[:at] + line + split.eol + split.text[at:]


def _only_changed(before: Header, data: bytes, key: str, value: str) -> bool:
    after = split_text(data)
    if isinstance(after, Fault) or after.header is None:
        return False
    return after.header.values() == {**before.values(), key: value}


def _no_edit(split: SplitText, entry: Entry | None, key: str) -> Fault:
    line = entry.line if entry else Lines(split.text).number(split.header.end if split.header else 0)
    return Fault(line=line, reason=f"`{key}` cannot be set here without touching something else")
