"""One scan over homes of several hosts."""

from __future__ import annotations

from pathlib import Path

from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.resolve import HostResolvers, KnownLibrary, KnownSkill
from curatord.core.values import LibraryName, RelPath
from tests.claude_log import Log
from tests.hermes_home import HermesHome, slash
from tests.scanned import Scanner


def test_hermes_claude_code_and_a_log_of_ones_own(tmp_path: Path) -> None:
    """All are read in one go, each event finds its library, and a second scan reads nothing."""
    hermes = HermesHome(tmp_path / ".hermes")
    hermes.session("h")
    hermes.user("h", slash("foo", folder=str(tmp_path / ".hermes/skills/writing")))
    hermes.calls("h", "skill_view", {"success": True, "content": "x"}, name="bar")
    hermes.close()
    log = Log("c")
    call = log.call("Skill", skill="foo")
    log.result(call, "Launching skill: foo", outcome={"success": True, "commandName": "foo"})
    projects = tmp_path / ".claude" / "projects" / "-w"
    projects.mkdir(parents=True)
    (projects / "c.jsonl").write_text("".join(line + "\n" for line in log.lines))
    own = tmp_path / "own"
    own.mkdir()
    (own / "o.jsonl").write_text('{"role": "assistant", "skill": "bar"}\n')
    scanner = Scanner(
        tmp_path / "state",
        ("hermes", tmp_path / ".hermes"),
        ("claude-code", tmp_path / ".claude" / "projects"),
        ("jsonl", own),
    ).scan()
    skills = (KnownSkill(rel=RelPath("foo")), KnownSkill(rel=RelPath("bar")))
    resolve = HostResolvers(
        [
            KnownLibrary(
                name=LibraryName("hermes"),
                path=str(tmp_path / ".hermes/skills"),
                host="hermes",
                skills=(KnownSkill(rel=RelPath("writing/foo")), KnownSkill(rel=RelPath("bar"))),
            ),
            KnownLibrary(
                name=LibraryName("claude"), path=str(tmp_path / ".claude/skills"), host="claude-code", skills=skills
            ),
        ],
        home=str(tmp_path),
    )

    events = IngestQueries(scanner.database).events(resolve=resolve)
    assert {
        ("hermes", "foo", "hermes"),
        ("hermes", "bar", "hermes"),
        ("claude-code", "foo", "claude"),
        ("jsonl", "bar", None),
    } == {(event.host, event.skill, event.library) for event in events}
    assert [] == scanner.notes
    assert [0, 0, 0] == [source.changed for source in scanner.scan().report.sources]
    scanner.close()
