"""
What a model is shown of a skill: a card of some 230 tokens in place of a body of 2,000 (bench, goal 14).

A card is made of the bytes of SKILL.md alone, so the same skill gives the same card in every run, whether it was read
from disk or is still planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from curatord.core.cheap import dataclass
from curatord.core.cluster import SkillText as ClusterText
from curatord.core.header import Fault
from curatord.core.skill import parse_skill
from curatord.core.umbrella.fold import is_umbrella_text
from curatord.core.values import SkillKey, State

__all__ = ["Card", "card_of"]

DESCRIPTION_CHARS = 300
HEADINGS_CHARS = 400
EXCERPT_CHARS = 500
CLUSTER_BODY_CHARS = 6_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """
    One skill as it is shown.

    Attributes:
        label: What the model calls it.
        tokens: Of its body.
        umbrella: Its text holds an index that curatord wrote.
        made_now: This run writes into it, so it may gain members and never become one.
        digest: Of label and text: what answers about it are remembered by.
        text: Beginning of its body, for clustering.
    """

    key: SkillKey
    label: str
    description: str
    headings: str
    excerpt: str
    tokens: int
    state: State
    umbrella: bool
    digest: str
    text: str
    made_now: bool = False

    def row(self, *, headings: bool) -> dict[str, Any]:
        """Return its row of a survey."""
        return {
            "name": self.label,
            "description": self.description,
            "headings": self.headings if headings else "",
            "tokens": self.tokens,
            "state": self.state.value,
            "umbrella": self.umbrella,
        }

    def card(self) -> Mapping[str, Any]:
        """Return its card in a merge question."""
        return {"headings": self.headings, "excerpt": self.excerpt, "tokens": self.tokens}

    def for_clustering(self) -> ClusterText:
        """Return it as clustering sees it."""
        return ClusterText(key=str(self.key), name=self.key.name, description=self.description, body=self.text)


def card_of(key: SkillKey, label: str, data: bytes, state: State, *, made_now: bool = False) -> Card | None:
    """Return the card of the skill whose SKILL.md holds *data*, or None where that cannot be read."""
    skill = parse_skill(data)
    if isinstance(skill, Fault):
        return None
    told = " ".join(f"{skill.description} {skill.when_to_use}".split())
    body = skill.body.replace("\r\n", "\n").strip()
    found = " · ".join(" ".join(heading.title.split()) for heading in skill.facts().headings)
    return Card(
        key=key,
        label=label,
        description=_cut(told, DESCRIPTION_CHARS),
        headings=_cut(found, HEADINGS_CHARS),
        excerpt=_cut(body, EXCERPT_CHARS),
        tokens=skill.body_tokens,
        state=state,
        umbrella=is_umbrella_text(skill.body),
        digest=sha256(label.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest(),
        text=body[:CLUSTER_BODY_CHARS],
        made_now=made_now,
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
