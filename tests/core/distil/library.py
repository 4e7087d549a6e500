"""Builders of libraries and decisions, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from curatord.core.distil.candidates import KeptCandidate
from curatord.core.distil.decide import decide
from curatord.core.distil.decision import Candidate, Caps, Change, Decision, Refused
from curatord.core.distil.digest import Digest
from curatord.core.distil.view import LibraryView, SkillView
from curatord.core.distil.wishes import Wishes, parse_wishes
from curatord.core.header import Fault
from curatord.core.names import Layout
from curatord.core.replies import Create, DistilReply, Operation, Patch, WriteFile
from curatord.core.skill import parse_skill
from curatord.core.values import Fingerprint, LibraryName, Mode, RelPath, SkillKey
from tests.core.distil.conversation import digest_of, said

__all__ = [
    "DIGEST",
    "LIB",
    "NOW",
    "WISHES",
    "a_create",
    "a_library",
    "a_patch",
    "a_skill",
    "a_write",
    "decided",
    "only",
]

LIB = LibraryName("claude")
NOW = datetime(2026, 9, 1, tzinfo=UTC)
WISHES = parse_wishes("keep this as a skill: NAME\nremember this for next time")
DEPLOY = b"""---
name: deploy-kit
description: Deploys the web service by hand. Use when a release goes out.
license: MIT
---

# Deploy

1. Build the image.
2. Push it.
3. Wait for the health check.

```bash
make image
```
"""
DIGEST = digest_of(
    said("user", "Deploy it, and wait for the health check twice.", 1),
    said("assistant", "Done. The second health check was needed.", 2, ("Bash", "make image")),
    said("error", "health check failed", 3),
    said("user", "Good.", 4),
    wishes=WISHES,
)


def a_skill(name: str = "deploy-kit", text: bytes | None = DEPLOY, **changes: Any) -> SkillView:
    """Return a skill that may be changed, but for *changes*; one whose text was not read is described all the same."""
    parsed = parse_skill(text or DEPLOY)
    assert not isinstance(parsed, Fault)
    usual: dict[str, Any] = {
        "key": SkillKey(library=LIB, rel=RelPath(name)), "description": parsed.description,
        "when_to_use": parsed.when_to_use, "body": parsed.body, "text": text, "fingerprint": Fingerprint("f" * 64),
    }  # fmt: skip
    return SkillView(**(usual | changes))


def a_library(*skills: SkillView, layout: Layout = "agent-skills", **changes: Any) -> LibraryView:
    """Return a library of *skills*, the one deploy-kit by default, of which something was handed over."""
    usual: dict[str, Any] = {"library": LIB, "layout": layout, "skills": skills or (a_skill(),), "handed_over": True}
    return LibraryView(**(usual | changes))


def a_patch(old: str = "2. Push it.", new: str = "2. Push it, twice.", **changes: Any) -> Patch:
    """Return a patch of deploy-kit with evidence."""
    return Patch(
        **({"skill": "deploy-kit", "old": old, "new": new, "reason": "push twice", "evidence": ("r1",)} | changes)
    )


def a_write(
    path: str = "references/health.md", content: str = "# Health\n\nWait twice.\n", **changes: Any
) -> WriteFile:
    """Return a support file for deploy-kit with evidence."""
    return WriteFile(
        **(
            {"skill": "deploy-kit", "path": path, "content": content, "reason": "details", "evidence": ("r2",)}
            | changes
        )
    )


def a_create(skill: str = "rollback-db", **changes: Any) -> Create:
    """Return a new skill that is like no other, with evidence."""
    usual: dict[str, Any] = {
        "skill": skill,
        "description": "Rolls a database migration back safely.",
        "when_to_use": "Use when a migration has failed half-way.",
        "content": "# Rollback\n\n1. Stop the writers.\n2. Run the down migration.\n3. Compare the row counts.\n",
        "reason": "a failed migration was rolled back",
        "evidence": ("r1", "r2"),
    }
    return Create(**(usual | changes))


def decided(
    *operations: Operation,
    view: LibraryView | None = None,
    digest: Digest = DIGEST,
    candidates: Sequence[KeptCandidate] = (),
    lineage: str = "session-1",
    mode: Mode = Mode.GUARDED,
    caps: Caps | None = None,
    wishes: Wishes = WISHES,
    now: datetime = NOW,
    simple: bool = False,
) -> tuple[Decision, ...]:
    """Return what becomes of *operations*."""
    return decide(
        DistilReply(operations=operations),
        digest=digest,
        view=view or a_library(),
        candidates=candidates,
        lineage=lineage,
        mode=mode,
        caps=caps or Caps(),
        wishes=wishes,
        now=now,
        simple=simple,
    )


def only(decisions: tuple[Decision, ...]) -> Any:
    """Return the one decision there is."""
    (decision,) = decisions
    assert isinstance(decision, Change | Candidate | Refused)
    return decision


def files_of(change: Change) -> Mapping[str, bytes]:
    """Return the files that a change writes, by path."""
    return {str(file.path): file.content for file in change.action.files}
