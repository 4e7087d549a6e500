"""
Redaction, measured: planted secrets of every kind in the places where they are found, and silence on ordinary text.

The secrets are made up here, from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import random
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.redact import KINDS, redact, redact_value, redacted

DRAW = random.Random(20260301)  # made-up secrets need no cryptography


def drawn(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Return *count* characters with a digit at least every eighth, as drawn ones have."""
    return "".join(DRAW.choice(string.digits if i % 8 == 5 else alphabet) for i in range(count))


HEX = "0123456789abcdef"
JWT = ".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in (b'{"alg":"HS256"}', b'{"sub":"1234567"}'))
PEM = "\n".join(
    ["-----BEGIN OPENSSH PRIVATE " + "KEY-----", *(drawn(64) for _ in range(6)), "-----END OPENSSH PRIVATE KEY-----"]
)

TOKENS = {
    "anthropic-key": "sk-" + "ant-api03-" + drawn(80),
    "openrouter-key": "sk-" + "or-v1-" + drawn(64, HEX),
    "openai-key": "sk-" + "proj-" + drawn(60),
    "stripe-key": "sk_" + "live_" + drawn(24),
    "webhook-secret": "whsec" + "_" + drawn(32),
    "elevenlabs-key": "sk" + "_" + drawn(48, HEX),
    "github-token": "gh" + "p_" + drawn(36),
    "gitlab-token": "gl" + "pat-" + drawn(20),
    "aws-access-key": "AK" + "IA" + "Q2W3E4R5T6Y7U2I3",
    "google-key": "AI" + "za" + drawn(35),
    "google-oauth": "ya" + "29." + drawn(60),
    "google-secret": "GOC" + "SPX-" + drawn(28),
    "slack-token": "xo" + "xb-" + drawn(12, string.digits) + "-" + drawn(24),
    "slack-webhook": "hooks.slack" + ".com/services/T0AB1CD2E/B0AB1CD2E/" + drawn(24),
    "discord-webhook": "discord" + ".com/api/webhooks/123456789012345678/" + drawn(60),
    "discord-token": "M" + drawn(23) + "." + drawn(6) + "." + drawn(30),
    "telegram-token": drawn(9, string.digits) + ":A" + "A" + drawn(33),
    "huggingface-token": "h" + "f_" + drawn(34),
    "npm-token": "np" + "m_" + drawn(36),
    "pypi-token": "py" + "pi-" + drawn(90),
    "rubygems-key": "ruby" + "gems_" + drawn(48, HEX),
    "docker-token": "dckr" + "_pat_" + drawn(27),
    "sendgrid-key": "S" + "G." + drawn(22) + "." + drawn(43),
    "twilio-key": "S" + "K" + drawn(32, HEX),
    "mailgun-key": "key" + "-" + drawn(32, HEX),
    "mailchimp-key": drawn(32, HEX) + "-us" + "12",
    "groq-key": "gs" + "k_" + drawn(52),
    "xai-key": "xa" + "i-" + drawn(80),
    "perplexity-key": "pp" + "lx-" + drawn(48),
    "replicate-token": "r" + "8_" + drawn(37),
    "nvidia-key": "nv" + "api-" + drawn(64),
    "langsmith-key": "ls" + "v2_pt_" + drawn(32, HEX) + "_" + drawn(10, HEX),
    "databricks-token": "da" + "pi" + drawn(32, HEX),
    "digitalocean-token": "do" + "p_v1_" + drawn(64, HEX),
    "shopify-token": "sh" + "pat_" + drawn(32, HEX),
    "square-token": "sq" + "0csp-" + drawn(43),
    "linear-key": "lin" + "_api_" + drawn(40),
    "notion-token": "nt" + "n_" + drawn(46),
    "figma-token": "fi" + "gd_" + drawn(40),
    "atlassian-token": "ATA" + "TT3" + drawn(180),
    "vault-token": "hv" + "s." + drawn(90),
    "doppler-token": "dp" + ".pt." + drawn(43),
    "grafana-token": "gl" + "sa_" + drawn(32) + "_" + drawn(8, HEX),
    "sentry-token": "sn" + "trys_" + drawn(60),
    "newrelic-key": "NR" + "AK-" + drawn(27, string.ascii_uppercase),
    "postman-key": "PM" + "AK-" + drawn(24, HEX) + "-" + drawn(34, HEX),
    "tailscale-key": "ts" + "key-auth-" + drawn(40),
    "supabase-key": "sb" + "p_" + drawn(40, HEX),
    "planetscale-token": "ps" + "cale_tkn_" + drawn(43),
    "fly-token": "f" + "m2_" + drawn(120),
    "jwt": JWT + "." + drawn(43),
    "private-key": PEM,
}
PLACES = {
    "alone": "{}",
    "prose": "I pushed it with {} and it worked.",
    "env line": "export SOME_VALUE={}\nnext line",
    "json": '{{"value": "{}", "n": 1}}',
    "json in json": '{{\\"value\\": \\"{}\\"}}',
    "markdown": "Use `{}` here.",
    "url": "https://api.example.org/x?q={}&n=1",
    "header": "curl -H 'x-thing: {}' https://api.example.org",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_found_by_its_own_form_wherever_it_stands(kind: str, place: str) -> None:
    """The issuers' own forms need no name beside them. The marker says the kind, and the text around it stays."""
    form = PLACES[place]

    assert form.format(f"[redacted:{kind}]") == redact(form.format(TOKENS[kind]))


WORD = "tr0ub4dor&3"
NAMED = [
    f"DB_PASSWORD={WORD}",
    "export PGPASSWORD=correcthorse",
    f"password: {WORD}",
    f'password = "{WORD}"',
    'password="correct-horse-battery"',
    f"'client_secret': '{WORD}x'",
    f'"api_key": "{drawn(32)}"',
    f'\\"apiKey\\": \\"{drawn(40)}\\"',
    f"API_KEY={drawn(32, HEX)}",
    f"AWS_SECRET_ACCESS_KEY={drawn(40)}",
    f"aws_secret_access_key = {drawn(40)}",
    f"AccountName=x;AccountKey={drawn(86)}==;EndpointSuffix=y",
    f"Server=db;User Id=sa;Password={WORD};",
    "HEROKU_API_KEY=01234567-89ab-cdef-0123-456789abcdef",
    f"//registry.example.org/:_authToken={drawn(36)}",
    f"tool --token {drawn(24)} --verbose",
    f"tool --password={WORD}",
    f"curl -u admin:{WORD} https://example.org",
    f"sshpass -p '{WORD}' ssh host",
    f"machine example.org login me password {WORD}",
    f"postgres://app:{WORD}@db.internal:5432/app",
    f"redis://:{WORD}@cache:6379/0",
    f"https://me:{drawn(20)}@git.example.org/x.git",
    f"Authorization: Bearer {drawn(30)}",
    f'"authorization": "Basic {base64.b64encode(b"me:tr0ub4dor").decode()}"',
    f"-H 'Authorization: token {drawn(40, HEX)}'",
    f"use Bearer {drawn(40)} for it",
    f"the password is {WORD}, do not lose it",
    f"Cookie: session_token={drawn(40)}",
    f"SENTRY_DSN={drawn(40)}",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_value_is_found_by_the_name_beside_it(text: str) -> None:
    """Environment lines, code, JSON, flags, URLs, headers, prose: the value goes, the name stays."""
    found = redacted(text)

    assert sum(found.counts.values()) == 1
    assert "[redacted:" in found.text


def test_a_key_block_that_was_cut_off_is_replaced_as_far_as_it_goes() -> None:
    """A tail of a log may hold the beginning of a key only."""
    cut = PEM[: len(PEM) // 2]

    assert redact("before\n" + cut) == "before\n[redacted:private-key]"
    assert redact(cut.replace("\n", "\\n")) == "[redacted:private-key]"


SHA1 = hashlib.sha1(b"x", usedforsecurity=False).hexdigest()
SHA256 = hashlib.sha256(b"x").hexdigest()
QUIET = [
    f"commit {SHA1}\nindex 83db48f..bf2a1c9 100644",
    f'"sha256": "{SHA256}"',
    f"sha256:{SHA256}",
    f'integrity = "sha512-{base64.b64encode(bytes(range(64))).decode()}"',
    "session 01234567-89ab-cdef-0123-456789abcdef resumed",
    'session_id = "01234567-89ab-cdef-0123-456789abcdef"',
    "max_tokens=4096, total_tokens: 12345, tokens = tokenize(text)",
    "token = self.tokens[0]",
    "token: str = next(iter(tokens))",
    "password = getpass.getpass('Password: ')",
    "def login(user: str, password: str) -> None:",
    "password: string",
    "if password == confirm_password:",
    "User.objects.create(password=password, token=token)",
    "secret = os.environ['CLIENT_SECRET']",
    "api_key = config.get('api_key')",
    "apiKey: process.env.OPENAI_API_KEY,",
    "OPENAI_API_KEY=$OPENAI_API_KEY",
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=your-key-here",
    "ANTHROPIC_API_KEY=<your key>",
    "api_key: {env: OPENAI_API_KEY}",
    "api_key: ${{ secrets.NPM_TOKEN }}",
    "Authorization: Bearer $TOKEN",
    'headers = {"Authorization": f"Bearer {token}"}',
    "The bearer of this message, the token economy, a secret garden.",
    "The password is required. Your token is invalid.",
    "primary_key=True, foreign_key='users.id', sort_key = name_of_column_12",
    'SECRET_KEY = "aws_secret_access_key"',
    "cache_key = f'{namespace}:{version}:user-profile-2024-01'",
    "next_page_token = 'CAUQAA-abcdef1234567890'",
    "postgres://localhost:5432/app and http://user:$PASS@host/",
    "git clone git@github.com:owner/name.git",
    "see https://example.org/a:b/c@d for keys",
    "sk-learn-pipeline-with-many-transformers-and-estimators",
    "task-automation-skill-for-large-repositories-v2",
    "PWD=/home/me/work OLDPWD=/home/me",
    "KEY_ID=AKIDEXAMPLE tokenizer=cl100k_base",
    "ghp_short hf_hub_download npm_config_registry",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxr0m3Qw9u7Vv3 me@host",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYI\n-----END PUBLIC KEY-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "toolu_01A09q90qw90lq917835lq9 chatcmpl-9x8y7z6w5v4u3t2s1r0q msg_01XFDUDYJgAACzvnptvVoYEL",
]


@pytest.mark.parametrize("text", QUIET)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """Code, hashes, UUIDs, references to secrets, words: a digest full of markers would teach nothing."""
    assert text == redact(text)


def test_our_own_source_holds_no_secret() -> None:
    """A body of real code: next to nothing is replaced in it."""
    files = sorted((Path(__file__).resolve().parents[2] / "curatord").rglob("*.py"))
    found = {f.name: dict(redacted(f.read_text(encoding="utf-8")).counts) for f in files}

    assert {name: counts for name, counts in found.items() if counts} == {}


def test_mail_addresses_are_only_replaced_when_asked() -> None:
    """An address is no secret, and some want it kept back all the same."""
    text = "write to jane.doe+x@mail.example.org, not to jane@localhost or @handle"

    assert text == redact(text)
    assert redact(text, emails=True) == "write to [redacted:email], not to jane@localhost or @handle"


def test_values_are_judged_by_the_key_they_stand_under() -> None:
    """In JSON the name is the key, also where the value alone says nothing."""
    row = {"password": WORD, "note": "password", "list": [{"apiKey": drawn(32)}], "n": 1, "none": None}
    found = redact_value(row)

    assert (found["password"], found["note"], found["n"], found["none"]) == ("[redacted:password]", "password", 1, None)
    assert found["list"][0]["apiKey"] == "[redacted:secret]"


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*TOKENS.values(), *NAMED, *QUIET, '"', "'", "\\", "\n", " ", "=", ":", "password", "://a:b@c", "token"]
        )
        | st.text(max_size=12),
        max_size=8,
    ).map("".join)
)
def test_twice_is_once(text: str) -> None:
    """What was replaced is not replaced again: digests are redacted, and so are the requests they go into."""
    once = redact(text, emails=True)

    assert once == redact(once, emails=True)


PIECES = (
    *"aA0=: \\\"'-_.@/\né",
    *("password", "password=", "token: ", "sk-", "sk-ant-", "key-", "xox", "MA.", "AKIA", "SECRET_", "password is "),
    *("eyJ", "eyJa.", "eyJaaaaaaaa.eyJbbbbbbbb.", "://", "://a:", "://a:b", "a@b.", "a.b@", '\\"', '"a\\'),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "Authorization: ", "bearer ", "curl -u a:", "login a password "),
    *("--token ", "password='", 'api_key="', "a:", "a: ", "a=", "--a=", "--a ", "mysql -p", "a:5432:b:c:"),
)


@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear(piece: str) -> None:
    """200 KB of any repeated piece take a second and a half at most: no pattern goes back over the text."""
    text = piece * (200_000 // len(piece))
    begin = time.process_time()
    redact("password curl login sshpass bearer authorization PRIVATE KEY " + text, emails=True)

    assert time.process_time() - begin < 1.5


def test_there_are_many_kinds() -> None:
    """The list of kinds is what this file plants, and more."""
    assert set(TOKENS) <= set(KINDS)
    assert len(KINDS) > 50


@pytest.mark.parametrize("blank", ["\\n", "\\r\\n", "\\t", "\\\\n"])
def test_a_key_behind_an_escaped_line_end_is_found(blank: str) -> None:
    """Arguments of tools and replies are JSON in a text, where a line end is two signs."""
    key = "sk-" + "ant-api03-" + "aB3dE5fG7hI9" * 6

    assert f'{{"command":"cd x{blank}[redacted:anthropic-key]"}}' == redact(f'{{"command":"cd x{blank}{key}"}}')


def test_escapes_that_hide_nothing_stay() -> None:
    """Paths and texts with such pairs are as they came."""
    text = r"C:\new\table\reports and a\nb\tc"

    assert text == redact(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"command": "export DB_PASSWORD=hunter2x9"}', '{"command": "export DB_PASSWORD=[redacted:password]"}'),
        ('{"cmd":"x --password hunter2x9"}', '{"cmd":"x --password [redacted:password]"}'),
        (
            r'{"body": "{\"client_secret\": \"hunter2x9\"}"}',
            r'{"body": "{\"client_secret\": \"[redacted:password]\"}"}',
        ),
        ('{"a": "b", "c": "d = 5"}', '{"a": "b", "c": "d = 5"}'),
    ],
)
def test_what_a_quoted_text_assigns_is_looked_at(text: str, expected: str) -> None:
    """A name that says nothing does not cover what stands in its value."""
    assert expected == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "env: DB_PASSWORD={}",
        "12:04 INFO env: SECRET_KEY={}",
        "note: password: {}",
        "line1: PGPASSWORD={} psql -h db",
        "error: level=fatal code=3: DB_PASSWORD={}",
        "see https://x.test/cb?state=1&access_token={}",
        "run --verbose --token {}",
        "run --env --password={} --yes",
    ],
)
def test_a_name_behind_another_name_is_looked_at(text: str) -> None:
    """What a bare value under a plain name holds may itself be a name and its secret."""
    secret = "q9Lm1pQ8rT2vX7aaZ4kq"

    assert secret not in redact(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "mysql -u root -p{} shop",
        "mysqldump --host db -p'{}' shop > out.sql",
        "redis-cli -h cache -a {} get x",
        "password:\n  {}",
        "the passphrase for the deploy key: {}",
        "use api key {} for it",
        "db.example.invalid:5432:shop:app:{}",
        "db.example.invalid:5433:shop:app:{}",
        "Kennwort: {}",
        "das Passwort ist {}",
        "Passwort: {}",
    ],
)
def test_other_ways_of_saying_a_secret(text: str) -> None:
    """Options, lines of .pgpass, values below or far behind their name, and German."""
    secret = "q9Lm1pQ8rT2vX7aaZ4kq"
    told = redact(text.format(secret))

    assert secret not in told
    assert told == redact(told)
