"""
`<state_dir>/decisions.json`: adoption, pins, importance, rejections, what curatord made, and where archived packages
came from; a plain file that a person can read and that survives a lost database.

It is written after the database, in the same action, and read only to refill a lost one. What this version does not
know in it is carried along. A file that cannot be read stops whatever would write it; it is never replaced.

The whole file is written for each action, also where one command does thousands: an action's intent is kept until it
stands in both places, and to hold back the file would mean to hold back thousands of intents. So reading and writing
must be quick: it is decoded and encoded by msgspec, and by the slower standard library only where a name is not UTF-8.

Shape: `{"version": 1, "skills": {LIBRARY: {PATH: {owner, owner_at, pinned, importance}}}, "rejected": {ID: {at,
reason}}, "archive": {LIBRARY: {ENTRY: {path, at, reason, action_id, absorbed_into, fingerprint}}}}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from curatord.adapters.disk import Disk
from curatord.core.cheap import dataclass, field
from curatord.core.journal import ArchiveItem, JournalEntry
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, Fingerprint, LibraryName, RelPath, SkillKey
from curatord.errors import StateCorruptError, StateError
from curatord.ports.decisions import Decision, KnownDecisions, Rejection

__all__ = ["DecisionsFile"]

FILE_NAME = "decisions.json"
_DEFAULT = Decision()


@dataclass(slots=True, kw_only=True)
class DecisionsFile:
    """The real `Decisions`. Callers hold the work lock while they write."""

    state_dir: Path
    disk: Disk = field(default_factory=Disk)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.state_dir / FILE_NAME

    def load(self) -> KnownDecisions:
        """See `Decisions.load`."""
        document = self._read()
        try:
            skills = {
                _key(library, rel): msgspec.convert(told, Decision)
                for library, rels in document.get("skills", {}).items()
                for rel, told in rels.items()
            }
            rejected = {
                id_: msgspec.convert({**told, "id": id_}, Rejection)
                for id_, told in document.get("rejected", {}).items()
            }
            archive = tuple(
                _item(library, entry, told)
                for library, entries in document.get("archive", {}).items()
                for entry, told in entries.items()
            )
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise self._damaged(str(error)) from error
        paused = document.get("paused_since")
        return KnownDecisions(
            skills=skills,
            rejected=rejected,
            archive=archive,
            paused_since=paused if isinstance(paused, str) else None,
        )

    def record(self, entry: JournalEntry) -> None:
        """See `Decisions.record`."""
        decided = [change for change in entry.changes if _decision_changed(change.before, change.after)]
        rejects = entry.proposal is not None and entry.undoes is not None
        if not decided and not entry.archive and not rejects:
            return

        def edit(document: dict[str, Any]) -> None:
            for change in decided:
                of_library = document.setdefault("skills", {}).setdefault(change.key.library, {})
                told = of_library.setdefault(change.key.rel, {})
                told.update(msgspec.to_builtins(Decision.of(change.after)))
                if Decision.of(change.after) == _DEFAULT and set(told) <= set(msgspec.to_builtins(_DEFAULT)):
                    del of_library[change.key.rel]
            for moved in entry.archive:
                for item in (moved.before, moved.after):
                    if item is not None:
                        document.setdefault("archive", {}).setdefault(item.key.library, {}).pop(item.path, None)
                if moved.after is not None:
                    document["archive"][moved.after.key.library][moved.after.path] = _told(moved.after)
            if rejects:
                document.setdefault("rejected", {})[entry.proposal] = _rejection(entry.at, entry.reason)

        self._change(edit)

    def pause(self, since: str | None) -> None:
        """See `Decisions.pause`."""

        def edit(document: dict[str, Any]) -> None:
            if since is None:
                document.pop("paused_since", None)
            else:
                document["paused_since"] = since

        self._change(edit)

    def reject(self, *rejections: Rejection) -> None:
        """See `Decisions.reject`."""

        def edit(document: dict[str, Any]) -> None:
            for rejection in rejections:
                document.setdefault("rejected", {})[rejection.id] = _rejection(rejection.at, rejection.reason)

        self._change(edit)

    def _change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        document, data = self._read_with_bytes()
        try:
            edit(document)
        except (TypeError, AttributeError, KeyError) as error:
            raise self._damaged(f"it has another shape: {error}") from error
        new = _encoded(document)
        if new != data:
            try:
                self.disk.put(self.path, new)
            except OSError as error:
                raise StateError(
                    f"{self.path} cannot be written: {error.strerror or error}",
                    hint="look at the state folder's room and permissions; then say it again",
                ) from error

    def _read(self) -> dict[str, Any]:
        return self._read_with_bytes()[0]

    def _read_with_bytes(self) -> tuple[dict[str, Any], bytes | None]:
        try:
            data = self.path.read_bytes()
            document = _decoded(data)
        except FileNotFoundError:
            return {"version": 1}, None
        except OSError as error:
            raise StateError(
                f"{self.path} cannot be read: {error}", hint="look at its permissions; nothing was changed"
            ) from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(document, dict):
            raise self._damaged("it holds no object")
        return document, data

    def _damaged(self, why: str) -> StateCorruptError:
        return StateCorruptError(
            f"{self.path} cannot be read: {why}",
            hint="mend it, or move it away to go on with what the database has; it is never replaced",
        )


def _decoded(data: bytes) -> Any:
    """Return what JSON *data* says; bytes that are no UTF-8, which names of files may hold, become lone surrogates."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):  # the standard library takes more, and says better what is wrong
        return json.loads(data.decode("utf-8", "surrogateescape"))


def _encoded(document: dict[str, Any]) -> bytes:
    """Return *document* as JSON for a reader, with sorted keys; the same bytes whichever of the two made them."""
    try:
        return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2) + b"\n"
    except (UnicodeEncodeError, TypeError):  # a lone surrogate
        text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "surrogateescape")


def _decision_changed(before: SkillRecord | None, after: SkillRecord) -> bool:
    return (_DEFAULT if before is None else Decision.of(before)) != Decision.of(after)


def _rejection(at: datetime, reason: str) -> dict[str, str]:
    return {"at": at.isoformat(), "reason": reason}


def _key(library: str, rel: str) -> SkillKey:
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def _told(item: ArchiveItem) -> dict[str, Any]:
    return {
        "path": item.key.rel,
        "at": item.at.isoformat(),
        "reason": item.reason,
        "action_id": item.action_id,
        "absorbed_into": item.absorbed_into,
        "fingerprint": item.fingerprint,
    }


def _item(library: str, entry: str, told: dict[str, Any]) -> ArchiveItem:
    fingerprint = told.get("fingerprint")
    return ArchiveItem(
        key=_key(library, told["path"]),
        path=RelPath(entry),
        at=msgspec.convert(told["at"], datetime),
        reason=str(told.get("reason", "")),
        action_id=ActionId(str(told.get("action_id", ""))),
        absorbed_into=told.get("absorbed_into"),
        fingerprint=None if fingerprint is None else Fingerprint(str(fingerprint)),
    )
