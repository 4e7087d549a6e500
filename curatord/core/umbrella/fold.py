"""
Folding: the umbrella's package after a decision, written by code, with nothing of a member lost.

The plan. A member's package moves below one folder of the umbrella, `references/<member>/`, with its inner order kept,
so that scripts still find their neighbours; its text stands beside that folder as `references/<member>.md`, byte for
byte but for references that have to follow, or becomes a section of the umbrella's SKILL.md. A section begins with the
member's own header as a code block (an agent reads there what it was for), then its body with headings moved down.

What does not fit goes the safer way, with the reason in the notes: a text that cannot be nested, or one that would make
SKILL.md longer than the specification advises, becomes a reference; a path that is taken gets a number. What an
umbrella had stays where it was, byte for byte: its description is the only value of its header that is set, sections
and the index are added behind its text, and rows are added to an index that is there already.

Ends that were left open (a code fence, a comment) are closed before anything is put behind them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from curatord.core.cheap import dataclass, field, replace
from curatord.core.header import Fault, set_header_value, split_text
from curatord.core.inert import one_line
from curatord.core.markdown import estimate_tokens
from curatord.core.plan import MAX_PART_BYTES, MAX_PATH_PARTS, RESERVED, fold
from curatord.core.skill import SKILL_FILE, SkillText, render_skill
from curatord.core.umbrella.decision import Decision, Folding, Taken
from curatord.core.umbrella.lines import (
    anchor_of,
    cannot_nest,
    headings,
    labels,
    shifted,
    split_lines,
    structure,
)
from curatord.core.umbrella.links import Edit, Ground, Moved, relocate
from curatord.core.umbrella.packed import Packed, PackedFile, is_text
from curatord.core.values import SkillKey

__all__ = [
    "FOLDERS",
    "INDEX_BEGIN",
    "INDEX_END",
    "MAX_BODY_LINES",
    "MAX_BODY_TOKENS",
    "Folded",
    "Placed",
    "cannot_move",
    "fold_in",
    "is_umbrella_text",
    "moved_text",
]

# "Keep your main SKILL.md under 500 lines", "instructions: < 5000 tokens recommended": the specification's words.
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000
ROW_CHARS = 200
TITLE_CHARS = 120

INDEX_BEGIN = "<!-- curatord: index -->"
INDEX_END = "<!-- curatord: end of index -->"
INDEX_TITLE = "Index"

FOLDERS: Mapping[Folding, str] = {
    "section": "references",
    "reference": "references",
    "template": "templates",
    "script": "scripts",
}
_DEPTH_ADDED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """
    Where a member went.

    Attributes:
        how: As it was done; *asked* as it was wanted.
        path: Of its text within the package; *anchor* of its section, or the empty text.
        folder: Its support files' folder within the package.
        note: Why it was not done as asked, or the empty text.
    """

    key: SkillKey
    how: Folding
    asked: Folding
    path: str
    folder: str
    title: str
    anchor: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """
    An umbrella's package as it shall be.

    Attributes:
        before: As it is, None for a new one.
        after: As it shall be.
        placed: Where each member went, in the order of the decision.
        ground: What references were resolved against; other skills' texts follow by it.
        edits: References that were written anew in moved texts and in the umbrella's own.
        notes: What a person should know.
    """

    before: Packed | None
    after: Packed
    placed: tuple[Placed, ...]
    ground: Ground
    edits: tuple[Edit, ...]
    notes: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Text:
    """A member's text on its way into the package."""

    member: Taken
    package: Packed
    skill: SkillText
    how: Folding
    path: str
    folder: str
    title: str
    anchor: str = ""
    notes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def cannot_move(package: Packed) -> str | None:
    """Return why the package cannot be folded into another at all, in words, or None."""
    if package.links:
        return f"it holds a link, `{package.links[0][0]}`, which cannot be moved safely"
    for file in package.files:
        parts = file.path.split("/")
        if len(parts) + _DEPTH_ADDED > MAX_PATH_PARTS:
            return f"`{file.path}` lies too deep to be moved"
        for part in parts:
            if not _is_plain(part):
                return f"`{file.path}` has a name that cannot be moved to every file system"
    if isinstance(package.text, Fault):
        return f"{package.entry}, {package.text}"
    return None


def is_umbrella_text(body: str) -> bool:
    """Return whether a SKILL.md's body holds an index that curatord wrote."""
    return INDEX_BEGIN in body


def fold_in(
    before: Packed | None,
    decision: Decision,
    members: Mapping[SkillKey, Packed],
    *,
    others: Ground,
    extra: Sequence[tuple[str, str]] = (),
    spare: Sequence[SkillKey] = (),
) -> Folded:
    """
    Return the umbrella's package with the members of *decision* in it.

    Args:
        before: The umbrella as it is; None: it is made.
        members: Their packages, none of which `cannot_move`.
        others: Files and packages of the library that references may lead to; *moved* and *went* are added to it.
        extra: Further values for the header of a new umbrella.
        spare: Members whose text the body already holds in full (`detail: bodies`), so it is not kept twice.

    Raises:
        ValueError: The decision has no members, or the header cannot hold the description.
    """
    if not decision.members:
        raise ValueError(f"nothing goes into {decision.umbrella}")
    root = Packed(key=decision.umbrella, files=()) if before is None else before
    texts = _texts(before, decision, members)
    notes = list(decision.notes)
    own = _own_text(before)
    _choose_sections(texts, own, decision)
    _anchors(texts, own, decision)
    umbrella_at = decision.umbrella.rel
    moved, went, names = _moves(texts, umbrella_at, root, spare)
    ground = replace(
        others,
        files=others.files
        | {package.place(file.path) for package in members.values() for file in package.files}
        | ({root.place(file.path) for file in root.files}),
        packages=others.packages | {_package_place(text.package) for text in texts} | {_package_place(root)},
        moved={**others.moved, **moved},
        went={**others.went, **went},
        names={**others.names, **names},
    )
    files: list[PackedFile] = []
    edits: list[Edit] = []
    for text in texts:
        moved_files, its = _moved_files(text, ground, umbrella_at)
        edits += its
        for file in moved_files:
            if file.path != text.path or text.how != "section":
                if text.member.key in spare and file.path == text.path:
                    continue
                files.append(file)
    entry, own_edits = _entry(before, decision, texts, ground, extra, spare)
    edits += own_edits
    files.append(PackedFile(path=SKILL_FILE, data=entry, mode=_entry_mode(before)))
    files += _own_support(before, ground, umbrella_at, edits)
    for text in texts:
        notes += text.notes
    base = Packed(key=decision.umbrella, files=()) if before is None else before
    after = base.with_files(files)
    return Folded(
        before=before,
        after=after,
        placed=tuple(
            Placed(
                key=text.member.key,
                how=text.how,
                asked=text.member.how,
                path=SKILL_FILE if text.how == "section" else text.path,
                folder=text.folder,
                title=text.title,
                anchor=text.anchor,
                note="; ".join(text.notes),
            )
            for text in texts
        ),
        ground=ground,
        edits=tuple(edits),
        notes=tuple(notes),
    )


# --- Where things go --------------------------------------------------------------------------------------------------


def _texts(before: Packed | None, decision: Decision, members: Mapping[SkillKey, Packed]) -> list[_Text]:
    taken = {fold(file.path) for file in before.files} if before is not None else set()
    # A file and a folder cannot share a name either.
    taken |= {fold(above) for path in list(taken) for above in _above(path)}
    texts: list[_Text] = []
    for member in decision.members:
        package = members[member.key]
        skill = package.text
        if isinstance(skill, Fault):
            raise ValueError(f"{member.key}: {skill}")  # noqa: TRY004  # a text that is wrong, not a type
        notes: list[str] = []
        base = FOLDERS[member.how]
        name = _file_name(member.key.name)
        folder = _free(f"{base}/{name}", "", taken)
        wanted = member.path if member.how != "section" else ""
        if wanted and not wanted.endswith((".md", ".markdown")):
            notes.append(f"{member.key.name}: its text is Markdown, so it does not become {wanted}")
            wanted = ""
        stem, suffix = posixpath.splitext(wanted) if wanted else (f"{base}/{name}", ".md")
        path = _free(stem, suffix, taken)
        if wanted and path != wanted:
            notes.append(f"{member.key.name}: {wanted} is taken, so it became {path}")
        taken |= {fold(path), fold(folder), *map(fold, _above(path))}
        texts.append(
            _Text(
                member=member,
                package=package,
                skill=skill,
                how=member.how,
                path=path,
                folder=folder,
                title=_title(member),
                notes=notes,
            )
        )
    return texts


def _above(path: str) -> list[str]:
    found = []
    while path := posixpath.dirname(path):
        if path in ("references", "templates", "scripts"):
            break
        found.append(path)
    return found


def _free(stem: str, suffix: str, taken: set[str]) -> str:
    """Return *stem* with *suffix*, numbered where something of that name is there, in whatever case or Unicode form."""
    number = 2
    path = f"{stem}{suffix}"
    while fold(path) in taken or any(fold(above) in taken for above in _above(path)):
        path = f"{stem}-{number}{suffix}"
        number += 1
    return path


def _file_name(name: str) -> str:
    """Return *name* as one that every file system takes; a skill's own name nearly always is one."""
    cleaned = "".join(char if _is_plain(char) or char == "." else "-" for char in name).strip(". ") or "skill"
    while len(cleaned.encode()) > MAX_PART_BYTES - 8:
        cleaned = cleaned[:-1]
    return cleaned if _is_plain(cleaned) else f"{cleaned}-skill"


def _is_plain(part: str) -> bool:
    return (
        part not in ("", ".", "..")
        and len(part.encode("utf-8", "surrogatepass")) <= MAX_PART_BYTES - 8
        and part.rstrip(". ") == part
        and part.partition(".")[0].casefold() not in RESERVED
        and all(char.isprintable() and char not in "\\:" for char in part)
    )


def _title(member: Taken) -> str:
    plain = one_line(member.title).lstrip("# ").strip()
    if not plain:
        plain = member.key.name.replace("-", " ").replace("_", " ").strip().capitalize()
    # No markup in a heading: its anchor is made of its words, and a link in it would lead nowhere.
    plain = plain.translate({ord("["): "(", ord("]"): ")", ord("<"): "‹", ord(">"): "›"})
    return plain[:TITLE_CHARS].rstrip() or member.key.name


def _package_place(package: Packed) -> str:
    return f"{package.key.rel}.md" if package.flat else package.key.rel


def _moves(
    texts: Sequence[_Text], umbrella_at: str, root: Packed, spare: Sequence[SkillKey]
) -> tuple[dict[str, Moved], dict[str, Moved], dict[str, str]]:
    """Return where files, packages and names went."""
    moved: dict[str, Moved] = {}
    went: dict[str, Moved] = {}
    names: dict[str, str] = {}
    for text in texts:
        package = text.package
        in_section = text.how == "section" or text.member.key in spare
        new_entry = Moved(
            place=f"{umbrella_at}/{SKILL_FILE if in_section else text.path}", anchor=text.anchor if in_section else ""
        )
        for file in package.files:
            place = package.place(file.path)
            moved[place] = (
                new_entry if file.path == package.entry else Moved(place=f"{umbrella_at}/{text.folder}/{file.path}")
            )
        if not package.flat:
            went[package.key.rel] = Moved(place=umbrella_at)
        names[package.key.name] = root.key.name
    if root.flat and any(text.how != "section" or text.package.support for text in texts):
        # The flat umbrella becomes a folder, which is how it can hold files at all.
        moved[f"{umbrella_at}.md"] = Moved(place=f"{umbrella_at}/{SKILL_FILE}")
    return moved, went, names


# --- Texts ------------------------------------------------------------------------------------------------------------


def _own_text(before: Packed | None) -> str:
    """Return the body that the umbrella has already."""
    if before is None:
        return ""
    text = before.text
    if isinstance(text, Fault):
        raise ValueError(f"{before.key}: {text}")  # noqa: TRY004  # a text that is wrong, not a type
    return text.body


def _choose_sections(texts: Sequence[_Text], own: str, decision: Decision) -> None:
    """Make references of the texts that cannot be sections or for which there is no room, the longest first."""
    base = decision.body if decision.body is not None else own
    lines = split_lines(base)
    defined = labels(lines, structure(lines))
    asked = [text for text in texts if text.how == "section"]
    left: list[_Text] = []
    for text in asked:
        its = split_lines(text.skill.body)
        found = structure(its)
        why = cannot_nest(its, found)
        mine = labels(its, found)
        if why is None and mine & defined:
            why = f"it defines the link label [{sorted(mine & defined)[0]}], which stands there already"
        if why is not None:
            _make_reference(text, why)
            continue
        defined |= mine
        left.append(text)
    rows = sum(estimate_tokens(_row(text, "x" * 40)) for text in texts)
    used_tokens = estimate_tokens(base) + estimate_tokens(decision.overview) + rows + 60
    used_lines = len(lines) + decision.overview.count("\n") + len(texts) + 12
    for text in sorted(left, key=lambda one: (one.skill.body_tokens, one.member.key)):
        section = _section_lines(text)
        used_tokens += estimate_tokens("\n".join(section))
        used_lines += len(section)
        if used_tokens > MAX_BODY_TOKENS or used_lines > MAX_BODY_LINES:
            _make_reference(text, f"SKILL.md would pass {MAX_BODY_LINES} lines or {MAX_BODY_TOKENS:,} tokens with it")


def _make_reference(text: _Text, why: str) -> None:
    text.how = "reference"
    text.notes.append(f"{text.member.key.name}: kept as {text.path}, no section: {why}")


def _anchors(texts: Sequence[_Text], own: str, decision: Decision) -> None:
    """Work out the anchor of each section, in the order in which headings will stand."""
    taken: dict[str, int] = {}
    for told in (decision.body if decision.body is not None else own, decision.overview):
        lines = split_lines(told)
        for _, _, title in headings(lines, structure(lines)):
            anchor_of(title, taken)
    anchor_of(INDEX_TITLE, taken)
    for text in texts:
        if text.how == "section":
            text.anchor = anchor_of(text.title, taken)
            its = split_lines(text.skill.body)
            for _, _, title in headings(its, structure(its)):
                anchor_of(title, taken)


def _section_lines(text: _Text, body: str | None = None) -> list[str]:
    """Return the lines of a member's section: title, its header as code, its body below."""
    lines = [f"## {text.title}", ""]
    header = _header_lines(text.package)
    if header:
        fence = "`" * max(3, 1 + max((len(run) for line in header for run in re.findall("`+", line)), default=0))
        lines += [f"{fence}yaml", *header, fence, ""]
    its = split_lines((text.skill.body if body is None else body).strip("\r\n"))
    found = structure(its)
    lines += shifted(its, found, under=2)
    lines += found.closes
    while lines and not lines[-1].strip():
        lines.pop()
    return [*lines, ""]


def _header_lines(package: Packed) -> list[str]:
    """Return the lines between the fences of a member's header."""
    entry = package.file(package.entry)
    split = split_text(entry.data) if entry is not None else None
    if split is None or isinstance(split, Fault) or split.header is None:
        return []
    lines = split_lines(split.text[split.header.start : split.header.end])
    return [line for line in lines if line.strip()]


def _moved_files(text: _Text, ground: Ground, umbrella_at: str) -> tuple[list[PackedFile], list[Edit]]:
    """Return a member's files where they shall stand; a section's text is among them, for `_entry` to take up."""
    files: list[PackedFile] = []
    edits: list[Edit] = []
    for file in text.package.files:
        is_entry = file.path == text.package.entry
        path = text.path if is_entry else f"{text.folder}/{file.path}"
        data = file.data
        if is_entry and text.how == "section":
            body, its = relocate(
                text.skill.body,
                ground=ground,
                old=text.package.place(file.path),
                new=f"{umbrella_at}/{SKILL_FILE}",
                old_root=_root_of(text.package),
                new_root=umbrella_at,
            )
            text.lines = _section_lines(text, body)
            edits += [replace(edit, line=edit.line + text.skill.body_line - 1) for edit in its]
        elif is_text(file.path) or is_entry:
            data, its = _relocated(
                data,
                ground,
                old=text.package.place(file.path),
                new=f"{umbrella_at}/{path}",
                old_root=_root_of(text.package),
                new_root=umbrella_at,
            )
            edits += its
        mode = file.mode & 0o777
        files.append(PackedFile(path=path, data=data, mode=mode))
    return files, edits


def _root_of(package: Packed) -> str:
    """Return the place that mentions in a package are relative to."""
    return posixpath.dirname(package.key.rel) if package.flat else package.key.rel


def _relocated(
    data: bytes, ground: Ground, *, old: str, new: str, old_root: str, new_root: str, body_only: bool = False
) -> tuple[bytes, tuple[Edit, ...]]:
    """Return a text file's bytes with its references following; what is not UTF-8 is left as it is."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data, ()
    start = 0
    if body_only:
        split = split_text(data)
        start = 0 if isinstance(split, Fault) else split.body_start
    written, edits = relocate(
        text,
        ground=ground,
        old=old,
        new=new,
        old_root=old_root,
        new_root=new_root,
        shift=lambda offset: offset >= start,
    )
    return (written.encode("utf-8"), edits) if edits else (data, ())


def _own_support(before: Packed | None, ground: Ground, umbrella_at: str, edits: list[Edit]) -> list[PackedFile]:
    """Return the umbrella's own support texts that point at what moved."""
    if before is None:
        return []
    changed = []
    for file in before.support:
        if is_text(file.path):
            place = before.place(file.path)
            data, its = _relocated(
                file.data, ground, old=place, new=place, old_root=before.key.rel, new_root=umbrella_at
            )
            if its:
                edits += its
                changed.append(replace(file, data=data))
    return changed


# --- The umbrella's own SKILL.md --------------------------------------------------------------------------------------


def _entry_mode(before: Packed | None) -> int:
    entry = before.file(before.entry) if before is not None else None
    return 0o644 if entry is None else entry.mode & 0o777


def _entry(
    before: Packed | None,
    decision: Decision,
    texts: Sequence[_Text],
    ground: Ground,
    extra: Sequence[tuple[str, str]],
    spare: Sequence[SkillKey],
) -> tuple[bytes, tuple[Edit, ...]]:
    """Return the bytes of the umbrella's SKILL.md, and the references in its old text that followed."""
    rows = [_row(text, _target(text, spare), full=decision.body is not None) for text in texts]
    sections = [line for text in texts if text.how == "section" for line in text.lines]
    if before is None:
        title = decision.umbrella.name.replace("-", " ").strip()
        if decision.body is not None:
            body, edits = _model_body(decision, texts, ground)
            lines = split_lines(body.strip("\r\n"))
        else:
            edits = ()
            lines = [f"# {title[:1].upper()}{title[1:]}", ""]
            lines += _overview_lines(decision.overview)
        lines += structure(lines).closes
        lines += ["", INDEX_BEGIN, f"## {INDEX_TITLE}", "", *rows, INDEX_END, ""]
        lines += sections
        return render_skill(decision.umbrella.name, decision.description, "\n".join(lines), extra=extra), edits
    entry = before.file(before.entry)
    assert entry is not None, "the umbrella's text was read"
    place = before.place(before.entry)
    new_place = f"{decision.umbrella.rel}/{SKILL_FILE}" if place in ground.moved else place
    data, edits = _relocated(
        entry.data,
        ground,
        old=place,
        new=new_place,
        old_root=_root_of(before),
        new_root=_root_of(before) if new_place == place else decision.umbrella.rel,
        body_only=True,
    )
    if decision.description:
        with_description = _described(data, decision.description)
        if isinstance(with_description, Fault):
            raise ValueError(f"{decision.umbrella}: {with_description}")  # a text that is wrong
        data = with_description
    return _extended(data, decision, rows, sections), edits


def _described(data: bytes, description: str) -> bytes | Fault:
    split = split_text(data)
    if isinstance(split, Fault):
        return split
    if split.header is None or split.header.text("description") == description:
        return data
    return set_header_value(data, "description", description)


def _model_body(decision: Decision, texts: Sequence[_Text], ground: Ground) -> tuple[str, tuple[Edit, ...]]:
    """Return the body that the model wrote, with what it took over from members leading where it led there."""
    body = decision.body or ""
    new = f"{decision.umbrella.rel}/{SKILL_FILE}"
    for text in texts:
        package = text.package
        own = replace(
            ground,
            files=frozenset(package.place(file.path) for file in package.support),
            packages=frozenset(),
        )
        body, _ = relocate(
            body,
            ground=own,
            old=package.place(package.entry),
            new=new,
            old_root=_root_of(package),
            new_root=decision.umbrella.rel,
        )
    return body, ()


def _extended(data: bytes, decision: Decision, rows: Sequence[str], sections: Sequence[str]) -> bytes:
    """Return the umbrella's text with rows in its index (or a new index behind it) and sections at its end."""
    split = split_text(data)
    assert not isinstance(split, Fault), "it was read before"
    text, eol = split.text, split.eol
    at = text.find(INDEX_END, split.body_start)
    if at >= 0 and text.find(INDEX_BEGIN, split.body_start) in range(split.body_start, at):
        text = text[:at] + "".join(f"{row}{eol}" for row in rows) + text[at:]
        added: list[str] = list(sections)
    else:
        added = [INDEX_BEGIN, *_overview_lines(decision.overview), f"## {INDEX_TITLE}", "", *rows, INDEX_END, ""]
        added += sections
    if added:
        body = text[split.body_start :]
        closes = structure(split_lines(body)).closes
        gap = "" if not text or text.endswith(("\n", "\r")) else eol
        text += gap + "".join(f"{line}{eol}" for line in closes) + eol
        text += eol.join(added).rstrip("\r\n") + eol
    return text.encode("utf-8")


def _overview_lines(overview: str) -> list[str]:
    lines = split_lines(overview.strip())
    lines += structure(lines).closes
    return [*lines, ""] if overview.strip() else []


def _target(text: _Text, spare: Sequence[SkillKey]) -> str:
    if text.how == "section":
        return f"#{text.anchor}"
    return "" if text.member.key in spare else quote(text.path, safe="/@+-._~")


def _row(text: _Text, target: str, *, full: bool = False) -> str:
    """Return a member's row of the index: where it is, what it was called, when to use it."""
    shown = f"[{text.title}]({target})" if target else text.title
    told = one_line(text.skill.description).replace("<", "&lt;")
    if not full and len(told) > ROW_CHARS:
        told = told[:ROW_CHARS].rsplit(" ", 1)[0].rstrip(",;: ") + " …"
    was = f"was `{text.member.key.name}`"
    return f"- {shown} ({was}): {told}" if told else f"- {shown} ({was})"


def moved_text(package: Packed, ground: Ground) -> tuple[Packed, tuple[Edit, ...]]:
    """Return a package that stays where it is, with the references of its texts following what moved."""
    edits: list[Edit] = []
    changed: list[PackedFile] = []
    for file in package.files:
        is_entry = file.path == package.entry
        if not (is_text(file.path) or is_entry):
            continue
        place = package.place(file.path)
        data, its = _relocated(
            file.data,
            ground,
            old=place,
            new=place,
            old_root=_root_of(package),
            new_root=_root_of(package),
            body_only=is_entry,
        )
        if its:
            edits += its
            changed.append(replace(file, data=data))
    return (package.with_files(changed), tuple(edits)) if changed else (package, ())
