"""
Figures in the text form that Prometheus reads (exposition format 0.0.4, public documentation).

Written here and not by its client library: that brings a registry, collectors of the process and a web server of its
own, and what is needed of it is these lines. Every family has a fixed name; labels are few, their values come from
short lists (hosts, outcomes, kinds) and are made inert, so that a scraper's memory cannot be filled by transcripts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.inert import shorten

__all__ = ["CONTENT_TYPE", "MAX_SAMPLES", "Family", "Sample", "exposition", "place_names"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SAMPLES = 200  # of one family
LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class Sample:
    """One value, with the labels that tell it from its siblings."""

    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Values of one name; it is left out where there are none."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> str:
    """Return the text of *families*, in their order; beyond `MAX_SAMPLES` of one the rest is left out."""
    lines = []
    for family in families:
        if not family.samples:
            continue
        lines += [f"# HELP {family.name} {_escaped(family.help)}", f"# TYPE {family.name} {family.kind}"]
        for sample in family.samples[:MAX_SAMPLES]:
            labels = ",".join(f'{name}="{_label(value)}"' for name, value in sample.labels.items())
            lines.append(f"{family.name}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def place_names(hosts: Iterable[str]) -> list[str]:
    """Return a name for each place of *hosts*, in their order: `codex`, `hermes`, `hermes-2`; paths are nobody's."""
    seen: dict[str, int] = {}
    names = []
    for host in hosts:
        seen[host] = seen.get(host, 0) + 1
        names.append(host if seen[host] == 1 else f"{host}-{seen[host]}")
    return names


def _label(value: str) -> str:
    return _escaped(shorten(value, LABEL_CHARS)).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
