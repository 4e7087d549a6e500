"""YAML text and variables become settings, or an error that says where."""

from __future__ import annotations

import contextlib
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from curatord.config import Found, Loaded, parse
from curatord.config.parse import known_keys
from curatord.core.settings import Config, KeyRef, LibrarySettings, SourceSettings
from curatord.core.values import Mode
from curatord.errors import ConfigError

FILE = "/cfg/curatord.yaml"


def load(text: str | bytes | None, environ: dict[str, str] | None = None, **more: Any) -> Loaded:
    """Parse *text* as the file `/cfg/curatord.yaml` of a user at home in /home/u."""
    more.setdefault("file", FILE)
    more.setdefault("home", "/home/u")
    return parse(text, environ or {}, **more)


def refused(text: str | bytes | None, environ: dict[str, str] | None = None, **more: Any) -> ConfigError:
    """Return the error that *text* gives."""
    with pytest.raises(ConfigError) as caught:
        load(text, environ, **more)
    return caught.value


LLM = "llm:\n  primary:\n    base_url: http://localhost:1/v1\n    model: m\n"


@pytest.mark.parametrize("text", [None, "", "# only a comment\n", "---\n", "null\n", "\ufeff"])
def test_nothing_said_is_the_defaults(text: str | None) -> None:
    """No file, an empty one and one of comments alone give the embedded defaults."""
    config = load(text).config

    assert Mode.GUARDED == config.mode
    assert timedelta(days=7) == config.gates.interval
    assert "/home/u/.local/state/curatord" == config.state_dir
    assert config.llm is None


def test_values_of_every_type_are_read() -> None:
    """Durations, counts, shares, choices, enums, lists, objects and free objects arrive as their types."""
    config = load(
        "mode: auto\n"
        "gates: {interval: 1d12h, min_idle: 0}\n"
        "lifecycle: {max_archive: {count: 4, share: 0.5}}\n"
        "distill: {enabled: no}\n"
        + LLM
        + "    timeout: 1.5m\n    extra_body: {think: false, top_k: 3, mode: on, 'a': '1'}\n"
        + "    price: {input: 1, cached_input: 0.1, output: 2.5}\n"
    ).config

    assert Mode.AUTO == config.mode
    assert timedelta(hours=36) == config.gates.interval
    assert timedelta(0) == config.gates.min_idle
    assert (4, 0.5) == (config.lifecycle.max_archive.count, config.lifecycle.max_archive.share)
    assert config.distill.enabled is False
    assert config.llm is not None
    assert config.llm.primary is not None
    assert timedelta(seconds=90) == config.llm.primary.timeout
    assert {"think": False, "top_k": 3, "mode": "on", "a": "1"} == config.llm.primary.extra_body
    assert config.llm.primary.price is not None
    assert 2.5 == config.llm.primary.price.output


def test_on_and_off_are_choices_where_choices_are_asked() -> None:
    """YAML's reading of `on` and `off` as booleans does not reach `distil`, nor names that look like numbers."""
    config = load(
        "sources:\n - {host: claude-code, distil: off}\n - {host: hermes, distil: on}\n"
        "libraries:\n - {name: 2024, path: /a}\n - {name: on, path: /b}\n"
    ).config

    assert ["off", "on"] == [source.distil for source in config.sources]
    assert ["2024", "on"] == [library.name for library in config.libraries]


def test_paths_are_expanded_and_relative_to_the_file() -> None:
    """`~`, `${VAR}` and `${VAR:-default}` are expanded; a relative path starts at the file's folder."""
    config = load(
        "state_dir: ${DATA}/state\nprompts: prompts/./mine\n"
        "libraries:\n - {name: a, path: '~/x'}\n - {name: b, path: '${NOPE:-~/.b}/skills'}\n",
        {"DATA": "/data"},
    ).config

    assert "/data/state" == config.state_dir
    assert "/cfg/prompts/mine" == config.prompts
    assert ["/home/u/x", "/home/u/.b/skills"] == [library.path for library in config.libraries]


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ("gates:\n  intervall: 3d\n", 2, "gates.intervall", "unknown key"),
        ("gates:\n  interval: 3\n", 2, "gates.interval", "expected a duration such as 90d, found '3'"),
        ("gates:\n  min_idle: -2h\n", 2, "gates.min_idle", "at least 0s"),
        ("gates: {interval: 0d}\n", 1, "gates.interval", "more than 0s"),
        ("gates: {interval: 900000d}\n", 1, "gates.interval", "expected a duration"),
        ("gates: [1]\n", 1, "gates", "expected an object"),
        ("mode: autoo\n", 1, "mode", "review | guarded | auto"),
        ("mode: [auto]\n", 1, "mode", "found a list"),
        ("distill: {min_turns: 1.5}\n", 1, "distill.min_turns", "a whole number"),
        ("distill: {min_turns: 012}\n", 1, "distill.min_turns", "a whole number"),
        ("distill: {min_turns: 0}\n", 1, "distill.min_turns", "at least 1"),
        ("distill: {enabled: perhaps}\n", 1, "distill.enabled", "true or false"),
        ("lifecycle:\n  max_archive:\n    share: 20\n", 3, "lifecycle.max_archive.share", "at most 1"),
        ("lifecycle:\n  max_archive:\n    share: .nan\n", 3, "lifecycle.max_archive.share", "a number"),
        (
            "lifecycle:\n  stale_after: 30d\n  archive_after: 10d\n",
            3,
            "lifecycle.archive_after",
            "less than stale_after",
        ),
        ("gates:\n  session_force: 1m\n", 2, "gates.session_force", "less than session_quiet"),
        ("state_dir: /s\nmetrics:\n  listen: unix:/s/control.sock\n", 3, "metrics.listen", "within the state folder"),
        ("state_dir: /s\nnotices:\n  file: /s/curatord.db\n", 3, "notices.file", "within the state folder"),
        (
            "libraries: [{name: a, path: /x}]\nmetrics:\n  listen: unix:/x/m.sock\n",
            3,
            "metrics.listen",
            "within the library 'a'",
        ),
        (
            "sources: [{host: codex, path: /x}]\nmetrics:\n  listen: unix:/x/m.sock\n",
            3,
            "metrics.listen",
            "within a source of codex",
        ),
        ("sources:\n  - path: /x\n", 2, "sources[0].host", "must be set"),
        ("sources: {host: hermes}\n", 1, "sources", "expected a list"),
        ("sources:\n  - host: emacs\n", 2, "sources[0].host", "expected claude-code | hermes"),
        ("sources:\n  - {host: hermes}\n  - {host: hermes}\n", 3, "sources[1].host", "a source already"),
        ("sources:\n  - {host: hermes, fields: {a: b}}\n", 2, "sources[0].fields", "jsonl only"),
        ("sources:\n  - host: jsonl\n", 2, "sources[0].path", "must be set"),
        ("sources:\n  - host: hermes\n    libraries: [x]\n", 3, "sources[0].libraries[0]", "no library 'x'"),
        ("state_dir: '${NOPE}/x'\n", 1, "state_dir", "NOPE is not set"),
        ("state_dir: ~\n", 1, "state_dir", "is empty"),
        ("state_dir: '~root/x'\n", 1, "state_dir", "only ~ alone"),
        ('state_dir: "/a\\nb"\n', 1, "state_dir", "control character"),
        ("libraries:\n  - {name: a/b, path: /a}\n", 2, "libraries[0].name", "no /"),
        ("libraries:\n  - {name: a, path: /a, seen_as: [x]}\n", 2, "libraries[0].seen_as[0]", "absolute"),
        ("gates: 1\nmode: auto\ngates: 2\n", 3, "gates", "twice; the first is in line 1"),
        ("llm: {}\n", 1, "llm", "needs primary"),
        (LLM + "  from_host: hermes\n", 5, "llm.from_host", "excludes primary"),
        (LLM + "    context_tokens: 10\n", 5, "llm.primary.context_tokens", "too little"),
        ("llm: {primary: {base_url: localhost, model: m}}\n", 1, "llm.primary.base_url", "expected a URL"),
        ("llm: {primary: {base_url: 'http://h:x', model: m}}\n", 1, "llm.primary.base_url", "no URL"),
        ("origin: x\n", 1, "origin", "unknown key"),
        ("<<: {mode: auto}\n", 1, "<<", "unknown key"),
    ],
)
def test_a_wrong_setting_is_told_with_file_line_and_key(text: str, line: int, key: str, says: str) -> None:
    """Each mistake names the file, its line and the key, and says what was expected."""
    error = refused(text)

    assert (FILE, line, key) == (error.file, error.line, error.key)
    assert says in str(error)
    assert str(error).startswith(f"{FILE}:{line}: ")
    assert 2 == error.exit_code


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (b"gates:\n\tinterval: 3d\n", 2, "not YAML"),
        (b"gates: {interval: 3d\n", None, "not YAML"),
        (b"mode: 'auto\n", None, "not YAML"),
        (b"\xff\xfem\x00", 1, "UTF-16"),
        (b"mode: auto\nprompts: \xff\n", 2, "not UTF-8"),
        (b"mode: auto\n\nprompts: a\x00b\n", 3, "control character"),
        (b"mode: auto\nprompts: a\x1b[31m\n", 2, "control character"),
        (b"prompts: \xed\xa0\x80\n", 1, "not UTF-8"),
        (b"- a\n", 1, "key: value"),
        (b"just words\n", 1, "key: value"),
        (b"---\nmode: auto\n---\nmode: review\n", 3, "second document"),
        (b"mode: !!python/object/apply:os.system [ls]\n", 1, "tag"),
        (b"mode: *nothing\n", 1, "names nothing"),
        (b"gates: &g\n  x: *g\n", 2, "alias"),
        (b"? [a, b]\n: 1\n", 1, "plain text"),
        (b"? {a: b}\n: 1\n", 1, "plain text"),
        (b"[" * 60_000, 1, "nest"),
        (b"x: " + b"[" * 40 + b"]" * 40, 1, "nested"),
        (b"#" * 300_000, 0, "larger than"),
    ],
)
@pytest.mark.parametrize("libyaml", [True, False])
def test_what_is_no_configuration_is_told_with_its_line(
    text: bytes, line: int | None, says: str, libyaml: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Broken YAML, other encodings, tags, loops and monstrous files are errors with a line, not tracebacks.

    The same where PyYAML was built without libyaml.
    """
    if not libyaml:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    error = refused(text)

    assert FILE == error.file
    assert line is None or line == error.line
    assert says in str(error)


def test_tabs_are_named_as_the_reason() -> None:
    """YAML's own word for a tab helps nobody, so the hint says it."""
    assert "tabs" in refused(b"gates:\n\tinterval: 3d\n").hint


def test_aliases_cannot_blow_up() -> None:
    """A "billion laughs" text is refused at once; honest anchors work."""
    text = "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"b{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )

    assert "expands to more than" in str(refused(text))
    config = load("gates: {interval: &week 7d}\nlifecycle: {notice: *week}\n").config
    assert config.gates.interval == config.lifecycle.notice


@pytest.mark.parametrize(
    "said",
    [
        "sk-LEAK",
        "{env: sk-LEAK-x}",
        "{env: 'sk LEAK'}",
        "{key: sk-LEAK}",
        "{env: A, file: sk-LEAK}",
        "[sk-LEAK]",
        "{env: }",
    ],
)
def test_a_literal_key_is_refused_and_not_repeated(said: str) -> None:
    """A key that stands in the file is an error, and does not reach the message and with it a log."""
    error = refused(f"{LLM}    api_key: {said}\n")

    assert 5 == error.line
    assert error.key.startswith("llm.primary.api_key")
    assert "LEAK" not in str(error) + error.hint


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("llm: {primary: {base_url: 'https://u:LEAK@host/v1', model: m}}", {}),
        ("llm: {primary: {base_url: 'https://host/v1?key=LEAK', model: m}}", {}),
        (LLM + "    extra_body: {api_key: LEAK}\n", {}),
        (LLM + "    apikey: LEAK\n", {}),
        (LLM + "    api_key: {env: A}\n    api_key: LEAK\n", {}),
        (LLM, {"CURATORD_LLM__PRIMARY__API_KEY": "LEAK"}),
        (LLM, {"CURATORD_LLM__PRIMARY__API_KEY": "{env: LE AK}"}),
        (LLM, {"CURATORD_LLM__PRIMARY__APIKEY": "LEAK"}),
    ],
)
def test_keys_in_other_places_are_refused_and_not_repeated(text: str, environ: dict[str, str]) -> None:
    """URLs with a login or query, request bodies and variables with a key are errors that do not show it."""
    error = refused(text, environ)

    assert "LEAK" not in str(error) + error.hint
    assert "LE AK" not in str(error) + error.hint


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{env: MY_KEY}", KeyRef(kind="env", name="MY_KEY")),
        ("{file: key.txt}", KeyRef(kind="file", name="/cfg/key.txt")),
        ("{credential: llm-key}", KeyRef(kind="credential", name="llm-key")),
    ],
)
def test_a_key_is_named_by_where_it_is(said: str, expected: KeyRef) -> None:
    """Environment variable, file and systemd credential are the three places."""
    llm = load(f"{LLM}    api_key: {said}\n").config.llm

    assert llm is not None
    assert llm.primary is not None
    assert expected == llm.primary.api_key


def test_all_problems_are_told_at_once() -> None:
    """A file with three mistakes is mended after one look; the first is the error's own."""
    error = refused("mode: x\ngates:\n  y: 1\nlifecycle: {notice: 1}\n")

    assert 3 == len(str(error).splitlines())
    assert (1, "mode") == (error.line, error.key)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gates: {intervall: 1d}", "did you mean interval?"),
        ("stale_after: 1d", "did you mean lifecycle.stale_after?"),
        ("distil: {}", "did you mean distill?"),
        ("Gates: {}", "did you mean gates?"),
        ("gates: {min-idle: 1h}", "did you mean min_idle?"),
        ("reports: {zzz: 1}", "known here: keep"),
        ("sources: [{host: claude_code}]", "did you mean claude-code?"),
        (
            "libraries: [{name: hermes, path: /a}]\nsources: [{host: hermes, libraries: [hermse]}]",
            "did you mean hermes?",
        ),
    ],
)
def test_an_unknown_word_brings_the_nearest_known(text: str, hint: str) -> None:
    """A slip of the finger names the key or value that was likely meant."""
    assert hint == refused(text).hint


@pytest.mark.parametrize(
    ("libraries", "key", "says"),
    [
        ("[{name: a, path: /x}, {name: A, path: /y}]", "libraries[1].name", "library 'a' already"),
        ("[{name: a, path: /x}, {name: b, path: /x/}]", "libraries[1].path", "path of the library 'a'"),
        ("[{name: a, path: /x}, {name: b, path: /x/y}]", "libraries[1].path", "within the library 'a'"),
        ("[{name: a, path: /x/y}, {name: b, path: /x}]", "libraries[1].path", "within the library 'a'"),
        ("[{name: a, path: /x, archive: /x}]", "libraries[0].archive", "its own archive"),
        ("[{name: a, path: /x, archive: /y/z}, {name: b, path: /y}]", "libraries[0].archive", "library 'b'"),
        ("[{name: a, path: /state/lib}]", "libraries[0].path", "curatord's own"),
        ("[{name: a, path: /}]", "state_dir", "within the library 'a'"),
    ],
)
def test_libraries_must_not_overlap(libraries: str, key: str, says: str) -> None:
    """Names are unique whatever their case; each skill belongs to one library; our own state is none."""
    error = refused(f"state_dir: /state\nlibraries: {libraries}\n")

    assert key == error.key
    assert says in str(error)


@pytest.mark.parametrize("path", ["/x", "/x/y"])
def test_a_source_within_a_library_is_refused(path: str) -> None:
    """Transcripts below a skills folder are a mistake in one of the two paths."""
    error = refused(f"libraries: [{{name: a, path: /x}}]\nsources: [{{host: hermes, path: {path}}}]\n")

    assert "sources[0].path" == error.key


def test_a_library_within_a_host_home_is_fine() -> None:
    """A source may name a host's whole home, its skills included."""
    config = load("libraries: [{name: a, path: /h/skills}]\nsources: [{host: hermes, path: /h}]\n").config

    assert "/h" == config.sources[0].path


FOUND = Found(
    sources=(SourceSettings(host="hermes"),), libraries=(LibrarySettings(name="hermes", path="/home/u/.hermes/skills"),)
)


def test_what_was_found_stands_in_for_what_was_not_said() -> None:
    """Without sources and libraries in the file the machine's own are used; an empty list means none."""
    said_nothing, said_none = load("mode: auto\n", found=FOUND), load("sources: []\nlibraries: []\n", found=FOUND)

    assert ("hermes",) == tuple(source.host for source in said_nothing.config.sources)
    assert ["hermes"] == [library.name for library in said_nothing.config.libraries]
    assert "found" == str(said_nothing.origins["libraries"])
    assert ((), ()) == (said_none.config.sources, said_none.config.libraries)
    assert 2 == len(said_none.notices)


def test_a_library_knows_its_host_from_its_path() -> None:
    """By the host's home, moved by its variable too, or by a telling folder name; else nobody's."""
    config = load(
        "libraries:\n - {name: a, path: ~/.hermes/skills}\n - {name: b, path: /srv/cc/skills}\n"
        " - {name: c, path: /mnt/x/.codex/skills}\n - {name: d, path: /srv/skills}\n"
        " - {name: e, path: ~/.claude/other, host: pi}\n",
        {"CLAUDE_CONFIG_DIR": "/srv/cc"},
    ).config

    assert ["hermes", "claude-code", "codex", None, "pi"] == [library.host for library in config.libraries]


def test_every_key_can_be_set_by_environment() -> None:
    """Nested keys, list indexes, new objects, whole lists and objects as YAML; outer before inner."""
    loaded = load(
        "gates: {interval: 1d}\nsources:\n - {host: hermes}\n",
        {
            "CURATORD_GATES__INTERVAL": "3d",
            "CURATORD_LLM__PRIMARY__MODEL": "tiny",
            "CURATORD_LLM": "{primary: {base_url: 'http://h', model: x}, concurrency: 2}",
            "CURATORD_LLM__PRIMARY__EXTRA_BODY__THINK": "false",
            "CURATORD_SOURCES__0__DISTIL": "on",
            "CURATORD_SOURCES__1__HOST": "jsonl",
            "CURATORD_SOURCES__1__PATH": "logs",
            "CURATORD_SOURCES__1__EXCLUDE": "['a', b]",
            "CURATORD_LIBRARIES": "[{name: 'x', path: '~/x'}]",
            "CURATORD_PROMPTS": "null",
            "CURATORD_MODE": "  ",
        },
    )
    config = loaded.config

    assert timedelta(days=3) == config.gates.interval
    assert config.llm is not None
    assert config.llm.primary is not None
    assert ("tiny", "http://h", 2) == (config.llm.primary.model, config.llm.primary.base_url, config.llm.concurrency)
    assert {"think": False} == config.llm.primary.extra_body
    assert ["on", "auto"] == [source.distil for source in config.sources]
    assert "/cfg/logs" == config.sources[1].path
    assert ("a", "b") == config.sources[1].exclude
    assert "/home/u/x" == config.libraries[0].path
    assert Mode.GUARDED == config.mode
    assert "environment variable CURATORD_GATES__INTERVAL" == str(loaded.origins["gates.interval"])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CURATORD_GATES__INTERVALL", "3d", "gates.intervall: unknown key"),
        ("CURATORD_NONSENSE", "1", "nonsense: unknown key"),
        ("CURATORD_GATES__INTERVAL", "soon", "gates.interval: expected a duration"),
        ("CURATORD_GATES__INTERVAL__X", "1", "no list and no object"),
        ("CURATORD_SOURCES__3__HOST", "hermes", "there is no entry 3"),
        ("CURATORD_SOURCES", "[{", "not YAML"),
        ("CURATORD_GATES", "x", "gates: expected an object"),
        ("CURATORD_STATE_DIR", "state", "expected an absolute path"),
    ],
)
def test_a_wrong_variable_is_told_by_its_name(name: str, value: str, says: str) -> None:
    """Mistakes in the environment name the variable, since there is no line."""
    error = refused("gates: {interval: 1d}" if "__X" in name else None, {name: value}, file=None)

    assert says in str(error)
    assert f"environment variable {name}" in str(error)


def test_variables_that_are_no_settings_are_passed_over() -> None:
    """`CURATORD_CONFIG`, and what Kubernetes sets beside a service called curatord, are not taken for keys."""
    names = ("CURATORD_CONFIG", "CURATORD_PORT", "CURATORD_SERVICE_HOST", "CURATORD_PORT_80_TCP_ADDR", "CURATORDX")

    assert load("", dict.fromkeys(names, "x")).config == load("").config


def test_the_environment_replaces_where_a_key_is() -> None:
    """A file's `{env: …}` and a variable's `file` are not two keys: the variable wins."""
    llm = load(LLM + "    api_key: {env: A}\n", {"CURATORD_LLM__PRIMARY__API_KEY__FILE": "/run/key"}).config.llm

    assert llm is not None
    assert llm.primary is not None
    assert KeyRef(kind="file", name="/run/key") == llm.primary.api_key


def test_a_home_that_is_unknown_is_an_error_only_where_it_is_needed() -> None:
    """Under a service manager without HOME, absolute paths work and `~` is refused; no folder named ~ comes up."""
    assert "/s" == load("state_dir: /s\n", home=None).config.state_dir
    assert "no home folder is known" in str(refused("state_dir: ~/s\n", home=None))
    error = refused("", home=None)
    assert "state_dir" == error.key
    assert "CURATORD_STATE_DIR" in error.hint


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "/home/u/.local/state/curatord"),
        ("linux", {"XDG_STATE_HOME": "/x"}, "/x/curatord"),
        ("linux", {"XDG_STATE_HOME": "relative"}, "/home/u/.local/state/curatord"),
        ("darwin", {}, "/home/u/Library/Application Support/curatord"),
    ],
)
def test_state_lies_where_the_platform_keeps_such_things(platform: str, environ: dict[str, str], expected: str) -> None:
    """XDG where set and absolute, Application Support on macOS."""
    assert expected == load("", environ, platform=platform).config.state_dir


def test_the_fingerprint_changes_with_decisions_only() -> None:
    """Where state lies or how often is looked does not change a run's identity; a threshold does."""
    base = load("").config.fingerprint

    assert base == load("state_dir: /elsewhere\ndaemon: {rescan_every: 5s}\n").config.fingerprint
    assert base == load("gates: {interval: 168h}\n").config.fingerprint
    assert base != load("lifecycle: {stale_after: 31d}\n").config.fingerprint
    assert re.fullmatch("[0-9a-f]{16}", base)


def test_odd_but_allowed_settings_are_noticed() -> None:
    """Notices are returned, not logged: logging is not set up yet."""
    notices = load(
        "lifecycle: {stale_after: 85d}\nsources: []\nlibraries: [{name: a, path: /a, archive: /a/old}]\n"
    ).notices

    assert any("92d" in notice for notice in notices)
    assert any("no usage" in notice for notice in notices)
    assert any("not hidden" in notice for notice in notices)


def test_every_key_is_listed_once() -> None:
    """`known_keys` is what samples, docs and tests lean on."""
    keys = [key for key, _ in known_keys(Config)]

    assert len(set(keys)) == len(keys)
    assert {"state_dir", "gates.interval", "sources[].host", "llm.primary.api_key", "llm.fallback.model"} <= set(keys)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_config_or_a_config_error(data: bytes) -> None:
    """No content of a file is a traceback."""
    with contextlib.suppress(ConfigError):
        load(data)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([key for key, _ in known_keys() if "." not in key]), _VALUES, max_size=4))
def test_any_values_of_known_keys_give_a_config_or_a_config_error(values: dict[str, Any]) -> None:
    """No shape of value under a known key is a traceback."""
    with contextlib.suppress(ConfigError):
        load(yaml.safe_dump(values, allow_unicode=True))
