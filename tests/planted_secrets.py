"""
Made-up secrets for tests that must not let one through, put together from parts so that no scanner takes them for real.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

__all__ = ["ALNUM", "HEX", "SECRETS", "drawn", "planted"]

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
_BASE64 = ALNUM + "+/"


def drawn(draw: random.Random, count: int, alphabet: str = ALNUM) -> str:
    """Return *count* characters with a digit at least every eighth, as drawn ones have."""
    return "".join(draw.choice(string.digits if i % 8 == 5 else alphabet) for i in range(count))


def _key_block(draw: random.Random, kind: str, lines: int) -> str:
    body = "\n".join(drawn(draw, 64, _BASE64) for _ in range(lines))
    return f"-----BEGIN {kind} PRIVATE " + f"KEY-----\n{body}\n-----END {kind} PRIVATE KEY-----"


def _jwt(draw: random.Random) -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"%d","name":"x"}' % draw.randrange(10**9))
    head = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return f"{head}.{drawn(draw, 43)}"


SECRETS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "anthropic-key": lambda d: ("{}", "sk-" + "ant-api03-" + drawn(d, 80)),
    "openai-key": lambda d: ("{}", "sk-" + "proj-" + drawn(d, 60)),
    "github-token": lambda d: ("{}", "gh" + "p_" + drawn(d, 36)),
    "gitlab-token": lambda d: ("{}", "gl" + "pat-" + drawn(d, 20)),
    "aws-access-key": lambda d: (
        "{}",
        "AK" + "IA" + drawn(d, 16, "ABCDEFGHJKLMNPQR234567").translate({48: 50, 49: 51, 56: 52, 57: 53}),
    ),
    "google-key": lambda d: ("{}", "AI" + "za" + drawn(d, 35)),
    "slack-token": lambda d: ("{}", "xo" + "xb-" + drawn(d, 12, string.digits) + "-" + drawn(d, 24)),
    "huggingface-token": lambda d: ("{}", "h" + "f_" + drawn(d, 34)),
    "npm-token": lambda d: ("{}", "np" + "m_" + drawn(d, 36)),
    "pypi-token": lambda d: ("{}", "py" + "pi-" + drawn(d, 150)),
    "stripe-key": lambda d: ("{}", "sk_" + "live_" + drawn(d, 24)),
    "sendgrid-key": lambda d: ("{}", "S" + "G." + drawn(d, 22) + "." + drawn(d, 43)),
    "jwt": lambda d: ("{}", _jwt(d)),
    "private-key": lambda d: ("\n{}\n", _key_block(d, "RSA", 24)),
    "long-private-key": lambda d: ("\n{}\n", _key_block(d, "OPENSSH", 200)),
    "url-password": lambda d: ("postgres://app:{}@db.internal:5432/app", drawn(d, 20)),
    "environment": lambda d: ("export DB_PASSWORD={}\n", drawn(d, 18)),
    "json": lambda d: ('{{"api_key": "{}"}}', drawn(d, 40)),
    "bearer": lambda d: ("Authorization: Bearer {}", drawn(d, 40)),
    "flag": lambda d: ("deploy --token {} --yes", drawn(d, 32)),
}
"""By kind: a drawn secret, and the text that it stands in."""


def planted(draw: random.Random, kind: str) -> tuple[str, str]:
    """Return a made-up secret of *kind*: the text to put somewhere, and what must not be seen of it anywhere."""
    form, secret = SECRETS[kind](draw)
    return form.format(secret), secret
