"""
What a person should see before it is written, though it may be right: addresses, permissions and standing orders that
the user never spoke of, and text that does not show where a skill is looked at.

A tool's output, a web page or a pasted file can put words into a session, and a model into a skill, which then speaks
in every later session (bugs B108). What comes from the user's own turns is his; of the rest these kinds wait for
a yes, with the reason. Unlike the screen's findings they are no faults: most skills name some address.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["suspicions"]

_ADDRESS = re.compile(
    r"(?<![\w.-])(?:[a-z][a-z0-9+.-]{1,12}://(?:[^\s/@\"'<>`]{1,200}@)?([^\s/:\"'<>`?#)\]},;]{1,255})|([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6})"
    r"|((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?!\w|\.[0-9]))|(\[(?=(?:[0-9a-f.]{0,8}:){2})[0-9a-f:.]{6,45}\])(?=[:/\s]|\Z)",
    re.IGNORECASE,
)
_DOTS = re.compile(
    "[\u3002\uff0e\uff61]|[\\[({][ ]?\\.[ ]?[\\])}]"
)  # what a dot of a name is written as to be passed over
_NAMED = re.compile(r"[\w.%+-]{1,64}@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)*")  # what an address may be said as
_LOCAL = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?|[$<{%].*)\Z", re.IGNORECASE)
# A host without a scheme: `files.invalid/collect`, `files.invalid:4444`; and any, where a line sends or fetches.
_HOST = r"(?<![\w.@/~$-])((?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24})(?![\w-]|\.[a-z0-9])"
_BARE_HOST = re.compile(rf"{_HOST}(?=/|:[0-9]{{2,5}}\b)", re.IGNORECASE)
_ANY_HOST = re.compile(
    rf"{_HOST}|(?<!\S)(?:[\w.-]{{1,64}}@)?([a-z0-9][\w-]{{1,62}}):(?:/(?!/)|~)|\b(?:nc|ncat|telnet)\s+(?:-\w+\s+){{0,4}}([\w.-]{{2,64}})\s+[0-9]{{2,5}}\b",
    re.IGNORECASE,
)
_TRAVELS = re.compile(
    r"\b(?:curl|wget|nc|ncat|netcat|socat|telnet|ssh|scp|sftp|ftp|rsync|POST|PUT|Invoke-WebRequest)\b"
    r"|\b(?:send|upload|copy|post|forward|submit|mail|transmit|exfiltrate)\b[^\n]{0,200}\b(?:to|at)\b",
    re.IGNORECASE,
)
# With verbs that are said of much else too, only a host right behind them: `messages.create` is none.
_SENT_TO = re.compile(
    r"\b(?:push|publish|sync|share|report|deliver|stream|mirror|connect)\s+(?:\S{1,60}\s+){0,5}(?:to|with|at)\s+"
    + _HOST,
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\n]+")
_ENDINGS = (  # of names of files, which look like hosts
    "md mdx txt rst py pyi js mjs cjs ts jsx tsx vue json jsonl json5 yaml yml toml ini cfg conf env lock sh "
    "bash zsh fish ps1 bat rb php pl go rs java kt swift c h cc cpp hpp cs lua sql db sqlite csv tsv xml html "
    "htm css scss svg png jpg jpeg gif webp pdf log out err tmp bak old new orig diff patch zip gz tgz tar bz2 "
    "xz zst whl jar so dll exe bin img iso pem key crt pub tf tfvars proto gradle service timer ipynb tex docx "
    "xlsx pptx mp3 mp4 wav local"
)
_FILE_NAMES = frozenset(_ENDINGS.split())
_PERMISSIONS = re.compile(
    r"\bsudo\b|\bchmod\s+(?:-R\s+)?(?:[0-7]{0,1}7[0-7]{2}|[0-7]{3}[67]|a\+\w*w|o\+w|u\+s|\+s)\b|\bchown\b|\bsetfacl\b|\bsetcap\b"
    r"|--dangerously[\w-]*|--yolo\b|--no-verify\b|--allow-(?:root|all)[\w-]*|--privileged\b|--trust[\w-]*|\bbypassPermissions\b"
    r"|\ballowed[-_]tools\b|\bpermissions?\.(?:allow|deny)\b|\bNOPASSWD\b|\bvisudo\b|\bauthorized_keys\b|\bset-executionpolicy\b"
    r"|\bstrict-?host-?key-?checking\W{1,4}no\b|--insecure\b|\bcurl\b[^\n|;]{0,200}?\s-[fsSLgiIv]{0,8}k[fsSLgiIv]{0,8}(?![\w-])|\bverify\s*=\s*False\b|\bgit\s+config\s+--global\b"
    r"|(?<![\w])(?:~|\$HOME)?/\.?(?:ssh/id_\w+|aws/credentials|netrc|gnupg|kube/config)\b|/etc/(?:shadow|sudoers|passwd)\b"
    # What is read or runs by itself from then on, and what nobody gets back.
    r"|\b(?:add|append|write|put|insert|save|echo|paste|install)\b[^\n]{0,80}?(?:\b(?:CLAUDE|AGENTS|GEMINI|QWEN)\.md\b"
    r"|\bsettings(?:\.local)?\.json\b|\.(?:bash|zsh)rc\b|\.(?:bash_|z)?profile\b|\bcrontab\b|\bLaunchAgents\b|\bsystemd/user\b)"
    r"|\bcrontab\s+-(?!l)|\bsystemctl\s+(?:--\w+\s+)?enable\b|\blaunchctl\s+(?:load|bootstrap|enable)\b"
    r"|\brm\s+(?:-{1,2}[\w-]{1,20}\s+){1,4}[\"']?(?:~|/|\$HOME|\$\{HOME\})[\"']?(?:/?\*)?(?=[\s;&|`'\")]|\Z)|\bmkfs(?:\.\w+)?\b"
    r"|\bdd\b[^\n]{0,80}?\bof=/dev/",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\bwithout\s+(?:asking|confirm\w*|waiting\s+for|the\s+user'?s?)\b|\b(?:never|do\s+not|don'?t|no\s+need\s+to)\s+(?:ask|confirm|prompt|wait\s+for)\b"
    r"|\bfrom\s+now\s+on\b|\b(?:in|for|at\s+the\s+(?:start|end)\s+of)\s+(?:every|each|all|any)\s+(?:future\s+)?(?:sessions?|conversations?|chats?|requests?|messages?)\b"
    r"|\b(?:use|load|apply|read|open|follow|run|consult)\b[^.\n]{0,40}?\b(?:in|for|before|after)\s+(?:every|each|all|any)\s+"
    r"(?:tasks?|prompts?|questions?|turns?)(?=[ \t]*(?:[.;!]|\n|\Z))"
    r"|\b(?:send|upload|post|forward|submit|exfiltrate)\s+(?:\S+\s+){0,6}(?:to|at)\s+(?:https?://|\S+@|the\s+(?:server|endpoint|webhook))"
    r"|\bauto(?:matically)?[- ]?(?:approve|accept|confirm)\b"
    r"|\b(?:skip|disable|turn\s+off)\s+(?:all\s+|any\s+|the\s+)?"
    r"(?:checks?|tests?|reviews?|hooks?|confirmations?|safety|sandbox\w*|approvals?)\b"
    r"|\btreat\s+[^.\n]{1,80}?\bas\s+(?:\w+\s+){0,2}(?:commands?|instructions?|orders?)\b"
    r"|\b(?:obey|follow|execute|perform|carry\s+out|do|act\s+on)\s+(?:\w+\s+){0,3}(?:instructions?|commands?|orders?|requests?)\s+"
    r"(?:\w+\s+){0,4}(?:tickets?|issues?|comments?|web\s?(?:pages?|sites?)|e-?mails?|messages?|outputs?|results?|pull\s+requests?|chats?)\b"
    r"|\b(?:whatever|no\s+matter\s+what|regardless\s+of\s+what|even\s+if)\s+(?:the\s+)?(?:user|human|operator)\b"
    r"|\bohne\s+(?:nachzufragen|r[uü]ckfrage)\b|\bab\s+(?:jetzt|sofort)\b|\bsin\s+preguntar\b|\bsans\s+demander\b|不要(?:询问|确认)|无需(?:询问|确认)|確認せず",
    re.IGNORECASE,
)

_ALWAYS = re.compile(
    r"\b(?:(?:always|immer|stets)\b(?:[ \t]+\w{1,20}){0,1}?[ \t]+"
    r"|(?:every|each)[ \t]+time\b[^.!?\n]{0,40}?\b)"
    r"(?:obey|follow|trust|believe|accept|approve|allow|grant|copy|send|upload"
    r"|post|forward|e?-?mail|share|publish|transmit|sync|download|fetch|execute|eval(?:uate)?|install|disable|skip)\b[^.!?\n]{0,80}",
    re.IGNORECASE,
)
# A rendered page, a diff that is cut, a narrow window: what a person would not see there, and a model reads.
_UNSEEN = re.compile(
    r"<\w[^>\n]{0,200}?\b(?:hidden\b|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0)"
    r"|\bdata:[\w.+-]{1,40}/[\w.+-]{1,60};base64,[^\s)]{0,20}"
    r"|(?<![ \t\u00a0\u3000])[ \t\u00a0\u3000]{160,}\S|\n(?:[ \t]*\n){30,}[^\n]{0,20}",
    re.IGNORECASE,
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`\n]{1,400}`")
_COMMENT = re.compile(r"<!--[^\n]{0,60}|\[//\]:[^\n]{0,60}")
_WORD = re.compile(r"\w{4,}")


def suspicions(before: str, after: str, said: str, *, template: bool = False) -> tuple[str, ...]:
    """
    Return why a person should see a change first, in words; empty where nothing speaks for it.

    Args:
        before: The text that stands there; empty for a new one.
        after: The text that would stand there.
        said: What the user said in the session, in his own turns.
        template: It is a form to be filled in, where comments are usual.
    """
    known = set(_NAMED.findall(f"{before}\n{said}".casefold()))
    found = []
    hosts = sorted(address for address in _addresses(after) if address not in known)
    if hosts:
        found.append(f"it names an address that the user did not: {_listed(hosts)}")
    if new := _new(_PERMISSIONS, before, after, said):
        found.append(f"it changes what is allowed, and the user did not say so: {_listed(new)}")
    if new := [*_new(_ORDERS, before, after, said), *_new_always(before, after, said)]:
        found.append(f"it gives a standing order that did not come from the user: {_listed(new)}")
    unseen = [
        *_new(_UNSEEN, before, after, ""),
        *([] if template else _new(_COMMENT, _prose(before), _prose(after), "")),
    ]
    if unseen:
        found.append(f"it holds text that does not show where a skill is looked at: {_listed(unseen)}")
    return tuple(found)


def _addresses(text: str) -> set[str]:
    text = _DOTS.sub(".", text if text.isascii() else unicodedata.normalize("NFKC", text))
    hosts = {(m[1] or m[2] or m[3] or m[4]).rstrip(".").casefold() for m in _ADDRESS.finditer(text)}
    bare = {m[1].casefold() for m in _BARE_HOST.finditer(text)}
    bare |= {m[1].casefold() for m in _SENT_TO.finditer(text)}
    for line in _LINE.finditer(text):
        if _TRAVELS.search(line[0]):
            bare |= {(m[1] or m[2] or m[3]).casefold() for m in _ANY_HOST.finditer(line[0])}
    hosts |= {host for host in bare if host.rpartition(".")[2] not in _FILE_NAMES}
    return {host for host in hosts if not _LOCAL.match(host)}


def _prose(text: str) -> str:
    """Return *text* without its code, in which a comment shows as it stands."""
    kept, fence = [], ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if fence:
            closes = found is not None and found[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif found is not None:
            fence = found[1]
        else:
            kept.append(_CODE.sub("", line))
    return "\n".join(kept)


def _new_always(before: str, after: str, said: str) -> list[str]:
    """Return what must always be done, in words that are for the most part neither in *before* nor in *said*."""
    known = set(_WORD.findall(f"{before}\n{said}".casefold()))
    stood = {_same(m[0]) for m in _ALWAYS.finditer(before)}
    found = []
    for match in _ALWAYS.finditer(after):
        words = set(_WORD.findall(match[0].casefold())) - {"always", "every", "each", "time", "immer", "stets"}
        if _same(match[0]) not in stood and 2 * len(words & known) <= len(words):
            found.append(match[0])
    return sorted(set(found))


def _new(pattern: re.Pattern[str], before: str, after: str, said: str) -> list[str]:
    """Return what *pattern* finds in *after* and neither in *before* nor in *said*."""
    known = {_same(m[0]) for text in (before, said) for m in pattern.finditer(text)}
    return sorted({m[0] for m in pattern.finditer(after) if _same(m[0]) not in known})


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(words: list[str]) -> str:
    shown = [" ".join(word.split())[:60] for word in words[:3]]
    return ", ".join(shown) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
