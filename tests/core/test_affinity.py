"""A source speaks of the libraries it was given, else of its host's, else of all."""

from __future__ import annotations

import pytest

from curatord.core.affinity import libraries_of
from curatord.core.settings import LibrarySettings, SourceSettings

CLAUDE = LibrarySettings(name="claude", path="/home/u/.claude/skills")
HERMES = LibrarySettings(name="hermes", path="/data/skills", host="hermes")
TEAM = LibrarySettings(name="team", path="/srv/team")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (SourceSettings(host="claude-code"), ("claude",)),
        (SourceSettings(host="hermes"), ("hermes",)),
        (SourceSettings(host="codex"), ("claude", "hermes", "team")),
        (SourceSettings(host="codex", libraries=("team",)), ("team",)),
        (SourceSettings(host="codex", libraries=()), ()),
    ],
)
def test_a_source_speaks_of_its_libraries(source: SourceSettings, names: tuple[str, ...]) -> None:
    """The configuration's word goes first, an empty list included."""
    assert names == libraries_of(source, [CLAUDE, HERMES, TEAM])
