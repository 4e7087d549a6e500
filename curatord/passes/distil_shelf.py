"""
Libraries as distilling sees them: made from a run's look at the disk, and kept true while the pass changes them.

Texts are read when they are wanted: bodies of a small library once, for likeness; the whole package of a skill only
when it is shown to a model or about to be changed. What lies beyond the bounds is judged by name, description and
headings alone (bugs K05).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from curatord.core.affinity import host_of
from curatord.core.cheap import dataclass, field, replace
from curatord.core.distil.view import LibraryView, SkillView
from curatord.core.header import Fault
from curatord.core.skill import parse_skill
from curatord.core.values import Fingerprint, LibraryName, SkillKey, State
from curatord.errors import InputError

if TYPE_CHECKING:
    from curatord.core.cluster_index import Index
    from curatord.core.library import Skill
    from curatord.core.lifecycle import SkillFacts
    from curatord.core.umbrella.packed import Packed
    from curatord.passes.look import Look
    from curatord.ports.packages import PackageReader

__all__ = ["Shelf"]

READ_SKILLS = 400  # bodies of a library with more skills than this are not read for likeness
READ_BYTES = 8 * 1024 * 1024
BODY_CHARS = 6_000  # of each, as the umbrella pass measures


@dataclass(slots=True, kw_only=True)
class Shelf:
    """
    The libraries of one look.

    *look* is replaced by `renew` when the disk was found to be otherwise than it says.
    """

    look: Look
    packages: PackageReader
    made_today: int = 0
    _views: dict[LibraryName, LibraryView] = field(default_factory=dict)
    _indexes: dict[LibraryName, Index] = field(default_factory=dict)

    def renew(self, look: Look) -> None:
        """Go on from another look."""
        self.look = look
        self._views.clear()
        self._indexes.clear()

    def why_closed(self, name: LibraryName) -> str | None:
        """Return why nothing in the library may be changed, in words, or None."""
        library = self.look.libraries.get(name)
        if library is None:
            return f"there is no library {name}"
        if library.snapshot.observe_only:
            return next(p.words for p in library.snapshot.problems if p.severity != "note")
        if not library.snapshot.complete:
            return "not all of it could be listed"
        return "nothing in it is handed over (`manage: none`)" if library.settings.manage == "none" else None

    def why_not_now(self, name: LibraryName) -> str | None:
        """Return why nothing in a library may be changed just now, where that may pass by itself, or None."""
        library = self.look.libraries.get(name)
        passing = library is not None and (library.snapshot.observe_only or not library.snapshot.complete)
        return self.why_closed(name) if passing else None

    def view(self, name: LibraryName, peers: Collection[LibraryName] = ()) -> LibraryView:
        """
        Return the library; *peers* are others that its sessions look into. There and in all libraries of its host a
        name may be taken as well.
        """
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = self._made(name)
        ours = self.look.libraries.get(name)
        host = host_of(ours.settings) if ours is not None else None
        beside = {other for other, library in self.look.libraries.items() if host and host_of(library.settings) == host}
        shadowed: dict[str, str] = {
            skill.name: f"library {peer}"
            for peer in sorted({*peers, *beside})
            if peer != name and peer in self.look.libraries
            for skill in self.look.libraries[peer].snapshot.skills
        }
        return replace(view, shadowed=shadowed, made_today=self.made_today)

    def index(self, name: LibraryName) -> Index:
        """Return what likeness in the library is measured in."""
        index = self._indexes.get(name)
        if index is None:
            index = self._indexes[name] = self.view(name).index()
        return index

    def with_texts(self, view: LibraryView, keys: Iterable[SkillKey]) -> LibraryView:
        """Return *view* with the packages of *keys* read whole; what cannot be read stays without a text."""
        wanted = set(keys)
        skills = tuple(self._whole(skill) if skill.key in wanted else skill for skill in view.skills)
        return replace(view, skills=skills)

    def text(self, skill: SkillView) -> bytes | None:
        """Return the SKILL.md of *skill*, or None where it cannot be read."""
        return skill.text if skill.text is not None else self._whole(skill).text

    def changed(self, key: SkillKey, fingerprint: Fingerprint | None) -> Packed | None:
        """Take note that a package of ours was written; return what stands there now, None where it cannot be read."""
        package = self._package(key)
        view = self._views.get(key.library)
        if view is None:
            return package
        others = [skill for skill in view.skills if skill.key != key]
        before = next((skill for skill in view.skills if skill.key == key), None)
        after = _read(replace(before or SkillView(key=key), fingerprint=fingerprint), package)
        self._views[key.library] = replace(
            view,
            skills=tuple(sorted((*others, after), key=lambda skill: skill.key.place)),
            made_live=view.made_live + int(before is None),
            handed_over=True,
        )
        self._indexes.pop(key.library, None)
        return package

    def _package(self, key: SkillKey) -> Packed | None:
        skill = self.look.live.get(key)
        root = self.look.libraries[key.library].snapshot.root
        try:
            if skill is not None:
                return self.packages.read(skill)
            return self.packages.read_at(key, f"{root}/{key.rel}")
        except InputError:
            try:
                return self.packages.read_at(key, f"{root}/{key.rel}.md")
            except InputError:
                return None

    # -- making

    def _made(self, name: LibraryName) -> LibraryView:
        library = self.look.libraries[name]
        snapshot = library.snapshot
        closed = self.why_closed(name)
        facts = {key: its for key, its in self.look.facts.items() if key.library == name}
        live = [its for its in facts.values() if its.record.state is not State.ARCHIVED]
        read = len(snapshot.skills) <= READ_SKILLS and sum(s.content.bytes for s in snapshot.skills) <= READ_BYTES * 4
        return LibraryView(
            library=name,
            layout=snapshot.layout,
            skills=tuple(
                self._skill(skill, facts.get(skill.key), closed, read=read)
                for skill in sorted(snapshot.skills, key=lambda skill: skill.key.place)
            ),
            archived=tuple(sorted(package.name for package in snapshot.archived)),
            handed_over=library.settings.manage == "all" or any(its.managed for its in facts.values()),
            made_live=sum(its.record.owner == "curatord" for its in live),
            made_today=self.made_today,
        )

    def _skill(self, skill: Skill, facts: SkillFacts | None, closed: str | None, *, read: bool) -> SkillView:
        body = "\n".join(skill.content.headings)
        if read and skill.broken is None:
            try:
                text = parse_skill(self.packages.entry(skill))
            except InputError:
                text = None
            if text is not None and not isinstance(text, Fault):
                body = text.body[:BODY_CHARS]
        locked = closed
        if locked is None and facts is None:
            locked = "nothing is known of it yet"
        if locked is None and facts is not None:
            locked = facts.exempt_by or facts.kept_by
        if locked is None and facts is not None and facts.record.state is State.ARCHIVED:
            locked = "it is archived"
        return SkillView(
            key=skill.key,
            description=skill.description,
            when_to_use=skill.content.when_to_use,
            body=body,
            fingerprint=skill.fingerprint,
            locked=locked,
            edited=facts.edited if facts is not None else None,
        )

    def _whole(self, view: SkillView) -> SkillView:
        return _read(view, self._package(view.key))


def _read(view: SkillView, package: Packed | None) -> SkillView:
    """Return *view* with what *package* holds."""
    if package is None:
        return view
    entry, text = package.file(package.entry), package.text
    if entry is None or isinstance(text, Fault):
        return view
    files: Mapping[str, bytes | None] = {file.path: file.data for file in package.support}
    return replace(
        view,
        text=entry.data,
        body=text.body[:BODY_CHARS],
        description=text.description,
        when_to_use=text.when_to_use,
        files=files,
        entry_file=package.entry,
    )
