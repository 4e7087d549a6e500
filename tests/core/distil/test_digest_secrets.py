"""No secret in a digest, wherever it stood and wherever it was cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.distil.cutting import MARGIN, windowed
from curatord.core.distil.digest import DigestBuilder
from curatord.core.distil.said import Role
from curatord.core.settings import DigestSettings
from curatord.core.wire import Question, first_request
from tests.core.distil.conversation import digest_of, said
from tests.planted_secrets import SECRETS, planted

WORDS = "the build of our service runs in three steps and each of them is checked by hand before it goes out. "
PIECE = 14  # so many characters of a secret in a row are too many


def filler(length: int) -> str:
    """Return ordinary text of *length* characters."""
    return (WORDS * (length // len(WORDS) + 1))[:length]


def leaked(secret: str, text: str) -> str | None:
    """Return a piece of *secret* that is in *text*, or None."""
    flat = [line for line in secret.replace("\\n", "\n").split("\n") if "PRIVATE" not in line]
    for line in flat:
        for at in range(max(1, len(line) - PIECE + 1)):
            piece = line[at : at + PIECE]
            if len(piece) >= min(PIECE, len(line)) and piece in text:
                return piece
    return None


def test_two_hundred_secrets_of_twenty_kinds_in_one_session() -> None:
    """Ten of each kind, at random places of messages of all lengths and roles: none is in the digest or the request."""
    draw = random.Random(20260901)
    kinds = [kind for kind in SECRETS for _ in range(10)]
    draw.shuffle(kinds)
    secrets: list[str] = []
    messages = []
    for number in range(60):
        text = ""
        for _ in range(4):
            text += filler(draw.randrange(0, 3_000))
            if kinds:
                form, secret = planted(draw, kinds.pop())
                secrets.append(secret)
                text += f" {form} "
        role: Role = ("user", "assistant", "error")[number % 3]
        messages.append(said(role, text, number, ("Bash", text)))
    assert (200, 20) == (len(secrets), len(SECRETS))

    digest = digest_of(*messages)
    request = first_request(Question(task="distil", prompt="p", data={"digest": digest.rows()})).text

    assert [] == [s for s in secrets if leaked(s, digest.text()) or leaked(s, request)]
    assert sum(digest.redacted.values()) > 0


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("length", [2_200, 90_000])
def test_a_secret_on_any_border_is_gone(kind: str, length: int) -> None:
    """
    Head and tail of what is shown, and the edges of what is kept, each with the secret before, over and behind it.
    """
    draw = random.Random(f"{kind} {length}")
    limit = 2_000
    width = MARGIN + limit
    borders = (0, 1_200, 1_290, limit, width, length - width, length - 700, length - 660, length)
    for border in borders:
        form, secret = planted(draw, kind)
        for shift in (1, len(form) // 2, len(form) - 4):
            at = min(max(0, border - shift), length)
            text = f"{filler(at)} {form} {filler(length - at)}"
            cut = windowed(text, limit).cut(limit)
            assert len(cut.text) <= limit
            assert leaked(secret, cut.text) is None, (border, shift)


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(sorted(SECRETS)), min_size=1, max_size=12),
    gaps=st.lists(st.integers(0, 25_000), min_size=13, max_size=13),
    limit=st.integers(1, 2_500),
    seed=st.integers(0, 2**16),
)
def test_no_cut_of_any_text_shows_a_piece_of_a_secret(kinds: list[str], gaps: list[int], limit: int, seed: int) -> None:
    """Many secrets near each other make windows shrink, which must not bring a cut edge into view."""
    draw = random.Random(seed)
    text, secrets = filler(gaps[0]), []
    for kind, gap in zip(kinds, gaps[1:], strict=False):
        form, secret = planted(draw, kind)
        secrets.append(secret)
        text += f" {form} {filler(gap)}"
    cut = windowed(text, limit).cut(limit)

    assert [] == [s for s in secrets if leaked(s, cut.text)]
    assert len(cut.text) <= limit


def test_windows_full_of_keys_show_less_rather_than_an_edge() -> None:
    """Key blocks in a row shrink to marks; the one that the window's edge cuts is not among what is shown."""
    draw = random.Random(7)
    forms = [planted(draw, "private-key") for _ in range(60)]
    text = "".join(form for form, _ in forms) + planted(draw, "github-token")[0]
    cut = windowed(text, 2_000).cut(2_000)

    assert [] == [secret for _, secret in forms if leaked(secret, cut.text)]
    assert cut.missing > 0


def test_arguments_of_calls_and_names_of_tools_are_redacted_before_they_are_cut() -> None:
    """300 characters of a command may end in the midst of a token."""
    draw = random.Random(3)
    for at in range(240, 300, 3):
        form, secret = planted(draw, "github-token")
        digest = digest_of(said("assistant", "run", 1, ("Bash", filler(at) + " " + form)))
        assert leaked(secret, digest.text()) is None


def test_context_is_redacted_too() -> None:
    """Two hundred characters of an older message, cut behind the redaction."""
    draw = random.Random(5)
    for at in range(100, 200, 5):
        form, secret = planted(draw, "anthropic-key")
        builder = DigestBuilder(DigestSettings())
        builder.context(said("user", filler(at) + " " + form))
        builder.add(said("user", "go on", 2))
        assert leaked(secret, builder.build().text()) is None


def test_mail_addresses_go_when_asked() -> None:
    """Off by default: an address is no secret."""
    assert "jane@example.org" in digest_of(said("user", "write jane@example.org")).text()
    assert "jane@example.org" not in digest_of(said("user", "write jane@example.org"), emails=True).text()
