"""
What becomes of an operation that a model proposed: a change, a lesson that waits, or a refusal.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from curatord.core.cheap import dataclass
from curatord.core.plan import CreateSkill, Patch, WriteSupportFile
from curatord.core.settings import DistilSettings

__all__ = ["Candidate", "Caps", "Change", "Decision", "Refused", "RefusedCode"]

RefusedCode: TypeAlias = Literal[
    "evidence",  # it cites nothing that was said
    "unknown",  # no skill has that name, or several have
    "locked",  # the skill may not be changed
    "match",  # what it would replace is not there, or not once
    "header",  # it would change more of a header than the description
    "nothing",  # it changes nothing
    "path",  # not a place for a support file
    "exists",  # a file stands there and would lose lines
    "size",  # it would be too large
    "name",  # not a name for a skill
    "taken",  # a skill of that name, or one that looks like it, is there
    "shadowed",  # the host finds a skill of that name elsewhere
    "archived",  # a skill of that name is in the archive
    "similar",  # it is too like another
    "candidate",  # the skill that it is for is only noted
    "cap",  # as many as may be are there
    "form",  # it breaks the specification
    "screen",  # it holds what may not be written
    "redacted",  # it would write the mark of a secret that was taken out
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How many new skills there may be; what of it is used stands in the `LibraryView`."""

    create_after_sessions: int = 2
    max_managed_skills: int = 50
    max_new_per_day: int = 3

    @classmethod
    def of(cls, settings: DistilSettings) -> Caps:
        """Return the caps that *settings* say."""
        return cls(
            create_after_sessions=settings.create_after_sessions,
            max_managed_skills=settings.max_managed_skills,
            max_new_per_day=settings.max_new_per_day,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    One action on one skill.

    *wait*: why it must be a proposal, in words; None: it is applied. *summary* is one plain line (`patched deploy-kit:
    …`), *evidence* the ids of the rows that were cited, *reason* the model's own. *candidate* is the id of the lesson
    that a new skill settles.
    """

    action: Patch | CreateSkill | WriteSupportFile
    wait: str | None
    summary: str
    reason: str = ""
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    candidate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """
    A new skill that too few sessions spoke for: *sessions* of *sessions_needed*, this one among them if it cites
    *evidence*.
    """

    id: str
    name: str
    description: str
    content_sha256: str
    sessions: int
    sessions_needed: int
    summary: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An operation that is not done, and why. *skill* is the name as the model wrote it, made harmless to look at."""

    op: Literal["patch", "create", "write_file"]
    skill: str
    code: RefusedCode
    reason: str

    @property
    def outcome(self) -> Literal["cap", "skipped", "invalid"]:
        """The outcome word of a session of which this is all that came: a cap, a rule of ours, or a bad reply."""
        if self.code == "cap":
            return "cap"
        return (
            "skipped"
            if self.code in ("locked", "taken", "shadowed", "archived", "similar", "nothing", "candidate")
            else "invalid"
        )

    @property
    def summary(self) -> str:
        """One plain line."""
        return f"refused {self.op} of {self.skill}: {self.reason}"


Decision: TypeAlias = Change | Candidate | Refused
