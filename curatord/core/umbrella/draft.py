"""
From a model's answer about one cluster to a `Decision`, or to every reason why not.

All reasons are found at once: they are the repair request, and what the record says when the repair does not help. A
bad answer costs its own cluster and nothing else. Whom an answer does not name is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from curatord.core.agent_skills import Layout
from curatord.core.cheap import dataclass, replace
from curatord.core.inert import one_line
from curatord.core.markdown import estimate_tokens
from curatord.core.replies import MergeReply
from curatord.core.umbrella.decision import Decision, Kept, Pruned, Taken
from curatord.core.umbrella.fold import MAX_BODY_LINES, MAX_BODY_TOKENS
from curatord.core.umbrella.naming import (
    Screen,
    cleaned_path,
    cleaned_text,
    description_of,
    free_name,
    overview_of,
    valid_name,
)
from curatord.core.umbrella.question import MergeQuestion
from curatord.core.values import RelPath, SkillKey

__all__ = ["Bad", "draft"]

MAX_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """Why an answer cannot be used, each reason in words."""

    violations: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.violations)


def draft(
    reply: MergeReply,
    question: MergeQuestion,
    *,
    layout: Layout,
    taken: Mapping[str, str],
    why_no_prune: Callable[[SkillKey], str | None],
    screen: Screen,
) -> Decision | Bad:
    """
    Return what *reply* decides about the cluster of *question*.

    Args:
        taken: Names of all skills of the library, so that a new umbrella gets one of its own.
        why_no_prune: Why a member may not be pruned, or None.
        screen: Why a text may not be written into a skill, or None.
    """
    offered = {card.label: card for card, _ in question.members}
    bad: list[str] = []
    seen: set[str] = set()
    members: list[Taken] = []
    kept: list[Kept] = []
    pruned: list[Pruned] = []
    for row in reply.members:
        name = one_line(row.name)[:80]
        card = offered.get(row.name)
        if row.name == question.label:
            bad.append(f"`{name}` would go into itself")
            continue
        if card is None:
            bad.append(f"`{name}` is not among the members of the question")
            continue
        if row.name in seen:
            bad.append(f"`{name}` is named twice")
            continue
        seen.add(row.name)
        reason = one_line(cleaned_text(row.reason))[:MAX_REASON]
        match row.how:
            case "keep":
                kept.append(Kept(key=card.key, reason=reason or "the model would keep it"))
            case "prune":
                why = why_no_prune(card.key)
                if why is not None:
                    bad.append(f"`{name}` may not be pruned: {why}")
                elif not reason:
                    bad.append(f"`{name}` may not be pruned without a reason")
                else:
                    pruned.append(Pruned(key=card.key, reason=reason))
            case "section" | "reference" | "template" | "script":
                path = cleaned_path(row.path or "") if row.how != "section" else ""
                if path is None:
                    bad.append(f"`{name}`: {one_line(row.path or '')[:80]!r} is no path within the package")
                title = one_line(cleaned_text(row.title or ""))
                if why := screen(title):
                    bad.append(f"the title of `{name}` cannot be written: {why}")
                members.append(Taken(key=card.key, how=row.how, title=title, path=path or "", reason=reason))
            case _:
                assert_never(row.how)
    decision = _umbrella(reply, question, members, bad, layout=layout, taken=taken, screen=screen)
    if bad or decision is None:
        return Bad(violations=tuple(bad))
    silent = tuple(
        Kept(key=card.key, reason="the answer does not name it") for label, card in offered.items() if label not in seen
    )
    decision = replace(decision, kept=(*kept, *silent), pruned=tuple(pruned))
    if decision.members and not decision.existing and len(decision.members) < 2:
        only = Kept(key=decision.members[0].key, reason="an umbrella for it alone would only be a new name")
        decision = replace(decision, members=(), kept=(*decision.kept, only))
    return decision


def _umbrella(
    reply: MergeReply,
    question: MergeQuestion,
    members: list[Taken],
    bad: list[str],
    *,
    layout: Layout,
    taken: Mapping[str, str],
    screen: Screen,
) -> Decision | None:
    """Return the umbrella's part of the decision; what is wrong with it goes into *bad*."""
    notes: list[str] = []
    key: SkillKey | None = question.umbrella
    if question.existing:
        if reply.umbrella.name != question.label:
            bad.append(
                f"the umbrella is `{question.label}` and cannot be called {one_line(reply.umbrella.name)[:80]!r}"
            )
    else:
        key, words = _new_key(reply.umbrella.name, question, layout, taken, screen)
        if words:
            (notes if key is not None else bad).append(words)
    description, note = description_of(reply.umbrella.description)
    notes += [note] if note else []
    overview, more = overview_of(reply.umbrella.overview)
    notes += more
    if not description and not question.existing and members:
        bad.append("the new umbrella has no description")
    body = reply.umbrella.body
    if body is not None and question.existing:
        notes.append("the model wrote a body for an umbrella that has one; its own text stays")
        body = None
    if body is not None:
        body = cleaned_text(body)
        if not body.strip():
            body = None
        elif estimate_tokens(body) > MAX_BODY_TOKENS or body.count("\n") >= MAX_BODY_LINES:
            notes.append(
                f"the model's body is left out: it passes {MAX_BODY_LINES} lines or {MAX_BODY_TOKENS:,} tokens, "
                "which an agent should not have to read at once"
            )
            body = None
    if why := screen(description, "description", before=_described(question)):
        bad.append(f"the description cannot be written: {why}")
    if why := screen(overview):
        bad.append(f"the overview cannot be written: {why}")
    if body is not None and (why := screen(_own_words(body, question))):
        bad.append(f"the body cannot be written: {why}")
    if key is None:
        return None
    return Decision(
        umbrella=key,
        existing=question.existing,
        members=tuple(members),
        description=description,
        overview=overview,
        body=body,
        reason=question.why,
        notes=tuple(notes),
    )


def _new_key(
    name: str, question: MergeQuestion, layout: Layout, taken: Mapping[str, str], screen: Screen
) -> tuple[SkillKey | None, str]:
    """Return the key of a new umbrella that the model calls *name*, and a note; None with the reason: it may not."""
    mended = valid_name(name, layout)
    if mended is None or screen(mended.replace("-", " "), "description"):
        return None, f"no skill may be called {one_line(name)[:80]!r}"
    free = free_name(mended, [other for other in taken if other != question.label])
    note = f"the umbrella is called `{free}`: {one_line(name)[:80]!r} is taken or not valid" if free != name else ""
    folder = question.umbrella.rel.rpartition("/")[0]
    rel = RelPath(f"{folder}/{free}" if folder else free)
    return SkillKey(library=question.umbrella.library, rel=rel), note


def _described(question: MergeQuestion) -> str:
    """Return the descriptions that the umbrella's is made of."""
    cards = [card for card, _ in question.members] + ([question.card] if question.card is not None else [])
    return "\n".join(card.description for card in cards)


def _own_words(body: str, question: MergeQuestion) -> str:
    """Return the lines of *body* that are the model's own: what stands in a member has been there before."""
    known: set[str] = set()
    for _, package in question.members:
        text = getattr(package.text, "body", "")
        known.update(line.strip() for line in text.splitlines())
    return "\n".join(line for line in body.splitlines() if line.strip() not in known)
