"""Candidate clustering: what belongs together, in any order, in any language, within bounds."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core import cluster_index
from curatord.core.cluster import (
    FLOOR,
    RELATED,
    SHORTLIST,
    TIGHT,
    Clustering,
    Cut,
    Group,
    SkillText,
    build_index,
    cluster,
    cut,
    likeness,
    links,
    most_similar,
    overlap,
    similarity,
    twins,
)
from curatord.core.cluster_terms import name_pairs, read_terms, terms_of

REPO = Path(__file__).resolve().parents[2]


def a_skill(name: str, description: str = "", body: str = "", *, key: str = "") -> SkillText:
    return SkillText(key=key or name, name=name, description=description, body=body)


KUBERNETES = (
    a_skill("k8s-rollout", "Roll out a deployment to a Kubernetes cluster", "kubectl rollout status; watch the pods"),
    a_skill("k8s-debug-pods", "Find out why Kubernetes pods crash", "kubectl describe pod; kubectl logs --previous"),
    a_skill("k8s-canary", "Canary deployments on a Kubernetes cluster", "kubectl scale; shift traffic; watch the pods"),
)
BAKING = (
    a_skill("sourdough-bread", "Bake a sourdough loaf", "Feed the starter. Knead the dough. Preheat the oven."),
    a_skill("rye-bread", "Bake a dense rye loaf with sourdough starter", "Mix rye flour into the dough. Oven at 250."),
)
INVOICES = (
    a_skill("send-invoice", "Send an invoice to a customer", "Fill the invoice template, number it, mail the PDF."),
    a_skill(
        "invoice-reminder", "Remind a customer of an unpaid invoice", "Look up the invoice, write a kind reminder."
    ),
)
TCP = a_skill("tcp-dump", "Capture packets on an interface", "tcpdump -i eth0 -w capture.pcap port 443")
SMALL = (*KUBERNETES, *BAKING, *INVOICES, TCP)


def grouped(found: Clustering) -> set[frozenset[str]]:
    return {frozenset(group.members) for group in found.groups}


def names_of(*themes: tuple[SkillText, ...]) -> set[frozenset[str]]:
    return {frozenset(skill.key for skill in theme) for theme in themes}


class TestGroups:
    def test_themes_of_a_small_library_are_found(self) -> None:
        """Eight skills on three themes and one loner: no theme needs a large library to be seen."""
        found = cluster(build_index(SMALL), SHORTLIST)

        assert names_of(KUBERNETES, BAKING, INVOICES) == grouped(found)
        assert found.alone == ("tcp-dump",)

    def test_every_skill_is_in_one_group_or_alone(self) -> None:
        """Nothing is listed twice and nothing is lost."""
        found = cluster(build_index(SMALL), TIGHT)

        listed = [key for group in found.groups for key in group.members] + list(found.alone)
        assert sorted(skill.key for skill in SMALL) == sorted(listed)
        assert {skill.key for skill in SMALL} == set(found.nearest)

    def test_why_names_what_is_shared_in_whole_words(self) -> None:
        """The reason shows words a reader knows, not stems, and says how many hold them."""
        pair = (
            a_skill("voice-clone", "Cloning voices", "Train, then clone the voice and release it."),
            a_skill("voice-cloner-setup", "Cloned voices on a new machine", "Install; clone a voice; release."),
        )
        (group,) = cluster(build_index(pair), SHORTLIST).groups

        assert {"voice", "clone"} <= set(group.terms)
        assert group.why.startswith("both speak of ")
        assert "voice" in group.why

    def test_why_prefers_what_others_do_not_say(self) -> None:
        """A word of the whole library says less about a group than its own."""
        made = [
            a_skill(f"acme-{theme}-{n}", f"{theme} at acme", f"acme acme {theme}", key=f"{theme}{n}")
            for theme in ("payroll", "vacation", "travel", "parking")
            for n in range(3)
        ]
        found = cluster(build_index(made), Cut(threshold=0.5))

        assert {group.terms[0] for group in found.groups} == {"payroll", "vacation", "travel", "parking"}

    def test_near_copies_are_called_so(self) -> None:
        """Two skills with the same text under the same name are near copies, at full cohesion."""
        (group,) = cluster(build_index([a_skill("tcp-dump", TCP.description, TCP.body, key="x"), TCP]), TIGHT).groups

        assert group.cohesion == 1.0
        assert group.why.startswith("near copies; both speak of ")

    def test_the_nearest_outsiders_are_shown(self) -> None:
        """A group shows who is nearest outside it; a member's own nearest lie outside its group too."""
        found = cut(links(build_index(SMALL)), Cut(threshold=0.12, most=2))

        pair = next(group for group in found.groups if "k8s-rollout" in group.members)
        (third,) = {skill.key for skill in KUBERNETES} - set(pair.members)
        assert third == pair.outside[0].key
        assert pair.outside[0].similarity >= FLOOR
        assert third in {near.key for near in found.nearest[pair.members[0]]}
        assert not set(pair.members) & {near.key for near in found.nearest[pair.members[0]]}

    def test_no_group_outgrows_its_limit(self) -> None:
        """A theme of sixty is cut into groups of at most twenty-four that know each other."""
        many = [a_skill(f"report-{n}", "Write the weekly sales report", f"Region {n}") for n in range(60)]
        found = cluster(build_index(many), SHORTLIST)

        assert all(len(group.members) <= 24 for group in found.groups)
        assert found.alone == ()
        assert all(group.outside for group in found.groups)

    def test_an_empty_library_has_no_groups(self) -> None:
        """Nothing in, nothing out."""
        assert Clustering(groups=(), alone=(), nearest={}) == cluster(build_index([]))

    def test_skills_without_text_are_alone(self) -> None:
        """A name of a stop word and an empty body have nothing to compare; they are listed, not joined."""
        found = cluster(build_index([a_skill("the"), a_skill("a"), a_skill("-", key="-"), a_skill("", key="empty")]))

        assert found.groups == ()
        assert {"the", "a", "-", "empty"} == set(found.alone)

    def test_a_key_is_unique(self) -> None:
        """Two skills under one key are an error of the caller, told with the key."""
        with pytest.raises(ValueError, match="'twice'"):
            build_index([a_skill("one", key="twice"), a_skill("two", key="twice")])

    def test_equal_names_under_two_keys_are_two_skills(self) -> None:
        """The same name may stand in two categories."""
        found = cluster(build_index([a_skill("notes", key="a/notes"), a_skill("notes", key="b/notes")]))

        assert found.groups[0].members == ("a/notes", "b/notes")

    @pytest.mark.parametrize(("threshold", "most"), [(0.0, 24), (1.1, 24), (0.3, 1)])
    def test_a_cut_refuses_nonsense(self, threshold: float, most: int) -> None:
        """A threshold below what is measured or a group of one says nothing."""
        with pytest.raises(ValueError, match=r"threshold|members"):
            Cut(threshold=threshold, most=most)


class TestLanguages:
    @pytest.mark.parametrize(
        "pair",
        [
            (
                a_skill("zh-1", "部署容器到生产集群", "先检查集群状态，再滚动更新容器。"),
                a_skill("zh-2", "回滚生产集群的容器", "查看集群中的容器并恢复。"),
            ),
            (
                a_skill("ja-1", "請求書を作成して送付する", "請求書のテンプレートを開き、顧客へ送付します。"),
                a_skill("ja-2", "未払いの請求書を確認する", "顧客ごとの請求書を確認してください。"),
            ),
            (
                a_skill("ko-1", "데이터베이스 백업을 만든다", "매일 밤 데이터베이스를 백업한다."),
                a_skill("ko-2", "데이터베이스 백업에서 복원", "가장 최근의 백업을 찾는다."),
            ),
            (
                a_skill("de-1", "Die Sicherung der Datenbank prüfen", "Für jede Datenbank die Sicherung einspielen."),
                a_skill(
                    "de-2", "Eine Sicherung der Datenbank anlegen", "Datenbank anhalten und die Sicherung starten."
                ),
            ),
            (
                a_skill("hi-1", "डेटाबेस का बैकअप बनाएं", "हर रात डेटाबेस का बैकअप"),
                a_skill("hi-2", "डेटाबेस बैकअप से बहाल करें", "नवीनतम बैकअप खोजें"),
            ),
            (
                a_skill("ru-1", "Создать резервную копию базы", "Остановить базу и запустить резервное копирование."),
                a_skill("ru-2", "Восстановить базу из резервной копии", "Найти последнюю резервную копию."),
            ),
        ],
        ids=["chinese", "japanese", "korean", "german", "hindi", "russian"],
    )
    def test_themes_are_found_in_other_languages(self, pair: tuple[SkillText, SkillText]) -> None:
        """Two skills on one theme are a group beside the English ones, whatever the language."""
        found = cluster(build_index([*SMALL, *pair]), SHORTLIST)

        assert frozenset(skill.key for skill in pair) in grouped(found)

    def test_scripts_without_blanks_become_pairs(self) -> None:
        """A run of Han signs is read as overlapping pairs, a particle ends a run, a mixed word is cut at the script."""
        assert {"部署", "署容", "容器"} == set(terms_of("部署容器"))
        assert {"容器", "集群"} == set(terms_of("集群的容器"))
        assert {"nginx", "容器"} == set(terms_of("nginx容器"))

    def test_spellings_are_folded(self) -> None:
        """Case, accents and width do not matter."""
        assert terms_of("resume cafe pdf") == terms_of("Résumé CAFÉ ＰＤＦ")

    def test_marks_belong_to_their_word(self) -> None:
        """A Hindi word is one term: its vowel signs do not end it."""
        assert {"डेटाबेस"} == set(terms_of("डेटाबेस"))


class TestTerms:
    def test_forms_of_a_word_are_one_term(self) -> None:
        """Plural, -ing and -ed do not make another theme."""
        assert len(terms_of("clone clones cloning cloned")) == 1
        assert len(terms_of("deploy deploys deploying deployed")) == 1
        assert len(terms_of("query queries")) == 1

    def test_cyrillic_endings_are_one_term(self) -> None:
        """Cases of a Russian word do not make another theme."""
        assert len(terms_of("сервер сервера серверы серверами серверов")) == 1
        assert len(terms_of("копия копию копии")) == 1

    def test_humps_of_a_name_are_words(self) -> None:
        """A name in camel case says the same as one with hyphens."""
        assert read_terms(a_skill("voice-clone")).counts == read_terms(a_skill("VoiceClone")).counts

    def test_boilerplate_counts_where_it_is_a_name(self) -> None:
        """What is dropped from a text may be all that a name has."""
        assert read_terms(a_skill("todo-list", "Keep a list")).counts == {"todo": 1, "list": 1}

    @pytest.mark.parametrize("word", ["the", "Guidelines", "und", "для", "2026", "x", "__", "f" * 64])
    def test_what_says_nothing_is_no_term(self, word: str) -> None:
        """Function words, boilerplate, numbers, single letters, rules and hashes are dropped."""
        assert terms_of(word) == {}

    def test_a_name_counts_more_than_a_body(self) -> None:
        """A word of the name counts four times, one of the description twice."""
        counts = read_terms(a_skill("alpha", "bravo", "kilo")).counts

        assert counts == {"alpha": 4, "bravo": 2, "kilo": 1}

    def test_only_the_head_of_a_body_is_read(self) -> None:
        """What stands behind six thousand characters does not count."""
        assert read_terms(a_skill("", key="k", body=" " * 6_144 + "kubernetes")).counts == {}

    def test_names_compare_without_separators(self) -> None:
        """A hyphen, a blank, an underscore or another case is no other name."""
        assert name_pairs("frontend-design") == name_pairs("Frontend_Design") == name_pairs("frontend design")
        assert frozenset() == name_pairs("--")


class TestMeasures:
    def test_unrelated_skills_have_no_overlap(self) -> None:
        """Baking and packet capture stay below what a merge must have in common."""
        assert similarity(BAKING[0], TCP) < RELATED
        assert all(near.similarity < RELATED for near in overlap(build_index(SMALL), ["sourdough-bread", "tcp-dump"]))

    def test_members_of_a_theme_overlap(self) -> None:
        """What belongs together is above it; the stranger among them is told apart."""
        measured = {
            near.key: near.similarity
            for near in overlap(build_index(SMALL), ["rye-bread", "tcp-dump", "sourdough-bread"])
        }

        assert measured["rye-bread"] >= RELATED
        assert measured["rye-bread"] == measured["sourdough-bread"]
        assert measured["tcp-dump"] < RELATED

    def test_a_lone_member_overlaps_with_nobody(self) -> None:
        """A merge of one has nothing to measure."""
        (only,) = overlap(build_index(SMALL), ["tcp-dump"])

        assert only.similarity == 0.0

    def test_similarity_is_symmetric_and_one_for_itself(self) -> None:
        """A skill is as like another as the other is like it, and wholly like itself."""
        index = build_index(SMALL)

        assert index.similarity("rye-bread", "rye-bread") == 1.0
        assert index.similarity("rye-bread", "sourdough-bread") == index.similarity("sourdough-bread", "rye-bread")
        assert index.similarity("rye-bread", "sourdough-bread") == similarity(*BAKING, index=index)

    def test_an_unknown_key_is_an_error(self) -> None:
        """A key that the index does not hold is not silently unrelated."""
        with pytest.raises(KeyError):
            overlap(build_index(SMALL), ["tcp-dump", "nowhere"])

    def test_most_similar_to_a_text(self) -> None:
        """A stretch of a session finds the skills that it is about, best first."""
        found = most_similar(build_index(SMALL), "the pods of the new deployment crash, look at kubectl logs", 2)

        assert [near.key for near in found[:1]] == ["k8s-debug-pods"]
        assert {near.key for near in found} <= {skill.key for skill in KUBERNETES}
        assert most_similar(build_index(SMALL), "") == ()

    def test_most_similar_leaves_out_the_skill_itself(self) -> None:
        """A skill of the library is not its own neighbour."""
        found = most_similar(build_index(SMALL), BAKING[0])

        assert [near.key for near in found] == ["rye-bread"]

    def test_a_copy_under_another_name_is_the_same(self) -> None:
        """voice-cloning-2 with the text of voice-clone is voice-clone again."""
        old = a_skill("voice-clone", "Clone a voice from a short recording", "Record, train, export the voice model.")
        new = a_skill("voice-cloning-2", old.description, old.body)
        (twin,) = twins(build_index([*SMALL, old]), new)

        assert twin.key == "voice-clone"
        assert twin.same

    def test_a_like_name_alone_is_listed_but_not_the_same(self) -> None:
        """A name that differs in one sign is shown, so that nobody mixes the two up; they stay two skills."""
        (twin,) = twins(
            build_index(SMALL), a_skill("rye-breed", "Keep a register of animals", "Pedigree and vaccination.")
        )

        assert twin.key == "rye-bread"
        assert not twin.same

    def test_another_skill_of_the_theme_is_no_twin(self) -> None:
        """Being about the same thing is not being the same."""
        assert twins(build_index(SMALL[1:]), SMALL[0]) == ()

    def test_likeness_tells_name_description_and_content_apart(self) -> None:
        """Equal names with nothing else in common: full marks for the name only."""
        found = likeness(
            a_skill("apple", "Grow fruit trees", key="1"), a_skill("Apple", "Sign macOS binaries", key="2")
        )

        assert (found.name, found.description) == (1.0, 0.0)
        assert found.key == "2"
        assert not found.same


TEXTS = st.text(alphabet=st.sampled_from("abc de-_.1é部署容の"), max_size=40)
LIBRARIES = st.lists(
    st.builds(
        a_skill,
        st.sampled_from(["deploy-api", "deploy-web", "rollback-api", "bread", "部署", ""]),
        TEXTS,
        st.one_of(TEXTS, st.sampled_from([skill.body for skill in SMALL])),
        key=st.text(alphabet="abcdef", min_size=1, max_size=4),
    ),
    max_size=12,
    unique_by=lambda skill: skill.key,
)


class TestDeterminism:
    @given(library=LIBRARIES, seed=st.integers(0, 1 << 16))
    @settings(max_examples=120, deadline=None)
    def test_the_order_in_does_not_matter(self, library: list[SkillText], seed: int) -> None:
        """A library in any order gives the same index, the same groups and the same words."""
        shuffled = random.Random(seed).sample(library, len(library))

        assert build_index(library) == build_index(shuffled)
        assert cluster(build_index(library)) == cluster(build_index(shuffled))

    @given(library=LIBRARIES, most=st.integers(2, 12))
    @settings(max_examples=200, deadline=None)
    def test_cuts_are_nested(self, library: list[SkillText], most: int) -> None:
        """Each tight group lies within one group of the shortlist of the same size limit, which both keep."""
        measured = links(build_index(library))
        tight = cut(measured, Cut(threshold=TIGHT.threshold, most=most))
        loose = cut(measured, Cut(threshold=SHORTLIST.threshold, most=most))

        assert all(any(group <= wider for wider in grouped(loose)) for group in grouped(tight))
        assert all(2 <= len(group.members) <= most for group in loose.groups)

    @given(library=LIBRARIES)
    @settings(max_examples=60, deadline=None)
    def test_similarity_is_between_nothing_and_all(self, library: list[SkillText]) -> None:
        """No measure leaves 0 to 1, whatever the text."""
        index = build_index(library)
        values = [index.similarity(one, two) for one in index.keys for two in index.keys]

        assert all(0.0 <= value <= 1.0 for value in values)

    def test_the_hash_seed_does_not_matter(self) -> None:
        """Processes with different hash seeds print the same bytes."""
        program = (
            "import dataclasses, json, sys\n"
            "from curatord.core.cluster import SkillText, build_index, cluster, twins\n"
            "skills = [SkillText(**row) for row in json.load(sys.stdin)]\n"
            "index = build_index(skills)\n"
            "alike = [[dataclasses.asdict(twin) for twin in twins(index, skill)] for skill in skills]\n"
            "print(json.dumps([dataclasses.asdict(cluster(index)), alike]))\n"
        )
        rows = [{"key": s.key, "name": s.name, "description": s.description, "body": s.body} for s in _made_up(40)]
        printed = [
            subprocess.run(
                [sys.executable, "-c", program],
                input=json.dumps(rows),
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(REPO)},
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
            for seed in ("0", "1", "4711")
        ]

        assert printed[0] == printed[1] == printed[2]
        assert len(json.loads(printed[0])[0]["groups"]) > 1


def _made_up(n: int, *, words: int = 120) -> list[SkillText]:
    """Return *n* skills on themes of four, each with some words of its own."""
    dice = random.Random(7)
    syllables = ["ba", "de", "fi", "go", "lu", "ma", "ne", "po", "ri", "su", "ta", "vo"]

    def word() -> str:
        return "".join(dice.choice(syllables) for _ in range(4))

    common = [word() for _ in range(60)]
    made = []
    for number in range(n):
        if number % 4 == 0:
            theme = [word() for _ in range(12)]
        own = [word() for _ in range(10)]
        said = [dice.choice(dice.choice((common, theme, own))) for _ in range(words)]
        made.append(a_skill(f"{theme[0]}-{own[0]}", " ".join(said[:8]), " ".join(said), key=f"k{number}"))
    return made


class TestBounds:
    """Hostile libraries cost no more than normal ones; the limits are some ten times what is needed."""

    def test_a_giant_body_is_not_read_to_its_end(self) -> None:
        """Fifty bodies of a megabyte on one line take the time of fifty heads."""
        giants = [a_skill(f"giant-{n}", "Holds a dump", f"dump{n} " * 150_000) for n in range(50)]
        started = time.process_time()
        cluster(build_index(giants))

        assert time.process_time() - started < 2.0

    @pytest.mark.parametrize("own_words", [False, True], ids=["numbered", "named"])
    def test_near_identical_skills_do_not_explode(self, own_words: bool) -> None:
        """Eight hundred copies of one skill are groups of twenty-four, found in time that grows with their number."""
        dice = random.Random(3)
        body = " ".join("".join(dice.choice("abcdefgh") for _ in range(6)) for _ in range(80)) * 8
        own = ["".join(dice.choice("abcdefgh") for _ in range(7)) if own_words else str(n) for n in range(800)]
        copies = [a_skill(f"report-{word}", "Weekly sales report", body, key=f"{n}") for n, word in enumerate(own)]
        started = time.process_time()
        found = cluster(build_index(copies), SHORTLIST)

        assert time.process_time() - started < 10.0
        assert len(found.alone) < 24
        assert all(len(group.members) <= 24 for group in found.groups)

    def test_a_crowded_term_still_finds_the_true_neighbour(self) -> None:
        """A pair among a thousand that share a common word is found by what only it shares."""
        crowd = [a_skill(f"{n:04d}-crowd", "crowd", f"own{n:04d}word") for n in range(1_000)]
        pair = [a_skill(f"{n}-crowd", "crowd", "zebra quagga stripes", key=f"pair{n}") for n in ("0000a", "zzzz")]
        found = cluster(build_index([*crowd, *pair]), Cut(threshold=0.25))

        assert "pair0000a" in next(group for group in found.groups if "pairzzzz" in group.members).members

    def test_random_words_do_not_fill_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The vocabulary forgets words met once when it outgrows its bound; shared words stay."""
        monkeypatch.setattr(cluster_index, "VOCABULARY", 5_000)
        dice = random.Random(11)
        noise = [
            a_skill(f"z-noise-{n}", "", " ".join("".join(dice.choices("abcdefghij", k=9)) for _ in range(500)))
            for n in range(60)
        ]
        tracemalloc.start()
        try:
            index = build_index([*noise, *SMALL])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert peak < 6 << 20
        assert names_of(KUBERNETES, BAKING, INVOICES) <= grouped(cluster(index))

    def test_broken_text_is_text(self) -> None:
        """Lone surrogates, controls, bidi marks and long runs of one sign are no error."""
        odd = [
            a_skill("odd-\ud800", "\x00\u202e\ufdfa" * 50, "部" * 10_000),
            a_skill("odd-2", "\ufdfa" * 2_000, "_" * 9_000),
        ]

        assert len(build_index(odd)) == 2


def test_made_up_themes_are_found() -> None:
    """Fifty themes of four among common words come out as they were made, in the tight cut."""
    skills = _made_up(200)
    found = cluster(build_index(skills), TIGHT)

    themes = {frozenset(f"k{n + i}" for i in range(4)) for n in range(0, 200, 4)}
    assert themes == grouped(found)
    assert all(isinstance(group, Group) and group.why for group in found.groups)
