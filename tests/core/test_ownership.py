"""Whose a skill is: the whole table, the words, and what counts as edited by hand."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from curatord.core.cheap import replace
from curatord.core.hermes_files import HermesFacts, HubEntry, LedgerEntry, UsageRow
from curatord.core.library import LibraryProblem, LibrarySnapshot, Skill, SkillContent
from curatord.core.ownership import (
    HandEdit,
    OwnershipFacts,
    decide,
    hand_edited,
    ledger_explains,
    ownership_facts,
    usage_of,
)
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import Owner, SkillRecord
from curatord.core.values import Fingerprint, LibraryName, RelPath, SkillKey

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIB = LibraryName("lib")
MINE = Fingerprint("a" * 64)
OTHER = Fingerprint("b" * 64)


def a_skill(rel: str = "greet", **changes: Any) -> Skill:
    """Return a sound skill at *rel* with *changes* of its fields; those of its content may be given too."""
    content_fields = {
        name: changes.pop(name) for name in list(changes) if name in SkillContent.__struct_fields__ and name != "broken"
    }
    content = replace(SkillContent(entry_file="SKILL.md", fingerprint=MINE), **content_fields)
    key = SkillKey(library=LIB, rel=RelPath(rel))
    return Skill(key=key, path=f"/lib/{rel}", form="folder", content=content, **changes)


def a_record(owner: Owner | None) -> SkillRecord:
    """Return a record of the skill with *owner*."""
    return SkillRecord(
        key=SkillKey(library=LIB, rel=RelPath("greet")), state_since=NOW, first_seen_at=NOW, born_at=NOW, owner=owner
    )


def settings(manage: Literal["none", "owned", "all"]) -> LibrarySettings:
    """Return the settings of the library."""
    return LibrarySettings(name="lib", path="/lib", manage=manage)


def a_snapshot(*skills: Skill, problems: tuple[LibraryProblem, ...] = ()) -> LibrarySnapshot:
    """Return a snapshot of *skills*."""
    return LibrarySnapshot(
        library=LIB, root="/lib", real_root="/lib", layout="hermes", archive="/lib/.archive", skills=skills,
        problems=problems,
    )  # fmt: skip


AGENT = {"greet": UsageRow(created_by="agent")}
PROTECTIONS: dict[str, tuple[Skill, OwnershipFacts]] = {
    "broken": (a_skill(broken="line 3: no"), OwnershipFacts()),
    "unjudged": (a_skill(), OwnershipFacts(unjudged=(".usage.json cannot be read",))),
    "observed": (a_skill(), OwnershipFacts(observed=("/lib cannot be written",))),
    "link": (a_skill(link_target="/else/greet"), OwnershipFacts()),
    "external": (a_skill(external="an external folder (configuration)"), OwnershipFacts()),
    "vcs": (a_skill(foreign_vcs="it is under a version control of its own (`.git`)"), OwnershipFacts()),
    "plugin": (a_skill(), OwnershipFacts(plugin="it is part of a plugin")),
    "hub": (a_skill(), OwnershipFacts(hub={"greet": "it was installed from a hub (x)"})),
    "bundled": (a_skill(), OwnershipFacts(bundled={"greet": "it came with Hermes"})),
}
LICENCES: dict[tuple[str, Owner | None, bool], str | None] = {
    # (manage, owner, agent-made by the host's record) -> licence
    ("none", None, False): None,
    ("none", None, True): None,
    ("none", "curatord", False): None,
    ("none", "curatord", True): None,
    ("none", "adopted", False): None,
    ("none", "adopted", True): None,
    ("none", "disowned", False): None,
    ("none", "disowned", True): None,
    ("owned", None, False): None,
    ("owned", None, True): "host",
    ("owned", "curatord", False): "curatord",
    ("owned", "curatord", True): "curatord",
    ("owned", "adopted", False): "adopted",
    ("owned", "adopted", True): "adopted",
    ("owned", "disowned", False): None,
    ("owned", "disowned", True): None,
    ("all", None, False): "all",
    ("all", None, True): "all",
    ("all", "curatord", False): "curatord",
    ("all", "curatord", True): "curatord",
    ("all", "adopted", False): "adopted",
    ("all", "adopted", True): "adopted",
    ("all", "disowned", False): None,
    ("all", "disowned", True): None,
}


@pytest.mark.parametrize("case", LICENCES, ids=str)
def test_licences(case: tuple[Literal["none", "owned", "all"], Owner | None, bool]) -> None:
    """Every combination of what the library hands over, what the user said and what the host says."""
    manage, owner, agent_made = case
    record = None if owner is None else a_record(owner)
    found = decide(a_skill(), OwnershipFacts(usage=AGENT if agent_made else {}), record, settings(manage))

    assert (LICENCES[case], LICENCES[case] is not None, None) == (found.licence, found.managed, found.protection)
    assert found.why


@pytest.mark.parametrize(
    ("protection", "manage", "owner"),
    list(itertools.product(PROTECTIONS, ["none", "owned", "all"], [None, "curatord", "adopted", "disowned"])),
)
def test_protected_whatever_else_is_said(
    protection: str, manage: Literal["none", "owned", "all"], owner: Owner | None
) -> None:
    """No setting, adoption or record opens a protected skill (bugs B046, B047, B050)."""
    skill, facts = PROTECTIONS[protection]
    found = decide(skill, replace(facts, usage=AGENT), a_record(owner), settings(manage))

    assert (False, protection, None, True) == (found.managed, found.protection, found.licence, found.protected)


def test_the_table_is_whole() -> None:
    """The table above has a row for each combination."""
    owners: list[Owner | None] = [None, "curatord", "adopted", "disowned"]

    assert set(itertools.product(["none", "owned", "all"], owners, [False, True])) == set(LICENCES)


@pytest.mark.parametrize(
    ("row", "managed"),
    [
        (UsageRow(created_by="agent"), True),
        (UsageRow(agent_created=True), True),
        (UsageRow(created_by=None), False),
        (UsageRow(created_by="installed"), False),
        (UsageRow(created_by="user", agent_created=False), False),
        (None, False),
    ],
)
def test_only_the_hosts_marker_hands_over(row: UsageRow | None, managed: bool) -> None:
    """No marker, a null one or another one is the user's own skill (bugs B052)."""
    facts = OwnershipFacts(usage={} if row is None else {"greet": row})

    assert managed is decide(a_skill(), facts, None, settings("owned")).managed


def test_records_are_found_by_either_spelling() -> None:
    """Hermes keys by the header's name, which may be spelled otherwise than the folder's."""
    skill = a_skill("my-skill", header_name="My Skill")

    assert (
        "host"
        == decide(
            skill, OwnershipFacts(usage={"My Skill": UsageRow(created_by="agent")}), None, settings("owned")
        ).licence
    )
    assert decide(skill, OwnershipFacts(bundled={"My Skill": "b"}), None, settings("all")).protected
    assert decide(skill, OwnershipFacts(bundled={"my-skill": "b"}), None, settings("all")).protected


def test_a_shared_name_is_no_licence() -> None:
    """Where two skills have one name, the host's record by name says nothing of either; protection holds for both."""
    one, two = a_skill("a/greet"), a_skill("b/greet")
    facts = ownership_facts(a_snapshot(one, two), HermesFacts(home="/h", usage=AGENT))
    found = decide(one, facts, None, settings("owned"))
    bundled = ownership_facts(a_snapshot(one, two), HermesFacts(home="/h", bundled=frozenset({"greet"})))

    assert (False, None) == (found.managed, usage_of(one, facts))
    assert "several skills share its name" in found.why
    assert ["bundled", "bundled"] == [decide(skill, bundled, None, settings("all")).protection for skill in (one, two)]


def test_hub_protects_by_key_path_and_header() -> None:
    """The lock's key, whatever lies at or below its path, and the header name found there are protected."""
    at_path = a_skill("tools/x", header_name="Tool X")
    below = a_skill("pack/inner")
    namesake = a_skill("copy", header_name="Tool X")
    by_key = a_skill("y")
    free = a_skill("z")
    hub = (
        HubEntry(name="tool", source="s", install_path="tools/x"),
        HubEntry(name="y", source="s", install_path=None),
        HubEntry(name="pack", source="s", install_path="pack"),
    )
    facts = ownership_facts(a_snapshot(at_path, below, namesake, by_key, free), HermesFacts(home="/h", hub=hub))

    assert ["hub", "hub", "hub", "hub", None] == [
        decide(skill, facts, None, settings("all")).protection for skill in (at_path, below, namesake, by_key, free)
    ]


def test_markers_in_the_package() -> None:
    """A package that says itself where it was installed from is not the user's."""
    found = decide(a_skill(installed_by="part of a plugin (x)"), OwnershipFacts(), None, settings("all"))

    assert ("plugin", "it is part of a plugin (x)") == (found.protection, found.why)


def test_facts_of_a_library_with_problems() -> None:
    """Unreadable ownership files and a read-only library protect every skill; notes protect none."""
    note = LibraryProblem(library=LIB, code="odd-entry", words="n", severity="note")
    observe = LibraryProblem(library=LIB, code="read-only", words="/lib cannot be written", severity="observe")
    unreadable = HermesFacts(home="/h", protected=(".usage.json cannot be read",), usage=AGENT)

    assert decide(a_skill(), ownership_facts(a_snapshot(a_skill(), problems=(note,))), None, settings("all")).managed
    assert (
        "observed"
        == decide(
            a_skill(), ownership_facts(a_snapshot(a_skill(), problems=(observe,))), None, settings("all")
        ).protection
    )
    assert (
        "unjudged"
        == decide(a_skill(), ownership_facts(a_snapshot(a_skill()), unreadable), None, settings("all")).protection
    )


# --- Edited by hand ---------------------------------------------------------------------------------------------------

AT = NOW - timedelta(days=10)


def edited(written: datetime | None, *explanations: datetime, trusted: Fingerprint | None = OTHER) -> HandEdit | None:
    """Return the answer for a skill whose content is not what was trusted at AT."""
    newest = 0 if written is None else int(written.timestamp()) * 1_000_000_000
    return hand_edited(a_skill(newest_ns=newest), trusted=trusted, trusted_at=AT, explanations=explanations)


def test_the_same_content_is_no_edit() -> None:
    """What was trusted and is still there was not edited, whatever its times."""
    assert None is edited(NOW, trusted=MINE)


def test_first_sight_is_no_edit() -> None:
    """A skill that was never trusted has nothing to differ from."""
    assert None is edited(NOW, trusted=None)


def test_an_unexplained_change_is_a_hand_edit() -> None:
    """Other content without any patch seen is the user's."""
    assert isinstance(edited(NOW), HandEdit)
    assert isinstance(edited(None), HandEdit)


@pytest.mark.parametrize(
    ("patched_after", "written_after", "by_hand"),
    [(1, 1.001, False), (1, 1.5, False), (1, 3, True), (-1, 1, True), (1, 0.5, False), (0, 0.01, False)],
)
def test_a_patch_explains_what_was_written_with_it(patched_after: float, written_after: float, by_hand: bool) -> None:
    """A patch since the content was trusted explains files written up to an hour after it; in hours."""
    found = edited(AT + timedelta(hours=written_after), AT + timedelta(hours=patched_after))

    assert by_hand is (found is not None)


def test_unreadable_content_counts_as_edited() -> None:
    """Doubt means no change."""
    assert isinstance(hand_edited(a_skill(fingerprint=None), trusted=MINE, trusted_at=AT, explanations=[NOW]), HandEdit)


def test_the_hosts_ledger_explains() -> None:
    """Entries of the skill by name, or by a path within it, count; archives and other skills do not."""

    def entry(action: str, skill: str, path: str) -> LedgerEntry:
        return LedgerEntry(id="1", at=NOW, actor="agent", action=action, skill=skill, after=((path, None),))

    entries = [
        entry("patch", "greet", "/x"),
        entry("write_file", "else", "/lib/greet/references/a.md"),
        entry("patch", "else", "/lib/greeting/SKILL.md"),
        entry("archive", "greet", "/lib/greet/SKILL.md"),
    ]

    assert [NOW, NOW] == ledger_explains(entries, a_skill())
