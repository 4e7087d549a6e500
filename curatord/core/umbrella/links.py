"""
References in a text: found with their places, resolved within the library, and written anew where things moved.

What must hold: whatever led somewhere before a merge leads to the same content after it. What may not happen: that a
word which only looks like a path is changed. So a stretch of text counts as a reference only if it *resolves*: to a
file or folder of a package that is known, seen from the file's own folder (Markdown's rule) or from the package's root
(the Agent Skills' rule, and how commands in code are run). Dead ones stay as they are.

Paths here are *places*: relative to the library, `cat/skill/scripts/run.sh`; a flat skill stands at `name.md`. A link
out of the library keeps leading there when its text moves to another depth. Absolute paths and `~/…` are taken for the
library's where they begin with one of its roots.

Not touched: code of scripts (a script that reads its neighbour still finds it, since packages move with their inner
order kept), bare names of skills in prose, URLs.
"""

from __future__ import annotations

import bisect
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from urllib.parse import quote, unquote

from curatord.core.cheap import dataclass, field

__all__ = ["Edit", "Ground", "Moved", "Reference", "below_root", "find_references", "is_relative", "relocate"]

MAX_REFERENCES = 5_000

_INLINE = re.compile(r"\]\([ \t]{0,8}(?:<(?P<angle>[^<>\n]{1,1024})>|(?P<bare>[^\s()<>]{1,1024}))")
_DEFINITION = re.compile(
    r"^ {0,3}\[[^\]\n]{1,256}\]:[ \t]{0,8}(?:<(?P<angle>[^<>\n]{1,1024})>|(?P<bare>\S{1,1024}))", re.M
)
_ATTRIBUTE = re.compile(r"\b(?:src|href)=(?P<q>[\"'])(?P<bare>[^\"'\n<>]{1,1024})(?P=q)")
_WIKI = re.compile(r"\[\[(?P<bare>[^\]\[|#\n]{1,200})")
# A word with a slash in it, and a word that ends like a file name; both begin where a word begins.
_SLASHED = re.compile(r"(?<![\w.@+~\-])[\w.@+~\-]*/[\w.@+~/\-]{0,400}")
_BARE = re.compile(r"(?<![\w.@+~/\-])[\w@+~\-][\w.@+~\-]{0,200}\.\w{1,12}(?![\w/])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

Kind = Literal["link", "mention", "wiki"]

_LINKS: tuple[tuple[str, re.Pattern[str], Kind], ...] = (
    ("](", _INLINE, "link"),
    ("]:", _DEFINITION, "link"),
    ("=", _ATTRIBUTE, "link"),
    ("[[", _WIKI, "wiki"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Something in a text that may name a file: *raw* stands at [*start*, *end*)."""

    start: int
    end: int
    raw: str
    kind: Kind
    angle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where something stands now: a *place*, and the anchor of the section it became, or the empty text."""

    place: str
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """
    What references are resolved against.

    Attributes:
        files: Places of all files that are known to be there before.
        packages: Places of the folders (or flat files) that are skills, before. What a package without a known file
            holds is not known, so whatever leads into it counts as being there.
        moved: Old place to new one, files only.
        went: Old place of a package that goes away to that of the umbrella's package, and the anchor or place of its
            text.
        roots: Absolute paths of the library, as it and its hosts name it.
        names: Name of a skill that goes away to the name of its umbrella, for `[[name]]`.
    """

    files: frozenset[str]
    packages: frozenset[str]
    moved: Mapping[str, Moved]
    went: Mapping[str, Moved]
    roots: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _direct: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._direct.update(map(posixpath.dirname, self.files))
        for place in self.files:
            while place := posixpath.dirname(place):
                if place in self._folders:
                    break
                self._folders.add(place)

    def is_there(self, place: str) -> bool:
        """Return whether a file or folder stood at *place*."""
        if place in self.files or place in self._folders or place in self.packages:
            return True
        above = place
        while above := posixpath.dirname(above):
            if above in self.packages:
                return above not in self._folders
        return False

    def has_loose_files(self, *folders: str) -> bool:
        """Return whether a known file stands directly in one of *folders*, so that its bare name may mean it."""
        return not self._direct.isdisjoint(folders)

    def now_at(self, place: str) -> Moved:
        """Return where what stood at *place* stands now; the same place where it did not move."""
        if place in self.moved:
            return self.moved[place]
        if place in self.went:
            return self.went[place]
        below = f"{place}/"
        inside = [old for old in self.moved if old.startswith(below)]
        if inside:
            # A folder of a moved package: its files keep their order below one new folder.
            old = min(inside)
            new = self.moved[old].place
            tail = old[len(below) :]
            if new.endswith(f"/{tail}"):
                return Moved(place=new[: -len(tail) - 1])
        return Moved(place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """
    One reference that was written anew.

    *where* is the old place of its text; *line* (1-based) and *column* (0-based) say where in the old text it stood.
    """

    where: str
    line: int
    column: int
    before: str
    after: str


def find_references(text: str, *, mentions: bool = True, bare: bool = True) -> list[Reference]:
    """
    Return what may be a reference, in the order of the text, none overlapping; some thousand at most.

    *mentions* False: only what Markdown itself calls a link. *bare* False: no words without a slash.
    """
    found: list[Reference] = []
    taken: list[tuple[int, int]] = []
    for mark, pattern, kind in _LINKS:
        if mark not in text:
            continue
        for match in pattern.finditer(text):
            angle = "angle" in pattern.groupindex and match["angle"] is not None
            start, end = match.span("angle" if angle else "bare")
            found.append(Reference(start=start, end=end, raw=text[start:end], kind=kind, angle=angle))
            taken.append(match.span())
    if mentions and "/" in text:
        _add_mentions(text, _SLASHED, taken, found)
    if mentions and bare and "." in text:
        _add_mentions(text, _BARE, taken, found)
    found.sort(key=lambda one: one.start)
    return found[:MAX_REFERENCES]


def _add_mentions(text: str, pattern: re.Pattern[str], taken: list[tuple[int, int]], found: list[Reference]) -> None:
    taken.sort()
    starts = [start for start, _ in taken]
    for match in pattern.finditer(text):
        start = match.start()
        raw = match[0].rstrip(".")
        index = bisect.bisect_right(starts, start) - 1
        if len(raw) < 2 or (index >= 0 and start < taken[index][1]):
            continue
        if raw[0] == "/" and text[start - 1 : start] in (":", "<") and start > 0:
            continue  # `https://…`, `</tag>`
        found.append(Reference(start=start, end=start + len(raw), raw=raw, kind="mention"))
        if len(found) >= 2 * MAX_REFERENCES:
            return


def relocate(
    text: str,
    *,
    ground: Ground,
    old: str,
    new: str,
    old_root: str,
    new_root: str,
    shift: Callable[[int], bool] = lambda _: True,
) -> tuple[str, tuple[Edit, ...]]:
    """
    Return *text* with its references leading where they led before, and what was changed.

    Args:
        text: Of the file that stood at the place *old* and stands at *new* from now on.
        old_root, new_root: Places of the packages that it belonged and belongs to; mentions are relative to these.
        shift: Asked about an offset; where it says False nothing is changed (a header).
    """
    edits: list[Edit] = []
    pieces: list[str] = []
    at = 0
    bare = ground.has_loose_files(posixpath.dirname(old), old_root)
    for reference in find_references(text, bare=bare):
        if not shift(reference.start):
            continue
        after = _rewritten(reference, text, ground, old, new, old_root, new_root)
        if after is None or after == reference.raw:
            continue
        pieces += (text[at : reference.start], after)
        at = reference.end
        line, column = _position(text, reference.start)
        edits.append(Edit(where=old, line=line, column=column, before=reference.raw, after=after))
    if not edits:
        return text, ()
    pieces.append(text[at:])
    return "".join(pieces), tuple(edits)


def _rewritten(
    reference: Reference, text: str, ground: Ground, old: str, new: str, old_root: str, new_root: str
) -> str | None:
    """Return what shall stand instead of *reference*, or None where it stays."""
    raw = reference.raw
    if reference.kind == "wiki":
        return ground.names.get(raw.strip())
    if _SCHEME.match(raw) or raw.startswith(("//", "#")):
        return None
    path, tail = _cut(raw)
    if not path or "\0" in path:
        return None
    plain = unquote(path) if reference.kind == "link" and "%" in path else path
    absolute = below_root(plain, ground.roots)
    if absolute is not None:
        prefix, place = absolute
        if not ground.is_there(place):
            return None
        moved = ground.now_at(place)
        return (
            None
            if moved.place == place
            else prefix + moved.place + ("/" if plain.endswith("/") else "") + _tail(tail, moved)
        )
    if plain.startswith(("/", "~")):
        return _behind_variable(reference, plain, text, ground, old_root, new_root)
    if reference.kind == "link":
        return _rewritten_link(reference, path, plain, tail, ground, old, new, old_root)
    return _rewritten_mention(plain, tail, ground, old, new, old_root, new_root)


def _rewritten_link(
    reference: Reference, path: str, plain: str, tail: str, ground: Ground, old: str, new: str, old_root: str
) -> str | None:
    """Return a relative link as it must read at *new*; links are seen from the file that holds them."""
    before, after = posixpath.dirname(old), posixpath.dirname(new)
    place = posixpath.normpath(posixpath.join(before, plain))
    if place == ".":
        return None
    moved = ground.now_at(place) if ground.is_there(place) else Moved(place=place)
    own = place.startswith(f"{old_root}/") if old_root else not place.startswith("..")
    if moved.place == place and (before == after or (own and not ground.is_there(place))):
        return None  # nothing moved, or it was dead before
    written = _relative(moved.place, after, plain)
    return _quoted(written, reference, path) + ("/" if plain.endswith("/") else "") + _tail(tail, moved)


def _rewritten_mention(
    plain: str, tail: str, ground: Ground, old: str, new: str, old_root: str, new_root: str
) -> str | None:
    """Return a path in prose or code as it must read; these are seen from the package's root, else from the file."""
    folder = posixpath.dirname(old)
    for base, after in ((old_root, new_root), (folder, posixpath.dirname(new))):
        place = posixpath.normpath(posixpath.join(base, plain))
        if place.startswith("..") or place == "." or not ground.is_there(place):
            continue
        if not _names_a_file(plain, place, ground, old_root):
            continue
        moved = ground.now_at(place)
        if moved.place == place and base == after:
            return None
        return _relative(moved.place, after, plain) + ("/" if plain.endswith("/") else "") + _tail(tail, moved)
    return None


def _names_a_file(plain: str, place: str, ground: Ground, old_root: str) -> bool:
    """
    Return whether a mention means what it resolves to.

    A word with a slash does. A bare one must be a file with a suffix in its own package, `FORMS.md`: `data.` is prose.
    """
    if "/" in plain:
        return place != old_root
    return place in ground.files and "." in plain.strip(".")


def _behind_variable(
    reference: Reference, plain: str, text: str, ground: Ground, old_root: str, new_root: str
) -> str | None:
    """Return a new `/scripts/x` where it stands behind a variable for the package, `${SKILL_DIR}/scripts/x`."""
    before = text[max(0, reference.start - 40) : reference.start]
    if not plain.startswith("/") or not re.search(r"(?:\}|\$[A-Za-z_]\w*|<[\w -]{1,30}>)\Z", before):
        return None
    place = posixpath.normpath(posixpath.join(old_root, plain.lstrip("/")))
    if place not in ground.files and not ground.is_there(place):
        return None
    if place.startswith("..") or place == old_root:
        return None
    moved = ground.now_at(place)
    if not moved.place.startswith(f"{new_root}/"):
        return None
    written = "/" + posixpath.relpath(moved.place, new_root)
    return None if written == plain.rstrip("/") else written + ("/" if plain.endswith("/") else "")


def _cut(raw: str) -> tuple[str, str]:
    """Return the path in *raw* and what follows it from `#` or `?` on."""
    for at, char in enumerate(raw):
        if char in "#?":
            return raw[:at], raw[at:]
    return raw, ""


def _tail(tail: str, moved: Moved) -> str:
    return tail or (f"#{moved.anchor}" if moved.anchor else "")


def _relative(place: str, base: str, like: str) -> str:
    written = posixpath.relpath(place, base or ".")
    return f"./{written}" if like.startswith("./") and not written.startswith("..") else written


def _quoted(written: str, reference: Reference, path: str) -> str:
    """Return *written* in the way the old target was: percent signs where it had some, or where it needs them."""
    if reference.kind != "link" or reference.angle:
        return written
    if "%" in path:
        return quote(written, safe="/~@+-._")
    return re.sub(r"[\s()<>]", lambda found: quote(found[0]), written)


def below_root(path: str, roots: Sequence[str]) -> tuple[str, str] | None:
    """Return the part of *path* that is one of *roots*, with its slash, and the place behind it."""
    for root in roots:
        root = root.rstrip("/")
        if path.startswith(f"{root}/"):
            return path[: len(root) + 1], posixpath.normpath(path[len(root) + 1 :])
        if path.startswith("~/") and root.startswith("/"):
            # `~/.claude/skills/x` where the root ends so; a single last part would be too little to go by.
            parts = root.strip("/").split("/")
            for count in range(len(parts) - 1, 1, -1):
                tail = "/".join(parts[-count:])
                if path.startswith(f"~/{tail}/"):
                    return path[: len(tail) + 3], posixpath.normpath(path[len(tail) + 3 :])
    return None


def _position(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and 0-based column of *offset*; LF, CRLF and CR all end a line."""
    before = text[:offset]
    line = before.count("\n") + before.count("\r") - before.count("\r\n") + 1
    return line, offset - max(before.rfind("\n"), before.rfind("\r")) - 1


def is_relative(reference: Reference) -> str | None:
    """Return the path of a relative link as a reader follows it, or None where it is no such link."""
    raw = reference.raw
    if reference.kind != "link" or _SCHEME.match(raw) or raw.startswith(("/", "#", "~")):
        return None
    path = _cut(raw)[0]
    path = unquote(path) if "%" in path else path
    return path if path and "\0" not in path else None
