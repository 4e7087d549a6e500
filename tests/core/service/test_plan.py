"""What installing and uninstalling do to a file follows from what stands there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.service.mark import signed, standing_of
from curatord.core.service.plan import install, uninstall

OLD, NEW = signed("old\n"), signed("new\n")


@given(st.text().map(lambda text: text + "\n"), st.sampled_from([("# ", ""), ("<!-- ", " -->")]))
def test_a_file_as_it_was_written_is_ours(text: str, comment: tuple[str, str]) -> None:
    """Whatever it holds."""
    assert "ours" == standing_of(signed(text, comment=comment))


@given(st.data())
def test_one_letter_more_or_less_is_a_change(data: st.DataObject) -> None:
    """Anywhere in the file, its last line too: then it is not ours any more."""
    text = signed("[Unit]\nDescription=x\n\n[Service]\nNice=10\n")
    at = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.sampled_from(["", "x", "\n", " "]))
    changed = text[:at] + new + text[at + 1 :]

    assert ("ours" == standing_of(changed)) == (changed == text)


@pytest.mark.parametrize("more", ["Nice=5\n", "\n", "# note\n", "[Install]\n"])
def test_lines_behind_the_last_are_a_change(more: str) -> None:
    """The fingerprint is of all before it, so nothing may come behind it."""
    assert "changed" == standing_of(OLD + more)


@pytest.mark.parametrize(
    ("there", "replace", "act", "keep_as"),
    [
        (None, False, "write", ""),
        (NEW, False, "keep", ""),
        (OLD, False, "replace", ""),
        (OLD + "Nice=5\n", False, "refuse", ""),
        ("by hand\n", False, "refuse", ""),
        ("", False, "refuse", ""),
        ("by hand\n", True, "replace", "/u.before"),
        (OLD + "Nice=5\n", True, "replace", "/u.before"),
        (OLD, True, "replace", ""),
    ],
)
def test_install(there: str | None, replace: bool, act: str, keep_as: str) -> None:
    """Ours and unchanged is replaced, anything else only when that was asked for, and then kept."""
    (change,) = install({"/u": NEW}, {"/u": there}, replace=replace)

    assert (act, keep_as) == (change.act, change.keep_as)


@pytest.mark.parametrize(
    ("there", "act"),
    [(None, "keep"), (OLD, "remove"), (OLD + "Nice=5\n", "refuse"), ("by hand\n", "refuse"), ("", "refuse")],
)
def test_uninstall(there: str | None, act: str) -> None:
    """Only what we wrote and nobody changed goes."""
    (change,) = uninstall(["/u"], {"/u": there})

    assert act == change.act
