"""The page of `doctor`: a line a subject, mends below, the exit code, and nothing that acts on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from curatord.cli.main import main
from tests.cli.fake_app import FakeApp


def a_check(name: str, level: str, **more: Any) -> dict[str, Any]:
    """Return a check as the application gives it."""
    mend = "" if level == "fine" else f"mend {name}"
    given = {"check": name, "ok": level != "failure", "level": level, "found": f"{name} is {level}", "mend": mend}
    return {**given, "details": [f"more of {name}"], **more}


def page(checks: list[dict[str, Any]], *arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Return the exit code and the lines of the page."""
    code = main(
        ["doctor", *arguments], environ={"HOME": "/nonexistent/home"}, factory=FakeApp({"doctor": checks}).opened
    )
    return code, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("level", "code"), [("fine", 0), ("note", 0), ("warning", 0), ("failure", 3)])
def test_only_a_failure_is_an_exit_code(level: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning works; scripts that want more read `level`."""
    assert code == page([a_check("state", level)], capsys=capsys)[0]
    assert code == page([a_check("state", level)], "--json", capsys=capsys)[0]


def test_every_subject_is_a_line_with_its_mend_below(capsys: pytest.CaptureFixture[str]) -> None:
    """Marks that can be searched for, columns that line up, details where something is wrong, and a last line."""
    checks = [a_check("state", "fine"), a_check("daemon", "note"), a_check("disk", "warning"), a_check("x", "failure")]

    assert [
        "ok    state   state is fine",
        "note  daemon  daemon is note",
        "              -> mend daemon",
        "WARN  disk    disk is warning",
        "              -> mend disk",
        "              more of disk",
        "FAIL  x       x is failure",
        "              -> mend x",
        "              more of x",
        "",
        "something is wrong: 4 checks, 1 failed, 1 warning, 1 note",
    ] == page(checks, capsys=capsys)[1]


def test_without_a_failure_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The last line is what people look at first."""
    assert "nothing is broken: 1 check" == page([a_check("state", "fine")], capsys=capsys)[1][-1]


def test_several_mends_are_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Each can be copied."""
    lines = page([a_check("state", "failure", mend="chmod 700 x\nmove y", details=[])], capsys=capsys)[1]

    assert ["             -> chmod 700 x", "             -> move y"] == lines[1:3]


def test_what_notes_advise_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Eleven sources that were never scanned need one `curatord scan`; a failure keeps its own mend."""
    checks = [a_check(f"s{n}", "note", mend="curatord scan") for n in range(3)]
    lines = page([*checks, a_check("f", "failure", mend="curatord scan")], capsys=capsys)[1]

    assert 2 == sum("-> curatord scan" in line for line in lines)


def test_details_of_all_with_v(capsys: pytest.CaptureFixture[str]) -> None:
    """For who looks closer."""
    assert any("more of state" in line for line in page([a_check("state", "fine")], "-v", capsys=capsys)[1])


def test_names_of_others_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """Paths, versions and types of records are other people's text."""
    nasty = "a\x1b[2J\nok    forged\u202e"
    checks = [a_check("source codex", "failure", found=nasty, details=[nasty])]
    lines = page(checks, capsys=capsys)[1]

    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    assert not any(line.startswith("ok    forged") for line in lines)


def test_no_llm_is_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Offline."""
    app = FakeApp()

    assert 0 == main(["doctor", "--no-llm"], environ={"HOME": "/nonexistent/home"}, factory=app.opened)
    assert [False] == [kwargs["llm"] for name, _, kwargs in app.calls if name == "doctor"]
    assert "WARN" in capsys.readouterr().out
