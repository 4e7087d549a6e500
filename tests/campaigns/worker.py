"""The process that forks: reads orders as lines of JSON, answers each with how its child ended. See `processes`."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

# Imported here, once, for all children.
import curatord.adapters.mutate
import curatord.adapters.store.curation
import curatord.application.deciding
import curatord.application.working
import curatord.cli.commands
import curatord.cli.context
import curatord.passes.run
import curatord.passes.undo
import curatord.wiring  # noqa: F401
from curatord.adapters.clock import SystemClock
from curatord.cli.main import main as command_line

BUG = 1
TOO_LONG_S = 100


def child(order: dict[str, Any], answer: int) -> None:
    """Do what *order* says, cut as it says, and write the exit code and the number of calls to *answer*."""
    signal.alarm(TOO_LONG_S)
    for name in [name for name in os.environ if name.startswith(("CURATORD_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(order["environ"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        path = os.path.join(order["out"], name)  # noqa: PTH118 - nothing more than a name is made
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(descriptor, number)
    now = datetime.fromisoformat(order["clock"])
    SystemClock.now = lambda self: now  # type: ignore[method-assign]
    libc = ctypes.CDLL(None)
    how, at, number, sticky = order["cut"]
    work: Callable[[dict[str, Any]], int] = _ORDERS[order.get("order", "words")]
    libc.cut_arm(order["folder"].encode(), how, ctypes.c_long(at), number, sticky)
    try:
        code = work(order)
    except BaseException:  # noqa: BLE001 - what the command line would show as a bug
        traceback.print_exc()
        code = BUG
    libc.cut_disarm()
    libc.cut_calls.restype = ctypes.c_long
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(answer, json.dumps({"code": code, "calls": libc.cut_calls()}).encode())


def _words(order: dict[str, Any]) -> int:
    return command_line(order["words"])


def _recover(order: dict[str, Any]) -> int:
    """Do what each start does, and nothing else; 4 where somebody has to decide."""
    from curatord.application.working import recover

    with _parts(order) as parts:
        recover(parts)
        return 4 if parts.applier.last_recovery.conflicts else 0


def _propose(order: dict[str, Any]) -> int:
    """Put a proposal into the store, as a pass with a model does, and print its id."""
    from tests.campaigns.kinds import proposal

    with _parts(order) as parts:
        made = proposal(parts, order["kind"], order["skills"], now=datetime.fromisoformat(order["clock"]))
        parts.store.propose(made)
        sys.stdout.write(made.id)
    return 0


def _parts(order: dict[str, Any]) -> Any:
    from contextlib import closing

    from curatord.cli.app import Surroundings
    from curatord.config import parse
    from curatord.wiring import Parts

    config = Path(order["environ"]["CURATORD_CONFIG"])
    loaded = parse(config.read_bytes(), dict(os.environ), file=str(config), home=os.environ["HOME"])
    return closing(Parts(loaded.config, Surroundings()))


_ORDERS: dict[str, Callable[[dict[str, Any]], int]] = {"words": _words, "recover": _recover, "propose": _propose}


def main() -> None:
    """Serve until there is nothing more to read."""
    for line in sys.stdin.buffer:
        order = json.loads(line)
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(told)
            try:
                child(order, tell)
            finally:
                os._exit(0)
        os.close(tell)
        _, status = os.waitpid(pid, os.WUNTRACED)
        while os.WIFSTOPPED(status):
            sys.stdout.buffer.write(b'{"stopped": true}\n')
            sys.stdout.buffer.flush()
            if not sys.stdin.buffer.readline():
                os.kill(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGCONT)
            _, status = os.waitpid(pid, os.WUNTRACED)
        with os.fdopen(told, "rb") as file:
            answer = file.read()
        ended = json.loads(answer) if answer else {"code": None, "calls": 0}
        ended["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        sys.stdout.buffer.write(json.dumps(ended).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
