"""README says what is so: all commands, all settings, the states, and the two commands for newcomers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from curatord.cli.commands import COMMANDS, GROUPS, Command
from curatord.cli.parser import build
from curatord.config import parse
from curatord.config.reference import markdown_table
from curatord.core.states import diagram

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def between(marker: str) -> str:
    """Return what stands between README's markers of that name."""
    found = re.search(rf"<!-- {marker} -->\n(.*?)<!-- /{marker} -->", README, re.DOTALL)
    assert found is not None, marker
    return found[1].strip()


def named() -> list[tuple[str, Command]]:
    """Return every command that can be given, with its whole name."""
    return [
        (f"{command.name} {inner.name}" if command.inner else command.name, inner)
        for command in COMMANDS
        for inner in (command.inner or (command,))
    ]


def test_readme_names_every_command_as_its_help_does() -> None:
    """A row each: name, help, example; and no row for what is not there."""
    rows = [line for line in between("commands").splitlines() if line.startswith("| `")]
    expected = [
        f"| `{name}` | {command.help} | `{command.example}` |"
        for group, _ in GROUPS
        for name, command in named()
        if command.group == group
    ]

    assert expected == rows


def test_readme_has_every_setting() -> None:
    """The table is the generated one: `python -m curatord.config.reference`."""
    assert markdown_table() == between("keys")


def test_readme_draws_the_states_from_the_table() -> None:
    """The diagram is what `core.states.diagram` makes."""
    assert f"```mermaid\n{diagram()}\n```" == between("states")


@pytest.mark.parametrize("marker", ["main-command", "test-command"])
def test_the_newcomers_commands_are_one_line(marker: str) -> None:
    """Each sets up and runs, in one line, with nothing but Python."""
    lines = between(marker).splitlines()

    assert ["```sh", "```"] == [lines[0], lines[-1]]
    assert 3 == len(lines)
    assert lines[1].startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_commands_shown_in_readme_parse() -> None:
    """Whatever README tells to type is taken by the parser."""
    shown = re.findall(r"(?m)^curatord ([^#\n`]*)", README) + re.findall(r"`curatord ([a-z][^`]*)`", README)

    assert len(shown) > 20
    for text in shown:
        assert build().parse_args(shlex.split(text.split(" > ")[0])).handler


def test_every_command_with_json_has_its_value_told() -> None:
    """The section JSON names each command that takes `--json`."""
    section = README.split("### JSON")[1].split("\n## ")[0]

    assert [] == [name for name, command in named() if command.json and f"`{name}`" not in section]


def test_every_exit_code_is_told() -> None:
    """The codes that the errors carry are in the table."""
    section = README.split("### Exit codes")[1].split("\n### ")[0]

    assert {"0", "1", "2", "3", "4", "5", "130", "143"} == set(re.findall(r"\b(\d+)\b(?=[, 0-9]*\|)", section))


def test_files_that_readme_names_are_there() -> None:
    """Paths in backticks below our own folders exist."""
    paths = set(re.findall(r"`((?:config|systemd|tests|curatord)/[\w./-]*)`", README))

    assert {"config/curatord.yaml", "systemd/curatord.service"} <= paths
    assert [] == [path for path in paths if not (ROOT / path).exists()]


def test_the_environment_variables_that_readme_shows_are_taken() -> None:
    """Its examples are right."""
    shown = dict(re.findall(r"`(CURATORD_[A-Z0-9_]+)=('?[^`…]+'?)`", README))
    environ = {name: value.strip("'") for name, value in shown.items()}

    assert {"CURATORD_GATES__INTERVAL", "CURATORD_LIBRARIES"} <= set(environ)
    parse(None, environ, home="/home/u")
