"""
What a backup is made of, as values and as bytes: trees, manifests, what is kept and what goes.

*Wanted.* A copy of libraries, archives and the hosts' files beside them that costs nothing where nothing changed, and
of which every listed one can be taken out whole, whatever was dropped since.

*The form.* Everything is content-addressed (lower-case hex of SHA-256): the bytes of each file, and each folder as a
*tree*, a short text with one line an entry. A folder whose content is the same is the same tree, so an unchanged
library is one hash. A *manifest* names the trees of one backup and carries its own hash. All of it can be read by a
person with nothing but an editor, should it ever come to that.

A tree::

    curatord-tree 1
    d 755 <hash of the tree> <name>
    f 644 <hash of the content> <bytes> <mtime, ns> <name>
    l <target> <name>

Names and link targets are bytes; whatever is no plain sign stands as `%XX`. A `d` or `f` line may end in the hash of
its extended attributes. Lines are sorted by name, so that one folder has one text, and `parse_tree` takes no other.

*What can go wrong.* These bytes lie on a disk for years. Whatever does not parse to the letter is damage (`ValueError`
with the line), is told, and takes nothing else with it: no path in here can lead out of where it is restored to, since
a name holds no `/`, is not `..`, and is used relative to an open folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NewType
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.fingerprint import IGNORED_FILES, IGNORED_FOLDERS
from curatord.core.values import BlobId

__all__ = [
    "BackupId",
    "Entry",
    "HostFile",
    "LeftOut",
    "LibraryBackup",
    "Manifest",
    "StoredItem",
    "StoredSkill",
    "age_key",
    "as_bytes",
    "as_text",
    "content_id",
    "entry_at",
    "is_backup_id",
    "manifest_from_bytes",
    "manifest_to_bytes",
    "new_backup_id",
    "packages_in",
    "parse_tree",
    "quoted",
    "render_tree",
    "spared",
    "unquoted",
    "why_left_out",
]

BackupId = NewType("BackupId", str)  # YYYYMMDD-HHMMSS[-N], UTC

TREE_HEAD = b"curatord-tree 1\n"
MANIFEST_HEAD = b"curatord-backup 1 "
MAX_DEPTH = 64  # as for packages that move: a bound for open descriptors
MAX_LEFT_OUT = 500  # named in a manifest; more are only counted
_SAFE = "!#$&'()*+,-.:;<=>?@[]^_`{|}~"
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"\d{8}-\d{6}(-[1-9]\d{0,3})?")
_NUMBER = re.compile(r"0|-?[1-9]\d{0,19}")
_MODE = re.compile(r"0|[1-7][0-7]{0,3}")

Kind = Literal["dir", "file", "link"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One name in a folder.

    Attributes:
        name: Its bytes: no `/`, no NUL, neither `.` nor `..`.
        mode: Permission bits with set-id and sticky bits; 0 for a link, which has none of its own.
        ref: Hash of a file's content or of a folder's tree; empty for a link.
        size, mtime_ns: Of a file.
        target: Of a link, its bytes.
        attributes: Hash of the extended attributes (`user.*`), empty where there are none.
    """

    name: bytes
    kind: Kind
    mode: int = 0
    ref: BlobId = BlobId("")
    size: int = 0
    mtime_ns: int = 0
    target: bytes = b""
    attributes: BlobId = BlobId("")

    def __post_init__(self) -> None:
        if self.name in (b"", b".", b"..") or b"/" in self.name or b"\0" in self.name:
            raise ValueError(f"not a name in a folder: {self.name!r}")
        if not 0 <= self.mode <= 0o7777 or self.size < 0 or b"\0" in self.target:
            raise ValueError(f"not what a folder holds: {self.name!r}")


def quoted(data: bytes) -> str:
    """Return *data* as printable ASCII without blanks, one text for the same bytes."""
    return quote_from_bytes(data, safe=_SAFE + "/")


def unquoted(text: str) -> bytes:
    """Return what `quoted` was given; any other text is a `ValueError`."""
    data = unquote_to_bytes(text)
    if quoted(data) != text:
        raise ValueError(f"not a quoted name: {text!r}")
    return data


def as_bytes(path: str) -> bytes:
    """Return a path as the file system has it: what is no UTF-8 stands in text as lone surrogates."""
    return path.encode("utf-8", "surrogateescape")


def as_text(path: bytes) -> str:
    """Return a path as Python's own functions take it."""
    return path.decode("utf-8", "surrogateescape")


# -- trees


def render_tree(entries: Iterable[Entry]) -> bytes:
    """Return the bytes of a folder with *entries*, in whatever order; two of one name are a `ValueError`."""
    lines = []
    last = b""
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name == last:
            raise ValueError(f"two entries are called {entry.name!r}")
        last = entry.name
        match entry.kind:
            case "dir":
                told = f"d {entry.mode:o} {entry.ref}"
            case "file":
                told = f"f {entry.mode:o} {entry.ref} {entry.size} {entry.mtime_ns}"
            case "link":
                told = f"l {quoted(entry.target)}"
        more = f" {entry.attributes}" if entry.attributes else ""
        lines.append(f"{told} {quoted(entry.name)}{more}\n")
    return TREE_HEAD + "".join(lines).encode("ascii")


def parse_tree(data: bytes) -> tuple[Entry, ...]:
    """Return the entries of a folder, sorted by name; bytes that `render_tree` never made are a `ValueError`."""
    if not data.startswith(TREE_HEAD):
        raise ValueError("it does not begin as a tree")
    if not data.endswith(b"\n"):
        raise ValueError("its end is missing")
    try:
        lines = data[len(TREE_HEAD) :].decode("ascii").split("\n")[:-1]
        entries = tuple(_parse_line(line) for line in lines)
        if render_tree(entries) != data:
            raise ValueError("it is not in order")
    except UnicodeDecodeError as error:
        raise ValueError("it holds signs that no tree has") from error
    return entries


def _parse_line(line: str) -> Entry:
    kind, _, rest = line.partition(" ")
    fields = rest.split(" ")
    count = {"d": 3, "f": 5, "l": 2}.get(kind)
    if count is None or len(fields) not in (count, count + 1) or (kind == "l" and len(fields) != count):
        raise ValueError(f"not a line of a tree: {line[:200]!r}")
    attributes = BlobId(_checked(_HASH, fields[count])) if len(fields) > count else BlobId("")
    name = unquoted(fields[count - 1])
    if kind == "l":
        return Entry(name=name, kind="link", target=unquoted(fields[0]))
    mode, ref = int(_checked(_MODE, fields[0]), 8), BlobId(_checked(_HASH, fields[1]))
    if kind == "d":
        return Entry(name=name, kind="dir", mode=mode, ref=ref, attributes=attributes)
    size, mtime_ns = int(_checked(_NUMBER, fields[2])), int(_checked(_NUMBER, fields[3]))
    return Entry(name=name, kind="file", mode=mode, ref=ref, size=size, mtime_ns=mtime_ns, attributes=attributes)


def _checked(form: re.Pattern[str], text: str) -> str:
    if form.fullmatch(text) is None:
        raise ValueError(f"not what a tree says: {text[:80]!r}")
    return text


Load = Callable[[BlobId], Sequence[Entry]]
"""Gives the entries of a tree by its hash; raises whatever its caller is to hear."""


def entry_at(top: Entry, path: bytes, load: Load) -> Entry | None:
    """Return what stands at *path* below the folder *top*, or None; an empty path is *top* itself."""
    found = top
    for part in path.split(b"/") if path else ():
        if found.kind != "dir":
            return None
        below = next((entry for entry in load(found.ref) if entry.name == part), None)
        if below is None:
            return None
        found = below
    return found


def content_id(entry: Entry, load: Load) -> str:
    """Return a hash over all of *entry* but its own name and the times of files: byte for byte one where it agrees."""
    told = hashlib.sha256()
    for path, one in _walk(entry, load, b"", 0):
        head = f"{one.kind} {one.mode:o} {one.attributes} {one.ref if one.kind == 'file' else ''} "
        told.update(head.encode() + quoted(path).encode() + b" " + quoted(one.target).encode() + b"\n")
    return told.hexdigest()


def _walk(entry: Entry, load: Load, path: bytes, depth: int) -> Iterator[tuple[bytes, Entry]]:
    if depth > MAX_DEPTH:
        raise ValueError(f"folders are nested deeper than {MAX_DEPTH}")
    yield path, entry
    if entry.kind == "dir":
        for below in load(entry.ref):
            yield from _walk(below, load, path + b"/" + below.name, depth + 1)


def packages_in(top: Entry, load: Load) -> Iterator[bytes]:
    """Yield the paths of the folders below *top* that hold a SKILL.md, none within another."""
    for entry in load(top.ref):
        if entry.kind == "dir":
            yield from _packages(entry, load, entry.name, 1)


def _packages(folder: Entry, load: Load, path: bytes, depth: int) -> Iterator[bytes]:
    entries = load(folder.ref)
    if any(entry.kind != "dir" and entry.name.lower() == b"skill.md" for entry in entries):
        yield path
    elif depth < MAX_DEPTH:
        for entry in entries:
            if entry.kind == "dir":
                yield from _packages(entry, load, path + b"/" + entry.name, depth + 1)


# -- what is left out


def why_left_out(name: bytes, *, folder: bool) -> str | None:
    """Return why something of this name is in no backup, or None: caches, version control, our own files."""
    text = as_text(name)
    if text.startswith(".curatord-"):
        return "curatord's own"
    if folder and text in IGNORED_FOLDERS:
        return "a cache or a version control"
    if not folder and (text in IGNORED_FILES or text.endswith((".pyc", ".pyo"))):
        return "a cache"
    return None


# -- manifests


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """
    Something that is not in the backup though it is no cache: *path* quoted, *why* in words.

    *ordinary* is what no backup can hold (a pipe); what could not be read, or was too large, is a fault to be told.
    """

    path: str
    why: str
    ordinary: bool = False


class StoredSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that stood in the library: *path* of its folder, link or flat file, quoted."""

    path: str
    form: Literal["folder", "flat", "link"]


class StoredItem(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of an archived package: its entry *path* in the archive and the skill *rel* it was, quoted."""

    path: str
    rel: str
    at: datetime
    reason: str
    action_id: str
    absorbed_into: str | None = None
    fingerprint: str | None = None


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the host that lies outside of the library: *path* below the host's home, its bytes, its mode."""

    path: str
    ref: str
    mode: int


class LibraryBackup(msgspec.Struct, frozen=True, kw_only=True):
    """
    One library in a backup.

    Attributes:
        root, archive: Where both stood, quoted.
        tree, mode: The library's folder.
        archive_tree, archive_mode: The archive's; None where there was none.
        files, bytes: In both, each name counted once.
    """

    name: str
    root: str
    archive: str
    layout: str
    tree: str
    mode: int
    archive_tree: str | None = None
    archive_mode: int = 0o755
    skills: tuple[StoredSkill, ...] = ()
    items: tuple[StoredItem, ...] = ()
    host_files: tuple[HostFile, ...] = ()
    files: int = 0
    bytes: int = 0

    def top(self) -> Entry:
        """Return the library's folder as an entry."""
        return Entry(name=b"library", kind="dir", mode=self.mode, ref=BlobId(self.tree))

    def archive_top(self) -> Entry | None:
        """Return the archive's folder as an entry, or None where there was none."""
        if self.archive_tree is None:
            return None
        return Entry(name=b"archive", kind="dir", mode=self.archive_mode, ref=BlobId(self.archive_tree))


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One backup. *left_out* names at most `MAX_LEFT_OUT` things, *left_out_count* counts all."""

    id: str
    at: datetime
    reason: str
    version: str
    libraries: tuple[LibraryBackup, ...]
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0


def new_backup_id(at: datetime, taken: Iterable[str]) -> BackupId:
    """Return an id for a backup made *at*; two in one second get `-1`, `-2` …"""
    stamp = f"{at.astimezone(UTC):%Y%m%d-%H%M%S}"
    known = set(taken)
    number = 0
    while (name := stamp if number == 0 else f"{stamp}-{number}") in known:
        number += 1
    return BackupId(name)


def is_backup_id(text: str) -> bool:
    """Return whether *text* could be a backup's id."""
    return _ID.fullmatch(text) is not None


def age_key(backup_id: str) -> tuple[str, int]:
    """Return what ids are sorted by, oldest first."""
    stamp, number = backup_id[:15], backup_id[16:]
    return stamp, int(number or 0)


def manifest_to_bytes(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest: a first line with the hash of the rest, then JSON."""
    body = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    return MANIFEST_HEAD + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def manifest_from_bytes(data: bytes) -> Manifest:
    """Return the manifest in *data*; whatever is not as it was written is a `ValueError` that says what."""
    head, found, body = data.partition(b"\n")
    if not found or not head.startswith(MANIFEST_HEAD):
        raise ValueError("it does not begin as a manifest of this version does")
    if head[len(MANIFEST_HEAD) :] != hashlib.sha256(body).hexdigest().encode():
        raise ValueError("its hash is another: it was cut or changed")
    try:
        manifest = msgspec.json.decode(body, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    for library in manifest.libraries:
        for ref in (library.tree, library.archive_tree, *(file.ref for file in library.host_files)):
            if ref is not None:
                _checked(_HASH, ref)
        for text in (
            library.root,
            library.archive,
            *(skill.path for skill in library.skills),
            *(part for item in library.items for part in (item.path, item.rel)),
            *(file.path for file in library.host_files),
        ):
            unquoted(text)
    if not is_backup_id(manifest.id) or manifest.at.tzinfo is None:
        raise ValueError("its id or its time is none")
    return manifest


# -- retention


def spared(sizes: Sequence[Mapping[str, int]], *, keep: int, max_bytes: int) -> int:
    """
    Return how many of the newest backups stay.

    Args:
        sizes: For each backup, newest first, the bytes of everything it needs, by hash.
        keep: At most so many.
        max_bytes: Together, what is shared counted once, at most so large; the newest stays however large it is.
    """
    together: dict[str, int] = {}
    total = 0
    for count, needed in enumerate(sizes):
        for ref, size in needed.items():
            if ref not in together:
                together[ref] = size
                total += size
        if count and (count >= keep or total > max_bytes):
            return count
    return len(sizes)
