"""A key is where it must be, for as long as it must be, and nowhere else: real processes, a server that repeats it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.core.test_redact import TOKENS
from tests.hostile import HostileHome

KEY = "sk-" + "canary" + "Zq7Lm2Xv9Tb4Rw8Ny3Kd6Hf1"
ROOT = Path(__file__).resolve().parents[2]


def start(home: HostileHome, *command: str, **env: str) -> subprocess.Popen[str]:
    """Start a command under the widest umask there is."""
    environ = {"HOME": str(home.folder / "home"), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env}
    arguments = [sys.executable, "-m", "curatord", "-v", "--config", str(home.folder / "curatord.yaml"), *command]
    return subprocess.Popen(
        arguments, cwd=home.folder, env=environ, umask=0, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def said(home: HostileHome, *command: str, **env: str) -> str:
    with start(home, *command, **env) as process:
        return process.communicate(timeout=120)[0]


def below(root: Path) -> list[Path]:
    return [root, *root.rglob("*")]


@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_key_is_told_to_its_server_alone(tmp_path: Path, httpserver: HTTPServer, where: str) -> None:
    """Not in the process list, in any file, in any answer; though the server repeats it in its error."""
    home = HostileHome(tmp_path / "w", datetime.now(UTC))
    held, asked = threading.Event(), threading.Event()
    got: list[str] = []

    def answer(request: Request) -> Response:
        got.append(request.headers.get("Authorization", ""))
        asked.set()
        held.wait(30)
        body = {"error": {"message": f"bad key {KEY} in {dict(request.headers)}", "type": "auth", "param": KEY}}
        return Response(json.dumps(body), 401, {"x-echo": KEY, "content-type": "application/json"})

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    (home.folder / "key").write_text(KEY + "\n")
    (home.folder / "key").chmod(0o600)
    source = "{env: CANARY_KEY}" if where == "environment" else f"{{file: {home.folder / 'key'}}}"
    base = f"    base_url: {httpserver.url_for('/v1')}"
    home.config("llm:", "  primary:", base, "    model: m", f"    api_key: {source}", umbrella="llm")
    env = {"CANARY_KEY": KEY} if where == "environment" else {}

    with start(home, "run", **env) as process:
        assert asked.wait(60), "the model was never asked"
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        surroundings = Path(f"/proc/{process.pid}/environ").read_bytes()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        held.set()
        printed = process.communicate(timeout=120)[0]
    for command in (("doctor",), ("report",), ("status",), ("config", "show"), ("runs",), ("report", "--json")):
        printed += said(home, *command, **env)

    assert {f"Bearer {KEY}"} == set(got)
    assert KEY.encode() not in shown
    assert (where == "environment") == (KEY.encode() in surroundings)
    assert [] == children
    assert KEY not in printed
    holding = [p for p in below(home.folder / "state") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert [] == holding
    open_to_others = [path for path in below(home.folder / "state") if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert [] == open_to_others


def test_no_planted_secret_reaches_the_model(
    tmp_path: Path, httpserver: HTTPServer, record_property: Callable[[str, object], None]
) -> None:
    """Every known kind of token, in descriptions, headings and bodies of skills that the model is asked about."""
    home = HostileHome(tmp_path / "w", datetime.now(UTC))
    bodies: list[str] = []

    def answer(request: Request) -> Response:
        bodies.append(request.get_data(as_text=True))
        return Response("{}", 200, {"content-type": "application/json"})

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    planted: dict[str, str] = {}
    for number, (kind, token) in enumerate(TOKENS.items()):
        told = json.dumps(f"Use when the deploy of {number} needs {token} now.")
        header = f"---\nname: deploy-{number}\ndescription: {told}\n---\n\n"
        text = f"{header}# Deploy\n\n## With {token}\n\n### Not {token}\n\nexport X={token}\n"
        home.package(f"deploy-{number}", text.encode())
        planted[kind] = token.splitlines()[-2] if "\n" in token else token
    base = f"    base_url: {httpserver.url_for('/v1')}"
    home.config("llm:", "  primary:", base, "    model: m", "    context_tokens: 100000", umbrella="llm")
    config = home.folder / "curatord.yaml"
    config.write_text(config.read_text().replace("min_age: 7d", "min_age: 0s"))

    said(home, "run", "--dry-run")
    sent = json.dumps([json.loads(body) for body in bodies], ensure_ascii=False)

    leaked = [kind for kind, token in planted.items() if token in sent]
    record_property("planted", 4 * len(planted))
    print(f"planted {4 * len(planted)} secrets of {len(planted)} kinds in four places, leaked {len(leaked)}")
    assert "deploy" in sent
    assert [] == leaked


def test_a_bug_shows_no_key(tmp_path: Path) -> None:
    """The traceback of a crash has lines of code and no values of variables, in the log of either form."""
    home = HostileHome(tmp_path / "w", datetime.now(UTC))
    home.config(
        "llm:", "  primary:", "    base_url: http://127.0.0.1:9/v1", "    model: m", "    api_key: {env: CANARY_KEY}"
    )
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import curatord.adapters.model_transport as t\n"
        "for name in dir(t):\n"
        "    kind = getattr(t, name)\n"
        "    if isinstance(kind, type) and kind.__module__ == t.__name__:\n"
        "        for each in [m for m in vars(kind) if not m.startswith('__') and callable(getattr(kind, m))]:\n"
        "            def fail(*a, **k): raise RuntimeError('a bug of ours')\n"
        "            setattr(kind, each, fail)\n"
    )
    path = f"{tmp_path}:{ROOT}"

    printed = "".join(
        said(home, *command, CANARY_KEY=KEY, PYTHONPATH=path, CURATORD_LOG_FORMAT=form)
        for form in ("text", "json")
        for command in (("doctor",), ("run",), ("report",))
    )

    assert "a bug of ours" in printed
    assert KEY not in printed
    state: list[Any] = [path for path in below(home.folder / "state") if path.is_file()]
    assert [] == [path for path in state if KEY.encode() in path.read_bytes()]
