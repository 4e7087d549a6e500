"""
What a setting's value must be like beyond its type, written beside the type: `Annotated[int, Rule(at_least=1)]`.

`curatord.config` reads these; the aliases below are what `core.settings` uses. Bounds of durations are in seconds.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

__all__ = [
    "AnyPath",
    "Count",
    "GlobText",
    "HttpUrl",
    "Many",
    "Money",
    "NameText",
    "Niceness",
    "NoticeChars",
    "Pause",
    "Period",
    "Rule",
    "Share",
    "ShortPeriod",
    "SizeAtLeast",
    "ViewPath",
]

TextKind = Literal["plain", "path", "view_path", "glob", "url", "name"]


class Rule(NamedTuple):
    """
    Bounds of a number or duration, and what kind of text a text is.

    Attributes:
        at_least, above, at_most: Bounds; seconds for durations, bytes for sizes.
        text: `path`: `~` and `${VAR}` expanded, relative to the configuration file. `view_path`: the same, but as
            somebody else sees it, so it must be absolute. `glob`: only expanded. `url`: http(s) without a login in it.
            `name`: printable, without `/`.
        size: An integer written with a unit (`8KiB`).
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    text: TextKind = "plain"
    size: bool = False


Count = Annotated[int, Rule(at_least=0, at_most=2**53)]
Many = Annotated[int, Rule(at_least=1, at_most=2**53)]
SizeAtLeast = Annotated[int, Rule(at_least=1024, at_most=2**53, size=True)]
Share = Annotated[float, Rule(above=0, at_most=1)]
Money = Annotated[float, Rule(at_least=0, at_most=1e9)]
Period = Annotated[timedelta, Rule(above=0)]
ShortPeriod = Annotated[timedelta, Rule(above=0, at_most=60)]
Niceness = Annotated[int, Rule(at_least=0, at_most=19)]
NoticeChars = Annotated[int, Rule(at_least=20, at_most=500)]
Pause = Annotated[timedelta, Rule(at_least=0)]
AnyPath = Annotated[str, Rule(text="path")]
ViewPath = Annotated[str, Rule(text="view_path")]
GlobText = Annotated[str, Rule(text="glob")]
HttpUrl = Annotated[str, Rule(text="url")]
NameText = Annotated[str, Rule(text="name")]
