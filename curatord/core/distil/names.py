"""
Names that are one to a reader: whatever their case, Unicode form, hyphens, or the alphabet that a look-alike is from.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["mixed_scripts", "skeleton"]

# Letters of Cyrillic and Greek that no reader tells from a Latin one in a usual font (Unicode TR 39 has the whole list;
# of it these are what a lower-case name can hold).
_ALIKE = str.maketrans(
    "\u0430\u0251\u03b1\u0435\u0451\u04bd\u0456\u0457\u03b9\u0458\u043e\u03bf\u03c3\u0440\u03c1\u0441"
    "\u03f2\u0443\u03b3\u04af\u0445\u03c7\u04bb\u0501\u051b\u051d\u0455\u0432\u044c\u0475\u03bd\u0491"
    "\u0433\u0437\u043a\u03ba\u043f\u03c4\u0442\u043c\u043d\u03b7\u03c5\u03c9\u050d\u0261\u0131",
    "aaaeeeiiijoooppccyyyxxhdqwsbbvvrr3kknttmhnuwggi",
)
_SEPARATORS = re.compile(r"[\s_.\-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]+")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


def skeleton(name: str) -> str:
    """Return what *name* looks like: two names with one skeleton are twins."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _UNSEEN.sub("", name)).casefold())
    return _SEPARATORS.sub("-", folded.translate(_ALIKE)).strip("-")


def mixed_scripts(name: str) -> bool:
    """Return whether *name* mixes letters of Latin, Cyrillic and Greek, which no honest name does."""
    scripts = {
        unicodedata.name(char, "").partition(" ")[0] for char in unicodedata.normalize("NFKC", name) if char.isalpha()
    }
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1
