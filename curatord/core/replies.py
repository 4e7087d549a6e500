"""
What a model may answer, per task: one definition for the schema it is sent, the words in the prompt, and the validator.

The structs below are that definition (a schema, a prompt and a guard that were three texts let no merge ever pass: bugs
B012). There is no field for state, pin, owner or importance, so no reply can ask for one; a field that is not
defined is dropped. Bounds stand in the types: what is longer is refused, never cut. Whether a name exists or a path
is allowed is not known here; that is the plan's check against the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import dumps
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from curatord.core.model import Task

__all__ = [
    "Cluster",
    "Create",
    "DistilReply",
    "Leave",
    "MergeMember",
    "MergeReply",
    "Operation",
    "Patch",
    "Reply",
    "SimpleReply",
    "SurveyReply",
    "UmbrellaText",
    "WriteFile",
    "reply_schema",
    "reply_shape",
    "validator",
]

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Line = Annotated[str, Meta(max_length=2_000)]
Path = Annotated[str, Meta(max_length=400)]
Text = Annotated[str, Meta(max_length=400_000)]
Overview = Annotated[str, Meta(max_length=20_000)]
How = Literal["section", "reference", "template", "script", "keep", "prune"]


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Skills that one umbrella should hold. *existing*: the umbrella is a skill that is there already."""

    umbrella: Name
    existing: bool = False
    members: Annotated[tuple[Name, ...], Meta(max_length=5_000)]
    why: Line = ""


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that should stay as it is, and why."""

    name: Name
    why: Line = ""


class SurveyReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a survey: what belongs together."""

    clusters: Annotated[tuple[Cluster, ...], Meta(max_length=2_000)]
    leave: Annotated[tuple[Leave, ...], Meta(max_length=20_000)] = ()


class UmbrellaText(msgspec.Struct, frozen=True, kw_only=True):
    """What the model may write of an umbrella. *body* only where the bodies of the members were sent."""

    name: Name
    description: Annotated[str, Meta(max_length=4_000)]
    overview: Overview = ""
    body: Text | None = None


class MergeMember(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one member; *path* is inside the umbrella's package."""

    name: Name
    how: How
    title: Annotated[str, Meta(max_length=300)] | None = None
    path: Path | None = None
    reason: Line = ""


class MergeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one cluster's question."""

    umbrella: UmbrellaText
    members: Annotated[tuple[MergeMember, ...], Meta(max_length=5_000)]


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="patch"):
    """Replace *old*, which occurs exactly once, by *new* in the skill's text."""

    skill: Name
    old: Annotated[str, Meta(min_length=1, max_length=400_000)]
    new: Text
    reason: Line = ""
    evidence: Annotated[tuple[Line, ...], Meta(max_length=100)] = ()


class Create(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="create"):
    """A new skill."""

    skill: Name
    description: Annotated[str, Meta(min_length=1, max_length=4_000)]
    when_to_use: Annotated[str, Meta(max_length=4_000)] = ""
    content: Annotated[str, Meta(min_length=1, max_length=400_000)]
    reason: Line = ""
    evidence: Annotated[tuple[Line, ...], Meta(max_length=100)] = ()


class WriteFile(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="write_file"):
    """A support file of a skill, under `references/`, `templates/` or `scripts/`."""

    skill: Name
    path: Annotated[str, Meta(min_length=1, max_length=400)]
    content: Text
    reason: Line = ""
    evidence: Annotated[tuple[Line, ...], Meta(max_length=100)] = ()


Operation = Patch | Create | WriteFile
MAX_OPERATIONS = 3  # contract, section 8: at most three, at most one of them a create


class DistilReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a session taught: operations, or *nothing* with the reason; never both, never neither."""

    operations: Annotated[tuple[Operation, ...], Meta(max_length=MAX_OPERATIONS)] = ()
    nothing: Line | None = None


class SimpleReply(DistilReply, frozen=True, kw_only=True):
    """The same, said in the simple form, which has no field for evidence."""


class _Evolve(msgspec.Struct, frozen=True, kw_only=True):
    """The simple form of a distil reply: one new skill, or nothing."""

    evolve: bool
    name: Name | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=4_000)] | UnsetType = UNSET
    whenToUse: Annotated[str, Meta(max_length=4_000)] = ""  # noqa: N815  # the wire's own spelling
    content: Text | UnsetType = UNSET
    reason: Line = ""


Reply = SurveyReply | MergeReply | DistilReply
_TYPES: dict[Task, type[SurveyReply] | type[MergeReply] | type[DistilReply]] = {
    "survey": SurveyReply,
    "merge": MergeReply,
    "distil": DistilReply,
}


def validator(task: Task, *, bodies: bool = False) -> Callable[[Mapping[str, Any]], Reply | str]:
    """
    Return the check of replies to *task*: an object in, its typed value out, or a sentence that says what is wrong.

    Args:
        task: Which question was asked.
        bodies: Whether the members' bodies were sent, so that the umbrella's `body` may be written.
    """

    def check(row: Mapping[str, Any]) -> Reply | str:
        try:
            msgspec.json.encode(row)
        except UnicodeEncodeError:
            return "the reply has half a character in a text (a lone surrogate)"
        try:
            told = _told(row)
            if task == "distil" and "evolve" in told:
                return _from_evolve(msgspec.convert(told, _Evolve))
            value = msgspec.convert(told, _TYPES[task])
        except msgspec.ValidationError as error:
            return f"the reply does not fit: {error}"
        match value:
            case DistilReply():
                return _checked_distil(value)
            case MergeReply() if not bodies and value.umbrella.body is not None:
                return msgspec.structs.replace(value, umbrella=msgspec.structs.replace(value.umbrella, body=None))
            case _:
                return value

    return check


def _told(node: Any) -> Any:
    """Return *node* without the fields that are null: models write null for what they have nothing to say about."""
    if isinstance(node, dict):
        return {key: _told(part) for key, part in node.items() if part is not None}
    return [_told(part) for part in node] if isinstance(node, list) else node


def _from_evolve(form: _Evolve) -> DistilReply | str:
    """Return the simple form as one `create`, or as nothing."""
    if not form.evolve:
        return DistilReply(nothing=form.reason or "nothing worth keeping")
    if not (form.name and form.description and form.content):
        return "the reply does not fit: `evolve` is true, so `name`, `description` and `content` are needed"
    create = Create(
        skill=form.name,
        description=form.description,
        when_to_use=form.whenToUse,
        content=form.content,
        reason=form.reason,
    )
    return SimpleReply(operations=(create,))


def _checked_distil(value: DistilReply) -> DistilReply | str:
    """Return *value* if it says one thing."""
    nothing = (value.nothing or "").strip()
    if value.operations and nothing:
        return "the reply does not fit: it names operations and says `nothing` as well"
    if not value.operations and not nothing:
        return "the reply does not fit: it names no operation, and `nothing` gives no reason"
    if sum(isinstance(op, Create) for op in value.operations) > 1:
        return "the reply does not fit: at most one operation may be `create`"
    return msgspec.structs.replace(value, nothing=nothing or None)


# What servers' schema compilers choke on or refuse in strict mode; the validator holds these bounds anyway.
_DROPPED = frozenset(
    {"title", "description", "default", "minLength", "maxLength", "minItems", "maxItems", "discriminator"}
)


def reply_schema(task: Task, *, bodies: bool = False) -> dict[str, Any]:
    """
    Return the JSON schema that a server is asked to hold the reply to.

    Made from the same structs as the validator, in the form that strict servers want: no references, every property
    required (an optional one may be null), nothing beside. Bounds of length are left to the validator.
    """
    (schema,), parts = msgspec.json.schema_components([_TYPES[task]], ref_template="{name}")
    found: dict[str, Any] = _strict(schema, parts)
    if task == "merge" and not bodies:
        umbrella = found["properties"]["umbrella"]
        del umbrella["properties"]["body"]
        umbrella["required"].remove("body")
    return found


def _strict(node: Any, parts: Mapping[str, Any]) -> Any:
    """Return *node* with references filled in and objects closed."""
    if isinstance(node, list):
        return [_strict(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(parts[node["$ref"]], parts)
    if node.get("type") == "object":
        properties = {name: _strict(part, parts) for name, part in node["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    found = {key: _strict(part, parts) for key, part in node.items() if key not in _DROPPED}
    return {"type": "string"} | found if "enum" in found else found


def reply_shape(task: Task, *, bodies: bool = False) -> str:
    """
    Return the shape of the reply as a few lines for the prompt, made from the same schema.

    Servers without constrained decoding have nothing else to tell the model the field names.
    """
    return dumps(_shape(reply_schema(task, bodies=bodies)), ensure_ascii=False, indent=1)


def _shape(node: Mapping[str, Any]) -> Any:
    """Return an example-like value: the type's words where a value would stand."""
    if "anyOf" in node:
        options = [_shape(option) for option in node["anyOf"]]
        if all(isinstance(option, str) for option in options):
            return " or ".join(options)
        return " | ".join(dumps(option, ensure_ascii=False) for option in options) if len(options) > 1 else options[0]
    if "enum" in node:
        return "|".join(map(str, node["enum"]))
    match node.get("type"):
        case "object":
            return {name: _shape(part) for name, part in node["properties"].items()}
        case "array":
            items = node["items"]
            options = items.get("anyOf", [items])
            return [_shape(option) for option in options]
        case "null":
            return "null"
        case other:
            return {"boolean": "true|false", "string": "text"}.get(str(other), str(other))
