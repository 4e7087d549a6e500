"""Paths as text."""

from __future__ import annotations

import pytest

from curatord.core.path_text import printable_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b.jsonl", "/a/b.jsonl"),
        ("/a/käse", "/a/käse"),
        (b"/a/k\xe4se".decode("utf-8", "surrogateescape"), r"/a/k\xe4se"),
        (b"/\xf0\x9f".decode("utf-8", "surrogateescape"), r"/\xf0\x9f"),
    ],
)
def test_a_path_is_printable_with_bytes_that_are_no_text(path: str, expected: str) -> None:
    """And stays as it is where it is text."""
    shown = printable_path(path)

    assert expected == shown
    assert shown.encode()
    assert shown == printable_path(shown)
