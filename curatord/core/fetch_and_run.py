"""
Commands that run what they fetch: from the network into a shell, with nobody looking at it in between.

Three forms are looked for:

1. *A pipeline* that begins with a fetch (or a decoder such as `base64 -d`) and has a shell or an interpreter as any of
   its later stages, whatever stands between (`| gunzip |`, `| tee x |`) and before it (`sudo -u deploy`, `env A=b`).
   An interpreter that is given its program (`python3 -c …`, `node parse.js`) reads what comes; a shell never does.
2. *A substitution*: `sh -c "$(curl …)"`, `bash <(curl …)`, `iex (iwr …)`, `exec(requests.get(…))`.
3. *A file*: `curl -o x … && sh x`, soon after and with no command in between that shows or checks it.

Each fetch is read up to the end of its pipeline, and the search goes on from there, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["fetched_and_run"]

_GET = r"(?:curl|wget|fetch|iwr|irm|invoke-webrequest|invoke-restmethod|aria2c|lwp-download)"
_RUN = (
    r"(?:sudo\s+(?:-\S+\s+){0,4})?(?:env\s+(?:\S+=\S*\s+){0,4})?(?:/(?:usr/)?bin/)?"
    r"(?:(?:ba|z|da|k|fi|a)?sh|python[0-9.]*|node|perl|ruby|php|iex|invoke-expression|source)"
)
_SUBSTITUTED = re.compile(
    rf"(?<![\w-])(?:{_RUN}|eval|\.)\s+(?:-[\w-]+\s+){{0,4}}[\"'`]?(?:<\(|\$\(|`)\s*{_GET}\b"
    r"|\b(?:iex|invoke-expression)\b[\s\"'(&{]{1,8}(?:\(?\s*new-object\s+(?:system\.)?net\.webclient|iwr|irm|invoke-webrequest|invoke-restmethod)"
    r"|\b(?:exec|eval)\s*\(\s*(?:requests\.get|urllib\.request\.urlopen|urlopen)\s*\(",
    re.IGNORECASE,
)
_SOURCE = re.compile(rf"\b{_GET}\b|\bbase64\s+(?:-d|-D|--decode)\b|\bxxd\s+-r\b", re.IGNORECASE)
# A pipeline piece by piece: what is quoted, a joined line end, a pipe, what ends it, anything else.
_PIECE = re.compile(
    r"(?<![^\s=(|])(?:'[^'\n]{0,1000}'|\"(?:[^\"\\\n]|\\.){0,1000}\")|\\\r?\n"
    r"|(?P<pipe>(?<!\|)\|(?!\|)&?[ \t]*(?:\r?\n[ \t]*)?)|(?P<end>\|\||;|&&|\r?\n)|[^'\"\\|;&\r\n]{1,200}|.",
    re.DOTALL,
)
_TABLE = re.compile(r"[ \t]*\|")
_STAGE_CHARS = 400

_SHELL = re.compile(
    r"(?:/(?:usr/)?(?:local/)?bin/)?(?:(?:ba|z|da|k|fi|a|c|tc)?sh|iex|invoke-expression|source|\$\{?shell\}?)\Z",
    re.IGNORECASE,
)
_INTERPRETER = re.compile(r"(?:/(?:usr/)?(?:local/)?bin/)?(python|node|perl|ruby|php|bun|deno)[0-9.]*\Z", re.IGNORECASE)
_PROGRAM_FILE = re.compile(r"[\w./~-]+\.(?:py|m?js|ts|pl|rb|php)\Z")
_PROGRAM_OPTION = {
    "python": re.compile(r"-[A-Za-z]*[cm]"),
    "node": re.compile(r"-(?:e|p|pe)\Z|--(?:eval|print)\b"),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE]"),
    "ruby": re.compile(r"-[A-Za-z0-9]*[eE]"),
    "php": re.compile(r"-r"),
    "bun": re.compile(r"-e"),
    "deno": re.compile(r"eval\Z"),
}
_WRAPPERS = frozenset({"sudo", "doas", "env", "nohup", "time", "timeout", "nice", "ionice", "exec", "command",
                       "busybox", "stdbuf", "unbuffer", "setsid", "xargs"})  # fmt: skip
_ASSIGNMENT = re.compile(r"\w+=")

_NEAR = 400  # characters within which a fetched file is run
_OUTPUT = re.compile(
    r"(?:(?<!\S)(?:-[A-Za-z]{0,8}[oO]|--output(?:-document)?|-OutFile)[ =]?|(?<![0-9&<=-])>{1,2}[ \t]{0,4})"
    r"[\"']?([\w./~${}-]{1,200})",
    re.IGNORECASE,
)
_URL_NAME = re.compile(r"\S/([\w.-]{1,120})[\"'`]?(?=[ \t]|\Z)")
_STARTED = re.compile(
    r"(?:\A|[\n;&|`(]|\bthen\b)[ \t`$]*(?:sudo[ \t]+(?:-\S+[ \t]+){0,4})?"
    r"(?:(?:/(?:usr/)?bin/)?(?:(?:ba|z|da|k)?sh|python[0-9.]*|node|perl|ruby|php|source|\.)[ \t]+"
    r"(?:-[\w-]+[ \t]+){0,4})?"
    r"[\"']?([\w./~${}-]{1,200})",
    re.IGNORECASE,
)
_LOOKED_AT = re.compile(
    r"\b(?:less|more|cat|bat|view|vim?|nano|diff|sha(?:1|256|512)sum|shasum|md5sum|gpg2?|cosign|minisign|inspect|review|read"
    r"|check|verify|look)\b",
    re.IGNORECASE,
)


def fetched_and_run(text: str) -> Iterator[tuple[int, int]]:
    """Yield where *text* runs what it fetches: start and end in characters, in no order that matters."""
    yield from (found.span() for found in _SUBSTITUTED.finditer(text))
    at = 0
    while (match := _SOURCE.search(text, at)) is not None:
        ran, at, first = _pipeline(text, match)
        if ran is None:
            ran = _file_run(text, match, first, at)
        if ran is not None:
            yield match.start(), ran


def _pipeline(text: str, source: re.Match[str]) -> tuple[int | None, int, str]:
    """Return where the stage that runs what *source* fetched ends (or None), the pipeline's end, its first stage."""
    line = text.rfind("\n", max(0, source.start() - 500), source.start()) + 1
    table = _TABLE.match(text, line) is not None  # in a row of a table only the cell beside it counts
    at = begin = source.end()
    ran: int | None = None
    first: str | None = None
    stages = 0
    while True:
        piece = _PIECE.match(text, at)
        if piece is not None and piece.lastgroup is None:
            at = piece.end()
            continue
        if first is None:
            first = text[begin : min(at, begin + 4 * _STAGE_CHARS)]
        elif ran is None and _runs(text[begin : min(at, begin + _STAGE_CHARS)]) and not (table and stages > 1):
            ran = at
        if piece is None or piece.lastgroup == "end":
            return ran, at, first
        stages += 1
        at = begin = piece.end()


def _runs(stage: str) -> bool:
    """Return whether a *stage* of a pipeline executes what comes in."""
    words = [word.strip("`\"'(){}") for word in stage.replace("\\\n", " ").split(None, 14)[:14]]
    wrapped = after_option = False
    for index, word in enumerate(words):
        bare = word.rstrip(".,:!?`\"')}") or word
        if _SHELL.match(bare):
            return True
        if found := _INTERPRETER.match(bare):
            return not _has_program(found[1].lower(), words[index + 1 :])
        if bare.lower() in _WRAPPERS:
            wrapped, after_option = True, False
        elif _ASSIGNMENT.match(word) or (wrapped and word[:1].isdigit()):
            after_option = False
        elif wrapped and word.startswith("-"):
            after_option = True
        elif after_option:  # an option's value, or another command; if that, a shell behind it is its argument
            after_option = False
        else:
            return False
    return False


def _has_program(interpreter: str, arguments: list[str]) -> bool:
    """Return whether an interpreter is told its program, so that what comes in is data to it."""
    for argument in arguments[:6]:
        if _PROGRAM_OPTION[interpreter].match(argument) or _PROGRAM_FILE.match(argument):
            return True
        if not argument.startswith("-") or argument == "-":
            return False
    return False


def _file_run(text: str, source: re.Match[str], command: str, end: int) -> int | None:
    """Return where the file that a fetch wrote is run, or None."""
    outputs = {_plain(found[1]) for found in _OUTPUT.finditer(command)}
    if source[0].lower() in ("wget", "curl", "aria2c", "fetch"):
        outputs |= {found[1] for found in _URL_NAME.finditer(command)}
    outputs -= {"", "-"}
    tail = text[end : end + _NEAR]
    if not any(name in tail for name in outputs):
        return None
    for started in _STARTED.finditer(tail):
        if _plain(started[1]) in outputs:
            if _LOOKED_AT.search(tail, 0, started.start()):
                return None
            return end + started.end()
    return None


def _plain(path: str) -> str:
    return path.removeprefix("./").rstrip(".")
