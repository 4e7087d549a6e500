"""
Whether Hermes' own background review is at work: after so many turns or tool calls it reviews a session by itself and
writes skills. Two reviewers of one session would say everything twice, so `distil: auto` leaves it to one of them.

It is on unless the user switched it off: `auxiliary.background_review.enabled: false`, or no nudge towards skills
(`skills.creation_nudge_interval: 0`). What cannot be read counts as on, since a doubt must not cost a call.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["reviews_itself"]

_OFF = ("false", "no", "off", "0")


def reviews_itself(config: bytes | None) -> bool:
    """Return whether Hermes reviews sessions by itself, by the bytes of its `config.yaml` (None: it has none)."""
    if config is None or (b"background_review" not in config and b"creation_nudge_interval" not in config):
        return True
    from curatord.core.header import Fault, read_mapping  # a YAML reader, for the few that have such a key

    values = read_mapping(config)
    if isinstance(values, Fault):
        return True
    auxiliary, skills = values.get("auxiliary"), values.get("skills")
    review = auxiliary.get("background_review") if isinstance(auxiliary, Mapping) else None
    enabled = review.get("enabled", "true") if isinstance(review, Mapping) else "true"
    nudge = skills.get("creation_nudge_interval", "on") if isinstance(skills, Mapping) else "on"
    return str(enabled).strip().lower() not in _OFF and str(nudge).strip().lower() not in _OFF
