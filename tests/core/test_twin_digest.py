"""What is kept of twins holds as long as they are found in the same way: `READING` names the way."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.core.library import Skill, SkillContent
from curatord.core.skill_quality import twins_among
from curatord.core.twin_digest import READING, Listed
from curatord.core.values import LibraryName, RelPath, SkillKey


def skills(library: str, **descriptions: str) -> Sequence[Skill]:
    """Return skills by their names; `__` in a name stands for a folder's end."""
    return [
        Skill(
            key=SkillKey(library=LibraryName(library), rel=RelPath(name.replace("__", "/"))),
            path=f"/{library}/{name}",
            form="folder",
            content=SkillContent(description=description),
        )
        for name, description in descriptions.items()
    ]


TEN = "Count the red boats that sail past our old lighthouse"
SAME_60 = "Write the weekly letter to all members of the rowing club in"

LISTED: list[Listed] = [
    (
        "one",
        [
            *skills(
                "left",
                boats=TEN,
                boats_too=f"{TEN.upper()}!",
                nearer=f"{TEN} daily, twice",
                nearest=f"{TEN} daily, twice, thrice",  # to the one before
                enough="Mend torn sails using waxed thread and needles",  # 8 of 10 words are shared
                enough_too="Mend torn sails using waxed thread and needles indoors overnight",
                short="Varnish every oar with three thin coats",  # 7 of 9 are
                short_too="Varnish every oar with three thin coats before June",
                few="Count red boats again now",
                few_too="count red boats, again now",
                six="Tar the seams before every launch",
                six_too="Before every launch, tar the seams",
                letter=f"{SAME_60} spring",
                letter_too=f"{SAME_60}  winter, with pictures of each boat and a list of what was repaired",
                tools__saw="Cut boards to length with the table saw of the workshop",
                étude="Practise the piece that is due on Friday at half speed",
                hyphen="Re-tie the bow-line; don't use v1.2 of the knot-book at sea",
                hyphen_too="re tie the bow line don t use v1 2 of the knot book at sea",
            ),
            *skills("right", Boats="Paint them", other__saw="Sharpen it", ÉTUDE="Something else", blank=""),
        ],
    ),
    ("two", skills("left", boats_three=TEN, boats=TEN)),
    ("three", skills("far", boats=TEN)),
]

FOUND: dict[int, dict[str, list[tuple[str, str]]]] = {
    1: {
        "left/boats": [
            ("same-name-elsewhere", "right/Boats has the same name, and the host only ever takes one of the two"),
            (
                "near-description",
                "its description is nearly that of left/boats_too, so no agent can tell which is meant",
            ),
            (
                "near-description",
                "its description is nearly that of left/boats_three, so no agent can tell which is meant",
            ),
        ],
        "right/Boats": [
            ("same-name-elsewhere", "left/boats has the same name, and the host only ever takes one of the two")
        ],
        "left/tools/saw": [
            ("same-name-elsewhere", "right/other/saw has the same name, and the host only ever takes one of the two")
        ],
        "right/other/saw": [
            ("same-name-elsewhere", "left/tools/saw has the same name, and the host only ever takes one of the two")
        ],
        "left/étude": [
            ("same-name-elsewhere", "right/ÉTUDE has the same name, and the host only ever takes one of the two")
        ],
        "right/ÉTUDE": [
            ("same-name-elsewhere", "left/étude has the same name, and the host only ever takes one of the two")
        ],
        "left/boats_too": [
            ("near-description", "its description is nearly that of left/boats, so no agent can tell which is meant")
        ],
        "left/enough": [
            (
                "near-description",
                "its description is nearly that of left/enough_too, so no agent can tell which is meant",
            )
        ],
        "left/enough_too": [
            ("near-description", "its description is nearly that of left/enough, so no agent can tell which is meant")
        ],
        "left/nearer": [
            ("near-description", "its description is nearly that of left/nearest, so no agent can tell which is meant")
        ],
        "left/nearest": [
            ("near-description", "its description is nearly that of left/nearer, so no agent can tell which is meant")
        ],
        "left/six": [
            ("near-description", "its description is nearly that of left/six_too, so no agent can tell which is meant")
        ],
        "left/six_too": [
            ("near-description", "its description is nearly that of left/six, so no agent can tell which is meant")
        ],
        "left/letter": [
            ("same-start", "its description begins with the same 60 characters as that of left/letter_too")
        ],
        "left/letter_too": [
            ("same-start", "its description begins with the same 60 characters as that of left/letter")
        ],
        "left/boats_three": [
            ("near-description", "its description is nearly that of left/boats, so no agent can tell which is meant")
        ],
    },
}
"""By `READING`. Where twins are found in another way it is raised and its findings are added; none is written anew."""


def test_twins_are_found_in_the_way_that_reading_names() -> None:
    """What users keep from before an update would be believed else, though it is told otherwise now."""
    found = {
        str(key): [(problem.code, problem.words) for problem in problems]
        for key, problems in twins_among(LISTED).items()
    }

    assert READING == max(FOUND)
    assert FOUND[READING] == found
