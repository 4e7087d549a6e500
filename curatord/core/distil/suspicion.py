"""
What a person should see before it is written, though it may be right: addresses, permissions and standing orders that
the user never spoke of.

A tool's output, a web page or a pasted file can put words into a session, and a model into a skill, which then speaks
in every later session (bugs B108). What comes from the user's own turns is his; of the rest these three kinds wait for
a yes, with the reason. Unlike the screen's findings they are no faults: most skills name some address.
"""

from __future__ import annotations

import re

__all__ = ["suspicions"]

_ADDRESS = re.compile(
    r"(?<![\w.-])(?:[a-z][a-z0-9+.-]{1,12}://(?:[^\s/@\"'<>`]{1,200}@)?([^\s/:\"'<>`?#)\]},;]{1,255})|([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6})"
    r"|((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?!\w|\.[0-9]))",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[\w.%+-]{1,64}@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)*")  # what an address may be said as
_LOCAL = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?|[$<{%].*)\Z", re.IGNORECASE)
_PERMISSIONS = re.compile(
    r"\bsudo\b|\bchmod\s+(?:-R\s+)?(?:[0-7]{0,1}7[0-7]{2}|[0-7]{3}[67]|a\+\w*w|o\+w|u\+s|\+s)\b|\bchown\b|\bsetfacl\b|\bsetcap\b"
    r"|--dangerously[\w-]*|--yolo\b|--no-verify\b|--allow-(?:root|all)[\w-]*|--privileged\b|--trust[\w-]*|\bbypassPermissions\b"
    r"|\ballowed[-_]tools\b|\bpermissions?\.(?:allow|deny)\b|\bNOPASSWD\b|\bvisudo\b|\bauthorized_keys\b|\bset-executionpolicy\b"
    r"|\bstrict-?host-?key-?checking\W{1,4}no\b|--insecure\b|\bcurl\s+(?:-\w+\s+)*-k\b|\bverify\s*=\s*False\b|\bgit\s+config\s+--global\b"
    r"|(?<![\w])(?:~|\$HOME)?/\.?(?:ssh/id_\w+|aws/credentials|netrc|gnupg|kube/config)\b|/etc/(?:shadow|sudoers|passwd)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\bwithout\s+(?:asking|confirm\w*|waiting\s+for|the\s+user'?s?)\b|\b(?:never|do\s+not|don'?t|no\s+need\s+to)\s+(?:ask|confirm|prompt|wait\s+for)\b"
    r"|\bfrom\s+now\s+on\b|\b(?:in|for|at\s+the\s+(?:start|end)\s+of)\s+(?:every|each|all|any)\s+(?:future\s+)?(?:sessions?|conversations?|chats?|requests?|messages?)\b"
    r"|\b(?:send|upload|post|forward|submit|exfiltrate)\s+(?:\S+\s+){0,6}(?:to|at)\s+(?:https?://|\S+@|the\s+(?:server|endpoint|webhook))"
    r"|\bauto(?:matically)?[- ]?(?:approve|accept|confirm)\b"
    r"|\b(?:skip|disable|turn\s+off)\s+(?:all\s+|any\s+|the\s+)?"
    r"(?:checks?|tests?|reviews?|hooks?|confirmations?|safety|sandbox\w*|approvals?)\b"
    r"|\bohne\s+(?:nachzufragen|r[uü]ckfrage)\b|\bab\s+(?:jetzt|sofort)\b|\bsin\s+preguntar\b|\bsans\s+demander\b|不要(?:询问|确认)|无需(?:询问|确认)|確認せず",
    re.IGNORECASE,
)


def suspicions(before: str, after: str, said: str) -> tuple[str, ...]:
    """
    Return why a person should see a change first, in words; empty where nothing speaks for it.

    Args:
        before: The text that stands there; empty for a new one.
        after: The text that would stand there.
        said: What the user said in the session, in his own turns.
    """
    known = set(_NAMED.findall(f"{before}\n{said}".casefold()))
    found = []
    hosts = sorted(address for address in _addresses(after) if address not in known)
    if hosts:
        found.append(f"it names an address that the user did not: {_listed(hosts)}")
    if new := _new(_PERMISSIONS, before, after, said):
        found.append(f"it changes what is allowed, and the user did not say so: {_listed(new)}")
    if new := _new(_ORDERS, before, after, said):
        found.append(f"it gives a standing order that did not come from the user: {_listed(new)}")
    return tuple(found)


def _addresses(text: str) -> set[str]:
    hosts = ((m[1] or m[2] or m[3]).rstrip(".").casefold() for m in _ADDRESS.finditer(text))
    return {host for host in hosts if not _LOCAL.match(host)}


def _new(pattern: re.Pattern[str], before: str, after: str, said: str) -> list[str]:
    """Return what *pattern* finds in *after* and neither in *before* nor in *said*."""
    known = {_same(m[0]) for text in (before, said) for m in pattern.finditer(text)}
    return sorted({m[0] for m in pattern.finditer(after) if _same(m[0]) not in known})


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(words: list[str]) -> str:
    shown = [" ".join(word.split())[:60] for word in words[:3]]
    return ", ".join(shown) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
