"""A package's files, once read, as `SkillContent`: the part of reading a skill that needs no disk."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from curatord.core.fingerprint import ReadFile, fingerprint
from curatord.core.header import Fault
from curatord.core.library import OutwardLink, Problem, SkillContent
from curatord.core.markdown import BodyFacts, Link, read_body
from curatord.core.names import SKILL_FILE
from curatord.core.skill import SkillText, parse_skill
from curatord.core.skill_quality import text_problems

__all__ = ["ReadFile", "describe"]

MAX_HEADINGS = 60
MAX_HEADING_CHARS = 120
MAX_OUTWARD = 200

# Where a SKILL.md is a sample or a template of the package, not a skill (Hermes' own list, and `examples`).
_SUPPORT_FOLDERS = frozenset({"references", "templates", "assets", "scripts", "examples"})
_LINE_NAME = re.compile(r"^[ \t]*name:[ \t]*([^\r\n]*)", re.MULTILINE)
_MARKERS = {
    ".clawhub/origin.json": "installed from ClawHub (`.clawhub/origin.json` in the package)",
    ".claude-plugin/plugin.json": "part of a plugin (`.claude-plugin/plugin.json` in the package)",
}


def describe(
    files: Sequence[ReadFile],
    entry_file: str,
    *,
    newest_ns: int,
    nested: Sequence[str] = (),
    flat: bool = False,
    broken: str | None = None,
    own_vcs: str | None = None,
) -> SkillContent:
    """
    Return what the package with *files* says.

    Args:
        files: All that count, in any order.
        entry_file: The one that makes it a skill.
        newest_ns: Newest modification, ns since 1970.
        nested: Paths of further SKILL.md files in it.
        flat: Whether it is a `<name>.md` at a library's root, whose neighbours are other skills.
        own_vcs: Name of a version control entry at its top.
        broken: Why *files* are not all there is, in words; the package then has no fingerprint.
    """
    entries = [file.entry for file in files]
    by_rel = {file.entry.rel: file for file in files}
    entry = by_rel.get(entry_file)
    skill = _parse(entry)
    whole = broken is None
    if broken is None and not isinstance(skill, SkillText):
        broken = skill
    text = skill if isinstance(skill, SkillText) else None
    facts = text.facts() if text else BodyFacts(headings=(), links=())
    problems = [
        *(_text_problems(text) if text else ()),
        *_spelling(entry_file, by_rel),
        *_outward_links(files),
        *_nested(nested),
        *(_dead_links(facts, entry_file, by_rel) if text else ()),
        *(text_problems(text) if text else ()),
    ]
    return SkillContent(
        entry_file=entry_file,
        header_name=text.name if text else None,
        line_name=_line_name(entry.data) if entry is not None and entry.data is not None else None,
        description=text.description if text else "",
        when_to_use=text.when_to_use if text else "",
        broken=broken,
        fingerprint=fingerprint(entries) if whole else None,
        files=len(entries),
        bytes=sum(item.size for item in entries),
        newest_ns=newest_ns,
        description_tokens=text.description_tokens if text else 0,
        body_tokens=text.body_tokens if text else 0,
        headings=tuple(heading.title[:MAX_HEADING_CHARS] for heading in facts.headings[:MAX_HEADINGS]),
        outward=tuple(sorted(_outward(files, entry_file, text, facts, flat=flat), key=_is_likely_noise)[:MAX_OUTWARD]),
        problems=tuple(problems),
        installed_by=next((words for rel, words in _MARKERS.items() if rel in by_rel), None),
        own_vcs=own_vcs,
    )


def _parse(entry: ReadFile | None) -> SkillText | str:
    """Return the skill's text, or why there is none."""
    if entry is None:
        return "its SKILL.md is gone"
    if entry.link_target is not None:
        return f"its {entry.entry.rel} is a link (to {entry.link_target})"
    if entry.data is None:
        return f"{entry.entry.rel} is {entry.entry.size} bytes: too large to be read"
    skill = parse_skill(entry.data)
    return f"{entry.entry.rel}, {skill}" if isinstance(skill, Fault) else skill


def _line_name(data: bytes) -> str | None:
    """Return what Hermes' own tools take for the name (hermes-agent, usage records and archive, autumn 2026)."""
    found = _LINE_NAME.search(data[:16_384].decode("utf-8-sig", "ignore")[:4000])
    return found[1].strip().strip("\"'") or None if found else None


def _text_problems(text: SkillText) -> Iterator[Problem]:
    if text.header is None:
        yield Problem(code="no-header", words="there is no header, so hosts see neither name nor description")
        return
    for key in text.header.mended:
        entry = text.header.entry(key)
        line = entry.line if entry else 1
        yield Problem(code="mended-header", words=f"line {line}: `{key}` is no YAML until it is quoted")
    if not text.description:
        yield Problem(code="no-description", words="there is no description, so no agent knows when to use it")


def _spelling(entry_file: str, files: dict[str, ReadFile]) -> Iterator[Problem]:
    if "/" in entry_file or entry_file.lower() != SKILL_FILE.lower():
        return  # a flat skill
    if entry_file != SKILL_FILE:
        yield Problem(code="lower-case-file", words=f"`{entry_file}`: agents on Linux will not see this")
    others = sorted(rel for rel in files if rel != entry_file and rel.lower() == SKILL_FILE.lower())
    if others:
        yield Problem(code="two-spellings", words=f"`{others[0]}` stands beside `{entry_file}` and is not read")


def _outward_links(files: Sequence[ReadFile]) -> Iterator[Problem]:
    for file in sorted(files, key=lambda item: item.entry.rel):
        target = file.link_target
        if target is not None:
            where = posixpath.normpath(posixpath.join(posixpath.dirname(file.entry.rel), target))
            if target.startswith("/") or where == ".." or where.startswith("../"):
                yield Problem(code="link-outward", words=f"`{file.entry.rel}` leads out of the package, to {target}")
                return


def _nested(nested: Sequence[str]) -> Iterator[Problem]:
    skills = sorted(rel for rel in nested if _SUPPORT_FOLDERS.isdisjoint(rel.split("/")[:-1]))
    if skills:
        yield Problem(code="nested-skill", words=f"holds another skill, `{skills[0]}`, which some hosts list by itself")


def _dead_links(facts: BodyFacts, entry_file: str, files: dict[str, ReadFile]) -> Iterator[Problem]:
    folders = {rel.rpartition("/")[0] for rel in files}
    for link in facts.links:
        if link.kind != "link" or link.target.startswith(("/", "~")):
            continue
        where = posixpath.normpath(posixpath.join(posixpath.dirname(entry_file), link.target))
        if not where.startswith("..") and "/" in where and where not in files and not _is_folder(where, folders):
            yield Problem(code="dead-link", words=f"links to `{link.target}`, which is not in the package")
            return


def _is_folder(where: str, folders: set[str]) -> bool:
    return any(folder == where or folder.startswith(f"{where}/") for folder in folders)


def _outward(
    files: Sequence[ReadFile], entry_file: str, text: SkillText | None, facts: BodyFacts, *, flat: bool
) -> Iterator[OutwardLink]:
    """Yield what may lead to another skill, first from the entry file, then from the other texts by path."""
    seen: set[str] = set()
    if text is not None:
        yield from _leaving(facts.links, entry_file, text.body_line - 1, seen, flat=flat)
    for file in sorted(files, key=lambda item: item.entry.rel):
        if file.data is not None and file.entry.rel != entry_file:
            body = file.data.decode("utf-8", "replace")
            yield from _leaving(read_body(body).links, file.entry.rel, 0, seen, flat=flat)


def _is_likely_noise(link: OutwardLink) -> bool:
    """Return whether *link* should be the first to go where there are too many: absolute paths in prose and code."""
    return link.kind in ("path", "code") and link.target.startswith(("/", "~"))


def _leaving(links: Sequence[Link], file: str, first_line: int, seen: set[str], *, flat: bool) -> Iterator[OutwardLink]:
    folder = posixpath.dirname(file)
    for link in links:
        target = link.target
        if link.kind != "wiki" and not target.startswith(("/", "~")):
            target = posixpath.normpath(posixpath.join(folder, target))
            # Beside a flat skill lie others, but `and/or` in its prose is no path.
            if not target.startswith("../") and not (flat and (link.kind == "link" or target.endswith(".md"))):
                continue
        if target not in seen:
            seen.add(target)
            yield OutwardLink(target=target, kind=link.kind, file=file, line=first_line + link.line)
