"""The sample file says the defaults, all of them, and what it shows as comments is right too."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from curatord.config import parse
from curatord.config.parse import known_keys
from curatord.config.render import effective, said_as_yaml, values_by_key
from curatord.config.sample import render_sample
from curatord.config.schema import json_schema
from curatord.core.setting_docs import SETTING_DOCS
from curatord.core.settings import LibrarySettings, SourceSettings

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "config" / "curatord.yaml"


def test_the_sample_in_the_repository_is_the_rendered_one() -> None:
    """After a change of the settings: `python -m curatord.config.sample > config/curatord.yaml`."""
    assert render_sample() == SAMPLE.read_text(encoding="utf-8")


def test_the_sample_equals_the_defaults() -> None:
    """Using the sample as it is changes nothing."""
    sample = parse(SAMPLE.read_bytes(), {}, file=str(SAMPLE), home="/home/u").config
    defaults = parse(None, {}, home="/home/u").config

    assert dataclasses.replace(sample, origin=None) == defaults


def test_the_commented_part_of_the_sample_is_right() -> None:
    """With its comment signs taken off, the whole sample is a configuration of two hosts and a model."""
    text = re.sub(r"(?m)^# (?=( *(- )?[a-z_]+:( .*# | *# |$)| +))", "", SAMPLE.read_text(encoding="utf-8"))
    config = parse(text, {}, file=str(SAMPLE), home="/home/u").config

    assert ["claude-code", "hermes"] == [source.host for source in config.sources]
    assert ["claude", "hermes"] == [library.name for library in config.libraries]
    assert config.llm is not None
    assert config.llm.primary is not None
    assert "qwen3:14b" == config.llm.primary.model


def test_the_sample_shows_every_key() -> None:
    """Each known key stands in it, with its meaning; the fallback's are the primary's."""
    text = SAMPLE.read_text(encoding="utf-8")
    keys = {key.rpartition(".")[2] for key, _ in known_keys()}

    assert set() == {key for key in keys if not re.search(rf"(?m)^[# -]*{key}:.*# \S", text)}


def test_every_key_has_its_meaning_and_no_other() -> None:
    """The docs of settings are complete, and name nothing that is gone."""
    known = {key for key, _ in known_keys() if not key.startswith("llm.fallback.")}

    assert known == set(SETTING_DOCS)


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "samples").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_samples_of_hosts_are_right(path: Path) -> None:
    """Every sample is read without an error or a notice."""
    assert () == parse(path.read_bytes(), {}, file=str(path), home="/home/u").notices


def test_a_sample_with_what_was_found_says_it() -> None:
    """What `init` writes reads back to the hosts and libraries that were found, odd names included."""
    text = render_sample(
        state_dir="/home/u/état: #1",
        sources=(SourceSettings(host="hermes"), SourceSettings(host="codex")),
        libraries=(
            LibrarySettings(name="hermes", path="/home/u/.hermes/skills", host="hermes"),
            LibrarySettings(name="null", path="/home/u/a 'b'\\c: [x]", host="codex"),
        ),
    )
    config = parse(text, {}, file="/cfg/c.yaml", home="/home/u").config

    assert "/home/u/état: #1" == config.state_dir
    assert ["hermes", "codex"] == [source.host for source in config.sources]
    assert ["hermes", "null"] == [library.name for library in config.libraries]
    assert "/home/u/a 'b'\\c: [x]" == config.libraries[1].path


def test_the_effective_configuration_reads_back() -> None:
    """What `config show` prints, put into a file, is the same configuration."""
    config = parse(
        "llm: {primary: {base_url: http://h/v1, model: 'a: b', api_key: {env: K}}}\nlibraries: [{name: x, path: /x}]\n"
        "sources: [{host: pi, exclude: ['*/secret', '#x']}]\n",
        {},
        home="/home/u",
    ).config
    again = parse(json.dumps(effective(config)), {}, home="/home/u").config

    assert dataclasses.replace(again, origin=None) == dataclasses.replace(config, origin=None)
    for _, value in values_by_key(effective(config)):
        assert value == _scalar(said_as_yaml(value)) or isinstance(value, str | float | list | dict)


def _scalar(text: str) -> object:
    return {"null": None, "true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def test_the_schema_knows_every_key() -> None:
    """The JSON Schema has all keys, none more, and forbids others at every level."""
    keys: set[str] = set()

    def walk(schema: dict[str, object], key: str) -> None:
        for branch in schema.get("anyOf", [schema]):  # type: ignore[attr-defined]
            if branch.get("type") == "array":
                walk(branch["items"], f"{key}[]")
            for name, inner in branch.get("properties", {}).items():
                full = f"{key}.{name}" if key else name
                keys.add(full)
                assert branch["additionalProperties"] is False
                walk(inner, full)

    schema = json_schema()
    walk(schema, "")
    keys = {key for key in keys if ".api_key." not in key}

    assert {key for key, _ in known_keys()} == keys
    assert json.loads(json.dumps(schema)) == schema
