"""A package's files as content: what is counted, what is odd, and what leads out of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.fingerprint import file_entry, fingerprint, link_entry
from curatord.core.library import SkillContent
from curatord.core.package import ReadFile, describe

HEAD = "---\nname: a\ndescription: for d\n---\n"


def described(entry_file: str = "SKILL.md", links: dict[str, str] | None = None, **options: Any) -> SkillContent:
    """Return the content of a package; *files* are given by path, `links` by path and target."""
    files = options.pop("files", {"SKILL.md": HEAD})
    read = [
        ReadFile(entry=file_entry(rel, text.encode()), data=text.encode(), link_target=None)
        for rel, text in files.items()
    ]
    read += [
        ReadFile(entry=link_entry(rel, target), data=None, link_target=target) for rel, target in (links or {}).items()
    ]
    return describe(read, entry_file, newest_ns=5, **options)


def codes(content: SkillContent) -> list[str]:
    """Return the codes of its problems."""
    return [problem.code for problem in content.problems]


def test_counts() -> None:
    """Files, bytes, identity, headings and costs."""
    content = described(files={"SKILL.md": HEAD + "# One\n```\n# no\n```\n## Two\n", "data.bin": "1234"})

    assert (2, len(HEAD) + 26 + 4, ("One", "Two"), 5) == (
        content.files,
        content.bytes,
        content.headings,
        content.newest_ns,
    )
    assert (
        fingerprint(
            [
                file_entry("SKILL.md", (HEAD + "# One\n```\n# no\n```\n## Two\n").encode()),
                file_entry("data.bin", b"1234"),
            ]
        )
        == content.fingerprint
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"SKILL.md": HEAD}, []),
        ({"SKILL.md": "# no header"}, ["no-header"]),
        ({"SKILL.md": "---\nname: a\n---\n"}, ["no-description"]),
        ({"SKILL.md": "---\nname: a\ndescription: for b: c\n---\n"}, ["mended-header"]),
        ({"SKILL.md": HEAD + "[x](references/x.md)"}, ["dead-link"]),
        ({"SKILL.md": HEAD + "[x](references/x.md)", "references/x.md": ""}, []),
        ({"SKILL.md": HEAD + "[x](references/)", "references/x.md": ""}, []),
        ({"SKILL.md": HEAD + "[x](../other/SKILL.md) [y](https://example.invalid/a/b)"}, []),
        ({"SKILL.md": HEAD + "```\n[x](references/x.md)\n```"}, []),
    ],
)
def test_problems_of_the_text(files: dict[str, str], expected: list[str]) -> None:
    """What is odd about the text is told, and breaks nothing."""
    content = described(files=files)

    assert (expected, None) == (codes(content), content.broken)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ({"x": "SKILL.md"}, []),
        ({"references/x": "../SKILL.md"}, []),
        ({"x": "../other"}, ["link-outward"]),
        ({"references/x": "../../other"}, ["link-outward"]),
        ({"x": "/etc/passwd"}, ["link-outward"]),
        ({"x": "."}, []),
    ],
)
def test_links_that_leave(links: dict[str, str], expected: list[str]) -> None:
    """A link in the package that would not survive a move is told."""
    assert expected == codes(described(links=links))


def test_what_leads_out_of_the_text() -> None:
    """Paths are told relative to the package, from every Markdown file, with file and line, each once, noise last."""
    content = described(
        files={
            "SKILL.md": HEAD + "[b](../b/SKILL.md)\n[own](references/x.md) `scripts/y.sh`\n[[wiki]]\n~/lib/z/run.sh\n",
            "references/x.md": "[b](../../b/SKILL.md)\n\n[c](../../c/SKILL.md) [own](../SKILL.md)",
        }
    )

    assert [
        ("../b/SKILL.md", "link", "SKILL.md", 5),
        ("wiki", "wiki", "SKILL.md", 7),
        ("../c/SKILL.md", "link", "references/x.md", 3),
        ("~/lib/z/run.sh", "path", "SKILL.md", 8),
    ] == [(link.target, link.kind, link.file, link.line) for link in content.outward]


def test_neighbours_of_a_flat_skill() -> None:
    """A flat skill's relative paths lead to other skills of the library."""
    content = described("a.md", files={"a.md": HEAD + "[b](b.md) read/write `c/SKILL.md`"}, flat=True)

    assert (["b.md", "c/SKILL.md"], []) == ([link.target for link in content.outward], codes(content))


def test_noise_does_not_hide_links() -> None:
    """A text full of absolute paths keeps its links to other skills."""
    noise = "\n".join(f"/usr/lib/x{number}/y" for number in range(500))
    content = described(files={"SKILL.md": f"{HEAD}{noise}\n[b](../b/SKILL.md)\n"})

    assert ("../b/SKILL.md", 200) == (content.outward[0].target, len(content.outward))


def test_not_all_read_means_no_identity() -> None:
    """A package of which only a part could be read has its reason and no fingerprint."""
    content = described(broken="cannot be read: x")

    assert ("cannot be read: x", None, "for d") == (content.broken, content.fingerprint, content.description)


@pytest.mark.parametrize("folder", ["references", "templates", "assets", "scripts", "examples"])
def test_samples_are_no_nested_skills(folder: str) -> None:
    """A SKILL.md below a support folder is a sample; anywhere else it is another skill (bugs B070)."""
    assert [] == codes(described(nested=[f"{folder}/x/SKILL.md"]))
    assert ["nested-skill"] == codes(described(nested=["inner/SKILL.md"]))


@pytest.mark.parametrize("marker", [".clawhub/origin.json", ".claude-plugin/plugin.json"])
def test_markers_of_installers(marker: str) -> None:
    """A package may say itself where it came from."""
    assert None is not described(files={"SKILL.md": HEAD, marker: "{}"}).installed_by
    assert None is described().installed_by


@given(data=st.binary(max_size=200), tail=st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_described(data: bytes, tail: str) -> None:
    """Whatever a SKILL.md holds, there is an answer, and it can be kept as it is."""
    for text in (data, b"---\n" + data + b"\n---\n" + tail.encode("utf-8", "surrogatepass"), tail.encode("utf-16")):
        file = ReadFile(entry=file_entry("SKILL.md", text), data=text, link_target=None)
        content = describe([file], "SKILL.md", newest_ns=0)

        assert content == msgspec.msgpack.decode(msgspec.msgpack.encode(content), type=SkillContent)
