"""
From a model's words about a session to what is done: changes, changes that wait for a person, lessons that wait for a
second session, and refusals with their reasons.

A reply is a wish, and each of its operations is judged by itself against what is on disk and what was said:

1. *Evidence.* It names rows of the digest that a person or the model said. Rows that are not there do not count, and
   an operation that has no other is refused. A create that cites nothing at all is noted as a lesson, and no more: it
   counts for nothing and its text is never written. The reply's simple form has no field to cite in, so that code looks
   for the one evidence that needs no model's word: a user's own row that asks for this very skill by its name. Where
   there is one the form is as good as any other; where there is none it is a note too, since nobody could tell where
   the lesson was said, and a lesson of unknown origin is what a poisoned transcript brings (bugs B108).
2. *Target.* A skill of this library that may be changed. What a person edited gets a proposal.
3. *Text.* A patch replaces exactly one place and leaves the header alone but for the description; a support file
   lies under one of three folders and loses nothing that stands there; a new skill has a name and a text that are not
   those of another. Nothing that was redacted on the way to the model is written back.
4. *Form and content.* The specification's rules and the screen; a changed skill has no new violation, a new one none.
5. *Confirmation* of a new skill: another session's word, or the user's wish in so many words.
6. *Mode*, and what a person should see first (`suspicion`).

Operations on one skill become one action, since each action is bound to the content that it was decided on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Literal, assert_never

import msgspec

from curatord.core.agent_skills import violations
from curatord.core.cheap import dataclass, field
from curatord.core.cluster_index import Index
from curatord.core.distil.candidates import KeptCandidate, candidate_id, confirmed_by
from curatord.core.distil.compose import NewSkill, compose
from curatord.core.distil.decision import Candidate, Caps, Change, Decision, Refused, RefusedCode
from curatord.core.distil.digest import Digest
from curatord.core.distil.edit import Edited, is_script, patched, support_path
from curatord.core.distil.names import mixed_scripts, skeleton
from curatord.core.distil.similar import too_like
from curatord.core.distil.suspicion import suspicions
from curatord.core.distil.view import LibraryView, SkillView
from curatord.core.distil.wishes import Wishes
from curatord.core.inert import one_line, shorten
from curatord.core.plan import CreateSkill, FileChange, WriteSupportFile, fold
from curatord.core.plan import Patch as PatchSkill
from curatord.core.replies import Create, DistilReply, Operation, Patch, WriteFile
from curatord.core.screen import Finding, new_findings, screen
from curatord.core.values import Mode, RelPath, SkillKey

__all__ = ["Candidate", "Caps", "Change", "Decision", "Refused", "RefusedCode", "decide", "user_said"]

MAX_NEW_LINES = 250  # peers, "Form lint"
MAX_OLD_LINES = 500
MAX_FILE_BYTES = 50_000
MAX_BODY_BYTES = 50_000  # of a SKILL.md; lines alone say nothing, since one may be of any length
MAX_TOTAL_BYTES = 1_000_000  # of all support files of a skill, as far as they were read
MAX_FILES = 50  # umbrellas hold a reference per member
MAX_LOST_LINES = 10  # a patch that takes out more than this waits for a person
_BETWEEN_WORDS = re.compile(r"[-_./]+")
FEW_LINES = 4  # of a short text; more than half of it is as much as many lines of a long one
_MARK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")


class _No(Exception):  # noqa: N818  # it never leaves this module: a refusal on its way up
    def __init__(self, code: RefusedCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def decide(
    reply: DistilReply,
    *,
    digest: Digest,
    view: LibraryView,
    candidates: Sequence[KeptCandidate] = (),
    lineage: str,
    mode: Mode,
    caps: Caps,
    wishes: Wishes,
    now: datetime,
    index: Index | None = None,
    simple: bool = False,
) -> tuple[Decision, ...]:
    """
    Return what becomes of each operation of *reply*, changes first, in the order of the reply; empty for `nothing`.

    Args:
        reply: The typed answer.
        digest: What the model was shown.
        view: The library as it is now; the texts of skills that the reply names were read.
        candidates: Lessons that wait, of this library.
        lineage: The conversation that the session belongs to: one id for all its resumes and forks.
        mode: The configuration's.
        caps: Limits on new skills.
        wishes: How users ask that something be kept.
        now: The run's one reading of the clock.
        index: Of *view*, where the caller has it already.
        simple: The reply came in the simple form.
    """
    work = _Work(
        digest=digest,
        view=view,
        candidates={c.id: c for c in candidates if c.library == view.library},
        lineage=lineage,
        mode=mode,
        caps=caps,
        wishes=wishes,
        now=now,
        index=index,
        said=user_said(digest),
    )
    # A new skill first, whatever the order: its files are judged with it.
    for operation in sorted(reply.operations, key=lambda operation: not isinstance(operation, Create)):
        if simple and isinstance(operation, Create):
            operation = msgspec.structs.replace(operation, evidence=work.wished_for(operation.skill))
        work.take(operation)
    return work.result()


def user_said(digest: Digest) -> str:
    """Return what the user said in his own turns, as far as it is shown."""
    return "\n".join(entry.text for entry in digest.entries if entry.role == "user")


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A skill on its way to be changed: its text so far, and its files."""

    skill: SkillView
    text: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    described: bool = False
    operations: list[Operation] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _New:
    """A new skill on its way."""

    operation: Create
    key: SkillKey
    made: NewSkill
    evidence: tuple[str, ...]
    sessions: int
    asked: bool
    candidate: str
    files: dict[str, bytes] = field(default_factory=dict)
    written: dict[str, WriteFile] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One reply on its way to decisions."""

    digest: Digest
    view: LibraryView
    candidates: Mapping[str, KeptCandidate]
    lineage: str
    mode: Mode
    caps: Caps
    wishes: Wishes
    now: datetime
    index: Index | None
    said: str
    drafts: dict[SkillKey, _Draft] = field(default_factory=dict)
    new: _New | None = None
    refused: list[Refused] = field(default_factory=list)

    def wished_for(self, name: str) -> tuple[str, ...]:
        """Return the user's own rows that ask for a skill of that name."""
        rows = [entry for entry in self.digest.entries if entry.role == "user" and entry.evidence]
        return tuple(entry.id for entry in rows if self._asked([entry.id], name, by_name=True))

    def take(self, operation: Operation) -> None:
        """Judge one operation; what is wrong with it is noted and costs no other."""
        try:
            match operation:
                case Patch():
                    self._patch(operation)
                case WriteFile():
                    self._write_file(operation)
                case Create():
                    self._create(operation)
                case _:
                    assert_never(operation)
        except _No as no:
            self._refuse(operation, no.code, no.reason)

    def result(self) -> tuple[Decision, ...]:
        """Return everything that was decided."""
        found: list[Decision] = [self._changed(draft) for draft in self.drafts.values() if draft.operations]
        if self.new is not None:
            found.append(self._born(self.new))
        return (*found, *self.refused)

    def _refuse(self, operation: Operation, code: RefusedCode, reason: str) -> None:
        op: Literal["patch", "create", "write_file"] = (
            "patch" if isinstance(operation, Patch) else "create" if isinstance(operation, Create) else "write_file"
        )
        self.refused.append(Refused(op=op, skill=shorten(operation.skill, 80), code=code, reason=reason))

    # -- what is there

    def _evidence(self, operation: Operation) -> tuple[str, ...]:
        """Return the cited rows that a person or the model said."""
        known = {entry.id for entry in self.digest.entries if entry.evidence}
        cited = tuple(dict.fromkeys(i.strip() for i in operation.evidence))
        found = tuple(i for i in cited if i in known)
        if not found and not (isinstance(operation, Create) and not cited):
            wrong = ", ".join(shorten(i, 20) for i in cited[:4]) or "nothing"
            raise _No("evidence", f"it cites {wrong}, which nobody said in this session")
        return found

    def _target(self, name: str) -> _Draft:
        found = self.view.named(name)
        if not found:
            raise _No("unknown", "there is no such skill in the library")
        if len(found) > 1:
            places = ", ".join(sorted(skill.key.rel for skill in found)[:5])
            raise _No("unknown", f"several skills have that name: {places}")
        skill = found[0]
        if skill.locked is not None:
            raise _No("locked", skill.locked)
        if skill.text is None or skill.fingerprint is None:
            raise _No("locked", "its text cannot be read")
        draft = self.drafts.get(skill.key)
        if draft is None:
            draft = self.drafts[skill.key] = _Draft(skill=skill, text=skill.text)
        return draft

    def _unmarked(self, before: str, after: str) -> None:
        """Refuse a text that would write the mark of a secret: the model was shown less than there is."""
        known = set(_MARK.findall(before))
        if any(mark not in known for mark in _MARK.findall(after)):
            raise _No("redacted", "it would write the mark that stands for a secret")

    # -- patches

    def _patch(self, operation: Patch) -> None:
        evidence = self._evidence(operation)
        draft = self._target(operation.skill)
        self._unmarked(operation.old, operation.new)
        edited = patched(draft.text, operation.old, operation.new)
        if not isinstance(edited, Edited):
            raise _No(edited.code, edited.reason)
        skill = draft.skill
        old = {violation.code for violation in violations(draft.text, skill.name, self.view.layout)}
        for violation in violations(edited.data, skill.name, self.view.layout):
            if violation.code not in old:
                raise _No("form", violation.message)
        if edited.lines > MAX_OLD_LINES and edited.lines > edited.lines_before:
            raise _No("size", f"its body would have {edited.lines} lines; at most {MAX_OLD_LINES}")
        size, size_before = len(edited.data), len(draft.text)
        if size > MAX_BODY_BYTES and size > size_before:
            raise _No("size", f"it would have {size:,} bytes; at most {MAX_BODY_BYTES:,}")
        _clean(
            new_findings(edited.description_before, edited.description, where="description")
            + new_findings(edited.body_before, edited.body, where="body")
            or new_findings(edited.header_before, edited.header, where="body")
        )
        stood = sum(bool(line.strip()) for line in edited.body_before.splitlines())
        if edited.lost_lines > MAX_LOST_LINES or (edited.lost_lines >= FEW_LINES and 2 * edited.lost_lines > stood):
            draft.waits.append(f"it takes out {edited.lost_lines} lines of {stood}")
        draft.waits += suspicions(draft.text.decode(), edited.data.decode(), self.said)
        draft.text = edited.data
        draft.described = draft.described or edited.described
        self._note(draft, operation, evidence)

    def _note(self, draft: _Draft, operation: Operation, evidence: Collection[str]) -> None:
        draft.operations.append(operation)
        draft.evidence += [i for i in evidence if i not in draft.evidence]

    # -- support files

    def _write_file(self, operation: WriteFile) -> None:
        evidence = self._evidence(operation)
        path = support_path(operation.path)
        if path is None:
            raise _No("path", f"not a place for a support file: {shorten(operation.path, 80)}")
        content = operation.content.encode("utf-8", "replace")
        if not operation.content.strip():
            raise _No("nothing", "the file would be empty")
        if len(content) > MAX_FILE_BYTES:
            raise _No("size", f"the file would have {len(content):,} bytes; at most {MAX_FILE_BYTES:,}")
        self._unmarked("", operation.content)
        _clean(screen(operation.content, where="file", path=path) + _screened_name(path))
        if self.new is not None and skeleton(operation.skill) == skeleton(self.new.key.name):
            if path in self.new.files:
                raise _No("exists", f"{path} is written already, and the first stays")
            _placed(path, self.new.files)
            self.new.files[path] = content
            self.new.written[path] = operation
            return
        draft = self._target(operation.skill)
        there = {fold(other): other for other in (*draft.skill.files, *draft.files)}
        _placed(path, there.values())
        twin = there.get(fold(path))
        before = draft.files.get(path) or draft.skill.files.get(path)
        if twin is not None and before is None:
            raise _No("exists", f"{path} stands there, and its content was not read")
        if before == content:
            raise _No("nothing", f"{path} says that already")
        if before is not None and (lost := _lost(before, content)):
            raise _No("exists", f"{path} stands there, and {lost} of its lines would be lost")
        if twin is None and len(there) >= MAX_FILES:
            raise _No("size", f"it has {len(there)} support files; at most {MAX_FILES}")
        total = len(content) + sum(
            len(data)
            for other, data in {**draft.skill.files, **draft.files}.items()
            if other != path and data is not None
        )
        if total > MAX_TOTAL_BYTES:
            raise _No("size", f"its files would have {total:,} bytes; at most {MAX_TOTAL_BYTES:,}")
        if is_script(path, content):
            draft.waits.append(f"guarded: it touches {path}")
        draft.waits += suspicions(
            "" if before is None else before.decode("utf-8", "replace"),
            operation.content,
            self.said,
            template=path.startswith("templates/"),
        )
        draft.files[path] = content
        self._note(draft, operation, evidence)

    def _changed(self, draft: _Draft) -> Change:
        """Return the one action that all operations on a skill make."""
        skill = draft.skill
        assert skill.fingerprint is not None, "asked when it was targeted"
        files = [FileChange(path=RelPath(path), content=content) for path, content in sorted(draft.files.items())]
        patches = draft.text != skill.text
        if patches:
            files.append(FileChange(path=RelPath(skill.entry_file), content=draft.text))
        reason = _reasons(draft.operations)
        kind = PatchSkill if patches else WriteSupportFile
        action = kind(key=skill.key, reason=reason, by="model", expected=skill.fingerprint, files=tuple(files))
        what = "patched" if patches else f"wrote {', '.join(sorted(draft.files))} of"
        return Change(
            action=action,
            wait=self._wait(skill, described=draft.described, waits=draft.waits),
            summary=shorten(f"{what} {skill.name}: {reason}", 200),
            reason=reason,
            evidence=tuple(draft.evidence),
        )

    def _wait(self, skill: SkillView, *, described: bool, waits: Sequence[str]) -> str | None:
        """Return why a change of *skill* must be a proposal, or None (contract, section 7)."""
        reasons = []
        if skill.edited is not None:
            reasons.append(skill.edited)
        if self.mode is Mode.REVIEW:
            reasons.append("mode is review")
        if self.mode is Mode.GUARDED and described:
            reasons.append("it changes the description, and mode is guarded")
        for wait in waits:
            if not wait.startswith("guarded: "):
                reasons.append(wait)
            elif self.mode is Mode.GUARDED:
                reasons.append(f"{wait.removeprefix('guarded: ')}, and mode is guarded")
        return "; ".join(dict.fromkeys(reasons)) or None

    # -- new skills

    def _create(self, operation: Create) -> None:
        evidence = self._evidence(operation)
        if self.new is not None:
            raise _No("cap", "at most one new skill a session")
        self._unmarked("", operation.content + operation.description + operation.when_to_use)
        made = compose(operation, self.view.layout)
        if not isinstance(made, NewSkill):
            raise _No(made.code, made.reason)
        self._free(operation, made)
        if made.lines > MAX_NEW_LINES:
            raise _No("size", f"its body would have {made.lines} lines; a new skill has at most {MAX_NEW_LINES}")
        if len(made.data) > MAX_BODY_BYTES:
            raise _No("size", f"it would have {len(made.data):,} bytes; at most {MAX_BODY_BYTES:,}")
        _clean(
            _screened_name(made.name)
            + screen(made.description, where="description")
            + screen(made.when_to_use, where="description")
            + screen(made.body, where="body")
        )
        like = too_like(
            self.view,
            name=made.name,
            description=f"{made.description} {made.when_to_use}".strip(),
            body=made.body,
            index=self.index,
        )
        # A name that only looks like another's is for a person to choose, and one who named it has chosen.
        if like is not None and (like.patch or not self._asked(evidence, made.name, by_name=True)):
            should = f"; it must be a patch of {like.skill.name}" if like.patch else ""
            raise _No("similar", like.why + should)
        identity = candidate_id(self.view.library, made.name)
        sessions = confirmed_by(self.candidates.get(identity), self.lineage, self.now, cited=bool(evidence))
        asked = self._asked(evidence, made.name)
        if asked or (evidence and sessions >= self.caps.create_after_sessions):
            if self.view.made_live >= self.caps.max_managed_skills:
                raise _No(
                    "cap",
                    f"{self.view.made_live} live skills are curatord's own; at most {self.caps.max_managed_skills}",
                )
            if self.view.made_today >= self.caps.max_new_per_day:
                raise _No("cap", f"{self.view.made_today} skills were made today; at most {self.caps.max_new_per_day}")
        self.new = _New(
            operation=operation,
            key=SkillKey(library=self.view.library, rel=RelPath(made.name)),
            made=made,
            evidence=evidence,
            sessions=sessions,
            asked=asked,
            candidate=identity,
        )

    def _free(self, operation: Create, made: NewSkill) -> None:
        """Refuse a name that is not free wherever the host would look."""
        if mixed_scripts(made.name):
            raise _No("name", f"the name {one_line(made.name)!r} mixes alphabets")
        below = next((skill for skill in self.view.skills if skill.key.rel.startswith(f"{made.name}/")), None)
        if below is not None:
            raise _No("taken", f"the folder {made.name} holds other skills, as {below.key.rel}")
        twins = self.view.twins_of(made.name)
        if twins:
            raise _No("taken", f"the skill {twins[0].key.rel} has that name; it must be a patch of it")
        shadows = {skeleton(name): place for name, place in self.view.shadowed.items()}
        if place := shadows.get(skeleton(made.name)):
            raise _No("shadowed", f"the host finds a skill of that name elsewhere: {place}")
        if skeleton(made.name) in {skeleton(name) for name in self.view.archived}:
            raise _No(
                "archived", f"a skill of that name is in the archive; `curatord restore {made.name}` brings it back"
            )

    def _asked(self, evidence: Collection[str], name: str, *, by_name: bool = False) -> bool:
        """
        Return whether a cited record of the user asks for it; one that names a skill asks for that one only.

        *by_name*: only one that names it counts.
        """
        for entry in self.digest.entries:
            if entry.role != "user" or entry.id not in evidence:
                continue
            wish = self.wishes.found(entry.text)
            if wish is None or (wish.name is None and by_name):
                continue
            if wish.name is None or skeleton(wish.name) == skeleton(name):
                return True
        return False

    def _born(self, new: _New) -> Change | Candidate:
        made, reason = new.made, one_line(new.operation.reason) or "a lesson of this session"
        needed = self.caps.create_after_sessions
        if not new.asked and (new.sessions < needed or not new.evidence):
            for path, operation in new.written.items():
                reason = f"{made.name} is only noted as yet, and {shorten(path, 80)} with it is not kept"
                self._refuse(operation, "candidate", reason)
            return Candidate(
                id=new.candidate,
                name=made.name,
                description=made.description,
                content_sha256=sha256(made.data).hexdigest(),
                sessions=new.sessions,
                sessions_needed=needed,
                summary=shorten(f"noted {made.name} ({new.sessions} of {needed} sessions): {reason}", 200),
                evidence=new.evidence,
            )
        files = [FileChange(path=RelPath(path), content=content) for path, content in sorted(new.files.items())]
        files.append(FileChange(path=RelPath("SKILL.md"), content=made.data, only_new=True))
        action = CreateSkill(key=new.key, reason=reason, by="model", files=tuple(files))
        waits = list(suspicions("", made.data.decode(), self.said))
        for path, content in new.files.items():
            waits += suspicions("", content.decode(), self.said, template=path.startswith("templates/"))
        if self.mode is Mode.REVIEW:
            waits.insert(0, "mode is review")
        if self.mode is Mode.GUARDED and not self.view.handed_over:
            waits.insert(0, "nothing of this library was ever handed over, and mode is guarded")
        if self.mode is Mode.GUARDED and any(is_script(path, data) for path, data in new.files.items()):
            waits.append("it brings a script, and mode is guarded")
        why = "asked for by the user" if new.asked else f"seen in {new.sessions} sessions"
        return Change(
            action=action,
            wait="; ".join(dict.fromkeys(waits)) or None,
            summary=shorten(f"created {made.name} ({why}): {reason}", 200),
            reason=reason,
            evidence=new.evidence,
            notes=made.notes,
            candidate=new.candidate,
        )


def _placed(path: str, there: Iterable[str]) -> None:
    """Refuse a path that could not stand beside those that are *there*, on this or another machine's file system."""
    parts = path.split("/")
    for other in there:
        if other == path:
            continue
        others = other.split("/")
        for mine, theirs in zip(parts, others, strict=False):
            if fold(mine) != fold(theirs):
                break
            if mine != theirs:
                raise _No("exists", f"{other} stands there, which differs only in case or Unicode form")
        else:
            what = "a folder" if len(others) > len(parts) else "a file"
            raise _No("exists", f"{other} stands there, so that {'/'.join(others[: len(parts)])} is {what}")


def _screened_name(name: str) -> tuple[Finding, ...]:
    """Return what a name or path says that may not be written: it stands in every listing, with hyphens for blanks."""
    return screen(_BETWEEN_WORDS.sub(" ", name), where="description")


def _clean(findings: Sequence[Finding]) -> None:
    """Refuse what the screen found."""
    if findings:
        raise _No("screen", "; ".join(f"{f.words}: {f.excerpt}" for f in findings[:3]))


def _reasons(operations: Sequence[Operation]) -> str:
    reasons = dict.fromkeys(one_line(operation.reason) for operation in operations)
    return "; ".join(reason for reason in reasons if reason) or "a lesson of this session"


def _lost(before: bytes, after: bytes) -> int:
    """Return how many lines that say something are in *before* and not in *after*."""
    kept = {line.strip() for line in after.splitlines()}
    return sum(bool(line.strip()) and line.strip() not in kept for line in before.splitlines())
