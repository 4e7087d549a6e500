"""On real transcripts nothing is unusual; the same with their types renamed, as a new version would, is seen."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from curatord.core.drift import drift_of
from curatord.core.settings import HostName
from tests.scanned import Scanner

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "transcripts"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no sample transcripts at {SAMPLES}")

HOSTS: tuple[HostName, ...] = (
    "claude-code",
    "hermes",
    "codex",
    "pi",
    "openclaw",
    "dsh",
    "opencode",
    "gemini-cli",
    "qwen-code",
    "copilot-cli",
    "cursor",
)


@pytest.mark.parametrize("host", HOSTS)
def test_ordinary_transcripts_are_nothing_unusual(host: HostName, tmp_path: Path) -> None:
    """A check that fails on sound hosts would be switched off."""
    shutil.copytree(SAMPLES / host, tmp_path / host)
    store = Scanner(tmp_path / "state", (host, tmp_path / host)).scan()
    state = store.source()
    store.close()

    assert state.records == sum(stretch.records for stretch in state.stretches) > 0
    assert [] == drift_of(state.stretches)


def new_version(text: str, host: HostName) -> str:
    """Return a transcript as a next version might write it: other types, keys and ids, another version."""
    if host == "claude-code":
        text = re.sub(r'"type":\s*"(user|assistant)",', r'"type":"\1_turn",', text)
        text = re.sub(r'"version":\s*"[^"]*"', '"version":"3.0.0"', text)
        return text.replace('"uuid":"', '"uuid":"n').replace('"sessionId":"', '"sessionId":"n')
    text = re.sub(r'"type":\s*"(response_item|event_msg)"', r'"type":"\1_v2"', text)
    return re.sub(r'"cli_version":\s*"[^"]*"', '"cli_version":"1.0.0"', text)


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_new_format_is_seen_on_the_day_it_comes(host: HostName, tmp_path: Path) -> None:
    """After the sound history of the samples, the largest of them comes again in another form."""
    root = tmp_path / host
    shutil.copytree(SAMPLES / host, root)
    store = Scanner(tmp_path / "state", (host, root)).scan()
    largest = max(root.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    name = re.sub(r"[0-9a-f]{12}(?=\.jsonl$)", "ffffffffffff", largest.name)
    text = new_version(largest.read_text(encoding="utf-8"), host)
    (largest.parent / name).write_text(text, encoding="utf-8")
    store.scan()
    found = drift_of(store.source().stretches)
    store.close()

    assert "unknown" in [drift.what for drift in found]
    assert found[0].since == ("since version 3.0.0" if host == "claude-code" else "since version 1.0.0")
