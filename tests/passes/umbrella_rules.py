"""Models for the umbrella pass that answer by rule, like the stub server but in memory and in the test's own hands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.model import ScriptedModel, an_identity

Data = dict[str, Any]
Rule = Callable[[Data], Any]


def survey_by_prefix(data: Data) -> Data:
    """Answer a survey: what begins with the same word belongs together; an umbrella of that name takes the rest."""
    groups: dict[str, list[str]] = {}
    for row in data["skills"]:
        groups.setdefault(row["name"].split("-")[0], []).append(row["name"])
    clusters = []
    for word, names in sorted(groups.items()):
        home = next((name for name in (word, f"{word}-kit") if name in names), None)
        if len(names) > 1:
            clusters.append(
                {
                    "umbrella": home or f"{word}-kit",
                    "existing": home is not None,
                    "members": [name for name in names if name != home],
                    "why": f"all serve {word}",
                }
            )
    return {"clusters": clusters, "leave": []}


def merge_all(data: Data, how: str = "reference") -> Data:
    """Answer a merge question: all members go in, in one way."""
    umbrella = data["umbrella"]["name"]
    names = [member["name"] for member in data["members"]]
    return {
        "umbrella": {
            "name": umbrella,
            "description": f"Use for {umbrella}: {', '.join(names)}."[:1000],
            "overview": f"One place for {umbrella}.",
        },
        "members": [{"name": name, "how": how, "title": None, "path": None, "reason": "same work"} for name in names],
    }


def by_rule(
    survey: Rule = survey_by_prefix,
    merge: Rule = merge_all,
    *,
    context_tokens: int = 128_000,
    output_limit: int = 8_192,
) -> ScriptedModel:
    """Return a model that answers surveys and merge questions by these rules."""

    def rule(data: Data) -> Any:
        return survey(data) if data["task"] == "survey" else merge(data)

    return ScriptedModel(rule=rule, identity=an_identity(context_tokens=context_tokens, output_limit=output_limit))


def tasks(model: ScriptedModel) -> list[str]:
    """Return the tasks that *model* was asked."""
    return [request.task for request in model.asked]


def decided(hows: Mapping[str, str]) -> Rule:
    """Return a merge rule that says what becomes of each member by name; the others go unnamed."""

    def rule(data: Data) -> Data:
        reply = merge_all(data)
        reply["members"] = [row | {"how": hows[row["name"]]} for row in reply["members"] if row["name"] in hows]
        return reply

    return rule
