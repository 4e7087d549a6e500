"""
README's table of all settings, from their types and docs.

Regenerate after a change of the settings: `python -m curatord.config.reference`, into README between its markers.
"""

from __future__ import annotations

from typing import Any

from curatord.config.parse import known_keys
from curatord.config.reader import optional, unmarked
from curatord.config.render import plain, said_as_yaml
from curatord.core.cheap import MISSING, fields, is_dataclass
from curatord.core.setting_docs import SETTING_DOCS
from curatord.core.settings import Config, LibrarySettings, LlmEndpoint, LlmPrice, LlmSettings, SourceSettings

__all__ = ["markdown_table"]

# What stands in for the objects that have no default of their own, so that their fields' defaults can be told.
_EXAMPLES: dict[str, Any] = {
    "sources[]": SourceSettings(host="hermes"),
    "libraries[]": LibrarySettings(name="", path=""),
    "llm": LlmSettings(),
    "llm.primary": LlmEndpoint(base_url="", model=""),
    "llm.primary.price": LlmPrice(input=0, cached_input=0, output=0),
}


def markdown_table() -> str:
    """Return a row per key: key, default, meaning; the fallback's keys are the primary's."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key, hint in known_keys():
        if key.startswith("llm.fallback."):
            continue
        inner, may_be_null = optional(hint)
        is_object = is_dataclass(unmarked(inner)[0])
        default = "`null`" if may_be_null else "" if is_object else _default(key)
        meaning = SETTING_DOCS[key].replace("|", "\\|")
        lines.append(f"| `{key}` | {default} | {meaning} |")
    return "\n".join(lines)


def _default(key: str) -> str:
    if key == "state_dir":
        return "per platform"
    if key in ("sources", "libraries"):
        return "those found"
    holder, _, name = key.rpartition(".")
    owner: Any = _EXAMPLES.get(holder)
    if owner is None:
        owner = Config(state_dir="")
        for part in holder.split(".") if holder else ():
            owner = _EXAMPLES.get(part) or getattr(owner, part)
    field = next(f for f in fields(owner) if f.name == name)
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    return f"`{said_as_yaml(plain(getattr(owner, name)))}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown_table() + "\n")
