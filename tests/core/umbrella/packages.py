"""Builders of packages in memory, and strategies for all kinds of them."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from curatord.core.umbrella.decision import Decision, Folding, Taken
from curatord.core.umbrella.links import Ground
from curatord.core.umbrella.packed import Packed, PackedFile
from curatord.core.values import LibraryName, RelPath, SkillKey

LIB = LibraryName("lib")
NOWHERE = Ground(files=frozenset(), packages=frozenset(), moved={}, went={})


def key(rel: str) -> SkillKey:
    """Return the key of a skill."""
    return SkillKey(library=LIB, rel=RelPath(rel))


def a_package(
    rel: str,
    body: str = "# Title\n\nText.\n",
    *,
    description: str = "Use when asked.",
    header: str = "",
    files: Mapping[str, tuple[bytes, int]] | None = None,
    flat: bool = False,
    bom: bool = False,
    eol: str = "\n",
) -> Packed:
    """Return a package; *header* is further lines of its header, *eol* ends the lines of its text."""
    name = rel.rpartition("/")[2]
    text = f"---\nname: {name}\ndescription: {description}\n{header}---\n{body}"
    data = ("\ufeff" if bom else "").encode() + text.replace("\n", eol).encode()
    support = [PackedFile(path=path, data=content, mode=mode) for path, (content, mode) in (files or {}).items()]
    return Packed.of(key(rel), [PackedFile(path="SKILL.md", data=data), *support], flat=flat)


def a_decision(
    umbrella: str, *members: Packed, how: Folding = "reference", existing: bool = False, **more: str
) -> Decision:
    """Return a decision that takes *members* in, all in one way."""
    values = {"description": "Use for all of it.", "overview": "One place.", "reason": "one class"} | more
    return Decision(
        umbrella=key(umbrella),
        existing=existing,
        members=tuple(Taken(key=member.key, how=how, reason="same work") for member in members),
        description=values["description"],
        overview=values["overview"],
        reason=values["reason"],
    )


NAMES = ("csv-fix", "net-kit", "日本語-メモ", "übung", "a.b", "x_y", "con-fig")
FILES = (
    "scripts/run.sh",
    "scripts/lib/deep.py",
    "references/notes.md",
    "references/über uns.md",
    "FORMS.md",
    "assets/logo.bin",
    "templates/base.yaml",
)
_WORDS = ("alpha", "use `run`", "x < y", "- item", "1. step", "| a | b |", "> quote", "**bold**", "e.g. and/or", "…")
_TARGETS = (
    *FILES,
    "./scripts/run.sh",
    "SKILL.md",
    "references/",
    "scripts",
    "missing/file.md",
    "https://example.org/scripts/run.sh",
    "#anchor",
    "../csv-fix/SKILL.md",
    "../net-kit/scripts/run.sh",
    "../other/SKILL.md",
    "../../outside.md",
    "references/%C3%BCber%20uns.md",
)

LINES = st.one_of(
    st.sampled_from(_WORDS),
    st.sampled_from(("", "  ", "# One", "## Two", "###### Six", "####### no heading", "Setext\n===", "Other\n---")),
    st.sampled_from(("```", "```sh", "~~~", "````md", "   ```", "<!-- open", "-->", "<!-- whole -->")),
    st.sampled_from(_TARGETS).map(lambda target: f"see [it]({target}) now"),
    st.sampled_from(_TARGETS).map(lambda target: f"run `bash {target} --all`"),
    st.sampled_from(_TARGETS).map(lambda target: f"[ref]: {target}"),
    st.sampled_from(_TARGETS).map(lambda target: f'<img src="{target}"> ${{SKILL_DIR}}/{target}'),
    st.sampled_from(NAMES).map(lambda name: f"as in [[{name}]] and ~/.claude/skills/{name}/scripts/run.sh"),
    st.text(alphabet="ab#`~<>-[](){}/.\\ \t!|", max_size=12),
)
BODIES = st.lists(LINES, max_size=14).map("\n".join)
HEADERS = st.sampled_from(
    ("", "version: 1.0\n", "metadata:\n  tags: [a, b]\n", "license: MIT # why\n", "x: |\n  ```\n  y\n")
)


@st.composite
def packages(draw: st.DrawFn, name: str) -> Packed:
    """A package with a text of anything, files and modes of any kind, in any line ends."""
    files = {
        path: (
            draw(st.one_of(st.binary(max_size=20), BODIES.map(str.encode))) if path.endswith((".md", ".bin")) else b"x",
            draw(st.sampled_from((0o644, 0o755, 0o600))),
        )
        for path in draw(st.sets(st.sampled_from(FILES), max_size=4))
    }
    folder = draw(st.sampled_from(("", "cat/")))
    return a_package(
        f"{folder}{name}",
        draw(BODIES),
        header=draw(HEADERS),
        files=files,
        bom=draw(st.booleans()),
        eol=draw(st.sampled_from(("\n", "\r\n"))),
    )
