"""Figures as text: a form that Prometheus reads, whatever stands in a label."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.inert import visible
from curatord.core.listen import TcpPlace, UnixPlace, place_of, why_not
from curatord.core.metrics import MAX_SAMPLES, Family, Sample, exposition, place_names

LINE = re.compile(
    r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? (?:-?[0-9.e+-]+|NaN|[+-]Inf)'
)


def family(*samples: Sample, name: str = "curatord_things") -> Family:
    return Family(name=name, kind="gauge", help="Things.", samples=samples)


def test_a_family_is_told_with_its_help_and_kind() -> None:
    """Samples follow, integers as such."""
    text = exposition([family(Sample(2.0, {}), Sample(0.5, {"host": "pi"})), family(name="curatord_none")])

    assert (
        "# HELP curatord_things Things.\n# TYPE curatord_things gauge\n"
        'curatord_things 2\ncuratord_things{host="pi"} 0.5\n'
    ) == text


@given(st.text(max_size=200), st.floats())
def test_any_label_and_value_stay_on_their_line(label: str, value: float) -> None:
    """No text can end a label, a line, or the page."""
    text = exposition([family(Sample(value, {"host": label}))])

    lines = text.removesuffix("\n").split("\n")
    assert 3 == len(lines)
    assert LINE.fullmatch(lines[2])
    assert lines[2] == visible(lines[2])
    assert len(lines[2]) < 1000


def test_there_is_an_end_of_samples() -> None:
    """A scraper's memory is not filled by us."""
    many = [Sample(1, {"n": str(number)}) for number in range(10_000)]

    assert MAX_SAMPLES == len(exposition([family(*many)]).splitlines()) - 2


def test_places_are_named_by_host_and_number() -> None:
    """A path says more than a figure's reader should know."""
    assert ["codex", "hermes", "hermes-2", "hermes-3"] == place_names(["codex", "hermes", "hermes", "hermes"])


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("127.0.0.1:9464", TcpPlace(host="127.0.0.1", port=9464)),
        ("127.8.8.8:1", TcpPlace(host="127.8.8.8", port=1)),
        ("localhost:9464", TcpPlace(host="127.0.0.1", port=9464)),
        ("[::1]:9464", TcpPlace(host="::1", port=9464)),
        ("unix:/run/user/1000/c.sock", UnixPlace(path="/run/user/1000/c.sock")),
    ],
)
def test_a_place_of_this_machine_is_taken(said: str, place: object) -> None:
    """By address or path."""
    assert place == place_of(said)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("0.0.0.0:9464", "other machines"),
        ("192.168.1.2:9464", "other machines"),
        ("[::]:9464", "other machines"),
        ("[::ffff:127.0.0.1]:9464", "other machines"),
        ("example.org:9464", "other machines"),
        ("127.0.0.999:9464", "other machines"),
        ("127.0.0.1.evil.org:80", "other machines"),
        ("127.0.0.1", "no address with a port"),
        (":9464", "no address with a port"),
        ("9464", "no address with a port"),
        ("127.0.0.1:0", "no port 0"),
        ("127.0.0.1:70000", "no port 70000"),
        ("unix:relative.sock", "absolute path"),
        ("unix:/folder/", "absolute path"),
        ("", "no address"),
    ],
)
def test_any_other_place_is_refused(said: str, words: str) -> None:
    """In words that the configuration's error shows."""
    assert words in (why_not(said) or "")
