"""
The sidecar: an image made from a wheel, and a composition that mounts the user's folders into it.

Every folder is mounted at the path that it has outside. So one configuration serves both sides, reports name paths that
can be opened, `curatord status` on the host reads the same state, and a skill's own paths mean what they meant.

Source: the Dockerfile reference and the Compose specification.
"""

from __future__ import annotations

import json
import re
from posixpath import dirname

from curatord.core.service.facts import ServiceFacts
from curatord.core.service.wide import wideness

__all__ = ["CONTAINER_USER", "compose", "config_mount", "dockerfile"]

# Whoever starts the image without naming a user gets one that owns nothing.
CONTAINER_USER = 10001

_IMAGE = "python:3.13-slim"
_HEALTH = ("curatord", "status", "--check")


def dockerfile(wheel: str = "curatord-*.whl") -> str:
    """Return the Dockerfile that installs *wheel*, which lies beside it."""
    return f"""\
# curatord as a sidecar of the agents of one user.
#
#   python3 -m pip wheel --no-deps -w . PATH-OF-THE-SOURCES     puts the wheel beside this file
#   docker compose up -d --build                                with the compose.yaml beside it

# The first stage has pip and may have compilers; nothing but the finished environment leaves it.
FROM {_IMAGE} AS build
COPY {wheel} /wheels/
RUN python -m venv /opt/curatord \\
 && /opt/curatord/bin/pip install --no-cache-dir --disable-pip-version-check /wheels/*.whl \\
 && /opt/curatord/bin/curatord --version

FROM {_IMAGE}
COPY --from=build /opt/curatord /opt/curatord
# No bytecode is written: the root is read-only. Output goes out at once. The home is the user's own, by compose.yaml.
ENV PATH=/opt/curatord/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 CURATORD_LOG_FORMAT=json
# Not root; compose.yaml gives the user whose folders are mounted.
USER {CONTAINER_USER}:{CONTAINER_USER}
# 3 unless the daemon lives, works and got on with it. The first scan of a long history has its time.
HEALTHCHECK --interval=2m --timeout=20s --start-period=5m --retries=2 CMD {json.dumps(list(_HEALTH))}
# Signals reach it directly, without a shell between; it ends on SIGTERM within ten seconds, SIGHUP reads the settings.
STOPSIGNAL SIGTERM
ENTRYPOINT ["curatord"]
CMD ["daemon"]
"""


def compose(facts: ServiceFacts) -> str:
    """Return the composition. A folder that is not there is an error; Docker would make it, as root's."""
    state = facts.state_dir or f"{facts.home}/.local/state/curatord"
    variables = {"HOME": facts.home, "CURATORD_STATE_DIR": state, **facts.variables}
    if facts.config is not None:
        variables["CURATORD_CONFIG"] = facts.config
    lines = [
        "# curatord beside an agent host: it sees the agent's home where the agent has it.",
        "#",
        *(
            [
                "#   export AGENT_HOME=$HOME CURATORD_UID=$(id -u) CURATORD_GID=$(id -g)",
                "#   mkdir -p -m 700 $HOME/.local/state/curatord",
            ]
            if "${AGENT_HOME" in facts.home
            else []
        ),
        "#   docker compose up -d --build",
        "#   docker compose exec curatord curatord status",
        "#   docker compose kill -s HUP curatord                 reads the configuration again",
        "services:",
        "  curatord:",
        "    build: .",
        "    image: curatord:local",
        "    # The user whose folders are mounted: what it writes stays theirs.",
        f'    user: "${{CURATORD_UID:-{facts.uid}}}:${{CURATORD_GID:-{facts.gid}}}"',
        "    # A small first process that hands on signals and takes up what processes leave behind.",
        "    init: true",
        "    restart: unless-stopped",
        "    # It finishes the action at hand and stops within ten seconds; the rest is margin for a slow disk.",
        "    stop_grace_period: 30s",
        "    # Nothing but the mounts below can be written, nothing can be gained, little can be used.",
        "    read_only: true",
        "    tmpfs:",
        "      - /tmp:size=64m,mode=1777,noexec,nosuid,nodev",
        "    cap_drop: [ALL]",
        "    security_opt: [no-new-privileges:true]",
        "    pids_limit: 64",
        "    mem_limit: 1g",
        "    cpu_shares: 128",
        "    logging:",
        "      driver: json-file",
        '      options: {max-size: "10m", max-file: "3"}',
        "    # A model's server on the host itself is http://host.docker.internal:PORT from in here.",
        '    extra_hosts: ["host.docker.internal:host-gateway"]',
        "    environment:",
        *(f"      {name}: {_quoted(value)}" for name, value in sorted(variables.items())),
        *_secrets_of(facts),
        "    volumes:",
        "      # Its state: database, runs, kept bytes for undo.",
        *_mount(state, read_only=False),
    ]
    if facts.writable:
        lines.append("      # Libraries with their archives: the folder above each, so that a move is a rename.")
        if any(need.written for need in facts.needs):
            lines.append("      # Also the folders of the notice's file and of the socket for figures.")
        for path in facts.writable:
            lines += _mount(path, read_only=False)
    if facts.read_only:
        lines.append("      # Only read: transcripts, and prompts and keys that the configuration names.")
        for path in facts.read_only:
            lines += _mount(path, read_only=True)
    if (mounted := config_mount(facts)) is not None:
        told = (
            "The configuration without what lies beside it: a saved one is seen after a restart of the container."
            if mounted == facts.config
            else "The folder of the configuration: a file mounted by itself would stay the old one after a save."
        )
        lines += [f"      # {told}", *_mount(mounted, read_only=True)]
    lines += [
        "    # Where the kernel's events do not come through a mount (a Mac's or Windows' engine), the daemon notices,",
        "    # and lists the folders once a minute instead; `status` says so under `watching`.",
    ]
    if facts.credentials:
        lines += ["secrets:"]
        for name in facts.credentials:
            lines += [f"  {name}:", f"    file: {_quoted(f'{facts.home}/.config/curatord/credentials/{name}')}"]
    return "\n".join(lines) + "\n"


def config_mount(facts: ServiceFacts) -> str | None:
    """
    Return what is mounted for the configuration: its folder, or the file alone where that folder is too wide.

    None: there is no file, or it is seen anyway.
    """
    if facts.config is None or any(_below(facts.config, one) for one in (*facts.writable, *facts.read_only)):
        return None
    folder = dirname(facts.config)
    return folder if wideness(folder, facts.home, written=False) is None else facts.config


def _secrets_of(facts: ServiceFacts) -> list[str]:
    if not facts.credentials:
        return []
    return [
        "      # Where the keys of the configuration are found.",
        "      CREDENTIALS_DIRECTORY: /run/secrets",
        f"    secrets: [{', '.join(facts.credentials)}]",
    ]


def _mount(path: str, *, read_only: bool) -> list[str]:
    return [
        "      - type: bind",
        f"        source: {_quoted(path)}",
        f"        target: {_quoted(path)}",
        *(["        read_only: true"] if read_only else []),
        "        bind: {create_host_path: false}",
    ]


def _quoted(text: str) -> str:
    """Return *text* as a YAML scalar; a `$` that begins no variable of ours is doubled, as Compose wants it."""
    return json.dumps(re.sub(r"\$(?!\{AGENT_HOME)", "$$", text), ensure_ascii=False)


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
