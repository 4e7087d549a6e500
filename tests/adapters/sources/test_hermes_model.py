"""Hermes' database under random work and random scans ends as a simple account of what was said has it."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.hermes_home import HermesHome
from tests.scanned import Scanner

WORDS = st.sampled_from(["please continue", "ok", "thanks", "what?"])
PICK = st.integers(0, 10)
SEEN = st.booleans()  # whether a scan comes just before


class HermesMachine(RuleBasedStateMachine):
    """The account counts each turn when it is said; whatever Hermes does to its rows later must not change it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="curatord-test-"))
        self.home = HermesHome(self.folder / "home")
        self.scanner = Scanner(self.folder / "state", ("hermes", self.home.path))
        self.alive: list[str] = []
        self.user: Counter[str] = Counter()
        self.model: Counter[str] = Counter()
        self.uses: Counter[str] = Counter()
        self.told: set[str] = set()  # sessions with rows: others are not in the database's account
        self.unscanned: set[str] = set()
        self.made = 0

    def teardown(self) -> None:
        """Put everything away."""
        self.scanner.close()
        self.home.close()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        """There is always a session in which something was said."""
        self.new_session()
        self.talk(0, ["please continue", "ok", "please continue"], True)

    @rule()
    def new_session(self) -> None:
        """A session begins."""
        self.made += 1
        self.alive.append(self.home.session(f"s{self.made}"))

    def pick(self, n: int) -> str | None:
        """Return one of the sessions that are there."""
        return self.alive[n % len(self.alive)] if self.alive else None

    @rule(n=PICK, texts=st.lists(WORDS, min_size=1, max_size=4), works=st.booleans())
    def talk(self, n: int, texts: list[str], works: bool) -> None:
        """A person says things, perhaps again, and the model answers with words and a skill."""
        session = self.pick(n)
        if not session:
            return
        for text in texts:
            self.home.tick(5)
            self.home.user(session, text)
            self.home.says(session, "ok")
            self.user[session] += 1
            self.model[session] += 1
        self.home.tick(5)
        self.home.calls(session, "skill_view", {"success": works, "content": "x"}, name="foo")
        self.model[session] += 1
        self.uses[session] += works
        self._wrote(session)

    @rule(n=PICK, keep=st.integers(0, 4), keep_times=st.booleans(), seen=SEEN)
    def compact(self, n: int, keep: int, keep_times: bool, seen: bool) -> None:
        """A session is compacted in place."""
        self._scan_if(seen)
        session = self.pick(n)
        if session and session in self.told:
            self.home.compact(session, keep=keep, keep_times=keep_times)
            self.unscanned.add(session)

    @rule(n=PICK, rows=st.integers(1, 4), seen=SEEN)
    def rewind(self, n: int, rows: int, seen: bool) -> None:
        """Rows are put aside."""
        self._scan_if(seen)
        session = self.pick(n)
        if session:
            self.home.rewind(session, rows)

    @rule(n=PICK, keep_times=st.booleans(), seen=SEEN)
    def branch(self, n: int, keep_times: bool, seen: bool) -> None:
        """A session goes on in a copy."""
        self._scan_if(seen)
        session = self.pick(n)
        if session and session in self.told:
            self.made += 1
            self.alive.append(self.home.branch(session, f"s{self.made}", keep_times=keep_times))
            self._wrote(f"s{self.made}")

    @rule(n=PICK)
    def prune(self, n: int) -> None:
        """A session is deleted after a scan: what nobody has seen would be lost, which no reader can help."""
        session = self.pick(n)
        if session:
            self._scan_if(True)
            self.home.prune(session)
            self.alive.remove(session)

    @rule(keep_ids=st.booleans(), seen=SEEN)
    def rebuild(self, keep_ids: bool, seen: bool) -> None:
        """The file is replaced by a repaired one."""
        self._scan_if(seen)
        self.home.rebuild(keep_ids=keep_ids)

    @rule(n=PICK)
    def rewrite(self, n: int) -> None:
        """A session is deleted and written again after a scan."""
        session = self.pick(n)
        if session:
            self._scan_if(True)
            self.home.rewrite(session)

    def _scan_if(self, seen: bool) -> None:
        if seen:
            self.scan()

    def _wrote(self, session: str) -> None:
        self.told.add(session)
        self.unscanned.add(session)

    @rule()
    def scan(self) -> None:
        """Everything that was said is counted, once."""
        self.scanner.scan()
        self.unscanned.clear()

    @invariant()
    def no_scan_counts_too_much(self) -> None:
        """At no time more is counted than was said."""
        for session, (user, model) in self.scanner.turns().items():
            assert user <= self.user[session], session
            assert model <= self.model[session], session

    @invariant()
    def after_a_scan_all_is_counted(self) -> None:
        """Right after a scan the counts are those of the account."""
        if self.unscanned or not self.told:
            return
        expected = {session: (self.user[session], self.model[session]) for session in self.told}
        assert expected == self.scanner.turns()
        uses = Counter(session for session, _, _, _ in self.scanner.events())
        assert Counter({s: n for s, n in self.uses.items() if n}) == uses


HermesMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
test_the_database_under_random_work = HermesMachine.TestCase
