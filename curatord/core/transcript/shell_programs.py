"""
What the programs of a shell do with the files among their arguments: a table, and the few rules that differ.

Used by `core.transcript.shell` alone, which says what counts and why. Options that take a value are listed, since the
value of `--include SKILL.md` is no file that was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from curatord.core.values import EventKind

__all__ = ["ASSIGNMENT", "VIEWERS", "file_arguments", "inner_script", "operands_of", "without_wrappers"]

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")

# Programs that put a file's text before the reader, with the letters of their short options that take a value.
VIEWERS: dict[str, str] = {
    "cat": "", "tac": "", "nl": "bdfhilnsvw", "less": "bhjkoOpPtTxyzD", "more": "n", "most": "", "head": "nc",
    "tail": "ncs", "bat": "lrHmL", "batcat": "lrHmL", "sed": "efl", "gsed": "efl", "awk": "fvF", "gawk": "fvFiEl",
    "mawk": "fvF", "nawk": "fvF", "grep": "efmABCdD", "egrep": "efmABCdD", "fgrep": "efmABCdD", "zgrep": "efmABC",
    "ggrep": "efmABCdD", "rg": "efgtTmABCjMrEd", "ag": "mABCGp", "ack": "mABC", "glow": "sw", "mdcat": "",
    "pygmentize": "lfO", "strings": "net", "type": "", "get-content": "", "gc": "", "select-string": "", "sls": "",
}  # fmt: skip
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "zgrep", "ggrep", "rg", "ag", "ack", "sed", "gsed"}) | frozenset(
    {"awk", "gawk", "mawk", "nawk"}
)
_LONG_WITH_VALUE = frozenset({
    "--lines", "--bytes", "--line-range", "--language", "--style", "--theme", "--highlight-line", "--include",
    "--exclude", "--exclude-dir", "--max-count", "--after-context", "--before-context", "--context", "--glob",
    "--iglob", "--type", "--type-not", "--color", "--colour", "--field-separator", "--assign", "--pager", "--wrap",
    "--paging", "--replace", "--sort", "--max-depth", "--threads", "--pre", "--encoding", "--tabs",
})  # fmt: skip
_LONG_PATTERN = frozenset({"--regexp", "--file", "--expression"})
_WRAPPERS: dict[str, str] = {
    "sudo": "ugpCDhrtT", "doas": "uC", "env": "uCS", "command": "", "builtin": "", "exec": "a", "nohup": "",
    "time": "fo", "nice": "n", "ionice": "cnp", "timeout": "ks", "gtimeout": "ks", "stdbuf": "ioe", "setsid": "",
    "chronic": "", "unbuffer": "", "caffeinate": "tw",
}  # fmt: skip
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "ash"})
_POWERSHELLS = frozenset({"powershell", "pwsh"})
_WRITERS_PS = frozenset({"set-content", "add-content", "out-file", "clear-content", "ac"})


def without_wrappers(words: list[str]) -> list[str]:
    """Return the command behind `sudo`, `env X=1`, `timeout 5` and their like."""
    for _ in range(8):
        if not words:
            return words
        name = words[0].rpartition("/")[2]
        if name not in _WRAPPERS:
            return words
        rest = words[1:]
        while rest and (rest[0].startswith("-") or (name == "env" and ASSIGNMENT.match(rest[0]))):
            option = rest[0]
            rest = rest[1:]
            if len(option) == 2 and option[1] in _WRAPPERS[name]:
                rest = rest[1:]
        if name in ("timeout", "gtimeout"):
            rest = rest[1:]
        words = rest
    return words


def inner_script(name: str, arguments: list[str]) -> str | None:
    """Return the text that `bash -c`, `eval`, `cmd /c` … run, or None where this is no such command."""
    if name == "eval":
        return " ".join(arguments)
    if name in _SHELLS:
        for at, word in enumerate(arguments):
            if word == "--command" or (word[:1] == "-" and word[:2] != "--" and word.endswith("c")):
                return arguments[at + 1] if at + 1 < len(arguments) else None
            if not word.startswith(("-", "+")):
                return None
    elif name in _POWERSHELLS:
        for at, word in enumerate(arguments):
            if word.lower() in ("-command", "-c"):
                return " ".join(arguments[at + 1 :])
    elif name == "cmd":
        for at, word in enumerate(arguments):
            if word.lower() in ("/c", "/k"):
                return " ".join(arguments[at + 1 :])
    return None


def operands_of(arguments: list[str], with_value: str) -> Iterator[str]:
    """Yield the arguments that are neither options nor values of options."""
    skip = False
    only_operands = False
    for word in arguments:
        if skip:
            skip = False
        elif only_operands or word == "-" or not word.startswith("-"):
            yield word
        elif word == "--":
            only_operands = True
        elif word.startswith("--"):
            skip = "=" not in word and (word in _LONG_WITH_VALUE or word in _LONG_PATTERN)
        else:
            # In a cluster (`-nE`, `-A3`) the first letter that takes a value takes the rest, or else the next word.
            for at, letter in enumerate(word[1:], start=1):
                if letter in with_value:
                    skip = at == len(word) - 1
                    break


def _gives_pattern(arguments: list[str], with_value: str) -> bool:
    """Return whether an option already gives the script or pattern, so that every operand is a file."""
    for word in arguments:
        if word == "--":
            return False
        if word.partition("=")[0] in _LONG_PATTERN:
            return True
        if word.startswith("-") and not word.startswith("--"):
            for letter in word[1:]:
                if letter in with_value:
                    if letter in "ef":
                        return True
                    break
    return False


def file_arguments(name: str, arguments: list[str]) -> Iterator[tuple[EventKind, str]]:
    """Yield what the program *name* does with the files among its *arguments*."""
    if name in VIEWERS:
        with_value = VIEWERS[name]
        kind = EventKind.VIEW
        if name in ("sed", "gsed") and _in_place(arguments, "nErszu"):
            kind = EventKind.PATCH
            arguments = [word for word in arguments if word]  # BSD: `-i ''`
        elif name == "gawk" and ("inplace" in arguments or "-iinplace" in arguments):
            kind = EventKind.PATCH
        operands = list(operands_of(arguments, with_value))
        if name in _PATTERN_FIRST and not _gives_pattern(arguments, with_value):
            operands = operands[1:]
        for word in operands:
            yield kind, word
    elif name in ("perl", "ruby"):
        in_place = _in_place(arguments, "npalw0123456789sEW")
        reads = any(word[:1] == "-" and word[:2] != "--" and word[1:2] in "np" for word in arguments if len(word) > 1)
        if in_place or reads:
            operands = list(operands_of(arguments, "eEIMmCr"))
            if not any(word[:1] == "-" and word[:2] != "--" and word[-1:] in "eE" for word in arguments):
                operands = operands[1:]
            for word in operands:
                yield EventKind.PATCH if in_place else EventKind.VIEW, word
    elif name in ("tee", "truncate", "tee-object"):
        for word in operands_of(arguments, "s" if name == "truncate" else ""):
            yield EventKind.PATCH, word
    elif name in ("cp", "mv", "install", "rsync", "copy", "move", "copy-item", "move-item", "gcp", "gmv"):
        yield from _copied(arguments)
    elif name == "dd":
        for word in arguments:
            if word.startswith("of="):
                yield EventKind.PATCH, word[3:]
    elif name in _WRITERS_PS:
        skip = False
        for word in arguments:
            if skip or word.startswith("-"):
                skip = not skip and word.lower() in ("-value", "-encoding", "-inputobject")
            else:
                yield EventKind.PATCH, word


def _in_place(arguments: list[str], before: str) -> bool:
    """Return whether an option asks to edit in place: `-i`, `-i.bak`, `-pi`, `--in-place`."""
    for word in arguments:
        if word.startswith("--in-place"):
            return True
        if word.startswith("-") and not word.startswith("--"):
            cluster = word[1:].lstrip(before)
            if cluster.startswith("i"):
                return True
    return False


def _copied(arguments: list[str]) -> Iterator[tuple[EventKind, str]]:
    """Yield the file that a copy or move lands on; a folder as the target takes the names of the sources."""
    folder: str | None = None
    words = list(arguments)
    for at, word in enumerate(words[:-1]):
        if word in ("-t", "--target-directory"):
            folder = words[at + 1]
            words = words[:at] + words[at + 2 :]
            break
        if word.startswith("--target-directory="):
            folder = word.partition("=")[2]
    operands = list(operands_of(words, "gmoS"))
    if folder is None:
        if len(operands) < 2:
            return
        *operands, folder = operands
        # Without the slash the target may be a file of any name.
        if not folder.endswith(("/", "\\")) and folder not in (".", "..") and not folder.endswith(("/.", "/..")):
            yield EventKind.PATCH, folder
            return
    for word in operands:
        yield EventKind.PATCH, folder.rstrip("/\\") + "/" + word.replace("\\", "/").rpartition("/")[2]
