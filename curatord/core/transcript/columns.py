"""Values of a database's columns: SQLite lets any type stand in any column."""

from __future__ import annotations

__all__ = ["column_bytes", "column_text", "column_text_or_none"]


def column_text(value: object) -> str:
    """Return *value* as text; of NULL the empty one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def column_text_or_none(value: object) -> str | None:
    """Return *value* as text; of NULL, None."""
    return None if value is None else column_text(value)


def column_bytes(value: object) -> bytes:
    """Return *value* as the bytes of a text; of NULL none."""
    if isinstance(value, bytes):
        return value
    return b"" if value is None else str(value).encode("utf-8", "replace")
