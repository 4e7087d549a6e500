"""
Every error curatord raises on purpose, sorted by whose fault it is and what to do::

    CuratorError                      has `hint`: what the reader can do now
    ├─ UsageError                     what was asked for cannot be       -> say why, 2
    ├─ ConfigError                    the user's file or flags           -> stop, 2
    ├─ StateError                     our own files                      -> stop, 4
    │  ├─ StateTooNewError            written by a newer curatord
    │  ├─ StateForbiddenError         this user may not use it; only a person can change that
    │  └─ StateCorruptError           damaged; set aside, never replaced by an empty one
    ├─ BusyError                      another instance is at work        -> 5
    ├─ InputError                     others' data                       -> set that item aside, go on
    │  ├─ TranscriptError             has `offset` (bytes)
    │  └─ OwnershipError              an ownership file cannot be read: its library is protected
    ├─ ModelError                     -> ends the model pass, keeps the rest
    │  ├─ ModelUnavailableError       has `retry_after` (seconds or None)
    │  ├─ ModelMisbehavedError        the reply cannot be used
    │  └─ BudgetExhaustedError        has `limit`: which one
    └─ StoppedError                   a signal asked us to stop          -> 130 / 143

Expected outcomes are values, not exceptions (`Skipped`, `Closed`, `Restart`, `Violation`).
"""

from __future__ import annotations

__all__ = [
    "BudgetExhaustedError",
    "BusyError",
    "ConfigError",
    "CuratorError",
    "InputError",
    "ModelError",
    "ModelMisbehavedError",
    "ModelUnavailableError",
    "OwnershipError",
    "StateCorruptError",
    "StateError",
    "StateForbiddenError",
    "StateTooNewError",
    "StoppedError",
    "TranscriptError",
    "UsageError",
]


class CuratorError(Exception):
    """Root of all errors raised on purpose; *hint* says what the reader can do now."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CuratorError):
    """What was asked for cannot be done, and asking again the same way will not help."""

    exit_code = 2


class ConfigError(CuratorError):
    """The configuration, by file or environment, is wrong; *file*, *line* (1-based) and *key* say where."""

    exit_code = 2

    def __init__(self, message: str, *, file: str = "", line: int = 0, key: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.key = key


class StateError(CuratorError):
    """Our own files cannot be used as they are."""

    exit_code = 4


class StateTooNewError(StateError):
    """State was written by a newer curatord; *have* and *need* are schema versions."""

    def __init__(self, message: str, *, have: int, need: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.have = have
        self.need = need


class StateForbiddenError(StateError):
    """The state folder is not this user's to use: no later start finds it otherwise."""


class StateCorruptError(StateError):
    """State is damaged; it is kept for inspection and never replaced silently."""


class BusyError(CuratorError):
    """Another curatord holds the lock; *holder* says who where known."""

    exit_code = 5

    def __init__(self, message: str, *, holder: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class InputError(CuratorError):
    """Other programs' data cannot be read; only that item is set aside."""


class TranscriptError(InputError):
    """A transcript cannot be read at *offset* (bytes)."""

    def __init__(self, message: str, *, offset: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.offset = offset


class OwnershipError(InputError):
    """An ownership file cannot be read, so nothing it might protect is touched."""


class ModelError(CuratorError):
    """A model could not help; the pass that asked ends, what the rules did stays."""


class ModelUnavailableError(ModelError):
    """The endpoint cannot work now; *retry_after* is in seconds where it said so."""

    def __init__(self, message: str, *, retry_after: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ModelMisbehavedError(ModelError):
    """The reply is cut, of the wrong shape, or names what is not there."""


class BudgetExhaustedError(ModelError):
    """
    The next call would pass *limit*; nothing was spent on it.

    *alone*: it would pass it by itself, whatever else was spent. *replied*: what was wrong with a reply that the same
    question had before, so that the budget went into it; empty where it was never asked.
    """

    def __init__(self, message: str, *, limit: str, hint: str = "", alone: bool = False, replied: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit = limit
        self.alone = alone
        self.replied = replied


class StoppedError(CuratorError):
    """A signal asked us to stop between two actions; *signal* is its number."""

    def __init__(self, message: str, *, signal: int) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = 128 + signal
