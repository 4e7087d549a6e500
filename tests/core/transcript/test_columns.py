"""A column of another program's database may hold any type."""

from __future__ import annotations

import pytest

from curatord.core.transcript.columns import column_bytes, column_text, column_text_or_none


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), ("", ""), (b"a\xff", "a\ufffd"), (7, "7"), (1.5, "1.5"), (0, "0"), (None, None)],
)
def test_any_value_is_text(value: object, text: str | None) -> None:
    """Broken UTF-8 is replaced; NULL is told from an empty text where that matters."""
    assert text == column_text_or_none(value)
    assert (text or "") == column_text(value)


@pytest.mark.parametrize(
    ("value", "data"), [("é", "é".encode()), (b"\xff", b"\xff"), (7, b"7"), (None, b""), ("\ud800", b"?")]
)
def test_any_value_is_bytes(value: object, data: bytes) -> None:
    """Bytes stay as they are, a lone surrogate becomes a question mark."""
    assert data == column_bytes(value)
