"""
Measures the umbrella merge: reduction, calls, tokens, time, and that nothing is lost, beside a roaming agent.

Run `python tests/bench/bench_umbrella.py [--how section] [--context 8192] [--latency-ms 1000] [--rate 60] [--all]` for
a table, or `pytest -m bench tests/bench/bench_umbrella.py` to hold the figures to their goals. Library and model server
stand beside the repository; without them there is nothing to measure. The server answers from the generator's truth,
so what is measured is the pass and not the wit of a model. Tokens are the server's own count.

The roaming agent is what curators commonly are: one conversation with tools, in which the model lists the library,
views each skill, and writes each umbrella. It is played, not asked: each call sends the whole conversation so far, and
all that it reads and writes is text of the same library. It is treated well: eight skills are viewed in one turn, an
umbrella that it writes keeps only a third of its members' words, and whenever the conversation fills half of the
context it is summed up for nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
SHARED = REPO.parent / "shared"
GENERATOR = SHARED / "bench" / "gen_corpus.py"
STUB = SHARED / "stub_model.py"

if __name__ == "__main__":
    sys.path.insert(0, str(REPO))

from curatord.adapters.model_http import HttpModel  # noqa: E402 - a script finds the package by the line above
from curatord.adapters.model_openai import OpenAiChat  # noqa: E402
from curatord.core.budget import estimate_tokens  # noqa: E402
from curatord.core.endpoint import Endpoint, Identity  # noqa: E402
from curatord.core.model import Reply, Request  # noqa: E402
from curatord.core.settings import LlmBudget  # noqa: E402
from curatord.core.values import Mode  # noqa: E402
from tests.fakes.stub import stub  # noqa: E402
from tests.umbrella_home import UmbrellaHome  # noqa: E402

SKILLS = 346
TOKENS = 200_000
TOKENS_PER_REMOVED = 1_500
SECONDS = 120.0
WORKERS = 8


class _RealClock:
    """The clock of the machine, for the client's deadlines."""

    def now(self) -> Any:
        """Return the present."""
        from datetime import UTC, datetime

        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds."""
        return time.monotonic()


class PacedModel:
    """A model that takes as long for an answer as one of *rate* tokens a second would; 0: no longer than it takes."""

    def __init__(self, model: HttpModel, rate: float) -> None:
        self._model = model
        self._rate = rate

    def identity(self) -> Identity:
        """Return who it is."""
        return self._model.identity()

    def reply(self, request: Request, *, deadline: float | None = None, max_requests: int = 12) -> Reply:
        """Return the answer, late."""
        reply = self._model.reply(request, deadline=deadline, max_requests=max_requests)
        if self._rate:
            time.sleep(reply.bill.usage.output_tokens / self._rate)
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run; *seconds* is wall time of planning and applying together."""

    what: str
    before: int
    after: int
    groups: int
    absorbed: int
    umbrellas: int
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    coverage: float
    second_calls: int

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.tokens_in + self.tokens_out

    @property
    def per_removed(self) -> float:
        """Tokens per skill by which the library shrank."""
        return self.tokens / max(1, self.before - self.after)


def generate(folder: Path, skills: int) -> tuple[Path, dict[str, Any]]:
    """Make the library and return its path and the truth about its skills."""
    command = [sys.executable, str(GENERATOR), "--out", str(folder), "--only", "library", "--skills", str(skills)]
    subprocess.run([*command, "--seed", "1"], check=True, capture_output=True)
    truth = json.loads((folder / "truth" / "clusters.json").read_text(encoding="utf-8"))["skills"]
    return folder / "library" / "skills", truth


def a_home(base: Path, library: Path, truth: Mapping[str, Any], *, everything: bool) -> UmbrellaHome:
    """Return a home with a copy of the library; *everything*: all of it is managed and nothing pinned."""
    home = UmbrellaHome(base=base, layout="hermes")
    home.root.rmdir()
    shutil.copytree(library, home.root)
    if everything:
        for name in (".bundled_manifest", ".usage.json"):
            (home.root / name).unlink()
    else:
        usage = json.loads((home.root / ".usage.json").read_text(encoding="utf-8"))
        home.unmanaged = {name for name, row in truth.items() if row["origin"] != "agent"}
        home.pinned = {name for name, row in usage.items() if row["pinned"]}
    return home


def measure(
    what: str,
    library: Path,
    truth: Mapping[str, Any],
    *,
    how: str = "reference",
    context: int = 128_000,
    latency_ms: float = 0,
    rate: float = 0,
    everything: bool = False,
    mode: Mode = Mode.AUTO,
) -> Measured:
    """Run the pass twice on a copy of *library* against the stub server, and return what the first run cost."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        home = a_home(base / "h", library, truth, everything=everything)
        facts = base / "truth.json"
        facts.write_text(
            json.dumps({name: None if row["kind"] == "single" else row["umbrella"] for name, row in truth.items()}),
            encoding="utf-8",
        )
        options = ["--truth", str(facts), "--how", how, "--latency-ms", str(latency_ms)]
        with stub(base, *options) as server:
            endpoint = Endpoint(
                api="openai-chat",
                base_url=server.url,
                model="stub",
                context_tokens=context,
                max_output_tokens=min(8_192, context // 4),
            )
            clock = _RealClock()
            client = HttpModel(lambda: (endpoint, None), {"openai-chat": OpenAiChat()}, home.endpoint_memory, clock)

            def run() -> tuple[Any, Any, float]:
                paced = PacedModel(client, rate)
                consultation = home.consultation(paced, limits=LlmBudget(), workers=WORKERS, clock=clock)
                begun = time.monotonic()
                result = home.run(consultation, mode=mode)
                return result, consultation.spent, time.monotonic() - begun

            before = len(home.snapshot().skills)
            result, spent, seconds = run()
            assert result.state == "done", result.reason
            after = len(home.snapshot().skills)
            _, again, _ = run()
        home.close()
        (one,) = result.libraries
        made = sum(proposal.summary.startswith("make ") for proposal in result.proposals)
        return Measured(
            what=what,
            before=before,
            after=after if mode is Mode.AUTO else before - one["members"] + made,
            groups=one["rounds"][0]["clusters"],
            absorbed=one["members"],
            umbrellas=one["umbrellas"],
            calls=spent.calls,
            tokens_in=spent.usage.input_tokens,
            tokens_out=spent.usage.output_tokens,
            seconds=seconds,
            coverage=one["coverage"]["ratio"],
            second_calls=again.calls,
        )


# --- The roaming agent ------------------------------------------------------------------------------------------------

SYSTEM_TOKENS = 3_000  # instructions and three tool schemas
VIEWS_A_TURN = 8
CALL_TOKENS = 40  # one tool call as the model writes it
KEPT = 0.33
SUMMARY_TOKENS = 4_000


def roam(
    library: Path, truth: Mapping[str, Any], *, context: int = 128_000, latency_s: float = 1.0, rate: float = 60.0
) -> Measured:
    """Play a roaming agent over the same library, with the same truth, and return what it would cost."""
    texts = {path.parent.name: path.read_text(encoding="utf-8") for path in sorted(library.rglob("SKILL.md"))}
    usage = json.loads((library / ".usage.json").read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = {}
    for name, row in truth.items():
        if row["kind"] != "single" and row["origin"] == "agent" and not usage[name]["pinned"]:
            groups.setdefault(row["umbrella"], []).append(name)
    groups = {name: members for name, members in sorted(groups.items()) if len(members) > 1}
    history = listing = sum(estimate_tokens(name) + 20 for name in texts)
    calls = sent = written = 0
    seconds = 0.0

    def turn(output: int, result: int) -> None:
        nonlocal calls, sent, written, history, seconds
        if history > context // 2:
            history = listing + SUMMARY_TOKENS
        calls += 1
        sent += SYSTEM_TOKENS + history
        written += output
        seconds += latency_s + output / rate
        history += output + result

    turn(CALL_TOKENS, 0)
    for members in groups.values():
        for start in range(0, len(members), VIEWS_A_TURN):
            views = members[start : start + VIEWS_A_TURN]
            turn(CALL_TOKENS * len(views), sum(estimate_tokens(texts[name]) for name in views))
        turn(int(KEPT * sum(estimate_tokens(texts[name]) for name in members)), 50)
        turn(CALL_TOKENS * len(members), 20 * len(members))  # archives them
    turn(600, 0)  # the summary
    absorbed = sum(len(members) - (name in members) for name, members in groups.items())
    return Measured(
        what="roaming agent (played)",
        before=len(texts),
        after=len(texts) - sum(len(members) - 1 for members in groups.values()),
        groups=len(groups),
        absorbed=absorbed,
        umbrellas=len(groups),
        calls=calls,
        tokens_in=sent,
        tokens_out=written,
        seconds=seconds,
        coverage=KEPT,
        second_calls=calls,
    )


def table(rows: Sequence[Measured]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| run | skills | absorbed | umbrellas | groups | calls | in | out | all | per removed | wall s | kept | 2nd |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.what} | {row.before} → {row.after} | {row.absorbed} | {row.umbrellas} | {row.groups} "
            f"| {row.calls} | {row.tokens_in:,} | {row.tokens_out:,} | {row.tokens:,} | {row.per_removed:,.0f} "
            f"| {row.seconds:.0f} | {row.coverage:.0%} | {row.second_calls} |"
        )
    return "\n".join(lines)


@pytest.mark.bench
@pytest.mark.skipif(not (GENERATOR.is_file() and STUB.is_file()), reason="no generator or stub beside the repository")
def test_goals_of_the_merge(tmp_path: Path) -> None:
    """Goal 14, with 8 questions open at 60 tokens a second; a second run asks nothing; 8,192 tokens still merge."""
    library, truth = generate(tmp_path, SKILLS)

    paced = measure("paced", library, truth, rate=60)
    small = measure("small context", library, truth, context=8_192, mode=Mode.GUARDED)
    baseline = roam(library, truth)

    print(f"\n{table([paced, small, baseline])}")
    assert paced.tokens <= TOKENS
    assert paced.per_removed <= TOKENS_PER_REMOVED
    assert paced.calls <= paced.groups + 3
    assert paced.seconds <= SECONDS
    assert {1.0} == {paced.coverage, small.coverage}
    assert {0} == {paced.second_calls, small.second_calls}
    assert small.absorbed >= 0.95 * paced.absorbed
    assert 15 * paced.tokens <= baseline.tokens
    assert paced.after <= baseline.after


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=SKILLS)
    parser.add_argument("--how", default="reference", choices=("reference", "section"))
    parser.add_argument("--context", type=int, default=128_000)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--rate", type=float, default=0, help="tokens a second of an answer; 0: at once")
    parser.add_argument("--all", action="store_true", help="manage the whole library, not only what agents made")
    parser.add_argument("--guarded", action="store_true", help="only propose")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        library, truth = generate(Path(folder), options.skills)
        row = measure(
            f"{options.how}, context {options.context:,}" + (", all managed" if options.all else ""),
            library,
            truth,
            how=options.how,
            context=options.context,
            latency_ms=options.latency_ms,
            rate=options.rate,
            everything=options.all,
            mode=Mode.GUARDED if options.guarded else Mode.AUTO,
        )
        print(table([row, roam(library, truth)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
