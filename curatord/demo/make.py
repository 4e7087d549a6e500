"""Makes the demonstration home in an empty folder, and a configuration for it beside it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from curatord.config.sample import render_sample
from curatord.core.cheap import dataclass
from curatord.core.settings import LibrarySettings, SourceSettings
from curatord.core.values import require_aware
from curatord.demo.claude_home import write_claude_home
from curatord.demo.hermes_home import write_hermes_home
from curatord.demo.story import CLAUDE_SKILLS, HERMES_SKILLS
from curatord.errors import UsageError

__all__ = ["DemoHome", "make_demo"]

_HEADER = """\
# The configuration of a curatord demonstration. Everything in this folder is invented and can be deleted.
# It is a whole configuration all the same: `curatord --config THIS_FILE config show` tells what is in force.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoHome:
    """What was made: the configuration's path, and how many skills and sessions there are."""

    folder: Path
    config: Path
    skills: int
    sessions: int


def make_demo(folder: Path, now: datetime) -> DemoHome:
    """
    Make the home in *folder*, its year ending at *now*, the same each time for the same *now*.

    Raises:
        UsageError: The folder has something in it, or cannot be written.
    """
    require_aware("now", now)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", hint="name a new or an empty folder")
        home = folder / "home"
        sessions = write_claude_home(home, now) + write_hermes_home(home, now)
        config = folder / "curatord.yaml"
        config.write_text(_config_text(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}", hint="name a folder that can be written") from error
    return DemoHome(folder=folder, config=config, skills=len(HERMES_SKILLS) + len(CLAUDE_SKILLS), sessions=sessions)


def _config_text() -> str:
    """Return the demo's configuration, its paths relative to it, so that the folder can be moved."""
    text = render_sample(
        header=_HEADER,
        state_dir="state",
        sources=(
            SourceSettings(host="hermes", path="home/.hermes", libraries=("hermes",)),
            SourceSettings(host="claude-code", path="home/.claude/projects", libraries=("claude",)),
        ),
        libraries=(
            LibrarySettings(name="hermes", path="home/.hermes/skills", host="hermes", layout="hermes"),
            LibrarySettings(name="claude", path="home/.claude/skills", host="claude-code"),
        ),
    )
    # Without a model, so that merging can be seen as well: `umbrella.planner` is the one default that is changed.
    return text.replace("planner: llm", "planner: lexical", 1)
