"""The gate and the writer with the real library reader: ownership as it stands on disk at that moment."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from curatord.adapters.decisions import DecisionsFile
from curatord.adapters.library import DiskLibrary
from curatord.adapters.mutate import FileMutator
from curatord.adapters.standing import LibraryStandings, site_of
from curatord.adapters.store import open_database
from curatord.adapters.store.curation import SqliteCurationStore
from curatord.core.journal import JournalEntry
from curatord.core.plan import Adopt, Applied, Archive, Disown, FileChange, Patch, Plan, Skipped, validate
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, LibraryName, RelPath, SkillKey
from curatord.passes.apply import Applier
from curatord.passes.undo import restore, undo
from tests.curation_home import NOW, tree
from tests.fakes.package_cache import MemoryCache

LIB = LibraryName("hermes")
SKILLS = ("cat/mine", "cat/agents", "bundled", "hub/one", "old-agents", "odd")


def key(rel: str) -> SkillKey:
    return SkillKey(library=LIB, rel=RelPath(rel))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "skills"
    for rel in SKILLS:
        (root / rel).mkdir(parents=True)
        name = "another-name" if rel == "odd" else rel.rpartition("/")[2]
        (root / rel / "SKILL.md").write_text(f"---\nname: {name}\ndescription: does {rel}\n---\nbody\n")
    usage = {
        "mine": {"created_by": None}, "agents": {"created_by": "agent"}, "old-agents": {"agent_created": True},
        "bundled": {"created_by": "agent"}, "one": {"created_by": "agent"}, "another-name": {"created_by": "agent"},
    }  # fmt: skip
    (root / ".usage.json").write_text(json.dumps(usage, indent=2, sort_keys=True))
    (root / ".bundled_manifest").write_text(f"bundled:{0:032x}\n")
    (root / ".hub").mkdir()
    (root / ".hub/lock.json").write_text(json.dumps({"version": 1, "installed": {"one": {"install_path": "hub/one"}}}))
    return root


def applier(root: Path, tmp_path: Path, mutator: Any = FileMutator) -> Applier:
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    settings = LibrarySettings(name=LIB, path=str(root), host="hermes")
    library = DiskLibrary(settings, MemoryCache())
    store = SqliteCurationStore(database=open_database(state, now=NOW))
    store.put_skills(SkillRecord(key=key(rel), state_since=NOW, first_seen_at=NOW, born_at=NOW) for rel in SKILLS)
    look = LibraryStandings(
        libraries={LIB: library}, settings={LIB: settings}, record_of=store.skill, observed=lambda _: ()
    )
    sites = {LIB: site_of(library.look(), settings)}
    numbers = itertools.count(1)
    return Applier(
        mutator=mutator(state_dir=state, sites=sites, licence=look, wait_s=0.2),
        store=store,
        decisions=DecisionsFile(state_dir=state),
        look=look,
        sites=sites,
        new_id=lambda: ActionId(f"a{next(numbers)}"),
    )


def archive(gate: Applier, rel: str) -> Archive:
    return Archive(key=key(rel), reason="r", expected=gate.standings([key(rel)])[key(rel)].fingerprint)


@pytest.mark.parametrize(
    ("rel", "outcome"),
    [
        ("cat/agents", "applied"),
        ("old-agents", "applied"),
        ("cat/mine", "unmanaged"),
        ("bundled", "unmanaged"),
        ("hub/one", "unmanaged"),
        ("odd", "broken"),
    ],
)
def test_only_what_was_handed_over_changes(root: Path, tmp_path: Path, rel: str, outcome: str) -> None:
    """Agent-made skills are archived; hand-made, bundled, hub-installed and odd ones are not, whoever asks."""
    gate = applier(root, tmp_path)
    before = tree(root)

    done = gate.apply(archive(gate, rel), now=NOW)

    if outcome == "applied":
        assert isinstance(done, Applied), done
        assert (root / ".archive" / rel.rpartition("/")[2] / "SKILL.md").exists()
        assert isinstance(restore(gate, rel.rpartition("/")[2], now=NOW), Applied)
        assert (root / rel / "SKILL.md").exists()
    else:
        assert isinstance(done, Skipped), done
        assert outcome == done.code
        assert before == tree(root)


@pytest.mark.parametrize("file", [".usage.json", ".bundled_manifest", ".hub/lock.json"])
def test_an_unreadable_ownership_file_protects_everything(root: Path, tmp_path: Path, file: str) -> None:
    """What cannot be judged is not touched, also when the file broke between plan and apply."""
    gate = applier(root, tmp_path)
    action = archive(gate, "cat/agents")
    (root / file).write_bytes(b"\xff{\x00")
    before = tree(root)

    done = gate.apply(action, now=NOW)

    assert isinstance(done, Skipped), done
    assert done.code in ("unmanaged", "unreadable")
    assert before == tree(root)


def test_adoption_hands_over_and_disowning_takes_back(root: Path, tmp_path: Path) -> None:
    """A hand-made skill is archived once its user adopted it, and no more once it was taken back."""
    gate = applier(root, tmp_path)
    assert isinstance(gate.apply(Adopt(key=key("cat/mine"), reason="", by="user"), now=NOW), Applied)
    done = gate.apply(archive(gate, "cat/mine"), now=NOW)
    assert isinstance(done, Applied), done
    assert isinstance(undo(gate, done.entry.action_id, now=NOW)[0], Applied)

    gate.apply(Disown(key=key("cat/mine"), reason="", by="user"), now=NOW)
    refused = gate.apply(archive(gate, "cat/mine"), now=NOW)

    assert isinstance(refused, Skipped)
    assert "unmanaged" == refused.code


def test_bundled_and_hub_skills_cannot_be_adopted(root: Path, tmp_path: Path) -> None:
    """Protection is nothing that a user's word opens."""
    gate = applier(root, tmp_path)
    for rel in ("bundled", "hub/one", "odd"):
        assert isinstance(gate.apply(Adopt(key=key(rel), reason="", by="user"), now=NOW), Skipped)
    assert {} == gate.decisions.load().skills


def test_the_trusted_content_is_what_we_wrote(root: Path, tmp_path: Path) -> None:
    """After a patch of ours the record trusts the new content, so that it does not look like a hand edit."""
    gate = applier(root, tmp_path)
    text = b"---\nname: agents\ndescription: better\n---\nbody\n"
    action = Patch(
        key=key("cat/agents"), reason="r", by="model", files=(FileChange(path=RelPath("SKILL.md"), content=text),),
        expected=gate.standings([key("cat/agents")])[key("cat/agents")].fingerprint,
    )  # fmt: skip

    assert isinstance(gate.apply(action, now=NOW), Applied)

    record = gate.store.skill(key("cat/agents"))
    assert record is not None
    assert gate.look([key("cat/agents")])[key("cat/agents")].fingerprint == record.trusted_fingerprint


class RefusingMutator(FileMutator):
    """Reads like the real one and fails on the first thing that writes or locks: the proof of a dry run."""

    def hold(self, site: object) -> NoReturn:
        raise AssertionError("a dry run took a lock")

    def begin(self, entry: JournalEntry, blobs: Iterable[bytes]) -> NoReturn:
        raise AssertionError("a dry run began an action")


def test_a_dry_run_asks_everything_and_writes_nothing(root: Path, tmp_path: Path) -> None:
    """Validation and `would_skip` answer from disk without a lock or a byte written."""
    gate = applier(root, tmp_path, RefusingMutator)
    before = tree(tmp_path)
    good, bad = archive(gate, "cat/agents"), archive(gate, "bundled")

    found = validate(Plan(actions=(good, bad)), gate.standings([good.key, bad.key]))

    assert [(1, "unmanaged")] == [(violation.index, violation.code) for violation in found]
    assert gate.would_skip(good) is None
    assert gate.would_skip(bad) is not None
    after = tree(tmp_path)
    assert {p: w for p, w in before.items() if "curatord.db" not in p} == {
        p: w for p, w in after.items() if "curatord.db" not in p
    }
    with pytest.raises(AssertionError, match="a dry run"):
        gate.apply(good, now=NOW)
