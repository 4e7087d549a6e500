"""
`service print | install | uninstall`: the files of a service of systemd, launchd or a container engine.

It writes and removes files and makes the folders they need; the service manager itself is left to its own commands,
which are shown. Nothing is done without a yes, and nothing at all where one of the files is somebody else's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from curatord.config import Loaded
    from curatord.core.service.facts import ServiceFacts
    from curatord.core.service.needs import Kind
    from curatord.core.service.plan import FileChange

__all__ = ["install", "show", "uninstall"]

SYSTEM_UNITS, USER_UNITS = "/etc/systemd/system", ".config/systemd/user"
UNIT = "curatord.service"


class _Person(NamedTuple):
    """The user whose agents are served."""

    name: str
    home: str
    uid: int
    gid: int


class _Service(NamedTuple):
    """
    One kind of service on this machine.

    Attributes:
        files: Text by absolute path.
        folders: What must be there before it starts.
        notes: What the user should know, a line each.
        start, restart, stop, after: The manager's commands to begin, after a change, before and after removal.
        enabled: A path that is there for as long as the manager starts it by itself.
        owner: Whose the folders are, user and group, where they are made for somebody else; None: the caller's own.
    """

    files: Mapping[str, str]
    folders: Sequence[str]
    notes: Sequence[str]
    start: Sequence[str]
    restart: Sequence[str]
    stop: Sequence[str]
    after: Sequence[str] = ()
    enabled: str | None = None
    owner: tuple[int, int] | None = None


def show(context: Context) -> int:
    """Print the files as `install` would write them."""
    service = _service(context)
    for number, (path, text) in enumerate(service.files.items()):
        if len(service.files) > 1:
            context.out.text(f"{'' if number == 0 else chr(10)}# {path}\n")
        context.out.text(text)
    for note in service.notes:
        context.out.note(("note: ", "yellow"), note)
    for folder in _missing(service):
        context.out.note(("note: ", "yellow"), f"before the start: {_making(folder, service.owner)}")
    return exits.OK


def install(context: Context) -> int:
    """Write the files of a service, after showing what will be done."""
    from curatord.adapters.service_files import carry_out, make_folder, present
    from curatord.core.service.plan import install as plan

    said, out = context.arguments, context.out
    service = _service(context)
    changes = plan(service.files, {path: present(path) for path in service.files}, replace=said.replace)
    missing = _missing(service)
    for folder in missing:
        out.line("make     ", (folder, "bold"))
    _tell(context, changes, present)
    for note in service.notes:
        out.note(("note: ", "yellow"), note)
    if _refused(context, changes, "--replace sets the old one aside as NAME.before and writes the new one"):
        return exits.NEEDS_A_HUMAN
    touched = [change for change in changes if change.act != "keep"]
    if not touched and not missing:
        out.line("nothing to do; it is started by:")
        return _steps(context, service.start)
    if said.dry_run:
        out.line("nothing was written (--dry-run)")
        return exits.OK
    if not _agreed(context, "do it?"):
        return exits.OK
    for folder in missing:
        make_folder(folder, owner=service.owner)
    carry_out(changes)
    out.line("done; next:")
    return _steps(context, service.restart if any(change.act == "replace" for change in touched) else service.start)


def uninstall(context: Context) -> int:
    """Remove the files that `install` wrote and nobody changed since; state and configuration stay."""
    from curatord.adapters.service_files import carry_out, present
    from curatord.core.service.plan import uninstall as plan

    said, out = context.arguments, context.out
    service = _service(context, anyway=True)
    paths = list(service.files)
    changes = plan(paths, {path: present(path) for path in paths})
    refused = any(change.act == "refuse" for change in changes)
    removes = not refused and any(change.act == "remove" for change in changes)
    if removes and service.enabled is not None and os.path.lexists(service.enabled):
        # Told before anything that reads like a promise to remove.
        raise UsageError(
            f"the manager still starts it by itself ({service.enabled}), so nothing was removed",
            hint=f"first: {service.stop[0]}    then this again",
        )
    if removes and service.enabled is None:
        out.line("if it runs, stop it first:")
        _steps(context, service.stop)
    _tell(context, changes, present)
    if _refused(context, changes, "remove it yourself if you do not need it any more"):
        return exits.NEEDS_A_HUMAN
    if not removes:
        out.line("nothing to do")
        return exits.OK
    if said.dry_run:
        out.line("nothing was removed (--dry-run)")
        return exits.OK
    if not _agreed(context, "remove?"):
        return exits.OK
    carry_out(changes)
    out.line("removed; state and configuration stay where they are")
    if service.after:
        out.line("next:")
    return _steps(context, service.after)


def _tell(context: Context, changes: Sequence[FileChange], present: Callable[[str], str | None]) -> None:
    out = context.out
    colours = {"refuse": "red", "keep": "dim"}
    for change in changes:
        reason = (
            f"  ({change.reason})" if change.reason else f"  (the old one: {change.keep_as})" * bool(change.keep_as)
        )
        out.line((f"{change.act:<9}", colours.get(change.act, "green")), (change.path, "bold"), reason)
        if change.text and change.act in ("replace", "refuse"):
            import difflib

            lines = (present(change.path) or "").splitlines(), change.text.splitlines()
            for line in difflib.unified_diff(*lines, "now", "then", n=1, lineterm=""):
                out.line("  ", line)


def _refused(context: Context, changes: Sequence[FileChange], way_on: str) -> bool:
    refused = [change for change in changes if change.act == "refuse"]
    for change in refused:
        context.out.note(("curatord: ", "red"), f"{change.path} was {change.reason}, so nothing is done")
    if refused:
        context.out.note("  ", (way_on, "dim"))
    return bool(refused)


def _steps(context: Context, steps: Sequence[str]) -> int:
    for step in steps:
        context.out.line("  ", (step, "bold"))
    return exits.OK


def _missing(service: _Service) -> list[str]:
    """Return the folders that are not there, as far as this user can see."""
    return [folder for folder in service.folders if not os.path.isdir(folder)]  # noqa: PTH112 - pathlib's may raise


def _making(folder: str, owner: tuple[int, int] | None) -> str:
    """Return the line by which a person makes *folder* as `install` would."""
    whose = "" if owner is None else f" && chown {owner[0]}:{owner[1]} {quote(folder)}"
    return f"mkdir -p -m 700 {quote(folder)}{whose}"


def _agreed(context: Context, question: str) -> bool:
    from curatord.cli.init import agreed

    return bool(context.arguments.yes) or agreed(context, question)


# What the service is.


def _service(context: Context, *, anyway: bool = False) -> _Service:
    """Return the service that the arguments mean; *anyway*: a wrong configuration does not matter, only where it is."""
    said = context.arguments
    if said.kind != "systemd" and said.system:
        raise UsageError("--system is for systemd", hint="launchd and docker serve the user who installs them")
    if said.system and said.user:
        raise UsageError("--system and --user are two different services", hint="say one of them")
    if said.whose and not said.system:
        raise UsageError("--for belongs to --system", hint="that user installs it with `curatord service install`")
    if context.environ.get("SUDO_USER") and os.geteuid() == 0 and not said.system:
        raise UsageError("sudo would make this root's own service", hint="leave sudo out, or add --system")
    person = _person(context)
    environ = context.environ if person.home == context.environ.get("HOME") else _environ_of(person, context.environ)
    loaded = _loaded(context, environ, anyway=anyway)
    made = {"systemd": _systemd, "launchd": _launchd, "docker": _docker}[said.kind](context, person, environ, loaded)
    notes = [*_notes(context, loaded), *made.notes]
    return made._replace(notes=notes)


def _person(context: Context) -> _Person:
    import pwd

    from curatord.adapters.config_file import user_home

    said, environ = context.arguments, context.environ
    name = said.whose or (environ.get("SUDO_USER", "") if said.system else "")
    if name:
        try:
            known = pwd.getpwnam(name)
        except KeyError:
            raise UsageError(f"there is no user {name!r}", hint="--for names the user whose agents it serves") from None
        return _Person(known.pw_name, known.pw_dir, known.pw_uid, known.pw_gid)
    if said.system:
        raise UsageError("a system service needs the user whose agents it serves", hint="add --for USER")
    home = user_home(environ)
    if home is None:
        raise ConfigError("no home folder is known", hint="set HOME")
    return _Person("", home, os.getuid(), os.getgid())


def _environ_of(person: _Person, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which *person*'s configuration is found: the caller's own homes are not theirs."""
    kept = {name: value for name, value in environ.items() if name in ("PATH", "CURATORD_CONFIG")}
    return {**kept, "HOME": person.home}


def _loaded(context: Context, environ: Mapping[str, str], *, anyway: bool) -> Loaded:
    from curatord.config import parse
    from curatord.loading import load_config

    # Settings that a shell's variables make do not reach a service, so they must not shape its folders either.
    carried = {name: v for name, v in environ.items() if not name.startswith("CURATORD_") or name == "CURATORD_CONFIG"}
    try:
        return load_config(context.arguments.config, carried)
    except ConfigError:
        if not anyway:
            raise
        return parse(None, {}, home=environ.get("HOME") or "/")


def _facts(
    context: Context, person: _Person, environ: Mapping[str, str], loaded: Loaded, *, state_dir: str | None
) -> ServiceFacts:
    from curatord.adapters.service_places import command_words, facts_of

    return facts_of(
        loaded.config,
        environ,
        command=command_words(sys.argv[0], environ.get("PATH")),
        home=person.home,
        state_dir=state_dir,
        user=person.name,
        uid=person.uid,
        gid=person.gid,
    )


def _notes(context: Context, loaded: Loaded) -> list[str]:
    from curatord.core.service.facts import key_variables

    said = context.arguments
    known = {"CURATORD_CONFIG", "CURATORD_LOG_FORMAT", *(["CURATORD_STATE_DIR"] if said.system else [])}
    lost = sorted(name for name in context.environ if name.startswith("CURATORD_") and name not in known)
    notes = [f"{name} of this shell does not reach a service: write it into the configuration" for name in lost]
    if loaded.config.origin is None:
        notes.append(
            "there is no configuration file; the service takes the defaults and the hosts it finds (curatord init)"
        )
    if said.kind != "systemd":
        for name in key_variables(loaded.config):
            notes.append(f"the key in ${name} does not reach this service: use `api_key: {{file: PATH}}` instead")
    return notes


def _is_seen(path: str, facts: ServiceFacts) -> bool:
    """Return whether a container with the mounts of *facts* finds *path*, which may go through links."""
    from curatord.core.service.wide import within

    if os.path.realpath(path) == os.path.normpath(path):
        return True
    above = os.path.dirname(path)  # noqa: PTH120 - text
    seen = (*facts.writable, *facts.read_only)
    return os.path.realpath(above) == os.path.normpath(above) and any(within(above, one) for one in seen)


def _needs(facts: ServiceFacts, kind: Kind) -> list[str]:
    """Return what the user should know of files outside of libraries and state."""
    from curatord.core.service.docker import config_mount
    from curatord.core.service.needs import needs_notes

    state = [facts.state_dir] if facts.state_dir is not None else []
    writable = [*facts.writable, *state]
    config = config_mount(facts)
    seen = [*writable, *facts.read_only, *([config] if config is not None else [])]
    return needs_notes(facts.needs, kind, home=facts.home, writable=writable, seen=seen)


def _needed(facts: ServiceFacts, kind: Kind) -> Sequence[str]:
    """Return the folders that are to be made for such files."""
    from curatord.core.service.needs import made_first

    return made_first(facts.needs, kind, home=facts.home)


def _systemd(context: Context, person: _Person, environ: Mapping[str, str], loaded: Loaded) -> _Service:
    from curatord.core.service.facts import key_variables
    from curatord.core.service.mark import signed
    from curatord.core.service.systemd import system_unit, user_unit
    from curatord.core.service.wide import within

    system = context.arguments.system
    own_state = system and "state_dir" not in loaded.origins
    facts = _facts(context, person, environ, loaded, state_dir=None if own_state else loaded.config.state_dir)
    folder = context.arguments.output or (SYSTEM_UNITS if system else str(Path(person.home, USER_UNITS)))
    control = "systemctl" if system else "systemctl --user"
    below = "/etc/curatord" if system else str(Path(person.home, ".config/curatord"))
    notes = [f"put the key {name} into {below}/credentials/{name}, mode 0600" for name in facts.credentials]
    notes += [
        f"put {name}=KEY into {below}/environment, mode 0600: a service does not see your shell's"
        for name in key_variables(loaded.config)
    ]
    if own_state:
        notes.append(
            f"its state will lie in /var/lib/curatord; for commands by hand, {person.name} needs "
            "CURATORD_STATE_DIR=/var/lib/curatord"
        )
    if not Path("/run/systemd/system").is_dir():
        notes.append("this machine is not run by systemd")
    form: Kind = "system" if system else "user"
    notes += _needs(facts, form)
    state = [] if own_state else [os.path.realpath(loaded.config.state_dir) if system else loaded.config.state_dir]
    folders = [*state, *_needed(facts, form)]
    if system:
        # Root makes nothing outside of the user's home for them: what they configure is theirs to say, not root's.
        notes += [
            f"before the start: {_making(path, (person.uid, person.gid))}"
            for path in folders
            if not within(path, facts.home) and not os.path.isdir(path)  # noqa: PTH112 - pathlib's may raise
        ]
    told = {need.folder for need in facts.needs}
    hidden = [
        path
        for path in (facts.command[0], *facts.writable)
        if path.startswith(("/tmp/", "/var/tmp/")) and path not in told  # noqa: S108
    ]
    notes += [f"{path} lies in a folder for temporary files, which the service does not see" for path in hidden]
    wanted = "multi-user" if system else "default"
    return _Service(
        files={str(Path(folder, UNIT).absolute()): signed((system_unit if system else user_unit)(facts))},
        folders=folders if not system else [path for path in folders if within(path, facts.home)],
        notes=notes,
        start=[
            f"{control} daemon-reload && {control} enable --now curatord",
            *([] if system else ["loginctl enable-linger     # so that it also runs while you are logged out"]),
        ],
        restart=[f"{control} daemon-reload && {control} restart curatord"],
        stop=[f"{control} disable --now curatord"],
        after=[f"{control} daemon-reload"],
        enabled=str(Path(folder, f"{wanted}.target.wants", UNIT).absolute()),
        owner=(person.uid, person.gid) if system else None,
    )


def _launchd(context: Context, person: _Person, environ: Mapping[str, str], loaded: Loaded) -> _Service:
    from curatord.core.service.launchd import LABEL, agent, log_folder
    from curatord.core.service.mark import signed

    facts = _facts(context, person, environ, loaded, state_dir=loaded.config.state_dir)
    folder = context.arguments.output or str(Path(person.home, "Library/LaunchAgents"))
    path = str(Path(folder, f"{LABEL}.plist").absolute())
    notes = [f"launchd has no credentials: use `api_key: {{file: PATH}}` for {name}" for name in facts.credentials]
    notes += _needs(facts, "launchd")
    if sys.platform != "darwin":
        notes.append("this machine has no launchd")
    start = f"launchctl bootstrap gui/$(id -u) '{path}'"
    stop = f"launchctl bootout gui/$(id -u)/{LABEL}"
    return _Service(
        files={path: signed(agent(facts), comment=("<!-- ", " -->"))},
        folders=(loaded.config.state_dir, log_folder(facts), *_needed(facts, "launchd")),
        notes=notes,
        start=[start],
        restart=[stop, start],
        stop=[stop],
    )


def _docker(context: Context, person: _Person, environ: Mapping[str, str], loaded: Loaded) -> _Service:
    from curatord import __version__
    from curatord.core.service.docker import compose, config_mount, dockerfile
    from curatord.core.service.mark import signed

    facts = _facts(context, person, environ, loaded, state_dir=loaded.config.state_dir)
    folder = Path(context.arguments.output or Path(person.home, ".config/curatord/docker")).absolute()
    wheel = f"curatord-{__version__}-py3-none-any.whl"
    notes = []
    if not (folder / wheel).exists():
        notes.append(
            f"the image installs {folder / wheel}: python3 -m pip wheel --no-deps -w {folder} PATH-OF-THE-SOURCES"
        )
    if person.uid == 0:
        notes.append("this would run as root: install it as the user whose agents it serves")
    notes += [
        f"put the key {name} into {person.home}/.config/curatord/credentials/{name}, mode 0600"
        for name in facts.credentials
    ]
    if facts.config is not None and config_mount(facts) == facts.config:
        notes.append(
            f"{facts.config} is mounted by itself, since much else lies beside it: after a change of it restart the "
            f"container, or put it into a folder of its own, such as {person.home}/.config/curatord"
        )
    notes += _needs(facts, "docker")
    named = [library.path for library in loaded.config.libraries]
    named += [source.path for source in loaded.config.sources if source.path is not None]
    for path in named:
        if not _is_seen(path, facts):
            real = os.path.realpath(path)
            notes.append(
                f"{path} goes through a link that the container does not have: name {real} in the configuration"
            )
    listen, command = loaded.config.metrics.listen, loaded.config.notices.command
    if listen is not None and not listen.startswith("unix:"):
        notes.append(
            f"metrics.listen: {listen} is the container's own loopback, which nobody outside reaches: "
            f"use a socket in a folder of its own, such as unix:{person.home}/.cache/curatord/metrics.sock"
        )
    if command is not None:
        notes.append(
            f"notices.command: {command[0]} is started within the container, which has none of this machine's "
            f"programs: use `notices.file`, such as {person.home}/.cache/curatord/notice"
        )
    up = f"docker compose -f '{folder / 'compose.yaml'}'"
    return _Service(
        files={
            str(folder / "Dockerfile"): signed(dockerfile(wheel)),
            str(folder / "compose.yaml"): signed(compose(facts)),
        },
        folders=(loaded.config.state_dir, *_needed(facts, "docker")),
        notes=notes,
        start=[f"{up} up -d --build"],
        restart=[f"{up} up -d --build"],
        stop=[f"{up} down"],
    )
