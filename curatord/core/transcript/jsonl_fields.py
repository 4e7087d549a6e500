"""
What a `jsonl` source's `fields` say: where a record of some host nobody wrote a reader for holds what matters.

Every key is optional; without any, the shapes that chat logs commonly have are looked for. A value is a **path** or a
list of paths of which the first that leads to something is taken. A path is dotted (`message.role`); where it meets a
list it goes into each element, and a number picks one (`parts.0.text`). `.` alone is the record itself.

What a record is:

- `session`: its session's id. Default: `sessionId`, `session_id`, …; a file whose records say none is one session,
  named like the file (or its folder, for names like `events.jsonl`).
- `id`: the record's own id. Records without one are known by their content and how often that came before.
- `role`: who speaks. `user_roles`, `assistant_roles`: the values that mean a person and the model.
- `text`: what was said; a string, or a list of parts with `text`. A user's record without any is no turn.
- `time`: ISO 8601, or seconds or milliseconds since 1970. One without zone is taken as UTC.
- `cwd`, `parent`: the working folder, and the id of the session that started this one (a sub-agent's).
- `sidechain`: true where the record is a sub-agent's within its parent's session: then it is no user's turn.
- `ignore`: true (or any value but false, null, 0 and "") where the record is none of the conversation.

What it calls:

- `tool`: the tool's name. `arguments`: an object, or JSON text. `call`: the call's id. What these paths begin with in
  common is where the calls are: `tool: tool_calls.function.name`, `arguments: tool_calls.function.arguments` are the
  name and the arguments of each element of `tool_calls`.
- `result`: the id of the call that a record answers. `failed`: true (or not empty) where it failed; `success`: false
  where it failed. Calls with an id wait for their answer until the session is settled.

What it says of skills:

- `skill`: the name of a skill that was used (or a list). `kind`: `use`, `view`, `patch`, `create`, `delete`; default
  `use`. `skill_path`: its file or folder.
- `skill_tools`: tools that load a skill, each with the argument that names it: `{load_skill: name}`.
- `read_tools`, `write_tools`, `shell_tools`: names of tools that read files, change files, run commands; a `SKILL.md`
  among their arguments is looked for. `read_is_use: true` where reading `SKILL.md` is how the host loads a skill.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from curatord.core.values import EventKind

__all__ = ["KEYS", "CallPlace", "Fields", "Path", "fields_of", "first_value", "values_at"]

Path = tuple[str, ...]
MAX_VALUES = 256  # that one path leads to
MAX_PATHS = 32

_ARGUMENT_NAMES = ("file_path", "filePath", "path", "target_file", "absolute_path", "notebook_path", "filename", "file")


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where calls are in a record: *base* leads to each, the others are below it, the first that fits of each."""

    base: Path
    tool: tuple[Path, ...]
    arguments: tuple[Path, ...]
    call: tuple[Path, ...]


def _paths(*texts: str) -> tuple[Path, ...]:
    return tuple(path_of(text) for text in texts)


def path_of(text: str) -> Path:
    """Return the dotted path *text* as its parts; `.` is the record itself."""
    return tuple(part for part in text.split(".") if part)


_CHAT_CALL = (
    _paths("function.name", "name", "toolName", "tool"),
    _paths("function.arguments", "arguments", "input", "args"),
    _paths("id", "call_id", "toolCallId"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The description of a host's records; see the module for what each means."""

    session: tuple[Path, ...] = _paths(
        "sessionId", "session_id", "session.id", "session", "conversation_id", "thread_id"
    )
    id: tuple[Path, ...] = _paths("uuid", "id", "message_id", "event_id", "message.id")
    role: tuple[Path, ...] = _paths("role", "message.role", "author.role", "sender", "from", "type")
    text: tuple[Path, ...] = _paths("text", "content", "message.content", "parts", "message.parts", "message", "body")
    time: tuple[Path, ...] = _paths(
        "timestamp", "time", "created_at", "createdAt", "ts", "at", "date", "@timestamp", "message.timestamp"
    )
    cwd: tuple[Path, ...] = _paths("cwd", "working_directory", "workdir", "context.cwd")
    parent: tuple[Path, ...] = _paths("parent_session_id", "parentSessionId", "parentSession")
    sidechain: tuple[Path, ...] = _paths("isSidechain", "sidechain")
    ignore: tuple[Path, ...] = _paths("isMeta", "synthetic", "ephemeral")
    user_roles: frozenset[str] = frozenset({"user", "human", "User", "USER"})
    assistant_roles: frozenset[str] = frozenset({"assistant", "model", "ai", "agent", "bot", "Assistant", "gemini"})
    calls: tuple[CallPlace, ...] = (
        CallPlace(path_of("tool_calls"), *_CHAT_CALL),
        CallPlace(path_of("toolCalls"), *_CHAT_CALL),
        CallPlace(path_of("message.tool_calls"), *_CHAT_CALL),
        # Blocks of other kinds have no name beside their input, see `JsonlParser`.
        CallPlace(path_of("message.content"), *_CHAT_CALL),
        CallPlace(path_of("content"), *_CHAT_CALL),
        CallPlace(
            (), _paths("tool_name", "toolName", "tool.name", "tool"),
            _paths("arguments", "args", "input", "tool.arguments"), _paths("call_id", "toolCallId"),
        ),
    )  # fmt: skip
    result: tuple[Path, ...] = _paths(
        "tool_call_id", "tool_use_id", "toolCallId", "message.content.tool_use_id", "content.tool_use_id", "result_of"
    )
    failed: tuple[Path, ...] = _paths("is_error", "isError", "error", "message.content.is_error", "content.is_error")
    success: tuple[Path, ...] = _paths("success", "ok")
    skill: tuple[Path, ...] = _paths("skill", "skill.name", "skill_name", "skillName")
    kind: tuple[Path, ...] = _paths("skill_event", "skill.kind")
    skill_path: tuple[Path, ...] = _paths("skill_path", "skill.path")
    skill_tools: Mapping[str, tuple[Path, ...]] = field(
        default_factory=lambda: {
            name: _paths("skill", "name", "skill_name", "command")
            for name in ("skill", "Skill", "skill_view", "activate_skill", "load_skill", "use_skill")
        }
    )
    read_tools: frozenset[str] = frozenset({"read", "Read", "read_file", "view", "open_file", "ReadFile"})
    write_tools: frozenset[str] = frozenset({
        "write", "Write", "write_file", "edit", "Edit", "edit_file", "MultiEdit", "replace", "create", "patch",
        "apply_patch", "str_replace", "str_replace_editor", "search_replace",
    })  # fmt: skip
    shell_tools: frozenset[str] = frozenset({
        "bash", "Bash", "shell", "terminal", "exec", "exec_command", "shell_command", "run_shell_command",
        "run_terminal_cmd", "execute_command", "powershell", "local_shell",
    })  # fmt: skip
    read_is_use: bool = False
    file_arguments: tuple[str, ...] = _ARGUMENT_NAMES


_PATH_KEYS = (
    "session", "id", "role", "text", "time", "cwd", "parent", "sidechain", "ignore", "result", "failed", "success",
    "skill", "kind", "skill_path",
)  # fmt: skip
_CALL_KEYS = ("tool", "arguments", "call")
_NAME_KEYS = ("user_roles", "assistant_roles", "read_tools", "write_tools", "shell_tools")
KEYS = (*_PATH_KEYS, *_CALL_KEYS, *_NAME_KEYS, "skill_tools", "read_is_use")


def fields_of(settings: Mapping[str, Any] | None) -> Fields:
    """
    Return the description that *settings* (a source's `fields`) give, defaults for what they leave out.

    Raises:
        ValueError: An unknown key (with the nearest known one), or a value of another type.
    """
    settings = settings or {}
    for key in settings:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            raise ValueError(f"unknown field {key!r}" + (f", perhaps {near[0]!r}" if near else ""))
    given: dict[str, Any] = {
        key: _given_paths(key, settings[key]) for key in _PATH_KEYS if settings.get(key) is not None
    }
    for key in _NAME_KEYS:
        if settings.get(key) is not None:
            given[key] = frozenset(_names(key, settings[key]))
    if settings.get("skill_tools") is not None:
        given["skill_tools"] = _skill_tools(settings["skill_tools"])
    if settings.get("read_is_use") is not None:
        if not isinstance(settings["read_is_use"], bool):
            raise ValueError("field 'read_is_use' is true or false")
        given["read_is_use"] = settings["read_is_use"]
    calls = {key: _given_paths(key, settings[key]) for key in _CALL_KEYS if settings.get(key) is not None}
    if calls:
        given["calls"] = (_call_place(calls),)
    return Fields(**given)


def _call_place(given: dict[str, tuple[Path, ...]]) -> CallPlace:
    """Return where calls are, out of whole paths: what all of them begin with leads to each call."""
    whole = [path for paths in given.values() for path in paths]
    base: Path = ()
    for depth in range(1, min(map(len, whole))):
        if len({path[:depth] for path in whole}) > 1:
            break
        base = whole[0][:depth]
    below = {key: tuple(path[len(base) :] for path in paths) for key, paths in given.items()}
    names, arguments, ids = _CHAT_CALL
    if "tool" not in below and not base:
        names = _paths("tool_name", "toolName", "tool.name", "tool")
    return CallPlace(
        base, below.get("tool", names), below.get("arguments", arguments), below.get("call", ids if base else ())
    )


def _given_paths(key: str, value: object) -> tuple[Path, ...]:
    texts = _names(key, value)
    if len(texts) > MAX_PATHS:
        raise ValueError(f"field {key!r} has more than {MAX_PATHS} paths")
    return tuple(path_of(text) for text in texts)


def _names(key: str, value: object) -> list[str]:
    if isinstance(value, str) and value:
        return [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, str) and item for item in value):
        return list(value)
    raise ValueError(f"field {key!r} is a text or a list of texts, not {value!r}")


def _skill_tools(value: object) -> dict[str, tuple[Path, ...]]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"field 'skill_tools' maps a tool to the argument that names the skill, not {value!r}")
    return {str(tool): _given_paths(f"skill_tools.{tool}", argument) for tool, argument in value.items()}


def values_at(value: Any, path: Path) -> list[Any]:
    """Return all that *path* leads to in *value*, lists taken apart on the way, at most `MAX_VALUES`."""
    found = [value]
    for part in path:
        below: list[Any] = []
        for item in found:
            if isinstance(item, dict):
                if part in item:
                    below.append(item[part])
            elif isinstance(item, list):
                if part.isdigit():
                    below.extend(item[int(part) : int(part) + 1] if len(part) < 6 else [])
                else:
                    below.extend(each[part] for each in item[:MAX_VALUES] if isinstance(each, dict) and part in each)
            if len(below) >= MAX_VALUES:
                break
        found = below[:MAX_VALUES]
        if not found:
            break
    return found


def first_value(value: Any, paths: tuple[Path, ...]) -> Any:
    """Return the first thing that is not null at the first of *paths* that leads to one, or None."""
    for path in paths:
        if len(path) == 1 and isinstance(value, dict):  # the usual case
            found = value.get(path[0])
            if found is not None:
                return found
            continue
        for found in values_at(value, path):
            if found is not None:
                return found
    return None


def kind_of(value: object) -> EventKind:
    """Return the kind of event that a record names, `use` where it names none that is known."""
    try:
        return EventKind(str(value)) if value is not None else EventKind.USE
    except ValueError:
        return EventKind.USE
