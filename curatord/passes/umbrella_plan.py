"""
Planning the merges of one library: survey, one question a cluster, and again on what that would make of the library.

A round ends with a plan and not with a change. It goes on until a round takes nothing in, or `max_rounds`; the survey
that finds nothing is remembered like any other, so the next run on an unchanged library asks nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from curatord.core.candidates import why_no_prune
from curatord.core.cheap import dataclass, field
from curatord.core.cluster import TIGHT, Clustering, Index, overlap
from curatord.core.replies import MergeReply, SurveyReply
from curatord.core.umbrella.build import Fallen
from curatord.core.umbrella.candidates import Offered, group, labels_of
from curatord.core.umbrella.cards import Card, card_of
from curatord.core.umbrella.decision import Decision, Pruned
from curatord.core.umbrella.draft import Bad, draft
from curatord.core.umbrella.fold import cannot_move
from curatord.core.umbrella.lexical import lexical_decision
from curatord.core.umbrella.naming import Screen, screened
from curatord.core.umbrella.packed import Packed
from curatord.core.umbrella.question import MergeQuestion, split
from curatord.core.umbrella.survey import (
    Cluster,
    Part,
    Surveyed,
    carried,
    combined,
    neighbours,
    parts,
    read_survey,
    rows_key,
)
from curatord.core.values import RelPath, SkillKey, State
from curatord.errors import InputError, ModelError
from curatord.passes.umbrella_ask import Asker
from curatord.passes.umbrella_shelf import LibraryCase, Shelf

__all__ = ["Planner", "Round"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round came to: *violations* cost a cluster each, *notes* are what was mended or left out."""

    shown: int
    clusters: int
    questions: int
    taken_in: int
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return what `run.json` holds of it."""
        return {
            "shown": self.shown,
            "clusters": self.clusters,
            "questions": self.questions,
            "taken_in": self.taken_in,
            "violations": list(self.violations),
            "notes": list(self.notes),
        }


@dataclass(slots=True, kw_only=True)
class _Work:
    """One cluster on its way through its questions."""

    cluster: Cluster
    umbrella: SkillKey
    existing: bool
    pieces: list[tuple[tuple[Card, Packed], ...]]
    outside: tuple[Card, ...]


@dataclass(slots=True, kw_only=True)
class Planner:
    """
    Plans one library; *shelf* is what it would become, *decisions* how, in the order in which it is done.

    Attributes:
        asker: None for the planner without a model.
        left: Why skills that were looked at stay as they are.
        prunes: What a model would archive.
        rounds: What each round came to.
        similar: Per umbrella, how alike each of its members is to the nearest other one, 0 to 1.
        doubtful: A question had no usable answer, so what was planned before may still be right.
    """

    case: LibraryCase
    now: datetime
    offered: Offered
    base: Shelf
    asker: Asker | None
    max_rounds: int
    bodies: bool = False
    screen: Screen = screened
    decisions: list[Decision] = field(default_factory=list)
    left: dict[SkillKey, str] = field(default_factory=dict)
    prunes: dict[SkillKey, Pruned] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    similar: dict[SkillKey, dict[SkillKey, float]] = field(default_factory=dict)
    doubtful: bool = False
    shelf: Shelf = field(init=False)
    _decisions: dict[SkillKey, Decision] = field(default_factory=dict)
    _cards: dict[SkillKey, Card] = field(default_factory=dict)
    _labels: dict[SkillKey, str] = field(default_factory=dict)
    _asides: dict[SkillKey, str] = field(default_factory=dict)
    _bad: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shelf = self.base.copy()

    def run(self) -> None:
        """
        Plan until nothing is left to merge.

        What was decided stays where one of these is raised, for the caller to use or to drop.

        Raises:
            EndpointError, BudgetExhaustedError, StoppedHere: Asking ended.
        """
        self._labels = labels_of(self.case.snapshot)
        self.left |= dict(self.offered.left)
        if self.asker is None:
            self._lexical()
            return
        for number in range(self.max_rounds + 1):
            cards = self._shown()
            if len(cards) < 2:
                break
            index, clustering = group([card.for_clustering() for card in cards.values()])
            surveyed = self._survey(cards, clustering)
            # The last survey is only asked so that its answer is known; what it finds is for the next run.
            clusters = surveyed.clusters if number < self.max_rounds else ()
            taken_in = self._round(surveyed, clusters, cards, clustering, index)
            if not taken_in:
                break

    # -- what is shown

    def _shown(self) -> dict[SkillKey, Card]:
        """Return the cards of all that may be asked about, by key, in that order."""
        shelf = self.shelf
        found: dict[SkillKey, Card] = {}
        for skill in self.offered.skills:
            key = skill.key
            if key in shelf.homes or key in self.prunes:
                continue
            if key in shelf.changed:
                card = self._card(key, shelf.changed[key])
            else:
                if key not in self._cards:
                    try:
                        package = self.base.package(key)
                    except InputError as error:
                        self.left[key] = str(error)
                        continue
                    if (why := cannot_move(package)) is not None:
                        self.left[key] = why
                        continue
                    fresh = self._card(key, package)
                    if fresh is not None:
                        self._cards[key] = fresh
                card = self._cards.get(key)
            if card is not None and key not in self.left:
                found[key] = card
        for key in self._decisions:
            if key in shelf.changed and key not in found:
                card = self._card(key, shelf.changed[key])
                if card is not None:
                    found[key] = card
        return dict(sorted(found.items()))

    def _card(self, key: SkillKey, package: Packed) -> Card | None:
        entry = package.file(package.entry)
        if entry is None:
            return None
        facts = self.case.facts.get(key)
        state = facts.record.state if facts is not None else State.ACTIVE
        made_now = key in self._decisions
        return card_of(key, self._labels.get(key, key.name), entry.data, state, made_now=made_now)

    def _taken(self) -> dict[str, str]:
        """Return the names that are taken, with why each may not be an umbrella."""
        found: dict[str, str] = {}
        for skill in self.case.snapshot.skills:
            facts = self.case.facts.get(skill.key)
            why = self.offered.left.get(skill.key) or (facts.exempt_by if facts is not None else None) or ""
            found[self._labels[skill.key]] = why
            found.setdefault(skill.name, why)
        for key in self._decisions:
            found.setdefault(key.name, "")
        return found

    # -- surveys

    def _survey(self, cards: dict[SkillKey, Card], clustering: Clustering) -> Surveyed:
        asker = self.asker
        assert asker is not None, "only the planner with a model surveys"
        shown = list(cards.values())
        known = asker.known_survey(shown)
        if known is not None:
            asker.remembered += 1
            return known
        rows = rows_key(shown)
        old, new = carried(rows, asker.known_surveys())
        if 2 * len(new) > len(rows):
            old, new = Surveyed(rows={}, clusters=()), tuple(rows)
        library = self.case.name
        wanted = [SkillKey(library=library, rel=RelPath(rel)) for rel in new]
        asked = shown if not old.rows else list(neighbours(wanted, shown, clustering))
        taken, layout = self._taken(), self.case.layout

        def read(reply: SurveyReply, part: Part) -> Surveyed:
            return read_survey(reply, part, layout=layout, taken=taken)

        answers = asker.surveys(parts(asked, clustering, fits=asker.survey_fits), read)
        good = [answer for answer in answers if isinstance(answer, Surveyed)]
        self._bad += [f"a survey has no answer: {answer}" for answer in answers if isinstance(answer, ModelError)]
        self.doubtful |= len(good) < len(answers)
        surveyed = combined(rows, old, good, new)
        if len(good) == len(answers):
            asker.keep_survey(surveyed)
        return surveyed

    # -- clusters

    def _round(
        self,
        surveyed: Surveyed,
        clusters: Sequence[Cluster],
        cards: dict[SkillKey, Card],
        clustering: Clustering,
        index: Index,
    ) -> int:
        before = len(self.shelf.homes)
        self._bad += surveyed.violations
        for rel, why in surveyed.leave.items():
            self._aside(SkillKey(library=self.case.name, rel=RelPath(rel)), why or "the model would leave it")
        works = [work for cluster in clusters if (work := self._work(cluster, cards, clustering)) is not None]
        questions = 0
        while wave := [work for work in works if work.pieces]:
            questions += len(wave)
            self._wave(wave)
            self._replay()
            if self.asker is not None and self.asker.ended is not None:
                self._measure(index)
                self._end_round(len(cards), clusters, questions, before, surveyed)
                raise self.asker.ended
        self._measure(index)
        return self._end_round(len(cards), clusters, questions, before, surveyed)

    def _end_round(
        self, shown: int, clusters: Sequence[Cluster], questions: int, before: int, surveyed: Surveyed
    ) -> int:
        """Put the round into the record and return how many skills it took in."""
        taken_in = len(self.shelf.homes) - before
        self.rounds.append(
            Round(
                shown=shown,
                clusters=len(clusters),
                questions=questions,
                taken_in=taken_in,
                violations=tuple(self._bad),
                notes=surveyed.notes,
            )
        )
        self._bad = []
        return taken_in

    def _work(self, cluster: Cluster, cards: dict[SkillKey, Card], clustering: Clustering) -> _Work | None:
        library = self.case.name
        keys = [SkillKey(library=library, rel=RelPath(rel)) for rel in cluster.members]
        members = [cards[key] for key in keys if key in cards]
        umbrella = SkillKey(library=library, rel=RelPath(cluster.umbrella))
        if cluster.existing and umbrella not in cards:
            return None
        if not cluster.existing:
            folders = {card.key.rel.rpartition("/")[0] for card in members}
            folder = folders.pop() if len(folders) == 1 else ""
            umbrella = SkillKey(
                library=library, rel=RelPath(f"{folder}/{cluster.umbrella}" if folder else cluster.umbrella)
            )
        shown: list[tuple[Card, Packed]] = []
        for card in members:
            try:
                shown.append((card, self.shelf.package(card.key)))
            except InputError as error:
                self._aside(card.key, str(error))
        inside = {str(umbrella), *(str(card.key) for card, _ in shown)}
        near: dict[str, float] = {}
        for card, _ in shown:
            for other in clustering.nearest.get(str(card.key), ()):
                if other.key not in inside:
                    near[other.key] = max(near.get(other.key, 0.0), other.similarity)
        by_key = {str(card.key): card for card in cards.values()}
        nearest = sorted(near, key=lambda key: (-near[key], key))[:5]
        work = _Work(
            cluster=cluster,
            umbrella=umbrella,
            existing=cluster.existing,
            pieces=[],
            outside=tuple(by_key[key] for key in nearest if key in by_key),
        )
        asker = self.asker
        assert asker is not None, "only the planner with a model asks"
        pieces, alone = split(shown, fits=lambda piece: asker.merge_fits(self._question(work, piece, cards)))
        for card in alone:
            self._aside(card.key, "its card does not fit the model's context")
        if sum(map(len, pieces)) + work.existing < 2:
            return None
        work.pieces = list(pieces)
        return work

    def _question(
        self, work: _Work, piece: Sequence[tuple[Card, Packed]], cards: dict[SkillKey, Card]
    ) -> MergeQuestion:
        card = cards.get(work.umbrella) if work.existing else None
        return MergeQuestion(
            umbrella=work.umbrella,
            label=card.label if card is not None else work.umbrella.name,
            existing=work.existing,
            card=card,
            members=tuple(piece),
            outside=work.outside,
            bodies=self.bodies,
            why=work.cluster.why,
        )

    def _wave(self, wave: Sequence[_Work]) -> None:
        """Ask the next piece of each work, and take up what was answered, in order."""
        asker = self.asker
        assert asker is not None, "only the planner with a model asks"
        cards = self._shown() if any(work.existing for work in wave) else {}
        questions = [self._question(work, work.pieces.pop(0), cards) for work in wave]
        taken = self._taken()

        def check(reply: MergeReply, question: MergeQuestion) -> str | None:
            drafted = self._draft(reply, question, taken)
            return str(drafted) if isinstance(drafted, Bad) else None

        answers = asker.merges(questions, check)
        for work, question, answer in zip(wave, questions, answers, strict=True):
            where = f"umbrella `{question.label}`"
            if answer is None:
                self._fell(question, "asking ended before it was asked about")
                continue
            if isinstance(answer, ModelError):
                self.doubtful = True
                self._bad.append(f"{where}: no usable answer: {answer}")
                self._fell(question, f"no usable answer about it: {answer}")
                continue
            drafted = self._draft(answer, question, self._taken())
            if isinstance(drafted, Bad):
                self._bad += [f"{where}: {violation}" for violation in drafted.violations]
                self._fell(question, str(drafted))
                continue
            self._accept(work, drafted)

    def _draft(self, reply: MergeReply, question: MergeQuestion, taken: dict[str, str]) -> Decision | Bad:
        return draft(
            reply,
            question,
            layout=self.case.layout,
            taken=taken,
            why_no_prune=self._why_no_prune,
            screen=self.screen,
        )

    def _why_no_prune(self, key: SkillKey) -> str | None:
        facts = self.case.facts.get(key)
        if facts is None:
            return "nothing is known of it"
        if self.offered.pointing.get(key):
            return "another skill names it"
        return why_no_prune(facts, self.case.clock, self.case.policy, self.now)

    def _fell(self, question: MergeQuestion, why: str) -> None:
        for card, _ in question.members:
            self._aside(card.key, why)

    def _aside(self, key: SkillKey, why: str) -> None:
        """Note why a skill stays for now; a later round may still take it in."""
        self._asides[key] = why

    def _accept(self, work: _Work, decision: Decision) -> None:
        for kept in decision.kept:
            self._aside(kept.key, kept.reason)
        for pruned in decision.pruned:
            self.prunes[pruned.key] = pruned
        if not decision.members:
            return
        have = self._decisions.get(decision.umbrella)
        self._decisions[decision.umbrella] = decision if have is None else have.grown(decision)
        work.umbrella, work.existing = decision.umbrella, True

    def _replay(self) -> None:
        """Bring the shelf up to the decisions; what cannot be done falls, with its reasons."""
        wanted = list(self._decisions.values())
        if self.decisions != wanted[: len(self.decisions)]:
            # An umbrella that was made before has grown, and what came after it stands on it.
            self.decisions, self.shelf = [], self.base.copy()
        for decision in wanted[len(self.decisions) :]:
            built = self.shelf.build(decision, later=_touched(wanted, decision))
            if isinstance(built, Fallen):
                del self._decisions[decision.umbrella]
                self._bad += [f"umbrella `{decision.umbrella.name}`: {reason}" for reason in built.reasons]
                for member in decision.members:
                    self._aside(member.key, f"it could not be folded in: {built.reasons[0]}")
                continue
            self.shelf.take(built)
            self.decisions.append(decision)

    def _measure(self, index: Index) -> None:
        """Measure what the members of each umbrella have in common (bugs B008), by this round's index."""
        known = set(index.keys)
        for decision in self._decisions.values():
            keys = [member.key for member in decision.members if str(member.key) in known]
            if str(decision.umbrella) in known:
                keys.append(decision.umbrella)
            if len(keys) < 2:
                continue
            found = self.similar.setdefault(decision.umbrella, {})
            for key, near in zip(keys, overlap(index, [str(key) for key in keys]), strict=True):
                found.setdefault(key, near.similarity)

    def finish(self) -> None:
        """Say of everything that was looked at and stays why it does."""
        shelf = self.shelf
        for skill in self.offered.skills:
            key = skill.key
            if key in shelf.homes or key in self._decisions or key in self.prunes or key in self.left:
                continue
            self.left[key] = self._asides.get(key) or "no other skill was found to be the same class of work"
        for key in [key for key in self.left if key in shelf.homes or key in self.prunes]:
            del self.left[key]

    # -- without a model

    def _lexical(self) -> None:
        cards = self._shown()
        index, clustering = group([card.for_clustering() for card in cards.values()], TIGHT)
        by_key = {str(key): card for key, card in cards.items()}
        for one in clustering.groups:
            decision = lexical_decision(
                one, by_key, library=self.case.name, layout=self.case.layout, taken=list(self._taken())
            )
            if decision is not None:
                self._decisions[decision.umbrella] = decision
        self._replay()
        self._measure(index)
        self.rounds.append(
            Round(
                shown=len(cards),
                clusters=len(clustering.groups),
                questions=0,
                taken_in=len(self.shelf.homes),
                violations=tuple(self._bad),
            )
        )
        self._bad = []


def _touched(decisions: Sequence[Decision], but: Decision) -> set[SkillKey]:
    """Return the skills that decisions after *but* take in or write."""
    place = decisions.index(but)
    return {
        key for decision in decisions[place + 1 :] for key in (decision.umbrella, *(m.key for m in decision.members))
    }
