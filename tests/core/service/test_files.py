"""The files of a service, made from facts: what they say reads back, whatever the paths are called."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from curatord.core.service.docker import compose, dockerfile
from curatord.core.service.facts import ServiceFacts, carried_variables, read_only_folders, writable_folders
from curatord.core.service.launchd import agent
from curatord.core.service.samples import samples
from curatord.core.service.systemd import system_unit, user_unit
from curatord.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]

# launchd.plist(5): the keys in use, with the type that each must have.
APPLE: dict[str, type | tuple[type, ...]] = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "WorkingDirectory": str,
    "LimitLoadToSessionType": (str, list),
    "RunAtLoad": bool,
    "KeepAlive": (bool, dict),
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "LowPriorityIO": bool,
    "LowPriorityBackgroundIO": bool,
    "Nice": int,
    "Umask": (int, str),
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
NASTY = "/home/an na/a%b$c\"d'e\\f;#&<é>"


def facts(**said: Any) -> ServiceFacts:
    given: dict[str, Any] = {
        "command": ("/home/u/.local/bin/curatord",),
        "home": "/home/u",
        "state_dir": "/home/u/.local/state/curatord",
        "user": "u",
        "writable": ("/home/u/.claude",),
        "read_only": ("/home/u/.claude/projects",),
    }
    return ServiceFacts(**{**given, **said})


def nasty() -> ServiceFacts:
    return facts(
        command=(f"{NASTY}/bin/curatord", "-m", "x"),
        home=NASTY,
        state_dir=f"{NASTY}/state",
        config=f"{NASTY}/config.yaml",
        writable=(f"{NASTY}/.claude", "/mnt/with space"),
        read_only=(f"{NASTY}/.claude/projects",),
        variables={"CLAUDE_CONFIG_DIR": f"{NASTY}/.claude"},
    )


def words(unit: str, name: str, *, home: str = "%h") -> list[str]:
    """Return the words of all lines that set *name*, read as systemd does: quotes, escapes, specifiers."""
    found: list[str] = []
    for line in unit.splitlines():
        if line.startswith(f"{name}="):
            found += shlex.split(line.partition("=")[2], posix=True)
    return [word.replace("%h", home).replace("%%", "%") for word in found]


@pytest.mark.parametrize("path", sorted(samples()))
def test_the_samples_are_the_made_ones(path: str) -> None:
    """What stands in the repository is what the functions make; `CURATORD_GOLDEN=rewrite` writes it anew."""
    text = samples()[path]
    if os.environ.get("CURATORD_GOLDEN") == "rewrite":
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")

    assert text == (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [user_unit, system_unit])
def test_a_unit_holds_any_path(make: Any) -> None:
    """Blanks, quotes, per cents, dollars: each word is the path again."""
    unit = make(nasty())

    assert [f"-{NASTY}/.claude", "-/mnt/with space", f"{NASTY}/state"] == words(unit, "ReadWritePaths", home=NASTY)
    assert [f"-{NASTY}/.claude/projects"] == words(unit, "ReadOnlyPaths", home=NASTY)
    assert f"CLAUDE_CONFIG_DIR={NASTY}/.claude" in words(unit, "Environment", home=NASTY)
    command = [word.replace("$$", "$") for word in words(unit, "ExecStart", home=NASTY)]
    assert [f"{NASTY}/bin/curatord", "-m", "x"] == command[:3]
    assert ["--config", f"{NASTY}/config.yaml", "daemon"] == command[-3:]


def test_a_user_unit_names_the_home_by_its_specifier() -> None:
    """So that it reads well and goes on after the home was moved; the system's manager would mean root's by it."""
    assert "ReadWritePaths=-%h/.claude\n" in user_unit(facts())
    assert "ExecStart=%h/.local/bin/curatord daemon\n" in user_unit(facts())
    assert "/home/u" not in user_unit(facts())
    assert "%h" not in system_unit(facts())


def test_a_home_that_begins_like_another_is_not_taken_for_it() -> None:
    """`/home/u2` does not lie in `/home/u`."""
    unit = user_unit(facts(writable=("/home/u2/.claude", "/mnt/home/u/x")))

    assert ["-/home/u2/.claude", "-/mnt/home/u/x"] == words(unit, "ReadWritePaths")[:2]


def test_keys_are_named_and_never_written() -> None:
    """Each credential is loaded from a file of its own."""
    unit = system_unit(facts(credentials=("openai", "other")))

    assert ["openai:/etc/curatord/credentials/openai", "other:/etc/curatord/credentials/other"] == words(
        unit, "LoadCredential"
    )


def test_the_system_form_has_its_state_from_the_manager_unless_the_configuration_says() -> None:
    """Both at once would be two state folders."""
    managed, said = system_unit(facts(state_dir=None)), system_unit(facts(state_dir="/srv/state"))

    assert (["curatord"], []) == (words(managed, "StateDirectory"), words(said, "StateDirectory"))
    assert "CURATORD_STATE_DIR=%S/curatord" in words(managed, "Environment")
    assert "/srv/state" in words(said, "ReadWritePaths")
    assert [] == [one for one in words(said, "Environment") if "STATE" in one]


@pytest.mark.parametrize("make", [agent, lambda one: samples()["config/launchd/curatord.plist"]])
def test_the_agent_has_documented_keys_of_their_types(make: Any) -> None:
    """launchd passes over what it does not know, so a slip of the pen would go unseen."""
    plist = plistlib.loads(make(facts()).encode())

    wrong = {key: value for key, value in plist.items() if key not in APPLE or not isinstance(value, APPLE[key])}
    assert {} == wrong
    assert set(plist["LimitLoadToSessionType"]) <= {"Aqua", "Background", "LoginWindow", "StandardIO", "System"}
    assert plist["ProcessType"] in ("Background", "Standard", "Adaptive", "Interactive")
    assert set(plist["KeepAlive"]) <= {
        "SuccessfulExit",
        "Crashed",
        "PathState",
        "OtherJobEnabled",
        "AfterInitialDemand",
    }


@pytest.mark.parametrize("make", [user_unit, system_unit])
def test_a_start_that_fails_for_hours_is_not_the_last(make: Any) -> None:
    """A full disk fails each start; paced by `RestartSec` they must never reach the limit that ends the service."""
    said = dict(re.findall(r"^(StartLimit\w+|Restart\w+)=(\d+)(?:min)?", make(facts()), re.MULTILINE))

    starts = int(said["StartLimitIntervalSec"]) / int(said["RestartSec"])  # both are minutes

    assert "RestartSec=1min" in make(facts())
    assert starts + 1 < int(said["StartLimitBurst"])


def test_the_agent_is_started_again_after_failures_only_and_seldom() -> None:
    """38,771 starts of a failing agent (bugs B153): KeepAlive says the opposite of what one thinks."""
    plist = plistlib.loads(agent(facts()).encode())

    assert {"SuccessfulExit": False} == plist["KeepAlive"]
    assert 60 <= plist["ThrottleInterval"]
    assert ["daemon", "--exit-zero-if-final"] == plist["ProgramArguments"][-2:]
    assert (0o077, True, "Background") == (plist["Umask"], plist["LowPriorityIO"], plist["ProcessType"])


def test_the_agent_holds_any_path() -> None:
    """Signs that XML means something by are written as themselves."""
    plist = plistlib.loads(agent(nasty()).encode())

    assert [f"{NASTY}/bin/curatord", "-m", "x", "--config", f"{NASTY}/config.yaml"] == plist["ProgramArguments"][:5]
    assert {"HOME": NASTY, "CLAUDE_CONFIG_DIR": f"{NASTY}/.claude"} == plist["EnvironmentVariables"]
    assert f"{NASTY}/Library/Logs/curatord/curatord.log" == plist["StandardErrorPath"]


def test_every_path_of_the_agent_is_whole() -> None:
    """launchd expands neither `~` nor variables, and its working folder is the root (bugs B152)."""
    plist = plistlib.loads(agent(facts()).encode())
    paths = [plist["ProgramArguments"][0], *(plist[key] for key in plist if key.endswith(("Path", "Directory")))]

    assert [] == [path for path in paths if not path.startswith("/") or "$" in path]


def mounts(text: str) -> dict[str, bool]:
    """Return the mounts of a composition, `source` to whether it is read-only; each at its own path."""
    volumes = yaml.safe_load(text)["services"]["curatord"]["volumes"]
    assert [] == [one for one in volumes if one["source"] != one["target"] or one["type"] != "bind"]
    assert [] == [one for one in volumes if one["bind"] != {"create_host_path": False}]
    return {one["source"].replace("$$", "$"): one.get("read_only", False) for one in volumes}


def test_the_sidecar_mounts_everything_where_it_is() -> None:
    """State and libraries to write, transcripts and configuration to read."""
    expected = {
        f"{NASTY}/state": False,
        f"{NASTY}/.claude": False,
        "/mnt/with space": False,
        f"{NASTY}/.claude/projects": True,
        f"{NASTY}/config.yaml": True,
    }

    assert expected == mounts(compose(nasty()))


@pytest.mark.parametrize(
    ("config", "mounted"),
    [
        ("/home/u/.config/curatord/config.yaml", "/home/u/.config/curatord"),
        ("/etc/curatord/config.yaml", "/etc/curatord"),
        ("/home/u/config.yaml", "/home/u/config.yaml"),
        ("/etc/curatord.yaml", "/etc/curatord.yaml"),
    ],
)
def test_a_configuration_is_mounted_with_its_folder_where_that_is_its_own(config: str, mounted: str) -> None:
    """A file by itself stays the old one after a save; but nobody gets a home, or the system's settings, for it."""
    text = compose(facts(config=config))

    assert mounts(text)[mounted]
    assert (mounted == config) == ("seen after a restart" in text)


def test_the_sidecar_can_do_little() -> None:
    """No root, no capability, nothing writable but the mounts, limits on what it takes."""
    service = yaml.safe_load(compose(facts(uid=1234, gid=77)))["services"]["curatord"]

    assert "${CURATORD_UID:-1234}:${CURATORD_GID:-77}" == service["user"]
    assert (True, ["ALL"], ["no-new-privileges:true"]) == (
        service["read_only"],
        service["cap_drop"],
        service["security_opt"],
    )
    assert service["init"] is True
    assert {"HOME": "/home/u", "CURATORD_STATE_DIR": "/home/u/.local/state/curatord"} == service["environment"]
    assert "privileged" not in service
    assert "ports" not in service


def test_keys_reach_the_sidecar_as_secrets() -> None:
    """As files below the folder in which credentials are looked for."""
    whole = yaml.safe_load(compose(facts(credentials=("openai",))))
    service = whole["services"]["curatord"]

    assert ["openai"] == service["secrets"]
    assert "/run/secrets" == service["environment"]["CREDENTIALS_DIRECTORY"]
    assert {"openai": {"file": "/home/u/.config/curatord/credentials/openai"}} == whole["secrets"]


INSTRUCTIONS = {"FROM", "COPY", "RUN", "ENV", "USER", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, continued lines put together."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def test_the_image_is_made_in_two_stages_and_is_nobodys() -> None:
    """What builds does not stay, it does not run as root, and the process gets signals without a shell between."""
    said = instructions(dockerfile())
    last = said[[number for number, (name, _) in enumerate(said) if name == "FROM"][-1] :]

    assert {name for name, _ in said} <= INSTRUCTIONS
    assert 2 == sum(name == "FROM" for name, _ in said)
    assert [] == [
        argument for name, argument in said if name == "FROM" and (":" not in argument or "latest" in argument)
    ]
    assert [] == [name for name, _ in last if name == "RUN"]
    assert ["COPY"] == [name for name, argument in last if argument.startswith("--from=build ")]
    assert [("USER", "10001:10001")] == [one for one in last if one[0] == "USER"]
    assert [("ENTRYPOINT", '["curatord"]'), ("CMD", '["daemon"]')] == last[-2:]
    assert 'CMD ["curatord", "status", "--check"]' in dict(last)["HEALTHCHECK"]


def test_a_line_break_in_a_path_is_refused() -> None:
    """It would be a line of its own in the unit."""
    with pytest.raises(UsageError, match="cannot hold"):
        facts(writable=("/home/u/x\nExecStartPre=/bin/evil",))


@pytest.mark.parametrize(
    ("libraries", "expected"),
    [
        ([("/home/u/.claude/skills", "/home/u/.claude/.skills-archive")], ("/home/u/.claude",)),
        ([("/home/u/.hermes/skills", "/home/u/.hermes/skills/.archive")], ("/home/u/.hermes",)),
        ([("/home/u/skills", "/home/u/.skills-archive")], ("/home/u/.skills-archive", "/home/u/skills")),
        ([("/skills", "/.skills-archive")], ("/.skills-archive", "/skills")),
        ([("/home/u/.config/skills", "/home/u/.config/a")], ("/home/u/.config/a", "/home/u/.config/skills")),
        ([("/usr/share/a/skills", "/usr/share/a/old")], ("/usr/share/a/old", "/usr/share/a/skills")),
        ([("/data/agent/skills", "/mnt/old/archive")], ("/data/agent", "/mnt/old/archive")),
        (
            [
                ("/home/u/.claude/skills", "/home/u/.claude/a"),
                ("/home/u/.claude/plugins/x/skills", "/home/u/.claude/b"),
            ],
            ("/home/u/.claude",),
        ),
        ([], ()),
    ],
)
def test_what_is_opened_for_libraries(libraries: list[tuple[str, str]], expected: tuple[str, ...]) -> None:
    """The folder above each, but none that holds much more: a home, settings, a folder at the root."""
    assert expected == writable_folders(libraries, home="/home/u")


def test_what_is_closed_never_holds_a_library() -> None:
    """A host's home with database and skills stays open, its folder of transcripts does not."""
    kept = ["/h/.hermes/skills", "/h/.hermes/skills/.archive", "/h/.claude"]

    assert ("/h/.claude/projects",) == read_only_folders(
        ["/h/.hermes", "/h/.claude/projects", "/h/.claude", "/h/.claude/projects/one"], kept_open=kept
    )


def test_variables_that_say_where_hosts_are_go_along() -> None:
    """A service begins with none of them; blank ones, keys and all else stay behind."""
    environ = {
        "HERMES_HOME": "/data/h",
        "CODEX_HOME": " ",
        "OPENAI_API_KEY": "sk-x",
        "XDG_STATE_HOME": "/s",
        "LANG": "C",
    }

    assert {"HERMES_HOME": "/data/h", "XDG_STATE_HOME": "/s"} == carried_variables(environ)
