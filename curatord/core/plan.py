"""
What a run wants to do: a closed union of actions, a plan of them, and every reason why one may not be.

An action names the skills it is about, the reason in words, who wants it, and the fingerprints it was decided on. It
says *what* shall be so; which files that takes is worked out later, under the lock, by `passes.compile`, because only
then the disk is known. The writer asks `objections` again at that moment with fresh standings, so a plan that was
valid an hour ago cannot touch what was pinned, edited or taken away since (promises 2, 4, 10).

Two shapes cover all that is ever done to a package: it moves whole (archive, restore), or named files in it are
written (`PackageWrite`: a patch, a support file, a new skill, the umbrella of a merge). Everything else changes
records only.

Values are `msgspec.Struct`s and no dataclasses: a tagged union of them is its own JSON (`plan.json`, proposals).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, assert_never

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.journal import ArchiveItem, JournalEntry, Place
from curatord.core.values import Fingerprint, Importance, RelPath, SkillKey, State

__all__ = [
    "Action",
    "Actor",
    "Adopt",
    "Applied",
    "Archive",
    "BringBack",
    "CreateSkill",
    "Disown",
    "Failed",
    "FileChange",
    "MarkStale",
    "Member",
    "Merge",
    "Outcome",
    "PackageWrite",
    "Patch",
    "Pin",
    "Plan",
    "Reactivate",
    "Restore",
    "SetImportance",
    "SkipCode",
    "Skipped",
    "Standing",
    "Unpin",
    "Violation",
    "WriteSupportFile",
    "actions_from_json",
    "actions_to_json",
    "expectations",
    "fold",
    "objections",
    "targets",
    "validate",
]

Actor = Literal["rules", "model", "user"]

MAX_PATH_PARTS = 8  # deeper support files exist nowhere; a bound keeps descriptor walks short
MAX_PART_BYTES = 255  # NAME_MAX of every file system in use
# Names that cannot be checked out on Windows; a library is often a git repository that somebody clones there.
RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(1, 10))))


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """
    One file of a package as it shall be; *mode* None keeps what is there, or means 0644 for a new file.

    *only_new* refuses to replace what stands there already.
    """

    path: RelPath
    content: bytes
    mode: int | None = None
    only_new: bool = False


class PackageWrite(msgspec.Struct, frozen=True, kw_only=True):
    """Files of one package; *expected* None means that the package does not exist yet and is made by this."""

    key: SkillKey
    expected: Fingerprint | None
    files: tuple[FileChange, ...]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that a merge takes in; *absorbed* False means that the same decision prunes it."""

    key: SkillKey
    expected: Fingerprint
    reason: str
    absorbed: bool = True


class _OnSkill(msgspec.Struct, frozen=True, kw_only=True, tag_field="action"):
    """What actions on a single skill have in common; *proposal* is the id it was approved or remembered under."""

    key: SkillKey
    reason: str
    by: Actor = "rules"
    expected: Fingerprint | None = None
    proposal: str | None = None


class MarkStale(_OnSkill, frozen=True, kw_only=True, tag="mark_stale"):
    """active -> stale. No byte of the package changes."""


class Reactivate(_OnSkill, frozen=True, kw_only=True, tag="reactivate"):
    """stale -> active. No byte of the package changes."""


class Archive(_OnSkill, frozen=True, kw_only=True, tag="archive"):
    """
    The whole package moves into the archive.

    *drop_references* takes its name out of the host's schedules in the same action (a model's prune); a rule never
    archives what is referenced, and a user's own order leaves schedules alone, so that `restore` is all it takes.
    """

    drop_references: bool = False


class Restore(_OnSkill, frozen=True, kw_only=True, tag="restore"):
    """
    A package comes back out of the archive to *key*.

    *archived* is the name of the entry in the archive folder. The idle clock starts again.
    """

    archived: RelPath


class BringBack(_OnSkill, frozen=True, kw_only=True, tag="bring_back"):
    """
    A package comes back out of a backup, by a person's order; what stands there now goes into the archive.

    *staged* is where a whole copy of it was made, *backup* where that came from. *form* `file`: a single file of a flat
    layout. *into* is the entry of the archive that it comes back as, with *item* what was known of it; None: it comes
    back to where it stood in the library, and its idle clock starts again. *above* are the modes of the folders between
    the library and the package, for those that have to be made.
    """

    backup: str
    staged: Place
    form: Literal["folder", "file", "link"]
    into: RelPath | None = None
    item: ArchiveItem | None = None
    above: tuple[int, ...] = ()


class Pin(_OnSkill, frozen=True, kw_only=True, tag="pin"):
    """A person says that nothing of it may change."""


class Unpin(_OnSkill, frozen=True, kw_only=True, tag="unpin"):
    """A person takes that back."""


class SetImportance(_OnSkill, frozen=True, kw_only=True, tag="importance"):
    """A person says what it is worth."""

    importance: Importance


class Adopt(_OnSkill, frozen=True, kw_only=True, tag="adopt"):
    """A person hands it over, as it is now. The idle clock is left alone."""


class Disown(_OnSkill, frozen=True, kw_only=True, tag="disown"):
    """A person takes it back."""


class Patch(_OnSkill, frozen=True, kw_only=True, tag="patch"):
    """Files of a skill get new content, SKILL.md among them."""

    files: tuple[FileChange, ...]


class WriteSupportFile(_OnSkill, frozen=True, kw_only=True, tag="write_file"):
    """A file is added beside SKILL.md, or replaced."""

    files: tuple[FileChange, ...]


class CreateSkill(_OnSkill, frozen=True, kw_only=True, tag="create"):
    """A new package, curatord's own from then on."""

    files: tuple[FileChange, ...]


class Merge(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="merge"):
    """
    Narrow skills go into an umbrella, which is written first; then texts that point at them; they are archived last.

    *writes* holds the umbrella's package and those of other skills whose links follow, in order; references in the
    host's schedules follow in the same action.
    """

    umbrella: SkillKey
    reason: str
    writes: tuple[PackageWrite, ...]
    members: tuple[Member, ...]
    by: Actor = "model"
    proposal: str | None = None


Action: TypeAlias = (
    MarkStale
    | Reactivate
    | Archive
    | Restore
    | BringBack
    | Pin
    | Unpin
    | SetImportance
    | Adopt
    | Disown
    | Patch
    | WriteSupportFile
    | CreateSkill
    | Merge
)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Ordered actions; a plan is used once."""

    actions: tuple[Action, ...] = ()
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    What is true of a skill right now, on disk and by everybody's word.

    Attributes:
        there: Its package stands in the library.
        fingerprint: Its content; None where it is not there or cannot be read.
        managed: curatord may change it; *why* says in words why or why not.
        protected: Bundled, installed from a hub, external …: no decision of ours may reach the host's records either.
        broken: What is wrong with the package, or None.
        pinned: By our record or by the host's.
        state: As our record has it; None without a record.
    """

    key: SkillKey
    there: bool
    managed: bool = False
    why: str = ""
    fingerprint: Fingerprint | None = None
    protected: bool = False
    broken: str | None = None
    pinned: bool = False
    importance: Importance = Importance.NORMAL
    state: State | None = None


SkipCode: TypeAlias = Literal[
    "gone",  # what it is about is not there
    "edited",  # its content is not what it was decided on: the user's edit wins
    "pinned",
    "critical",
    "unmanaged",
    "broken",
    "taken",  # something stands where it should go
    "nothing",  # it is so already
    "unreadable",  # a file that has to be asked cannot be read, so nothing is done
    "busy",  # the host, or another curatord, is at work there
    "conflict",  # an unfinished action on the same skill waits for a human
    "invalid",  # nobody may ask for that, or not in that form
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why an action may not be; *index* is its place in the plan."""

    index: int
    key: SkillKey
    code: SkipCode
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """
    It is done, synced, and recorded as *entry*.

    *after* are the fingerprints of what was written, as it stands now. *note* is not empty where only our own second
    record is still behind.
    """

    action: Action | None
    entry: JournalEntry
    after: tuple[tuple[SkillKey, Fingerprint | None], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Nothing was changed, for a reason that is nobody's fault; *keys* are the skills that stood in the way."""

    action: Action | None
    code: SkipCode
    reason: str
    keys: tuple[SkillKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """
    It broke half-way. What had been done was taken back, except where *unfinished* says that not even that could be
    done now: then its intent waits in the journal for the next start. *errno* is the system's number for what happened,
    where it was the system's doing.
    """

    action: Action | None
    error: str
    unfinished: bool = False
    errno: int | None = None


Outcome: TypeAlias = Applied | Skipped | Failed

_DECISIONS = (Pin, Unpin, SetImportance, Adopt, Disown)


def targets(action: Action) -> tuple[SkillKey, ...]:
    """Return every skill that *action* changes in any way, the main one first, each once."""
    match action:
        case Merge():
            keys = [action.umbrella, *(w.key for w in action.writes), *(m.key for m in action.members)]
            return tuple(dict.fromkeys(keys))
        case _:
            return (action.key,)


def expectations(action: Action) -> tuple[tuple[SkillKey, Fingerprint | None], ...]:
    """Return the fingerprints that *action* was decided on; None: the package must not exist yet."""
    match action:
        case Merge():
            return (
                *((w.key, w.expected) for w in action.writes),
                *((m.key, m.expected) for m in action.members),
            )
        case CreateSkill() | Restore():
            return ((action.key, None),)
        case _:
            return () if action.expected is None else ((action.key, action.expected),)


def objections(action: Action, standings: Mapping[SkillKey, Standing], *, index: int = 0) -> tuple[Violation, ...]:
    """
    Return everything that speaks against *action* as things stand, worst first, or an empty tuple.

    Args:
        action: What is wanted.
        standings: What is true now of each of its `targets`; one that is missing counts as not there.
        index: Goes into the violations.
    """

    def no(key: SkillKey, code: SkipCode, what: str) -> Violation:
        return Violation(index=index, key=key, code=code, what=what)

    def of(key: SkillKey) -> Standing:
        return standings.get(key) or Standing(key=key, there=False)

    found: list[Violation] = []
    if isinstance(action, _DECISIONS) and action.by != "user":
        found.append(no(action.key, "invalid", "only a person may decide that"))
    match action:
        case MarkStale() | Reactivate() | Archive():
            standing = of(action.key)
            found += [no(*why) for why in _may_not_change(standing, action.expected, required=action.by != "user")]
            if isinstance(action, MarkStale) and standing.state not in (None, State.ACTIVE):
                found.append(no(action.key, "nothing", f"it is {standing.state} already"))
            if isinstance(action, Reactivate) and standing.state is not State.STALE:
                found.append(no(action.key, "nothing", f"it is {standing.state or 'active'}, not stale"))
        case Restore():
            if of(action.key).there:
                found.append(no(action.key, "taken", f"a skill stands at {action.key} again"))
            if not _inside(action.archived):
                found.append(no(action.key, "invalid", f"not the name of an archived package: {action.archived!r}"))
        case BringBack():
            if action.by != "user":
                found.append(no(action.key, "invalid", "only a person may order that"))
        case Pin() | Unpin() | SetImportance() | Disown():
            if not of(action.key).there and of(action.key).state is None:
                found.append(no(action.key, "gone", "there is no such skill"))
        case Adopt():
            standing = of(action.key)
            if not standing.there:
                found.append(no(action.key, "gone", "there is no such skill in the library"))
            elif standing.broken is not None:
                found.append(no(action.key, "broken", standing.broken))
            elif standing.protected:
                found.append(no(action.key, "unmanaged", standing.why))
        case Patch() | WriteSupportFile():
            found += [no(*why) for why in _may_not_change(of(action.key), action.expected, required=True)]
            found += [no(action.key, "invalid", why) for why in _bad_files(action.files)]
        case CreateSkill():
            found += [no(*why) for why in _may_not_appear(of(action.key))]
            found += [no(action.key, "invalid", why) for why in _bad_files(action.files, new=True)]
        case Merge():
            found += _against_merge(action, of, no)
        case _:
            assert_never(action)
    return tuple(found)


def validate(plan: Plan, facts: Mapping[SkillKey, Standing]) -> tuple[Violation, ...]:
    """
    Return every reason why *plan* may not be applied as a whole, in the order of its actions; all at once.

    Args:
        plan: What is wanted.
        facts: What is true of every skill of every library that the plan touches.

    Beside what `objections` says of each action: no skill is changed by two actions, no new skill differs from another
    only in case or Unicode form, and nothing goes into an umbrella that itself goes away.
    """
    found: list[Violation] = []
    first: dict[SkillKey, int] = {}
    for index, action in enumerate(plan.actions):
        found += objections(action, facts, index=index)
        for key in targets(action):
            # A person's decisions may come in a row (pin after adopt); changes of one skill may not.
            if not isinstance(action, _DECISIONS) and first.setdefault(key, index) != index:
                found.append(
                    Violation(index=index, key=key, code="invalid", what=f"action {first[key] + 1} changes it already")
                )
    going = {key: index for index, action in enumerate(plan.actions) for key in _goes_away(action)}
    for index, action in enumerate(plan.actions):
        if isinstance(action, Merge) and going.get(action.umbrella, index) != index:
            what = f"it would be an umbrella, but action {going[action.umbrella] + 1} takes it away"
            found.append(Violation(index=index, key=action.umbrella, code="invalid", what=what))
    found += _twins(plan, facts)
    return tuple(sorted(found, key=lambda violation: violation.index))


def actions_to_json(actions: Sequence[Action]) -> bytes:
    """Return *actions* as one JSON array, as a stored proposal holds them."""
    return msgspec.json.encode(list(actions))


def actions_from_json(data: bytes) -> tuple[Action, ...]:
    """Return the actions in *data*; anything else is a `ValueError` that says where it differs."""
    return msgspec.json.decode(data, type=tuple[Action, ...])


class _Of(Protocol):
    def __call__(self, key: SkillKey, /) -> Standing: ...


class _No(Protocol):
    def __call__(self, key: SkillKey, code: SkipCode, what: str, /) -> Violation: ...


_Why: TypeAlias = tuple[SkillKey, SkipCode, str]


def _may_not_change(standing: Standing, expected: Fingerprint | None, *, required: bool) -> Iterable[_Why]:
    key = standing.key
    if not standing.there:
        yield key, "gone", "it is not in the library any more"
        return
    if standing.broken is not None:
        yield key, "broken", standing.broken
    if not standing.managed:
        yield key, "unmanaged", standing.why or "it was not handed over"
    if standing.pinned:
        yield key, "pinned", "it is pinned"
    if standing.importance is Importance.CRITICAL:
        yield key, "critical", "its importance is critical"
    if expected is None:
        if required:
            yield key, "invalid", "it does not say which content it was decided on"
    elif standing.fingerprint is None:
        yield key, "unreadable", "its content cannot be read"
    elif standing.fingerprint != expected:
        yield key, "edited", "it was edited since this was decided"


def _may_not_appear(standing: Standing) -> Iterable[_Why]:
    if standing.there:
        yield standing.key, "taken", f"a skill stands at {standing.key} already"
    for why in _bad_new_name(standing.key.rel):
        yield standing.key, "invalid", why


def _against_merge(action: Merge, of: _Of, no: _No) -> Iterable[Violation]:
    members = [member.key for member in action.members]
    umbrella = next((write for write in action.writes if write.key == action.umbrella), None)
    if not members:
        yield no(action.umbrella, "invalid", "nothing goes into it")
    if umbrella is None and any(member.absorbed for member in action.members):
        yield no(action.umbrella, "invalid", "it takes skills in, but nothing is written into it")
    if action.umbrella in members:
        yield no(action.umbrella, "invalid", "it would go into itself")
    seen: set[SkillKey] = set()
    for key in [*(write.key for write in action.writes), *members]:
        if key in seen:
            yield no(key, "invalid", "it is named twice")
        if key.library != action.umbrella.library:
            yield no(key, "invalid", "it is in another library")
        seen.add(key)
    for write in action.writes:
        if write.expected is None:
            for why in _may_not_appear(of(write.key)):
                yield no(*why)
        else:
            for why in _may_not_change(of(write.key), write.expected, required=True):
                yield no(*why)
        for what in _bad_files(write.files, new=write.expected is None):
            yield no(write.key, "invalid", what)
    for member in action.members:
        for why in _may_not_change(of(member.key), member.expected, required=True):
            yield no(*why)


def _bad_files(files: Sequence[FileChange], *, new: bool = False) -> Iterable[str]:
    if not files:
        yield "it writes no file"
    if new and not any(file.path == "SKILL.md" for file in files):
        yield "a new skill needs a SKILL.md"
    seen: set[str] = set()
    for file in files:
        if not _plain_parts(file.path):
            yield f"not a path within a package: {file.path!r}"
        same = fold(file.path)
        if same in seen:
            yield f"{file.path!r} is written twice"
        seen.add(same)
        if file.mode is not None and file.mode & ~0o777:
            yield f"{file.path!r} would get mode {file.mode:o}"


def _bad_new_name(rel: RelPath) -> Iterable[str]:
    if not _plain_parts(rel) or any(part.startswith(".") for part in rel.split("/")):
        yield f"not a name that a skill may have: {rel!r}"


def _plain_parts(path: str) -> bool:
    """Return whether *path* is relative, stays inside, and can be checked out anywhere."""
    parts = path.split("/")
    return len(parts) <= MAX_PATH_PARTS and all(
        part not in ("", ".", "..")
        and len(part.encode("utf-8", "surrogatepass")) <= MAX_PART_BYTES
        and part.rstrip(". ") == part
        and part.partition(".")[0].casefold() not in RESERVED
        and not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") or sign in "\\:" for sign in part)
        for part in parts
    )


def _inside(path: str) -> bool:
    """Return whether *path* is relative and stays inside; whatever else its names hold, they are there already."""
    return all(part not in ("", ".", "..") and "\0" not in part for part in path.split("/"))


def fold(path: str) -> str:
    """Return *path* as a file system that knows neither case nor Unicode forms would see it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _goes_away(action: Action) -> Iterable[SkillKey]:
    if isinstance(action, Archive):
        yield action.key
    if isinstance(action, Merge):
        yield from (member.key for member in action.members)


def _twins(plan: Plan, facts: Mapping[SkillKey, Standing]) -> Iterable[Violation]:
    standing = {(key.library, fold(key.rel)): key for key in sorted(facts) if facts[key].there}
    for index, action in enumerate(plan.actions):
        made: list[SkillKey] = []
        if isinstance(action, CreateSkill | Restore):
            made = [action.key]
        elif isinstance(action, Merge):
            made = [write.key for write in action.writes if write.expected is None]
        for key in made:
            other = standing.setdefault((key.library, fold(key.rel)), key)
            if other != key:
                what = f"it differs from {other} only in case or Unicode form"
                yield Violation(index=index, key=key, code="taken", what=what)
