"""
What the libraries' hosts say of them, put together for one look: whose skills are, what was counted, what is named.

Only Hermes keeps such files. For any other library ownership still speaks (installers, links, what a person decided),
and live skills of all libraries may name each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from curatord.core.cheap import dataclass
from curatord.core.hermes_files import HermesFacts, LedgerEntry
from curatord.core.library import LibrarySnapshot, Skill
from curatord.core.ownership import OwnershipFacts, decide, ledger_explains, usage_of
from curatord.core.references import Reference
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import SkillRecord
from curatord.core.usage import HostCounters
from curatord.core.values import SkillKey
from curatord.passes.look import Standings

__all__ = ["HostWords"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWords:
    """
    Fills the port `passes.look.HostView`.

    Attributes:
        settings, snapshot: The library and what one look found in it.
        facts: What is known from outside about whose its skills are.
        hermes: What its Hermes home says, None for another host's library.
        ledger: The host's record of changes since a time.
        named: Why skills of this library are needed, for those that are named.
        notes: Further warnings about this library, in words.
    """

    settings: LibrarySettings
    snapshot: LibrarySnapshot
    facts: OwnershipFacts
    hermes: HermesFacts | None = None
    ledger: Callable[[datetime], Iterable[LedgerEntry]] | None = None
    named: Mapping[SkillKey, tuple[Reference, ...]]
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> Sequence[str]:
        """What could not be read or is odd, in words."""
        found = [*self.facts.unjudged, *self.notes]
        if self.hermes is not None:
            found += self.hermes.warnings
            if self.hermes.schedule_unreadable is not None:
                found.append(self.hermes.schedule_unreadable)
            if self.hermes.config.curator_enabled and not self.hermes.curator.paused:
                found.append(
                    "Hermes' own curator works on it too and may archive what curatord would keep; "
                    "`hermes curator pause`, or `host_curator: pause` here, leaves it to one of them"
                )
        return [f"library {self.settings.name}: {words}" for words in dict.fromkeys(found)]

    @property
    def doubts(self) -> Sequence[str]:
        """Why nothing of the library may be aged at all, in words."""
        unreadable = self.hermes.schedule_unreadable if self.hermes is not None else None
        return [] if unreadable is None else [f"whom the schedule names is not known: {unreadable}"]

    def standing(self, skill: Skill, record: SkillRecord | None) -> Standings:
        """Return whose *skill* is."""
        answer = decide(skill, self.facts, record, self.settings)
        # Where several skills share the name that the host's record is about, its pin holds for each of them.
        usage, pinned = self.facts.usage, False
        if usage:
            header = skill.content.header_name
            named, headed = usage.get(skill.name), usage.get(header) if header else None
            pinned = (named is not None and named.pinned) or (headed is not None and headed.pinned)
        return Standings(
            managed=answer.managed,
            why=answer.why,
            protected=answer.why if answer.protected else None,
            host_pinned=pinned,
        )

    def birth(self, skill: Skill) -> datetime | None:
        """Return when the host's ledger says that *skill* was made."""
        row = usage_of(skill, self.facts)
        return row.created_at if row is not None else None

    def counters(self) -> Mapping[SkillKey, HostCounters]:
        """Return what the host counted for itself, of the library's skills that it counted anything of."""
        found: dict[SkillKey, HostCounters] = {}
        for skill in self.snapshot.skills if self.facts.usage else ():
            row = usage_of(skill, self.facts)
            if row is not None and (row.use_count or row.view_count or row.patch_count or row.last_activity_at):
                found[skill.key] = HostCounters(
                    host="hermes",
                    use=row.use_count,
                    view=row.view_count,
                    patch=row.patch_count,
                    last_used_at=row.last_used_at,
                    last_viewed_at=row.last_viewed_at,
                    last_patched_at=row.last_patched_at,
                )
        return found

    def changes(self, skill: Skill, since: datetime) -> Sequence[datetime]:
        """Return when the host's own ledger or counters say that *skill* was changed, at or after *since*."""
        times = ledger_explains(self.ledger(since), skill) if self.ledger is not None else []
        row = usage_of(skill, self.facts)
        patched = row.last_patched_at if row is not None else None
        return [*times, patched] if patched is not None and patched >= since else times

    def archived_at(self) -> Mapping[str, datetime]:
        """Return when the host says that it archived which name."""
        rows = self.hermes.usage if self.hermes is not None else {}
        return {name: row.archived_at for name, row in rows.items() if row.archived_at is not None}

    def references(self) -> Mapping[SkillKey, str]:
        """Return which skills of this library are named, with who names them in words."""
        return {
            key: " and ".join(reference.words for reference in references[:2])
            + (f" and {len(references) - 2} more" if len(references) > 2 else "")
            for key, references in self.named.items()
            if key.library == self.snapshot.library and references
        }
