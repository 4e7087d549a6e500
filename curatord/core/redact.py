r"""
Text with its secrets replaced by markers that say their kind: `[redacted:github-token]`.

Applied to every word that goes to a model and to every word that comes back (promise 12). What is wanted: nothing
that opens a door leaves the machine; ordinary code, commit hashes, UUIDs and file digests stay readable, since a
digest full of markers teaches a model nothing.

The plan, in order:

1. Tokens with a form of their own (a prefix that their issuer gave them so that scanners find them): `TOKENS`.
2. Private key blocks, also those that were cut off before their end.
3. Passwords in URLs, credentials behind `Authorization`, `Bearer`, `curl -u`, `.netrc` lines.
4. Values beside a name that says what they are: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, "the password is …".
   Names that always mean a secret (`password`, `secret`) need little of the value; names that often do not (`token`,
   `key`) need one that looks random. References to a secret (`$TOKEN`, `os.environ[…]`, `<your key>`) are none.

Time is linear: every quantifier is bounded or possessive, no pattern begins where its predecessor could have begun,
and a pattern with a prefix is tried only where the prefix occurs. Doing it twice changes nothing.

Why not a ready-made detector: detect-secrets (1.5.0, the best known) reports lines, not the places to replace, and
brings `requests` into a process that has no use for it. Of what the tests plant it finds 13 of 52 forms and 17 of 30
named values, and speaks up at 8 of 44 ordinary texts; this module finds all and keeps silent (it was made with those
texts at hand, so expect less of it elsewhere: in 32 MB of installed Python packages it puts 6 markers, all at
made-up passwords).

Unsure: a password that is one plain word in a sentence cannot be told from the sentence, and stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from math import log2
from typing import Any, TypeAlias

from curatord.core.cheap import dataclass

__all__ = ["KINDS", "Redacted", "redact", "redact_value", "redacted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """
    *text* with markers, and how many of each kind were put in.

    *digests* count by kind and a short digest of the secret, so that two texts can be asked whether they hold the same.
    """

    text: str
    counts: Mapping[str, int]
    digests: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class _Token:
    """One issuer's form. *hints* are tried with `in` first; *check* tells a look-alike from the real thing."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None


def _mixed(text: str) -> bool:
    """Return whether *text* looks drawn rather than written: digits in it, and one unbroken stretch of some length."""
    return sum(c.isdigit() for c in text) >= 2 and max(map(len, re.split(r"[-_.]", text))) >= 16


def _t(kind: str, hints: str, body: str, check: Callable[[str], bool] | None = None) -> _Token:
    return _Token(kind, tuple(hints.split()), re.compile(rf"(?<![A-Za-z0-9]){body}"), check)


W = "[A-Za-z0-9]"
V = "[A-Za-z0-9_-]"
TOKENS: tuple[_Token, ...] = (
    _t("anthropic-key", "sk-ant-", rf"sk-ant-{V}{{16,400}}+"),
    _t("openrouter-key", "sk-or-", rf"sk-or-{V}{{24,200}}+"),
    _t("openai-key", "sk-", rf"sk-{V}{{20,400}}+", _mixed),
    _t("stripe-key", "_live_ _test_", rf"(?:sk|rk|pk)_(?:live|test)_{W}{{10,250}}+"),
    _t("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,120}+"),
    _t("elevenlabs-key", "sk_", r"sk_[0-9a-f]{48}(?![0-9a-f])"),
    _t("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{W}{{30,255}}+"),
    _t("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    _t(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- gloas- glsoat-",
        rf"gl(?:pat|dt|rt|cbt|ptt|ft|imt|oas|soat)-{V}{{20,300}}+",
    ),
    _t("aws-access-key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _t("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}+={0,2}"),
    _t("google-key", "AIza", rf"AIza{V}{{35}}(?!{V})"),
    _t("google-oauth", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,500}+"),
    _t("google-secret", "GOCSPX-", rf"GOCSPX-{V}{{20,60}}+"),
    _t("slack-token", "xox", rf"xox[abeoprs](?:\.xox[a-z])?-{V}{{10,400}}+"),
    _t("slack-token", "xapp-", rf"xapp-{V}{{20,400}}+"),
    _t("slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,200}+"),
    _t("discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{5,30}/[A-Za-z0-9_-]{20,200}+"),
    _t("discord-token", ".", rf"[MNO]{V}{{22,27}}\.{V}{{6}}\.{V}{{27,45}}+", lambda s: any(c.isdigit() for c in s)),
    _t("telegram-token", ":AA", rf"[0-9]{{8,10}}:AA{V}{{33}}(?!{V})"),
    _t("huggingface-token", "hf_ api_org_", rf"(?:hf|api_org)_{W}{{30,100}}+"),
    _t("npm-token", "npm_", rf"npm_{W}{{36,100}}+"),
    _t("pypi-token", "pypi-", rf"pypi-{V}{{50,400}}+"),
    _t("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,64}+"),
    _t("crates-token", "cio", rf"cio{W}{{32}}(?!{W})", _mixed),
    _t("docker-token", "dckr_", rf"dckr_(?:pat|oat)_{V}{{20,100}}+"),
    _t("sendgrid-key", "SG.", rf"SG\.{V}{{16,40}}\.{V}{{30,60}}+"),
    _t("twilio-key", "SK", r"SK[0-9a-f]{32}(?![0-9a-f])"),
    _t("mailgun-key", "key-", r"key-[0-9a-f]{32}(?![0-9a-f])"),
    _t("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])"),
    _t("groq-key", "gsk_", rf"gsk_{W}{{40,80}}+"),
    _t("xai-key", "xai-", rf"xai-{W}{{60,100}}+"),
    _t("perplexity-key", "pplx-", rf"pplx-{W}{{40,60}}+"),
    _t("replicate-token", "r8_", rf"r8_{W}{{35,45}}+"),
    _t("nvidia-key", "nvapi-", rf"nvapi-{V}{{40,100}}+"),
    _t("fireworks-key", "fw_", rf"fw_{W}{{20,40}}+", _mixed),
    _t("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _t("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?(?![0-9a-f])"),
    _t("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _t("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _t("square-token", "sq0 EAAA", rf"(?:sq0[a-z]{{3}}-{V}{{22,60}}+|EAAA{V}{{60}})"),
    _t("linear-key", "lin_api_", rf"lin_(?:api|oauth)_{W}{{32,64}}+"),
    _t("notion-token", "ntn_ secret_", rf"(?:ntn_{W}{{40,60}}+|secret_{W}{{43}}(?!{W}))"),
    _t("figma-token", "figd_", rf"figd_{V}{{35,60}}+"),
    _t("atlassian-token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,300}+"),
    _t("vault-token", "hvs. hvb. hvr.", rf"hv[sbr]\.{V}{{24,300}}+"),
    _t("doppler-token", "dp.", rf"dp\.(?:pt|st|ct|sa|scim|audit)\.{V}{{20,80}}+"),
    _t("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,2000}+"),
    _t("grafana-token", "glc_ glsa_", r"gl(?:c|sa)_[A-Za-z0-9+/=_]{32,400}+"),
    _t("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_]{40,400}+"),
    _t("newrelic-key", "NRAK- NRJS-", r"NR(?:AK|JS)-[A-Za-z0-9]{19,30}+"),
    _t("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _t("tailscale-key", "tskey-", rf"tskey-[a-z]{{2,10}}-{V}{{15,80}}+"),
    _t("supabase-key", "sbp_ sb_secret_", rf"(?:sbp_[0-9a-f]{{40}}|sb_secret_{V}{{20,60}}+)"),
    _t("planetscale-token", "pscale_", rf"pscale_(?:tkn|pw|oauth)_{V}{{30,80}}+"),
    _t("fly-token", "fm2_", r"fm[12]_[A-Za-z0-9+/=_-]{40,1000}+"),
    _t("1password-token", "ops_ey", rf"ops_ey{V}{{60,2000}}+"),
    _t("jwt", "eyJ", rf"eyJ{V}{{8,4000}}+\.eyJ{V}{{8,8000}}+(?:\.{V}{{0,2000}}+)?"),
)

# A key block with its end; and one that was cut off, as far as it looks like key material.
KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----)[\s\S]){0,20000}+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|[A-Za-z0-9+/=\\\s:,.-]{0,20000}+)"
)

URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@\"'<>`?#]{0,200}+:)([^\s/@\"'<>`]{1,300}+)(?=@)")
AUTHORIZATION = re.compile(
    r"((?:proxy-)?authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}(?:(?:bearer|basic|token|apikey|digest|negotiate)\s{1,4})?)"
    r"([^\s\"'\\,;]{6,4000}+)",
    re.IGNORECASE,
)
BEARER = re.compile(r"(?<![A-Za-z])(bearer\s{1,4})([A-Za-z0-9_~+/=.-]{12,4000}+)", re.IGNORECASE)
CURL_USER = re.compile(r"((?<!\S)(?:-u|--user|--proxy-user)[ =][\"']?[^\s:\"']{1,100}+:)([^\s\"']{1,200}+)")
NETRC = re.compile(r"(\blogin\s{1,8}\S{1,200}+\s{1,8}password\s{1,8})(\S{1,200}+)")
SSHPASS = re.compile(r"(\bsshpass\s{1,4}-p\s{0,4}[\"']?)([^\s\"']{1,200}+)")

EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)

# A name, something that assigns, a value. Names begin where no name character stands before them, so none is tried
# twice.
VALUE = (
    r"(?:\"((?:[^\"\\\n]|\\[^\n]){1,1000}+)\"|'((?:[^'\\\n]|\\[^\n]){1,1000}+)'|\\{1,3}[\"']([^\"'\\\n]{1,1000}+)"
    r"|([^\s\"'`,;\\<>]{1,1000}+))"
)
ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_-])([A-Za-z_][A-Za-z0-9_-]{1,80}+)(?:\\{0,3}[\"'`])?"
    rf"[ \t]{{0,4}}(?:=>|:=|==|=|:)[ \t]{{0,4}}{VALUE}"
)
FLAG = re.compile(rf"(?<![\w-])--([a-zA-Z][a-zA-Z0-9-]{{1,40}}+)[ =]{{1,4}}{VALUE}")
_SAID_OF = r"\b(password|passphrase|passcode|passwort|kennwort|pwd|secret|token|api[ -]?key)"
_SAID_VALUE = r"[\"'`]?([^\s\"'`]{6,200}+)"
SAID = (
    re.compile(rf"{_SAID_OF}[ \t]{{1,4}}(?:is|was|ist|war|lautet)[ \t:]{{1,4}}{_SAID_VALUE}", re.IGNORECASE),
    # "the passphrase for the deploy key: …", and a value on a line of its own below its name
    re.compile(rf"{_SAID_OF}\b[^\n:=\"'`<>(){{}}]{{0,40}}+:[ \t]{{0,4}}\n?[ \t]{{1,8}}{_SAID_VALUE}", re.IGNORECASE),
    # "use api key 0123…": only what looks drawn, since any word may follow
    re.compile(r"\b(token|api[ -]?key)[ \t]{1,4}()([A-Za-z0-9_-]{20,200}+)", re.IGNORECASE),
)
OPTION = re.compile(
    r"((?:\b(?:mysql|mariadb)(?:dump|admin)?\b[^\n|;&]{0,120}?[ \t]-p"
    r"|\bredis-cli\b[^\n|;&]{0,120}?[ \t]-a[ \t]{1,4})[\"']?)([^\s\"'|;&-][^\s\"'|;&]{3,200}+)"
)
PGPASS = re.compile(
    r"((?<![^\s\"'`])[A-Za-z0-9*.-]{1,200}+:(?:\*|[0-9]{4,5}):(?:\*|[A-Za-z_]\w{0,62}+):(?:\*|[A-Za-z_]\w{0,62}+):)"
    r"([^\s:\"'`[][^\s:\"'`]{5,200}+)"
)

PGPASS_HINT = re.compile(r":(?:54[0-9]{2}|6432|\*):")

STRONG = re.compile(
    r"pass(?:word|wd|phrase|code|wort)|kennwort|[_-](?:pwd|pass|pw)$|^pwd$|secret|PGPASS", re.IGNORECASE
)
WEAK = re.compile(
    r"(?:^|[_-]|[a-z])(?:api|access|auth|private|encryption|signing|master|service|account|client|consumer|app|deploy|license"
    r"|webhook|session|ssh|storage|subscription|shared|admin|hmac|vault)[_-]?key$|(?:^|[_-])(?:api|app)key$|credential"
    r"|(?:^|[_-]|[a-z])(?:token|bearer|auth|jwt|dsn|cookie|sas|sig)$|_KEY$",
    re.IGNORECASE,
)
NOT_SECRET = re.compile(
    r"tokens$|(?:page|next|continuation|cursor|sync|stop|pad|eos|bos|unk|csrf)[_-]?token|public|(?:primary|foreign|sort|cache|partition|row|"
    r"hash|dict|group|lookup)[_-]?key|secret[_-]?(?:name|ref|id|version|path|store|arn)|(?:password|token|secret)[_-]?(?:file|path|env"
    r"|name|url|type|last|changed|created|count|limit|length|field|ttl|expir\w{0,10}|policy|reset|hint|min|max)",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"^(?:[$<{%*.#]|\[redacted:|env[:.(]|os\.|process\.|secrets?[.:/]|vault[:/]|op://|self\.|this\.|args\.|config|settings"
    r"|lambda\b|final\b|getenv|your[-_ ]|my[-_ ]|x{3,}|\.{3}|…|test$|example|change[-_]?me|placeholder|redacted|dummy"
    r"|none$|null$|nil$|undefined$|true$|false$|str(?:ing)?\b|bytes\b|int\b|bool\b|any\b|optional|required|secretstr|path\b)",
    re.IGNORECASE,
)
NAME_OF_ONE = re.compile(r"[A-Za-z_]+")
UUID = re.compile(r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE)
KEYISH = re.compile(r"pass|kennw|pwd|secret|token|key|cred|auth|bearer|jwt|dsn|cookie|sas|sig|pw", re.IGNORECASE)

# A marker ends what stood before it, so a secret that was glued to another one shows in the next round.
MAX_ROUNDS = 8
SHORT = 500  # characters of a text that is remembered with what became of it

# Blanks to a pattern, and no signs that a text has: each stands for one escape while that is looked behind.
ESCAPED = {"\\n": "\x1d", "\\r": "\x1e", "\\t": "\x1f"}

Counts: TypeAlias = "Counter[tuple[str, str]]"  # by kind and digest

KINDS = (
    *dict.fromkeys(token.kind for token in TOKENS),
    "private-key",
    "password",
    "credential",
    "secret",
    "email",
)


def redact(text: str, *, emails: bool = False) -> str:
    """Return *text* with its secrets replaced by markers; see `redacted`."""
    return _redacted_short(text, emails) if len(text) <= SHORT else redacted(text, emails=emails).text


@lru_cache(maxsize=2048)
def _redacted_short(text: str, emails: bool) -> str:
    """Return a short text redacted; names and descriptions of skills come again with every question."""
    return redacted(text, emails=emails).text


def redacted(text: str, *, emails: bool = False) -> Redacted:
    """
    Return *text* with its secrets replaced, and how many of each kind.

    Args:
        text: Anything; other people's transcripts and skills.
        emails: Replace e-mail addresses too.
    """
    counts: Counts = Counter()
    text = _rounds(text, counts, emails=emails)
    if any(escape in text for escape in ESCAPED):
        # In JSON a line end is two signs, the second a letter, which hides what begins behind it. So it is looked
        # through once more with such pairs as the blanks that they mean.
        text = _rounds(_with(ESCAPED, text), counts, emails=emails)
        text = _with({blank: escape for escape, blank in ESCAPED.items()}, text)
    kinds: Counter[str] = Counter()
    for (kind, _), count in counts.items():
        kinds[kind] += count
    return Redacted(text=text, counts=dict(kinds), digests=dict(counts))


def _rounds(text: str, counts: Counts, *, emails: bool) -> str:
    for _ in range(MAX_ROUNDS):
        found = sum(counts.values())
        text = _once(text, counts, emails=emails)
        if sum(counts.values()) == found:
            break
    return text


def _with(changes: Mapping[str, str], text: str) -> str:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def _once(text: str, counts: Counts, *, emails: bool) -> str:
    """Return *text* after one round of the plan; what was found is added to *counts*."""

    def whole(kind: str, check: Callable[[str], bool] | None = None) -> Callable[[re.Match[str]], str]:
        def put(match: re.Match[str]) -> str:
            if check is not None and not check(match[0]):
                return match[0]
            counts[kind, _digest(match[0])] += 1
            return f"[redacted:{kind}]"

        return put

    def behind(kind: str, accept: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
        def put(match: re.Match[str]) -> str:
            if REFERENCE.match(match[2]) or not accept(match[2]):
                return match[0]
            counts[kind, _digest(match[2])] += 1
            return f"{match[1]}[redacted:{kind}]"

        return put

    def named(match: re.Match[str]) -> str | None:
        index = next(i for i in (2, 3, 4, 5) if match[i] is not None)
        start, end = match.start(index) - match.start(), match.end(index) - match.start()
        kind = _judge(match[1], match[index], quoted=index != 5)
        if kind is not None:
            counts[kind, _digest(match[index])] += 1
            return f"{match[0][:start]}[redacted:{kind}]{match[0][end:]}"
        if index == 5:
            return None  # what stands there may be a name with a value of its own: `env: DB_PASSWORD=…`
        # A text under a name that says nothing, such as a command in a tool's arguments, may assign things itself.
        within = _each(FLAG, named, _each(ASSIGNED, named, match[index]))
        return f"{match[0][:start]}{within}{match[0][end:]}"

    if "PRIVATE KEY" in text:
        text = KEY_BLOCK.sub(whole("private-key"), text)
    for token in TOKENS:
        if any(hint in text for hint in token.hints):
            text = token.pattern.sub(whole(token.kind, token.check), text)
    if "://" in text:
        text = URL_PASSWORD.sub(behind("password", lambda _: True), text)
    lowered = text.lower()
    if "authorization" in lowered:
        text = AUTHORIZATION.sub(behind("credential", _credential), text)
    if "bearer" in lowered:
        text = BEARER.sub(behind("credential", lambda v: any(c.isdigit() for c in v)), text)
    if "curl" in lowered:
        text = CURL_USER.sub(behind("password", lambda _: True), text)
    if "login" in lowered and "password" in lowered:
        text = NETRC.sub(behind("password", lambda _: True), text)
    if "sshpass" in lowered:
        text = SSHPASS.sub(behind("password", lambda _: True), text)
    if "mysql" in lowered or "mariadb" in lowered or "redis-cli" in lowered:
        text = OPTION.sub(behind("password", _wordless), text)
    if PGPASS_HINT.search(text):
        text = PGPASS.sub(behind("password", _wordless), text)
    if KEYISH.search(text):
        text = _each(ASSIGNED, named, text)
        text = _each(FLAG, named, text)
        for said in SAID:
            text = said.sub(_said(counts), text)
    if emails and "@" in text:
        text = EMAIL.sub(whole("email"), text)
    return text


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _each(pattern: re.Pattern[str], put: Callable[[re.Match[str]], str | None], text: str) -> str:
    """
    Return *text* with what *put* makes of each match of *pattern*, which ends in a bare value as its fifth group.

    Where *put* returns None the search goes on at that value and not behind it. So a value is looked at as often as
    there are assigning signs in front of it within its length, which is bounded: the time stays linear.
    """
    done: list[str] = []
    begun = at = 0
    while (match := pattern.search(text, at)) is not None:
        put_in = put(match)
        if put_in is None:
            at = match.start(5)
            continue
        done += (text[begun : match.start()], put_in)
        begun = at = match.end()
    if not done:
        return text
    return "".join((*done, text[begun:]))


def _credential(value: str) -> bool:
    """Return whether *value* behind `Authorization` is one: long enough, no expression, and not letters only."""
    return len(value) >= 8 and not _code(value) and any(not c.isalpha() for c in value)


def _said(counts: Counts) -> Callable[[re.Match[str]], str]:
    """Return the replacement for "the password is …", where only a value that is no word is one."""

    def put(match: re.Match[str]) -> str:
        last = match.re.groups  # the value; where an empty group stands before it, it must look drawn
        value = match[last].rstrip(".,;:!?)")
        is_one = _random(value) if last == 3 else _wordless(value) and not _code(value)
        if REFERENCE.match(value) or "redacted:" in value or not is_one:
            return match[0]
        counts["secret", _digest(value)] += 1
        start = match.start(last) - match.start()
        return f"{match[0][:start]}[redacted:secret]{match[last][len(value) :]}"

    return put


def _judge(name: str, value: str, *, quoted: bool) -> str | None:
    """Return the kind of secret that *value* is under *name*, or None."""
    strong = STRONG.search(name)
    if not (strong or WEAK.search(name)) or NOT_SECRET.search(name):
        return None
    if REFERENCE.match(value) or "[redacted:" in value:
        return None
    if not quoted and _code(value):
        return None
    if NAME_OF_ONE.fullmatch(value) and (STRONG.search(value) or WEAK.search(value)):
        return None  # `SECRET_KEY = "aws_secret_access_key"` names a setting
    if strong:
        return "password" if _secret_under_strong(name, value, quoted=quoted) else None
    return "secret" if _random(value) else None


def _secret_under_strong(name: str, value: str, *, quoted: bool) -> bool:
    """Return whether *value* is a secret when its *name* says so: a literal of some length, not a piece of code."""
    if len(value) < 4:
        return False
    if quoted:
        return " " not in value.strip() or _random(value)
    environment = name.isupper() and not value.isdigit() and not value.startswith("/")
    return environment or _wordless(value)


def _code(value: str) -> bool:
    """Return whether a bare *value* is an expression: a call, an index, a dotted name."""
    return any(c in value for c in "()[]{}|") or bool(re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value))


def _wordless(value: str) -> bool:
    """Return whether *value* is no plain word, number or path: it mixes letters with digits or signs."""
    letters = any(c.isalpha() for c in value)
    digits = any(c.isdigit() for c in value)
    signs = any(not c.isalnum() and c not in "-_./:" for c in value)
    return letters and (digits or signs) and not value.startswith(("/", "./", "~/", "http"))


def _random(value: str) -> bool:
    """Return whether *value* looks drawn: long, letters and digits mixed, and hardly repeating itself (or a UUID)."""
    if UUID.match(value):
        return True
    if len(value) < 16 or " " in value or value.startswith(("/", "./", "http")) or "(" in value:
        return False
    if sum(c.isdigit() for c in value) < 2 or not any(c.isalpha() for c in value):
        return False  # a drawn text of 32 characters has five digits; names have one at most
    counts = Counter(value[:200])
    total = min(len(value), 200)
    return -sum(n / total * log2(n / total) for n in counts.values()) >= 3.0


def redact_value(value: Any, *, emails: bool = False) -> Any:
    """
    Return a JSON-like *value* with the secrets in all its strings replaced; the keys of objects are texts too.

    A string under a key that says what it is counts as named by it.
    """
    match value:
        case str():
            return redact(value, emails=emails)
        case Mapping():
            return {redact(str(key)): _under(str(key), part, emails=emails) for key, part in value.items()}
        case list() | tuple():
            return [redact_value(part, emails=emails) for part in value]
        case None | bool() | int() | float():
            return value
        case _:
            raise TypeError(f"a {type(value).__name__} is not JSON")


def _under(key: str, value: Any, *, emails: bool) -> Any:
    if isinstance(value, str):
        kind = _judge(key, value, quoted=True)
        if kind is not None:
            return f"[redacted:{kind}]"
    return redact_value(value, emails=emails)
