"""The words a model is asked with: files of the package, or a user's own in their place."""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

from curatord.core.cheap import dataclass

__all__ = ["Prompt", "Prompts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt file; *own* tells that the user replaced it."""

    name: str
    text: str
    own: bool = False

    @property
    def sha256(self) -> str:
        """Lower-case hex over its text, as `run.json` shows it."""
        return sha256(self.text.encode()).hexdigest()


class Prompts(Protocol):
    """Reads prompt files."""

    def read(self, name: str) -> Prompt:
        """
        Return the prompt `<name>.md`; a name with a dot (`wishes.txt`) is that of the whole file.

        Raises:
            ConfigError: The user's file cannot be used.
        """
        ...
