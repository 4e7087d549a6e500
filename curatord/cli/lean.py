"""
msgspec without what it asks for in vain.

It takes two names from `typing_extensions` where that is installed, which `typing` itself has in every Python that
curatord runs on. That module brings `inspect`, `ast` and `tokenize` along: a third of what importing msgspec costs, and
as much as reading a thousand unchanged skills.
"""

from __future__ import annotations

import sys

__all__ = ["load_msgspec"]


def load_msgspec() -> None:
    """Import msgspec; for the start of a process, before anything else imports it or has a second thread."""
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # how an import is made to fail
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
