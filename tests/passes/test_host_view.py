"""What a host says of a skill, as one look puts it together."""

from __future__ import annotations

import pytest

from curatord.core.hermes_files import UsageRow
from curatord.core.library import LibrarySnapshot, Skill, SkillContent
from curatord.core.ownership import OwnershipFacts
from curatord.core.settings import LibrarySettings
from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.passes.host_view import HostWords

LIB = LibraryName("lib")


@pytest.mark.parametrize(("header", "pinned"), [(None, False), ("", False), ("other", False), ("greeting", True)])
def test_a_pin_holds_for_the_name_it_is_kept_by(header: str | None, pinned: bool) -> None:
    """One under a blank name is nobody's, also where a header has no name."""
    key = SkillKey(library=LIB, rel=RelPath("greet"))
    skill = Skill(key=key, path="/lib/greet", form="folder", content=SkillContent(header_name=header))
    words = HostWords(
        settings=LibrarySettings(name="lib", path="/lib", manage="owned"),
        snapshot=LibrarySnapshot(
            library=LIB, root="/lib", real_root="/lib", layout="hermes", archive="/lib/.archive", skills=(skill,)
        ),
        facts=OwnershipFacts(usage={name: UsageRow(pinned=True) for name in ("", "greeting")}),
        named={},
    )

    assert pinned == words.standing(skill, None).host_pinned
