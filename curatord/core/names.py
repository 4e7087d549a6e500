"""
Names of skills and files, in a module of its own: a look at an unchanged library needs these and no parser.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

__all__ = ["SKILL_FILE", "Layout", "names_agree"]

SKILL_FILE = "SKILL.md"

Layout: TypeAlias = Literal["agent-skills", "hermes", "flat"]


def names_agree(package: str, header_name: str | None) -> Literal["same", "spelling", "other"]:
    """
    Return how the header's name stands to the package's own name.

    `same` also where the header has none; `spelling` where they differ only in case, blanks, `_`, `-` or Unicode form
    (contract, section 6); `other` makes the skill a broken one, since hosts disagree on which counts (bugs B068).
    """
    if header_name is None or header_name == package:
        return "same"
    return "spelling" if _folded(package) == _folded(header_name) else "other"


def _folded(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return re.sub(r"[\s_-]+", "-", folded).strip("-")
