"""Whether Hermes reviews sessions by itself."""

from __future__ import annotations

import pytest

from curatord.core.hermes_review import reviews_itself


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, True),
        (b"", True),
        (b"model: x\nskills:\n  external_dirs: []\n", True),
        (b"auxiliary:\n  background_review:\n    enabled: false\n", False),
        (b"auxiliary:\n  background_review:\n    enabled: true\n", True),
        (b"skills:\n  creation_nudge_interval: 0\n", False),
        (b"skills:\n  creation_nudge_interval: 15\n", True),
        (b"skills:\n  creation_nudge_interval: [\n", True),
        (b"skills: creation_nudge_interval\nauxiliary: background_review\n", True),
        (b"# background_review\n", True),
    ],
)
def test_it_is_on_unless_it_was_switched_off(config: bytes | None, *, expected: bool) -> None:
    """What is not said, or cannot be read, counts as on."""
    assert expected == reviews_itself(config)
