"""What a shell command says of skill files."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.transcript.shell import MAX_TOUCHES, patch_targets, touched

HEREDOC = "cat > skills/foo/SKILL.md <<'EOF'\ncat skills/bar/SKILL.md\n  > x/SKILL.md\nEOF\ncat skills/baz/SKILL.md"
APPLY = """apply_patch <<'EOF'
*** Begin Patch
*** Update File: skills/foo/SKILL.md
@@
-cat skills/no/SKILL.md
+b
*** Add File: skills/new/SKILL.md
+x
*** Delete File: skills/old/SKILL.md
*** End Patch
EOF"""


def seen(command: str | list[str], cwd: str | None = None, home: str | None = None) -> list[str]:
    """Return the touches of *command* as `kind path`."""
    return [f"{touch.kind} {touch.path}" for touch in touched(command, cwd=cwd, home=home)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        # Every reading program of the formats page.
        ("cat ~/.claude/skills/foo/SKILL.md", ["view ~/.claude/skills/foo/SKILL.md"]),
        ("sed -n '1,200p' /x/foo/SKILL.md", ["view /x/foo/SKILL.md"]),
        ("head -n 20 a/SKILL.md b/SKILL.md", ["view a/SKILL.md", "view b/SKILL.md"]),
        ("head -20 a/SKILL.md", ["view a/SKILL.md"]),
        ("tail -c 100 a/SKILL.md", ["view a/SKILL.md"]),
        ("less a/SKILL.md", ["view a/SKILL.md"]),
        ("bat -l md a/SKILL.md", ["view a/SKILL.md"]),
        ("nl -ba a/SKILL.md", ["view a/SKILL.md"]),
        ("grep -n 'x/SKILL.md' a/SKILL.md", ["view a/SKILL.md"]),
        ("grep -e x -- a/SKILL.md", ["view a/SKILL.md"]),
        ("rg -A 3 foo a/SKILL.md", ["view a/SKILL.md"]),
        ("awk -F: '{print $1}' a/SKILL.md", ["view a/SKILL.md"]),
        ("cat < a/SKILL.md", ["view a/SKILL.md"]),
        ("perl -ne 'print if 1..3' a/SKILL.md", ["view a/SKILL.md"]),
        # Every changing one.
        ("echo x > a/SKILL.md", ["patch a/SKILL.md"]),
        ("echo x >> a/SKILL.md 2>&1", ["patch a/SKILL.md"]),
        ("echo x &> a/SKILL.md", ["patch a/SKILL.md"]),
        ("make | tee -a a/SKILL.md >/dev/null", ["patch a/SKILL.md"]),
        ("sed -i 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("sed -i '' 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("sed -i.bak -e 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("sed -Ei 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("perl -pi -e 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("perl -0pi -e 's/a/b/' a/SKILL.md", ["patch a/SKILL.md"]),
        ("cp new.md a/SKILL.md", ["patch a/SKILL.md"]),
        ("mv -f new.md a/SKILL.md", ["patch a/SKILL.md"]),
        ("cp /tmp/SKILL.md a/", ["patch a/SKILL.md"]),
        ("cp -t a /tmp/SKILL.md", ["patch a/SKILL.md"]),
        ("dd if=x of=a/SKILL.md", ["patch a/SKILL.md"]),
        ("patch a/SKILL.md < x.diff", ["patch a/SKILL.md"]),
        (APPLY, ["patch skills/foo/SKILL.md", "create skills/new/SKILL.md", "delete skills/old/SKILL.md"]),
        # Both at once.
        ("cat a/SKILL.md > b/SKILL.md", ["patch b/SKILL.md", "view a/SKILL.md"]),
    ],
)
def test_programs(command: str, expected: list[str]) -> None:
    """Reading programs give views, writing ones changes."""
    assert expected == seen(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat skills/*/SKILL.md",
        "cat skills/{a,b}/SKILL.md",
        "cat skills/?/SKILL.md",
        "find . -name SKILL.md",
        "find skills -name SKILL.md -exec cat {} \\;",
        "ls -la a/SKILL.md",
        "wc -l a/SKILL.md",
        "wc -l < a/SKILL.md",
        "git diff a/SKILL.md",
        "git log -p -- a/SKILL.md",
        "stat a/SKILL.md && test -f a/SKILL.md && [ -f a/SKILL.md ]",
        "[[ a > b/SKILL.md ]]",
        "grep -rn foo --include SKILL.md .",
        "grep -rn foo --include=x/SKILL.md .",
        "grep x/SKILL.md README.md",
        "rg foo -g x/SKILL.md",
        "sed -n 's#x/SKILL.md#y#p' README.md",
        "echo cat a/SKILL.md",
        "echo 'cat a/SKILL.md'",
        "# cat a/SKILL.md",
        "cat README.md # a/SKILL.md",
        "cat a/skill.md a/Skill.md a/SKILL.MD a/xSKILL.md a/SKILL.md.bak",
        "cat SKILL.md",
        "cat /SKILL.md ~/SKILL.md",
        "cd $(mktemp -d) && cat SKILL.md",
        "for s in $(ls); do cat skills/$s/SKILL.md; done",
        "while read s; do cat $s/SKILL.md; done < list",
        "ls skills | xargs -I{} cat skills/{}/SKILL.md",
        "python3 - <<'PY'\nopen('a/SKILL.md').read()\n# cat a/SKILL.md\nPY",
        "ssh host cat a/SKILL.md",
        "cp a/SKILL.md /tmp/copy.md",
        "cp a/SKILL.md /tmp/folder",
        "rm a/SKILL.md",
    ],
)
def test_no_single_skill_was_looked_at_or_changed(command: str) -> None:
    """Listing, counting, finding, comparing, patterns, texts and here-documents give nothing."""
    assert [] == seen(command)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd ~/s/foo && cat SKILL.md", ["view ~/s/foo/SKILL.md"]),
        ("(cd /a/b; cat SKILL.md); cat SKILL.md", ["view /a/b/SKILL.md", "view /w/SKILL.md"]),
        ("cd x\ncd ../y\ncat SKILL.md", ["view /w/y/SKILL.md"]),
        ("D=~/s/foo; cat \"$D/SKILL.md\" '$D/SKILL.md'", ["view ~/s/foo/SKILL.md"]),
        ('bash -lc "cat $HOME/s/foo/SKILL.md | head -5"', ["view ~/s/foo/SKILL.md"]),
        ("cat ${CLAUDE_CONFIG_DIR:-$HOME/.claude}/skills/foo/SKILL.md", ["view …/skills/foo/SKILL.md"]),
        ('cat "$CODEX_HOME"/skills/foo/SKILL.md', ["view …/skills/foo/SKILL.md"]),
        ("type C:\\Users\\me\\skills\\foo\\SKILL.md", ["view C:/Users/me/skills/foo/SKILL.md"]),
        ('cat "C:\\\\Users\\\\me\\\\foo\\\\SKILL.md"', ["view C:/Users/me/foo/SKILL.md"]),
        ("pwsh -Command \"Get-Content -Raw 'C:\\u\\foo\\SKILL.md'\"", ["view C:/u/foo/SKILL.md"]),
        ("cat my\\ skills/a\\ b/SKILL.md", ["view /w/my skills/a b/SKILL.md"]),
        ('echo "$(cat a/SKILL.md)" `cat b/SKILL.md`', ["view /w/a/SKILL.md", "view /w/b/SKILL.md"]),
        ("diff <(cat a/SKILL.md) b/SKILL.md", ["view /w/a/SKILL.md"]),
        ("sudo -u me env X=1 timeout 5 cat a/SKILL.md", ["view /w/a/SKILL.md"]),
        ("if true; then cat a/SKILL.md; fi", ["view /w/a/SKILL.md"]),
        ("cat <<EOF > a/SKILL.md\nx\nEOF", ["patch /w/a/SKILL.md"]),
        ("cat <<-A <<B\n\tx\n\tA\ny\nB\ncat a/SKILL.md", ["view /w/a/SKILL.md"]),
        (HEREDOC, ["patch /w/skills/foo/SKILL.md", "view /w/skills/baz/SKILL.md"]),
        ("cat ./a/../b//SKILL.md", ["view /w/b/SKILL.md"]),
    ],
)
def test_paths_are_followed_as_far_as_the_text_says(command: str, expected: list[str]) -> None:
    """Folders, variables, quotes, substitutions and wrappers are seen through; relative paths stand on the folder."""
    assert expected == seen(command, cwd="/w")


def test_argument_lists() -> None:
    """A list of arguments is one command, and `bash -lc` in it a script."""
    assert ["view a/SKILL.md"] == seen(["bash", "-lc", "cat a/SKILL.md"])
    assert ["view a b/SKILL.md"] == seen(["cat", "a b/SKILL.md"])
    assert ["view a/SKILL.md"] == seen(["cat a/SKILL.md"])
    assert [] == seen(["echo", "cat a/SKILL.md"])


def test_home_is_put_in_where_it_is_known() -> None:
    """`~` and `$HOME` become the home that is given."""
    assert ["view /h/s/foo/SKILL.md"] == seen("cat ~/s/foo/SKILL.md $HOME/s/foo/SKILL.md", home="/h")


def test_other_files_of_a_package_count_where_the_package_is_known() -> None:
    """A support file gives a touch only when somebody says that it lies in a package."""
    command = "cat /lib/foo/references/x.md && echo x > /lib/foo/scripts/run.sh; cat /etc/passwd"

    found = touched(command, in_package=lambda path: path.startswith("/lib/foo/"))

    expected = [("view", "/lib/foo/references/x.md"), ("patch", "/lib/foo/scripts/run.sh")]
    assert expected == [(touch.kind, touch.path) for touch in found]
    assert () == touched(command)


def test_patch_texts() -> None:
    """Both forms of a patch name their files."""
    unified = "--- a/x/SKILL.md\t2026\n+++ b/x/SKILL.md\t2026\n@@\n--- /dev/null\n+++ b/new/f.md\n"

    assert [("update", "x/SKILL.md"), ("add", "new/f.md")] == [(t.op, t.path) for t in patch_targets(unified)]
    moved = "*** Update File: a/SKILL.md\n*** Move to: b/SKILL.md\n"
    assert [("update", "a/SKILL.md"), ("move", "b/SKILL.md")] == [(t.op, t.path) for t in patch_targets(moved)]


HOSTILE = {
    "opened": "(" * 10**6,
    "quoted": '"' * 10**6,
    "backticks": "`" * 10**6,
    "substitutions": "$(" * 500_000,
    "here-documents": "<<a " * 250_000 + "\n",
    "one here-document": "cat <<a\n" + "b\n" * 450_000,
    "redirections": ">" * 10**6,
    "backslashes": "\\" * 10**6,
    "folders": "cd a;" * 200_000,
    "assignments": "A=$A/a;" * 140_000,
    "wrappers": "sudo " * 200_000,
    "evals": "eval " * 200_000,
    "ansi": "$'" + "a\\b" * 300_000,
    "options": "cat " + "-e " * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_malice_takes_seconds_at_most(name: str) -> None:
    """Time is linear in the text, whatever it holds."""
    began = time.process_time()
    touched(HOSTILE[name] + " cat a/SKILL.md", cwd="/w")

    # Linear is some 1–3 s on a slow machine; quadratic would be hours.
    assert time.process_time() - began < 20


def test_touches_are_bounded() -> None:
    """A command that names thousands of skills gives no more than `MAX_TOUCHES`."""
    assert MAX_TOUCHES == len(seen("cat " + " ".join(f"s{n}/SKILL.md" for n in range(5000))))


PIECES = st.sampled_from([
    "cat ", "a/SKILL.md", "SKILL.md", " ", "'", '"', "\\", "\n", "$(", ")", "(", "`", "<<EOF", "EOF", "<<", ">", ">>",
    "|", "&", ";", "cd x", "$HOME", "${", "}", "~", "*", "{", "#", "sed -i ", "tee ", "grep ", "x=1 ", "bash -c ",
    "eval ", "[[", "\0", "é", "\ue000", "\udc80", "=", "-", "--", "for s in ", "do ", "done",
])  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_nothing_raises_and_nothing_comes_of_nothing(command: str) -> None:
    """Any text gives a bounded answer whose every path ends in a skill file that the text names."""
    for touch in touched(command, cwd="/w"):
        assert touch.path.endswith("/SKILL.md")
        assert "SKILL.md" in command


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_without_a_program_that_reads_or_writes_there_is_no_event(noise: str) -> None:
    """A text without any reading or writing program, redirection or patch tool gives nothing."""
    for word in ("cat", "sed", "tee", "grep", ">", "<", "bash", "eval"):
        noise = noise.replace(word, "")

    assert () == touched(noise + " a/SKILL.md", cwd="/w")
