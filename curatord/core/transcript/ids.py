"""
Keys of records: eight bytes that say "this record was counted", whatever file it stands in.

Wanted: resume, fork, migration, copies and second roots bring the same records again, and each counts once (contract
section 5). What can go wrong: keeping all ids of all files in memory (a few million records are normal), one database
row per record (as dear as reading it), or two different records under one key (one of them would be lost).

The plan: a record's key is 64 bits. A UUID is folded (its two halves, exclusive or), any other id and any content is
hashed with BLAKE2b. A file's keys are one packed string, written once and only read again when the file grows or when
another file turns out to share history with it. To find out *that* it shares, a few keys of each file are **anchors**
in an indexed table: its first `ANCHOR_FIRST`, and every key that is 0 modulo `ANCHOR_EVERY`, so about one in 16. A
copy begins with its original's beginning or holds a run of its records, so its anchors meet those of the original:
always when the beginning was copied, and with probability 1 − (15/16)ⁿ when only a run of n records from the middle
was. Only then the original's keys are loaded, as a `Guard`, and the copy is read once more under it.

At 64 bits, a guard of 100,000 keys against a file of 100,000 records meets a false twin once in 1.8 × 10⁹ such pairs.

Records without an id are keyed by their content *and the key before them* (`chained`): the n-th equal line of a file
gets a key of its own, a copy of the file gets the same ones, and the reader need remember nothing but the last key.
Where copies can begin in the middle and nothing has an id, a reader counts occurrences instead (`occurrence`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence

__all__ = [
    "ANCHOR_EVERY",
    "ANCHOR_FIRST",
    "KEY_BYTES",
    "Guard",
    "anchors_of",
    "chained",
    "content_key",
    "fold_uuids",
    "id_key",
    "occurrence",
    "probes_of",
    "unpack",
]

KEY_BYTES = 8
ANCHOR_FIRST = 8
ANCHOR_EVERY = 16
_IS_ANCHOR = bytes(not last % ANCHOR_EVERY for last in range(256))  # by the last byte of a key
_PROBES = 48  # so many look-ups are cheaper by searching the packed string than by building a set of it
_HEX = frozenset("0123456789abcdefABCDEF")


def content_key(*parts: bytes) -> bytes:
    """Return the key of content; *parts* are kept apart, so `ab`, `c` differs from `a`, `bc`."""
    if len(parts) == 1 and len(parts[0]) <= 256:  # an id: in one go what is done below in four
        (part,) = parts
        return hashlib.blake2b(len(part).to_bytes(8, "big") + part, digest_size=KEY_BYTES).digest()
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def id_key(text: str) -> bytes:
    """Return the key of an id as the host wrote it: a UUID folded, anything else hashed."""
    if len(text) == 36 and text[8] == text[13] == text[18] == text[23] == "-":
        digits = text.replace("-", "")
        if len(digits) == 32 and _HEX.issuperset(digits):
            whole = int(digits, 16)
            return ((whole >> 64) ^ (whole & 0xFFFFFFFFFFFFFFFF)).to_bytes(KEY_BYTES, "big")
    return content_key(text.encode("utf-8", "surrogatepass"))


def fold_uuids(ids: Sequence[str]) -> bytes:
    """
    Return the packed keys of *ids*, the same as `id_key` of each, at a tenth of the cost when all are UUIDs.

    The halves of all of them are gathered into two big numbers, and one exclusive or folds the lot.
    """
    if not ids:
        return b""
    joined = "".join(ids)
    if len(joined) == 36 * len(ids):
        digits = joined.replace("-", "")
        # Every dash must stand where a UUID has it, in each of them: the strided slices look at all at once.
        dashes = "-" * len(ids)
        if len(digits) == 32 * len(ids) and all(joined[at::36] == dashes for at in (8, 13, 18, 23)):
            try:
                whole = bytes.fromhex(digits)
            except ValueError:
                whole = b""
            if len(whole) == 16 * len(ids):  # fromhex passes over blanks
                halves = array("Q", whole)
                high, low = halves[0::2].tobytes(), halves[1::2].tobytes()
                folded = int.from_bytes(high, "big") ^ int.from_bytes(low, "big")
                return folded.to_bytes(KEY_BYTES * len(ids), "big")
    return b"".join(map(id_key, ids))


def chained(before: bytes, content: bytes) -> bytes:
    """Return the key of a record without an id that stands behind the record with key *before*."""
    return content_key(before, content)


def occurrence(content: bytes, nth: int) -> bytes:
    """Return the key of the *nth* (from 0) record of its file with this *content*."""
    return content_key(content, nth.to_bytes(8, "big"))


def unpack(keys: bytes) -> Iterator[bytes]:
    """Yield the single keys of a packed string."""
    for at in range(0, len(keys), KEY_BYTES):
        yield keys[at : at + KEY_BYTES]


def anchors_of(keys: bytes, heads: bytes = b"") -> list[int]:
    """
    Return what of *keys* goes into the table of anchors, as signed 64-bit numbers (what SQLite holds).

    Args:
        keys: Packed keys of one stretch of a file.
        heads: Packed keys of the first records of the file, or of each session that begins in this stretch of it.
            Without any, the stretch's first key counts as such: files that are followed as they grow then have an
            anchor in each stretch.
    """
    if len(keys) == KEY_BYTES and (not heads or heads == keys):  # a file that has grown by a line
        return [int.from_bytes(keys, "big", signed=True)]
    first = heads or keys[:KEY_BYTES]
    found = [first[at : at + KEY_BYTES] for at in range(0, len(first), KEY_BYTES)]
    marks = keys[KEY_BYTES - 1 :: KEY_BYTES].translate(_IS_ANCHOR)  # a byte a key: most are passed over unseen
    at = marks.find(1)
    while at >= 0:
        found.append(keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])
        at = marks.find(1, at + 1)
    anchors = array("q", b"".join(dict.fromkeys(found)))
    anchors.byteswap()
    return anchors.tolist()


def probes_of(keys: bytes) -> list[int]:
    """Return what of a stretch's *keys* is looked up besides its anchors: the first ones, wherever it stands."""
    first = array("q", keys[: ANCHOR_FIRST * KEY_BYTES])
    first.byteswap()
    return first.tolist()


class Guard:
    """
    The keys that are already counted: of this item itself on an append, and of others that it shares history with.

    Small look-ups search the packed strings; from `_PROBES` on a set is built, since then it pays. An empty guard is
    falsy, and readers skip the question altogether.
    """

    __slots__ = ("_asked", "_packed", "_set")

    def __init__(self, *packed: bytes) -> None:
        self._packed = [keys for keys in packed if keys]
        self._set: set[bytes] | None = None
        self._asked = 0

    @property
    def packed(self) -> list[bytes]:
        """The packed strings, to make a wider guard of."""
        return self._packed

    def __bool__(self) -> bool:
        return bool(self._packed)

    def __len__(self) -> int:
        return sum(map(len, self._packed)) // KEY_BYTES

    def __contains__(self, key: bytes) -> bool:
        if self._set is not None:
            return key in self._set
        self._asked += 1
        if self._asked > _PROBES:
            self._set = {key for keys in self._packed for key in unpack(keys)}
            return key in self._set
        return any(_find(keys, key) for keys in self._packed)


def _find(keys: bytes, key: bytes) -> bool:
    at = keys.find(key)
    while at >= 0 and at % KEY_BYTES:
        at = keys.find(key, at + 1)
    return at >= 0
