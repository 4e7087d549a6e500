"""
Which files of skill packages a shell command looks at or changes, told from its text alone.

Agents read and edit skills through a shell as often as by a tool of their own (bugs B110), so each host's reader asks
this module. Nothing is run or looked up, and the text is other people's: it may be a program of a megabyte, cut in the
middle, or made to hurt.

What is wanted: `cat a/SKILL.md`, `sed -n 1,80p`, `grep x a/SKILL.md` … are views; `> a/SKILL.md`, `tee`, `sed -i`,
`cp x a/SKILL.md`, patch tools are changes. What must not become an event: a name in the body of a here-document, in a
comment, in an argument that is a pattern or a text; whatever is only listed, counted, compared or found; a path with a
glob, or one whose skill folder is the value of something we cannot know (`$s/SKILL.md`).

How: one pass over the text by a scanner that knows words, quotes, redirections, here-documents, substitutions and
separators of a POSIX shell, enough to see simple commands. Each simple command goes to the rule of its program. A `cd`
or an assignment that came before is followed as far as it is plain. Of PowerShell and cmd only the few reading and
writing commands are known; a backslash before a letter is then part of a path, which in a POSIX shell nobody writes.

Bounds: time is linear in the text, since the scanner never goes back but for the inner text of `bash -c`, `eval` and
backticks, which is scanned anew at most `MAX_DEPTH` levels deep; text after `MAX_CHARS` is not looked at; at most
`MAX_TOUCHES` files are named. Unsure: functions, aliases, `case` patterns and arrays are read as if they were commands;
they name no reading program, so the worst is an event too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from curatord.core.cheap import dataclass
from curatord.core.path_text import is_absolute, join, plain
from curatord.core.transcript.shell_programs import (
    ASSIGNMENT,
    VIEWERS,
    file_arguments,
    inner_script,
    operands_of,
    without_wrappers,
)
from curatord.core.values import EventKind

__all__ = ["MAX_CHARS", "MAX_TOUCHES", "PatchTarget", "Touch", "patch_targets", "skill_folder", "touched"]

MAX_CHARS = 2 * 1024 * 1024
MAX_TOUCHES = 64
MAX_DEPTH = 6
MAX_PATH_CHARS = 4096
MAX_FOLDER_CHANGES = 500

SKILL_FILE = "SKILL.md"

# Inside a word: stands for text that is known only when the command runs, and for a pattern that may be many paths.
_UNKNOWN = "\ue000"
_GLOB = "\ue001"


@dataclass(frozen=True, slots=True)
class Touch:
    """
    One file of a package that a command names.

    *path* is plain text (see `core.path_text`): absolute where the command or the session's folder says so, else
    relative. *kind* is `view` or `patch`, and `create` or `delete` only where a patch says so of a `SKILL.md`.
    """

    kind: EventKind
    path: str


@dataclass(frozen=True, slots=True)
class PatchTarget:
    """One file that a patch text names; *op* is `add`, `update`, `delete` or `move` (then *path* is the new place)."""

    op: str
    path: str


def skill_folder(path: str) -> str | None:
    """Return the last part of the folder that the `SKILL.md` at the plain *path* stands in, or None for other paths."""
    if not path.endswith("/" + SKILL_FILE):
        return None
    folder = path[: -len(SKILL_FILE) - 1].rpartition("/")[2]
    # No skill has a `$` in its name: what looks so is a variable that nobody put a value for.
    return folder if folder not in ("", "~", "..") and not folder.endswith(":") and "$" not in folder else None


def touched(
    command: str | Sequence[str],
    *,
    cwd: str | None = None,
    home: str | None = None,
    in_package: Callable[[str], bool] | None = None,
) -> tuple[Touch, ...]:
    """
    Return the files of skill packages that *command* views or changes, in its order, each kind and path once.

    Args:
        command: The text for a shell, or an argument list (`["bash", "-lc", "…"]` and the like).
        cwd: The folder it runs in, where the transcript says it; relative paths stay relative without it.
        home: What `~` and `$HOME` are; they stay `~` without it.
        in_package: Says of a plain path whether it is below a known package; asked for files that are not a
            `SKILL.md`. Without it only `SKILL.md` files are named.
    """
    if in_package is None and not _mentions(command):
        return ()
    scanner = _Shell(in_package)
    scope = _Scope(cwd=join(None, cwd, home=home) if cwd else None, home=home, variables={})
    if isinstance(command, str):
        scanner.run_text(command[:MAX_CHARS], scope, 0)
    else:
        words = [str(word) for word in command]
        if len(words) == 1:
            scanner.run_text(words[0][:MAX_CHARS], scope, 0)
        else:
            scanner.run_simple([_literal(word[:MAX_CHARS]) for word in words], [], "", scope, 0)
    return tuple(scanner.found)


def patch_targets(text: str) -> tuple[PatchTarget, ...]:
    """
    Return the files that a patch text names, in its order.

    Both the `*** Begin Patch` form (`*** Update File: p`, `Add`, `Delete`, `Move to`) and headers of a unified diff
    (`+++ b/p`, where `--- /dev/null` before it means a new file) are known.
    """
    targets: list[PatchTarget] = []
    fresh = False
    for found in _PATCH_LINE.finditer(text):
        envelope, old, new = found.group(1, 2, 3)
        path = found.group(4).strip()
        if envelope:
            op = {"Update File": "update", "Add File": "add", "Delete File": "delete", "Move to": "move"}[envelope]
            targets.append(PatchTarget(op, path))
        elif old:
            fresh = path.startswith("/dev/null")
        elif new:
            path = path.partition("\t")[0]
            if not path.startswith("/dev/null"):
                targets.append(PatchTarget("add" if fresh else "update", path[2:] if path[:2] == "b/" else path))
        if len(targets) >= MAX_TOUCHES:
            break
    return tuple(targets)


_PATCH_LINE = re.compile(
    r"^(?:\*\*\* (Update File|Add File|Delete File|Move to): |(--- )|(\+\+\+ ))([^\r\n]{1,4096})", re.MULTILINE
)


def _mentions(command: str | Sequence[str]) -> bool:
    if isinstance(command, str):
        return SKILL_FILE in command
    return any(SKILL_FILE in str(word) for word in command)


# --- words and scope -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Scope:
    """What earlier commands of the same shell settled: the folder (None: unknown) and plain variables."""

    cwd: str | None
    home: str | None
    variables: dict[str, str]

    def copy(self) -> _Scope:
        return _Scope(cwd=self.cwd, home=self.home, variables=dict(self.variables))


@dataclass(slots=True)
class _Redirect:
    """`>` and its kin with their target; *writes* False for `<`."""

    writes: bool
    target: str


def _literal(text: str) -> str:
    return text.replace(_UNKNOWN, "?").replace(_GLOB, "?")


# --- the scanner -----------------------------------------------------------------------------------------

# Runs of text without meaning to a shell, and the one character that has some.
_PLAIN_RUN = re.compile(r"""[^\s'"\\$`;&|<>(){}*?\[\]~#]+""")
_BLANKS = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REDIRECT = re.compile(r"(?:\d{0,3}|&)(<<<|<<-|<<|>>|>\||<>|>&|<&|>|<)")
_QUOTED_RUN = re.compile(r"""[^"\\$`]+""")
_ANSI_RUN = re.compile(r"[^'\\]+")
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "", "b": "", "e": ""}
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "}", "time", "coproc"}
)


class _Shell:
    """Walks command text and collects touches; one object a call of `touched`."""

    __slots__ = ("_folder_changes", "_in_package", "_seen", "found")

    def __init__(self, in_package: Callable[[str], bool] | None) -> None:
        self._in_package = in_package
        self._folder_changes = 0
        self._seen: set[tuple[EventKind, str]] = set()
        self.found: list[Touch] = []

    def run_text(self, text: str, scope: _Scope, depth: int) -> None:
        """Read *text* as a whole script."""
        if depth > MAX_DEPTH or len(self.found) >= MAX_TOUCHES or (self._in_package is None and SKILL_FILE not in text):
            return
        _Script(self, text, depth).read(scope)

    def run_simple(self, words: list[str], redirects: list[_Redirect], body: str, scope: _Scope, depth: int) -> None:
        """Judge one simple command; *body* is the text of its here-documents."""
        if words and words[0] == "[[":
            return
        for redirect in redirects:
            if redirect.writes:
                self._touch(EventKind.PATCH, redirect.target, scope)
        words = without_wrappers(words)
        if not words:
            return
        program = words[0].replace("\\", "/").rpartition("/")[2]
        name = program.lower().removesuffix(".exe")
        arguments = words[1:]
        inner = inner_script(name, arguments)
        if inner is not None:
            self.run_text(inner, scope if name == "eval" else scope.copy(), depth + 1)
        elif name in ("cd", "pushd", "popd", "set-location", "sl", "chdir"):
            # Each change builds a new path: the bound keeps a program of a hundred thousand of them linear.
            self._folder_changes += 1
            _change_folder(name if self._folder_changes <= MAX_FOLDER_CHANGES else "popd", arguments, scope)
        elif name in ("export", "local", "declare", "typeset", "readonly", "set"):
            for word in arguments:
                _assign(word, scope)
        elif name in ("apply_patch", "applypatch", "patch") or (name == "git" and arguments[:1] in (["apply"], ["am"])):
            self._patch_tool(name, arguments, body, scope)
        else:
            for kind, path in file_arguments(name, arguments):
                self._touch(kind, path, scope)
            if name in VIEWERS:
                for redirect in redirects:
                    if not redirect.writes:
                        self._touch(EventKind.VIEW, redirect.target, scope)

    def _patch_tool(self, name: str, arguments: list[str], body: str, scope: _Scope) -> None:
        text = body or "\n".join(arguments)
        if name == "patch":
            for path in operands_of(arguments, "pidoFVzDBYr"):
                self._touch(EventKind.PATCH, path, scope)
        for target in patch_targets(text):
            kind = EventKind.PATCH
            if target.path.replace("\\", "/").endswith("/" + SKILL_FILE):
                kind = {"add": EventKind.CREATE, "delete": EventKind.DELETE}.get(target.op, kind)
            self._touch(kind, _literal(target.path), scope)

    def _touch(self, kind: EventKind, word: str, scope: _Scope) -> None:
        """Note *word* where it is one definite file of a package."""
        if _GLOB in word or not word or len(word) > MAX_PATH_CHARS or "\n" in word or len(self.found) >= MAX_TOUCHES:
            return
        if self._in_package is None and not word.endswith(SKILL_FILE):
            return
        if is_absolute(word) or word.startswith(_UNKNOWN) or scope.cwd is not None:
            path = join(None if word.startswith(_UNKNOWN) else scope.cwd, word, home=scope.home)
        else:
            path = plain(word, home=scope.home)
        folder = skill_folder(path)
        if folder is not None:
            if _UNKNOWN in folder:
                return
            path = path.replace(_UNKNOWN, "…")
        elif self._in_package is None or _UNKNOWN in path or not self._in_package(path):
            return
        if (kind, path) not in self._seen:
            self._seen.add((kind, path))
            self.found.append(Touch(kind, path))


class _Script:
    """One text and the place in it; nested constructs recurse, `MAX_DEPTH` deep."""

    __slots__ = ("depth", "pos", "shell", "text", "waiting")

    def __init__(self, shell: _Shell, text: str, depth: int) -> None:
        self.shell = shell
        self.text = text
        self.depth = depth
        self.pos = 0
        self.waiting: list[tuple[str, bool, list[str]]] = []  # here-documents whose body begins after the line's end

    def read(self, scope: _Scope) -> None:
        """Read commands to the end; a bracket that closes nothing is stepped over."""
        while self.pos < len(self.text):
            self._commands(scope, self.depth)
            self.pos += 1

    def _commands(self, scope: _Scope, depth: int) -> None:
        """Read commands up to an unmatched `)` or the end of the text, and stand on it."""
        text, size = self.text, len(self.text)
        words: list[str] = []
        redirects: list[_Redirect] = []
        bodies: list[str] = []
        deferred: list[tuple[list[str], list[_Redirect], list[str]]] = []  # wait for the bodies of their here-documents

        def finish() -> None:
            nonlocal words, redirects, bodies
            if words or redirects:
                if self.waiting:
                    deferred.append((words, redirects, bodies))
                else:
                    self._simple(words, redirects, bodies, scope, depth)
                words, redirects, bodies = [], [], []

        def settle() -> None:
            for each in deferred:
                self._simple(*each, scope, depth)
            deferred.clear()

        while self.pos < size:
            char = text[self.pos]
            if char in " \t\r\\":
                blanks = _BLANKS.match(text, self.pos)
                if blanks is not None:
                    self.pos = blanks.end()
                    continue
            if char == "\n":
                self.pos += 1
                # A body belongs to the command on the line before, which is read only once it has it.
                finish()
                self._here_documents()
                settle()
            elif char in ";&|":
                redirect = _REDIRECT.match(text, self.pos) if char == "&" else None
                if redirect is not None:
                    self._redirect(redirect, redirects, bodies, scope, depth)
                else:
                    self.pos += 1
                    finish()
            elif char == "#":
                end = text.find("\n", self.pos)
                self.pos = size if end < 0 else end
            elif char == "(":
                # A subshell, a function's `()`, an array: commands of their own that leave no trace outside.
                self.pos += 1
                if depth >= MAX_DEPTH:
                    continue
                finish()
                self._commands(scope.copy(), depth + 1)
                self.pos += 1
            elif char == ")":
                if depth == self.depth or depth >= MAX_DEPTH:
                    self.pos += 1
                    finish()
                    continue
                break
            else:
                redirect = _REDIRECT.match(text, self.pos) if char in "<>0123456789" else None
                if redirect is not None:
                    self._redirect(redirect, redirects, bodies, scope, depth)
                else:
                    before = self.pos
                    word = self._word(scope, depth)
                    assert self.pos > before, "a word has a first character"
                    words.append(word)
        finish()
        if self.pos >= size:
            self.waiting.clear()
        settle()

    def _simple(
        self, words: list[str], redirects: list[_Redirect], bodies: list[str], scope: _Scope, depth: int
    ) -> None:
        while words and words[0] in _KEYWORDS:
            words = words[1:]
        start = 0
        while start < len(words) and ASSIGNMENT.match(words[start]):
            start += 1
        if words and start == len(words):
            for word in words:
                _assign(word, scope)
            words = []
        if words[start : start + 1] in (["for"], ["select"], ["read"]):
            # The variable has many values, or one that only the run knows.
            for name in words[start + 1 : start + 2]:
                scope.variables.pop(name, None)
            return
        self.shell.run_simple(words[start:], redirects, "\n".join(bodies), scope, depth)

    def _redirect(
        self,
        redirect: re.Match[str],
        redirects: list[_Redirect],
        bodies: list[str],
        scope: _Scope,
        depth: int,
    ) -> None:
        operator = redirect.group(1)
        self.pos = redirect.end()
        if operator in ("<", ">") and self.text[self.pos : self.pos + 1] == "(":
            self._substitution(scope, depth)
            return
        blanks = _BLANKS.match(self.text, self.pos)
        if blanks is not None:
            self.pos = blanks.end()
        if self.text[self.pos : self.pos + 1] in ("", "\n", ";", "|", ")", "<", ">", "("):
            return
        if operator == "&" or self.text[self.pos : self.pos + 1] == "&":
            return
        start = self.pos
        target = self._word(scope, depth)
        if operator in ("<<", "<<-"):
            if start < self.pos:
                raw = self.text[start : self.pos]
                self.waiting.append((re.sub(r"""['"\\]""", "", raw[:256]), operator == "<<-", bodies))
        elif operator in (">", ">>", ">|", ">&", "<>"):
            redirects.append(_Redirect(True, target))
        elif operator == "<":
            redirects.append(_Redirect(False, target))

    def _here_documents(self) -> None:
        """Step over the bodies that begin here; the scanner stands at the start of a line."""
        for delimiter, dedent, bodies in self.waiting:
            start = self.pos
            end = len(self.text)
            while self.pos < len(self.text):
                line_end = self.text.find("\n", self.pos)
                stop = len(self.text) if line_end < 0 else line_end
                # Only lines of the delimiter's length can be it; the others are not copied.
                if stop - self.pos <= len(delimiter) + 64:
                    line = self.text[self.pos : stop].rstrip("\r")
                    if (line.lstrip("\t") if dedent else line) == delimiter:
                        end = self.pos
                        self.pos = min(stop + 1, len(self.text))
                        break
                self.pos = min(stop + 1, len(self.text))
                if line_end < 0:
                    self.pos = len(self.text)
            bodies.append(self.text[start:end])
        self.waiting.clear()

    def _word(self, scope: _Scope, depth: int) -> str:
        """Read one word; the scanner stands on its first character and ends behind its last."""
        text, size = self.text, len(self.text)
        parts: list[str] = []
        begin = self.pos
        while self.pos < size:
            run = _PLAIN_RUN.match(text, self.pos)
            if run is not None:
                parts.append(_literal(run.group()) if _UNKNOWN in run.group() or _GLOB in run.group() else run.group())
                self.pos = run.end()
                continue
            char = text[self.pos]
            if char in " \t\r\n;&|<>()":
                break
            if char == "'":
                end = text.find("'", self.pos + 1)
                end = size if end < 0 else end
                parts.append(_literal(text[self.pos + 1 : end]))
                self.pos = end + 1
            elif char == '"':
                self.pos += 1
                self._double_quoted(parts, scope, depth)
            elif char == "\\":
                follower = text[self.pos + 1 : self.pos + 2]
                if follower == "\n":
                    self.pos += 2
                    continue
                # Nobody escapes a letter in a POSIX shell; who writes this means a Windows path.
                parts.append("\\" + follower if follower.isalnum() or follower in ("_", ".", "-") else follower)
                self.pos += 2
            elif char == "$":
                self._dollar(parts, scope, depth, quoted=False)
            elif char == "`":
                self._backticks(parts, scope, depth)
            elif char in "*?[":
                parts.append(_GLOB)
                self.pos += 1
            elif char == "{":
                # `{a,b}` is many words; a lone brace (awk, find, a group) is itself.
                lone = self.pos == begin and (self.pos + 1 >= size or text[self.pos + 1].isspace())
                parts.append("{" if lone else _GLOB)
                self.pos += 1
            else:
                parts.append(char)
                self.pos += 1
        if text[begin : self.pos] in ("[", "[["):
            return text[begin : self.pos]
        return "".join(parts)

    def _double_quoted(self, parts: list[str], scope: _Scope, depth: int) -> None:
        text, size = self.text, len(self.text)
        while self.pos < size:
            run = _QUOTED_RUN.match(text, self.pos)
            if run is not None:
                parts.append(_literal(run.group()))
                self.pos = run.end()
                continue
            char = text[self.pos]
            if char == '"':
                self.pos += 1
                return
            if char == "\\":
                follower = text[self.pos + 1 : self.pos + 2]
                if follower in ("$", "`", '"', "\\"):
                    parts.append(follower)
                elif follower != "\n":
                    parts.append("\\" + follower)
                self.pos += 2
            elif char == "$":
                self._dollar(parts, scope, depth, quoted=True)
            else:
                self._backticks(parts, scope, depth)

    def _dollar(self, parts: list[str], scope: _Scope, depth: int, *, quoted: bool) -> None:
        text = self.text
        follower = text[self.pos + 1 : self.pos + 2]
        if follower == "(":
            self.pos += 1
            self._substitution(scope, depth)
            parts.append(_UNKNOWN)
        elif follower == "{":
            end = text.find("}", self.pos)
            end = len(text) if end < 0 else end
            inner = text[self.pos + 2 : min(end, self.pos + 258)]
            self.pos = end + 1
            parts.append(_value(inner, scope))
        elif follower == "'" and not quoted:
            self.pos += 2
            self._ansi_quoted(parts)
        elif (name := _NAME.match(text, self.pos + 1)) is not None:
            self.pos = name.end()
            lowered = name.group().lower()
            if lowered == "env" and text[self.pos : self.pos + 1] == ":":  # PowerShell: $env:USERPROFILE
                variable = _NAME.match(text, self.pos + 1)
                if variable is not None:
                    self.pos = variable.end()
                    parts.append(_value(variable.group(), scope))
                    return
            parts.append(_value(name.group(), scope))
        else:
            parts.append(_UNKNOWN if follower and follower in "0123456789@*#?$!-" else "$")
            self.pos += 2 if follower and follower in "0123456789@*#?$!-" else 1

    def _ansi_quoted(self, parts: list[str]) -> None:
        text, size = self.text, len(self.text)
        while self.pos < size:
            char = text[self.pos]
            if char == "'":
                self.pos += 1
                return
            if char == "\\":
                follower = text[self.pos + 1 : self.pos + 2]
                parts.append(_ANSI_ESCAPES.get(follower, "\\" + follower))
                self.pos += 2
                continue
            run = _ANSI_RUN.match(text, self.pos)
            assert run is not None, "what is neither a quote nor a backslash is a run"
            parts.append(_literal(run.group()))
            self.pos = run.end()

    def _substitution(self, scope: _Scope, depth: int) -> None:
        """Read `( … )` of a substitution as commands; the scanner stands on the bracket and ends behind its match."""
        self.pos += 1
        if depth >= MAX_DEPTH:
            return  # too deep: what follows is read as commands of this level, which ends all the same
        waiting, self.waiting = self.waiting, []
        self._commands(scope.copy(), depth + 1)
        self.waiting = waiting
        self.pos += 1

    def _backticks(self, parts: list[str], scope: _Scope, depth: int) -> None:
        end = self.text.find("`", self.pos + 1)
        end = len(self.text) if end < 0 else end
        inner = self.text[self.pos + 1 : end]
        self.pos = end + 1
        parts.append(_UNKNOWN)
        self.shell.run_text(inner, scope.copy(), depth + 1)


def _value(name: str, scope: _Scope) -> str:
    """Return what the variable *name* (or the inside of `${…}`) is, or the sign of the unknown."""
    found = _NAME.match(name)
    if found is None:
        return _UNKNOWN
    if found.group() in scope.variables:
        return scope.variables[found.group()] if found.end() == len(name) or name[found.end()] == ":" else _UNKNOWN
    if found.end() != len(name):
        return _UNKNOWN
    if name in ("HOME", "USERPROFILE"):
        return scope.home if scope.home is not None else "~"
    if name == "PWD" and scope.cwd is not None:
        return scope.cwd
    return _UNKNOWN


def _assign(word: str, scope: _Scope) -> None:
    found = ASSIGNMENT.match(word)
    if found is None:
        return
    value = word[found.end() :]
    if len(value) <= MAX_PATH_CHARS and len(scope.variables) < 256 and _GLOB not in value:
        scope.variables[found.group(1)] = value
    else:
        scope.variables.pop(found.group(1), None)


def _change_folder(name: str, arguments: list[str], scope: _Scope) -> None:
    operands = [word for word in arguments if word == "-" or not word.startswith("-")]
    if name == "chdir" or (operands and operands[0].lower() == "/d"):
        operands = [word for word in operands if word.lower() != "/d"]
    if not operands:
        scope.cwd = (scope.home if scope.home is not None else "~") if name == "cd" else None
        return
    target = operands[0]
    if name == "popd" or target == "-" or _UNKNOWN in target or _GLOB in target or len(target) > MAX_PATH_CHARS:
        # `cd "$X"/skills/a` still says which folder a bare SKILL.md stands in.
        tail = target.rpartition(_UNKNOWN)[2] if _UNKNOWN in target else ""
        scope.cwd = "…" + tail if tail.startswith("/") and _GLOB not in target else None
        return
    folder = join(scope.cwd, target, home=scope.home)
    scope.cwd = folder if folder and len(folder) <= MAX_PATH_CHARS else None
