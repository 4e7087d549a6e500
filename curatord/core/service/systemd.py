"""
The systemd unit, in its user and its system form: every hardening line with its reason beside it.

Source: systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

import re

from curatord.core.service.facts import ServiceFacts

__all__ = ["CREDENTIALS", "system_unit", "user_unit"]

# Where each form looks for the key `NAME`: a file that only its owner can read.
CREDENTIALS = {"system": "/etc/curatord/credentials", "user": "%h/.config/curatord/credentials"}


def user_unit(facts: ServiceFacts) -> str:
    """Return the unit of a user's own manager; paths below the home are written with `%h`."""
    lines = [
        "# curatord as a user service: beside the agents of the person who installs it.",
        "#",
        "#   curatord service install systemd        writes this file with the folders of the configuration in force",
        "#   systemctl --user daemon-reload && systemctl --user enable --now curatord",
        "#   loginctl enable-linger                  so that it also runs while you are logged out",
        "#",
        "# By hand: mkdir -p -m 700 ~/.local/state/curatord, and copy it to ~/.config/systemd/user/curatord.service.",
        "# After a change of a path in the configuration install it again: what is not opened below cannot change.",
        "[Unit]",
        "Description=Curator of the skill libraries of AI agents",
        *_START_LIMIT,
        "",
        "[Service]",
        *_NOTIFY,
        *_environment(facts, "user"),
        f"ExecStart={_command(facts)}",
        *_COMMON_RUN,
        *_loaded(facts, "user"),
        "",
        *_NEIGHBOUR,
        "",
        *_OWN_FILES,
        "# It reads anywhere in the home, since hosts may be anywhere, and writes only where it is told below. (User",
        "# managers that are old, or may make no namespaces, pass over what needs mounts; nothing else depends on it.)",
        "ProtectHome=read-only",
        *_opened(facts, home=True),
        *_PRIVATE_TMP,
        *_NETWORK,
        *_NO_TRICKS,
        *_CALLS,
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return _homely("\n".join(lines), facts.home)


def system_unit(facts: ServiceFacts) -> str:
    """Return the unit of the system's manager, which runs as the user whose agents it serves."""
    lines = [
        "# curatord as a system service, for the agents of one user of this machine.",
        "#",
        "#   sudo curatord service install systemd --system --for USER    writes this file with that user's folders",
        "#   sudo systemctl daemon-reload && sudo systemctl enable --now curatord",
        "#",
        "# By hand: set User=, HOME= and the folders below, and copy it to /etc/systemd/system/curatord.service.",
        "[Unit]",
        "Description=Curator of the skill libraries of AI agents",
        "# A model's server on another machine needs names and routes; neither is waited for, a run tries again.",
        "After=network.target",
        *_START_LIMIT,
        "",
        "[Service]",
        *_NOTIFY,
        "# The user whose agents it serves: skills and archives must stay theirs.",
        f"User={_percent(facts.user)}",
        *_environment(facts, "system"),
        f"ExecStart={_command(facts, '--log-format', 'json')}",
        *_COMMON_RUN,
        *_loaded(facts, "system"),
        "",
        *_folders(facts),
        "",
        *_NEIGHBOUR,
        "# The worker, the watcher's threads and one more reading process; a leak of threads is a bug, not a load.",
        "TasksMax=64",
        "",
        *_OWN_FILES,
        "# It needs no capability, so it can gain none.",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "# Homes are read, since the agents' transcripts and skills lie there; what it may write is opened below.",
        "ProtectHome=read-only",
        *_opened(facts, home=False),
        *_PRIVATE_TMP,
        "# It drives no device.",
        "PrivateDevices=yes",
        "# Nor may one be opened that appears later.",
        "DevicePolicy=closed",
        "# Kernel settings, modules and messages are none of its business.",
        "ProtectKernelTunables=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "# Nor are the groups that hold it to its limits.",
        "ProtectControlGroups=yes",
        "# It reads the clock and never sets it.",
        "ProtectClock=yes",
        "# It has no need to rename the machine.",
        "ProtectHostname=yes",
        "# Other users' processes are hidden from it.",
        "ProtectProc=invisible",
        "# Of /proc it needs what is about processes: its own.",
        "ProcSubset=pid",
        "# It leaves no shared memory behind.",
        "RemoveIPC=yes",
        "# Keys of other services stay out of reach.",
        "KeyringMode=private",
        *_NETWORK,
        *_NO_TRICKS,
        *_CALLS,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
        "",
    ]
    return "\n".join(lines)


_START_LIMIT = (
    "# A storm of starts is ended. Those that fail a minute apart are not: a disk may be full for hours.",
    "StartLimitIntervalSec=10min",
    "StartLimitBurst=20",
)
_NOTIFY = (
    "# READY=1 comes after the first scan of all transcripts. Over a long history that may take minutes, in which it",
    "# says that it goes on (EXTEND_TIMEOUT_USEC); a start that hangs ends after this long.",
    "Type=notify",
    "NotifyAccess=main",
    "TimeoutStartSec=5min",
    "# WATCHDOG=1 comes from the worker between two pieces of work, never from a thread of its own: a worker that",
    "# hangs is restarted. The longest silence of a healthy one is one answer of a slow model.",
    "WatchdogSec=30min",
)
_COMMON_RUN = (
    "# Reads the configuration again and takes it over as a whole, or refuses it as a whole and goes on as before.",
    "ExecReload=/bin/kill -HUP $MAINPID",
    "# 2 is a wrong configuration, 4 needs a human, 5 is another daemon: starting again would not help.",
    "# Whatever else may pass: a disk that is full, a folder that is away, a port that is taken.",
    "Restart=on-failure",
    "RestartSec=1min",
    "RestartPreventExitStatus=2 4 5",
    "# Stopped by a signal on purpose.",
    "SuccessExitStatus=130 143",
    "# It finishes the action at hand and stops within ten seconds; the rest is margin for a slow disk.",
    "TimeoutStopSec=30s",
)
_NEIGHBOUR = (
    "# A good neighbour: the agents and their user come first, on the processor and on the disk.",
    "Nice=10",
    "IOSchedulingClass=idle",
    "CPUWeight=20",
    "# It needs some 100 MB; what goes beyond is slowed down first and ended then, before the agents are.",
    "MemoryHigh=512M",
    "MemoryMax=1G",
)
_OWN_FILES = (
    "# What it writes is private to the user.",
    "UMask=0077",
    "# No way to more rights than it was started with.",
    "NoNewPrivileges=yes",
    "# The system's files are read-only, whoever may write them.",
    "ProtectSystem=strict",
)
_PRIVATE_TMP = ("# Other programs' temporary files are none of its business, nor are its own theirs.", "PrivateTmp=yes")
_NETWORK = (
    "# The model's server over TCP, the manager's and its own socket over UNIX; watching files needs none.",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
)
_NO_TRICKS = (
    "# It makes no namespaces.",
    "RestrictNamespaces=yes",
    "# Nor files that run with another's rights.",
    "RestrictSUIDSGID=yes",
    "# It is in no hurry, and must not be able to hold up those who are.",
    "RestrictRealtime=yes",
    "# It never runs programs of another architecture or era.",
    "LockPersonality=yes",
    "# Python needs no memory that is both writable and executable.",
    "MemoryDenyWriteExecute=yes",
)
_CALLS = (
    "# The usual calls of a service on this machine's own interface,",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "# without those that need or give rights, or raise a limit.",
    "SystemCallFilter=~@privileged @resources",
    "# A refused call is an error, not a death in the middle of a change; it may try to lower its own priority.",
    "SystemCallErrorNumber=EPERM",
)


def _environment(facts: ServiceFacts, form: str) -> list[str]:
    lines = [
        "# A service sees nothing of a shell's variables. Keys that the configuration takes from the environment stand",
        "# as NAME=value in this file, if it is there; only its owner should be able to read it.",
        "EnvironmentFile=-/etc/curatord/environment"
        if form == "system"
        else "EnvironmentFile=-%h/.config/curatord/environment",
    ]
    said = dict(facts.variables)
    if form == "system":
        said["HOME"] = facts.home
    if said:
        lines.append("# Where hosts and settings are found.")
        lines += [f"Environment={_word(f'{name}={value}')}" for name, value in sorted(said.items())]
    if form == "system" and facts.state_dir is None:
        lines.append("# The state lies in the folder that the manager makes.")
        lines.append("Environment=CURATORD_STATE_DIR=%S/curatord")
    return lines


def _command(facts: ServiceFacts, *options: str) -> str:
    config = ("--config", facts.config) if facts.config is not None else ()
    return " ".join(_word(word, dollar=True) for word in (*facts.command, *options, *config, "daemon"))


def _loaded(facts: ServiceFacts, form: str) -> list[str]:
    if not facts.credentials:
        return [
            "# A model's key comes as a credential, readable by this service alone: `api_key: {credential: NAME}` in",
            f"# the configuration, and LoadCredential=NAME:{CREDENTIALS[form]}/NAME here.",
        ]
    return [
        "# The keys of the configuration, each in a file that the manager reads and hands to this service alone.",
        *(f"LoadCredential={name}:{CREDENTIALS[form]}/{name}" for name in facts.credentials),
    ]


def _folders(facts: ServiceFacts) -> list[str]:
    lines = ["# The manager makes these folders, private to the user: state,"] if facts.state_dir is None else []
    if facts.state_dir is None:
        lines += ["StateDirectory=curatord", "StateDirectoryMode=0700"]
    return [
        *lines,
        "# and one for what the configuration has written to a file; the log itself goes to the journal.",
        "LogsDirectory=curatord",
        "LogsDirectoryMode=0700",
        "# The configuration is the administrator's.",
        "ConfigurationDirectory=curatord",
    ]


def _opened(facts: ServiceFacts, *, home: bool) -> list[str]:
    lines = [
        "# Opened: for each library the folder above it, so that its archive lies in the same mount: each path here is",
        "# one, a skill is archived by a rename, and a rename cannot cross mounts. `-`: it may be absent.",
    ]
    if any(need.written for need in facts.needs):
        lines.append("# Also the folders of the notice's file and of the socket for figures.")
    lines += [f"ReadWritePaths={_word('-' + path)}" for path in facts.writable]
    if facts.state_dir is not None:
        lines += [
            *(
                ["# The state. (StateDirectory= would make it, but in ~/.config by user managers before 254.)"]
                if home
                else ["# The state, where the configuration has it."]
            ),
            f"ReadWritePaths={_word(facts.state_dir)}",
        ]
    if facts.read_only:
        lines.append(
            "# Closed again, since they are only read: transcripts, and prompts and keys of the configuration."
        )
        lines += [f"ReadOnlyPaths={_word('-' + path)}" for path in facts.read_only]
    return lines


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _word(text: str, *, dollar: bool = False) -> str:
    """Return *text* as one word of a unit's line: specifiers and, in commands, variables taken literally."""
    text = _percent(text).replace("\\", "\\\\").replace('"', '\\"')
    if dollar:
        text = text.replace("$", "$$")
    return text if re.fullmatch(r"[^\s\"'\\;#]+", text) else f'"{text}"'


def _homely(text: str, home: str) -> str:
    """Return the unit with the user's home as `%h`, so that it can be read and moved to another name."""
    written = _percent(home).replace("\\", "\\\\").replace('"', '\\"')
    return re.sub(rf'(?<=[\s"=:-]){re.escape(written)}(?=[/\s"])', "%h", text)
