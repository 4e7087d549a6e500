"""
The commented configuration: every key with its default and its meaning, made from the settings' types and docs.

`config/curatord.yaml` is `render_sample()` for a machine where nothing was found; `curatord init` writes the same with
what it found. Regenerate after a change of the settings: `python -m curatord.config.sample > config/curatord.yaml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curatord.config.reader import fields_of
from curatord.config.render import plain, said_as_yaml
from curatord.core.cheap import MISSING, fields, is_dataclass
from curatord.core.setting_docs import SETTING_DOCS
from curatord.core.settings import (
    Config,
    KeyRef,
    LibrarySettings,
    LlmEndpoint,
    LlmPrice,
    LlmSettings,
    SourceSettings,
)

__all__ = ["render_sample"]

_COLUMN = 42
_HEADER = """\
# curatord: every setting with its default. What you do not change can be left out.
# Durations read 90d, 2h, 10m, 30s or 1h30m; ~ and ${VAR} stand in paths; relative paths are relative to this file.
# Any key can be set by environment too, which wins: gates.interval is CURATORD_GATES__INTERVAL,
# sources[0].path is CURATORD_SOURCES__0__PATH. `curatord config check` reads this file, `config show` tells the result.
"""

_EXAMPLE_SOURCES = (
    SourceSettings(host="claude-code", path="~/.claude/projects", libraries=("claude",)),
    SourceSettings(host="hermes"),
)
_EXAMPLE_LIBRARIES = (
    LibrarySettings(name="claude", path="~/.claude/skills", host="claude-code"),
    LibrarySettings(name="hermes", path="~/.hermes/skills", host="hermes", layout="hermes"),
)
_EXAMPLE_LLM = LlmSettings(
    primary=LlmEndpoint(
        api="openai-chat",
        base_url="http://localhost:11434/v1",
        model="qwen3:14b",
        api_key=KeyRef(kind="env", name="OPENAI_API_KEY"),
        price=LlmPrice(input=1.25, cached_input=0.125, output=10.0),
    ),
)


def render_sample(
    *,
    state_dir: str | None = None,
    sources: Sequence[SourceSettings] | None = None,
    libraries: Sequence[LibrarySettings] | None = None,
    header: str = _HEADER,
) -> str:
    """
    Return the commented YAML text.

    *sources* and *libraries* None: examples are shown as comments, so that the file says the defaults and no more.
    The same holds for *state_dir* and always for `llm`, which has no default.
    """
    lines = [*header.rstrip("\n").split("\n"), ""]
    for item in fields_of(Config).values():
        key = item.name
        if key == "state_dir":
            text = said_as_yaml(state_dir or "~/.local/state/curatord")
            lines += _commented([_line("", key, text)], unless=state_dir is not None)
        elif key == "sources":
            lines += _list(key, _EXAMPLE_SOURCES if sources is None else sources, shown=sources is not None)
        elif key == "libraries":
            lines += _list(key, _EXAMPLE_LIBRARIES if libraries is None else libraries, shown=libraries is not None)
        elif key == "llm":
            lines += _commented(_object(key, _EXAMPLE_LLM, key, ""), unless=False)
        else:
            default = getattr(_DEFAULTS, key)
            if is_dataclass(default) and not isinstance(default, type):
                lines += _object(key, default, key, "")
            else:
                lines.append(_line("", key, said_as_yaml(plain(default))))
    return "\n".join(lines) + "\n"


_DEFAULTS = Config(state_dir="")


def _line(indent: str, name: str, value: str, key: str | None = None, lead: str = "") -> str:
    """Return `name: value` with the meaning of *key* behind it."""
    said = f"{indent}{lead}{name}:{' ' if value else ''}{value}"
    doc = SETTING_DOCS.get(name if key is None else key, "")
    return f"{said:<{_COLUMN - 1}} # {doc}" if doc else said


def _object(name: str, value: Any, key: str, indent: str, lead: str = "") -> list[str]:
    """Return *value*, a settings dataclass, as lines below `name:`."""
    lines = [_line(indent, name, "", key, lead)] if name else []
    inner = indent + ("  " if name else "")
    first_lead = "" if name else lead
    for number, item in enumerate(fields_of(type(value)).values()):
        child, child_key = getattr(value, item.name), f"{key}.{item.name}"
        here_lead = first_lead if number == 0 else ""
        here = inner if number == 0 or not first_lead else inner + " " * len(first_lead)
        if is_dataclass(child) and not isinstance(child, type | KeyRef):
            lines += _object(item.name, child, child_key, here, here_lead)
        else:
            lines.append(_line(here, item.name, said_as_yaml(plain(child)), child_key, here_lead))
    return lines


def _list(name: str, items: Sequence[Any], *, shown: bool) -> list[str]:
    """Return *items* as a list of objects; where it is only an example, as comments."""
    if shown and not items:
        return [_line("", name, "[]")]
    lines = [_line("", name, "")]
    for number, item in enumerate(items):
        entry = _object("", item, f"{name}[]", "  ", "- ")
        lines += entry if number == 0 else _short(item, entry)
    return _commented(lines, unless=shown)


def _short(item: Any, entry: list[str]) -> list[str]:
    """Return a later list entry's lines: only what differs from the defaults, without the meanings told above."""
    fields = fields_of(type(item)).values()
    said = {f.name for f in fields if f.required or getattr(item, f.name) != _default(item, f.name)}
    return [line.split("  # ")[0].rstrip() for line, f in zip(entry, fields, strict=True) if f.name in said]


def _default(item: Any, name: str) -> Any:
    found = next(f for f in fields(item) if f.name == name)
    return found.default_factory() if found.default_factory is not MISSING else found.default


def _commented(lines: list[str], *, unless: bool) -> list[str]:
    return lines if unless else [f"# {line}" for line in lines]


if __name__ == "__main__":
    import sys

    sys.stdout.write(render_sample())
