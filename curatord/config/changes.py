"""What is different between two configurations, in lines for a log: keys as in the file, values short and inert."""

from __future__ import annotations

from typing import Any

from curatord.config.render import effective, said_as_yaml, values_by_key
from curatord.core.inert import shorten
from curatord.core.redact import redact, redact_value
from curatord.core.settings import Config

__all__ = ["changes_of"]

MAX_CHANGES = 50
VALUE_CHARS = 80
_UNSET = "unset"


def changes_of(before: Config, after: Config) -> tuple[str, ...]:
    """Return a line `key: old -> new` for each key whose value is another now, at most `MAX_CHANGES` of them."""
    old, new = effective(before), effective(after)
    was, now = dict(values_by_key(old)), dict(values_by_key(new))
    different = [key for key in dict.fromkeys([*was, *now]) if was.get(key, _UNSET) != now.get(key, _UNSET)]
    # Compared as they are, shown redacted: a secret that somebody wrote into `extra_body` stays in the file.
    shown_was, shown_now = (dict(values_by_key(redact_value(values))) for values in (old, new))
    lines = [f"{key}: {_shown(shown_was, key)} -> {_shown(shown_now, key)}" for key in different]
    if len(lines) > MAX_CHANGES:
        lines[MAX_CHANGES:] = [f"and {len(lines) - MAX_CHANGES} more"]
    return tuple(lines)


def _shown(values: dict[str, Any], key: str) -> str:
    return shorten(redact(said_as_yaml(values[key])), VALUE_CHARS) if key in values else _UNSET
