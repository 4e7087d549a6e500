"""One definition of each reply: schema, prompt text and validator agree."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from curatord.core.model import TASKS, Task
from curatord.core.replies import (
    Create,
    DistilReply,
    MergeReply,
    SimpleReply,
    reply_schema,
    reply_shape,
    validator,
)
from tests.fakes.replies import minimal_reply

MERGE: dict[str, Any] = {
    "umbrella": {"name": "git", "description": "Use for git.", "overview": "One place.", "body": "# git"},
    "members": [{"name": "git-one", "how": "section", "title": "One", "path": None, "reason": "same work"}],
}
PATCH = {"op": "patch", "skill": "a", "old": "x", "new": "y", "reason": "r", "evidence": ["1"]}
CREATE = {"op": "create", "skill": "b", "description": "d", "when_to_use": "w", "content": "# b", "reason": "r"}


def objects(schema: Any) -> list[dict[str, Any]]:
    """Return all object schemas within *schema*."""
    found = []
    if isinstance(schema, dict):
        found += [schema] if schema.get("type") == "object" else []
        for part in schema.values():
            found += objects(part)
    elif isinstance(schema, list):
        for part in schema:
            found += objects(part)
    return found


@pytest.mark.parametrize("task", TASKS)
def test_the_smallest_reply_passes_its_own_validator_and_has_all_fields_of_the_schema(task: Task) -> None:
    """What the schema asks for is what the validator takes (a field known to one only let no merge pass)."""
    reply = minimal_reply(task)
    row = msgspec.to_builtins(reply)

    assert reply == validator(task)(row)
    assert set(reply_schema(task)["properties"]) == set(row)


@pytest.mark.parametrize("task", TASKS)
def test_schemas_have_the_form_that_strict_servers_want(task: Task) -> None:
    """Every object is closed and requires all it names, nothing is referred to, no bound stands in it."""
    schema = reply_schema(task, bodies=True)
    closed = [o for o in objects(schema) if o["additionalProperties"] is False]

    assert objects(schema) == closed
    assert all(set(o["required"]) == set(o["properties"]) for o in closed)
    assert not {"$ref", "$defs", "maxLength", "default"} & set(json.dumps(schema).replace('"', " ").split())


@pytest.mark.parametrize("task", TASKS)
def test_the_prompt_shape_names_every_field(task: Task) -> None:
    """A model without constrained decoding is told the names that the validator looks for."""
    shape = reply_shape(task, bodies=True)

    assert all(f'"{name}"' in shape for o in objects(reply_schema(task, bodies=True)) for name in o["properties"])


def test_a_body_is_only_there_when_bodies_were_sent() -> None:
    """Without bodies the schema has no `body` and one that comes is dropped."""
    with_body, without = validator("merge", bodies=True)(MERGE), validator("merge")(MERGE)

    assert isinstance(with_body, MergeReply)
    assert isinstance(without, MergeReply)
    assert (with_body.umbrella.body, without.umbrella.body) == ("# git", None)
    assert "body" not in reply_schema("merge")["properties"]["umbrella"]["properties"]


def test_there_is_no_field_for_what_a_model_may_not_decide() -> None:
    """Pins, state, owner and importance in a reply have no effect: they are nowhere in the value (promise 4)."""
    row = MERGE | {"pinned": True, "members": [MERGE["members"][0] | {"pinned": False, "importance": "low"}]}

    assert validator("merge")(MERGE) == validator("merge")(row)


def test_null_is_as_good_as_nothing_said() -> None:
    """Models write null for what they have nothing to say about."""
    row = {"clusters": [{"umbrella": "u", "existing": None, "members": ["a"], "why": None}], "leave": None}

    assert not isinstance(validator("survey")(row), str)


@pytest.mark.parametrize(
    ("task", "row", "words"),
    [
        ("survey", {}, "clusters"),
        ("survey", {"clusters": [{"umbrella": "u", "members": "a"}]}, "array"),
        ("survey", {"clusters": [{"umbrella": "", "members": []}]}, "umbrella"),
        ("survey", {"clusters": [{"umbrella": "u" * 201, "members": []}]}, "umbrella"),
        ("merge", {"umbrella": MERGE["umbrella"], "members": [{"name": "a", "how": "delete"}]}, "delete"),
        ("merge", {"members": []}, "umbrella"),
        ("merge", {"umbrella": {"name": "u", "description": "d", "overview": "x" * 20_001}, "members": []}, "overview"),
        ("distil", {"operations": [], "nothing": None}, "gives no reason"),
        ("distil", {"operations": [PATCH], "nothing": "no"}, "as well"),
        ("distil", {"operations": [PATCH] * 4}, "length <= 3"),
        ("distil", {"operations": [CREATE, CREATE]}, "at most one"),
        ("distil", {"operations": [{"op": "delete", "skill": "a"}]}, "delete"),
        ("distil", {"evolve": True, "name": "n", "description": "d"}, "content"),
        ("distil", {"evolve": "yes"}, "bool"),
        ("distil", {"result": "reached max turns"}, "no operation"),
    ],
)
def test_what_does_not_fit_is_named(task: Task, row: dict[str, Any], words: str) -> None:
    """The sentence names the field or the rule, so that it can go into the repair."""
    found = validator(task)(row)

    assert isinstance(found, str)
    assert words in found


def test_the_simple_form_is_one_create_or_nothing() -> None:
    """`evolve` replies are read as the long form."""
    row = {"evolve": True, "name": "n", "description": "d", "whenToUse": "w", "content": "c", "reason": "r"}
    create = Create(skill="n", description="d", when_to_use="w", content="c", reason="r")

    assert SimpleReply(operations=(create,)) == validator("distil")(row)
    assert DistilReply(nothing="one-off") == validator("distil")({"evolve": False, "reason": "one-off"})
