"""What models answered before, so that nothing is asked twice; losing it costs money and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

__all__ = ["AnswerMemory"]


class AnswerMemory(Protocol):
    """
    Answers by a key made of content, prompt and model.

    A *scope* (task, library, prompt, model) groups those that may be heard about the same things.
    """

    def answer(self, key: str, *, now: datetime) -> bytes | None:
        """Return the answer kept under *key*, and note that it was of use; None where there is none."""
        ...

    def answers(self, scope: str) -> Sequence[bytes]:
        """Return all answers of *scope*, newest first."""
        ...

    def keep(self, key: str, scope: str, answer: bytes, *, now: datetime) -> None:
        """Keep *answer*, in place of what was kept under *key*."""
        ...

    def forget(self, *, before: datetime) -> int:
        """Forget answers of no use since *before*; return how many."""
        ...
