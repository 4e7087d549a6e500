"""Builder of made-up DSH logs: rows as the host writes them, in frames or plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from backports import zstd

START_MS = 1_772_366_400_000  # 2026-03-01T12:00Z


def packed(*lines: bytes) -> bytes:
    """Return *lines* as one frame with a checksum and, as the host writes it, without its size."""
    parameter = zstd.CompressionParameter
    options = {int(parameter.checksum_flag): 1, int(parameter.content_size_flag): 0}
    return zstd.compress(b"".join(lines), options=options)


class DshLog:
    """
    One session's log: each method adds rows of one batch.

    *batches* are the lines of each frame, the header's first.
    """

    def __init__(
        self, session: str = "session-1", *, version: int = 0, start_ms: int = START_MS, **header: Any
    ) -> None:
        self.session = session
        self.version = version
        self.ms = start_ms
        self.seq = 0
        self._calls = 0
        self.call_prefix = "call_"
        head = {"type": "session", "version": version, "id": session, "createdAt": self.ms, "delegationDepth": 0}
        self.batches: list[list[bytes]] = [[line({**head, "cwd": "/home/dev/app", **header})]]

    def batch(self, *rows: tuple[str, dict[str, Any]], **more: Any) -> None:
        """Add rows of a type and its data; *more* stands in each row."""
        lines = []
        for kind, data in rows:
            self.ms += 10
            lines.append(line({"type": kind, "seq": self.seq, "time": self.ms, "data": data, **more}))
            self.seq += 1
        self.batches.append(lines)

    def said(self, text: str = "please go on", *, kind: str = "user", ident: str | None = None, **more: Any) -> None:
        """Add a message of role user from a source of this *kind*; *more* is of the row or (name) of the source."""
        source: dict[str, Any] = {
            "kind": kind,
            **{key: more.pop(key) for key in ("name", "form", "plugin") if key in more},
        }
        ident = ident or f"{self.session}-user-{self.seq:08d}"
        data = {"id": ident, "role": "user", "content": [{"type": "text", "text": text}], "source": source}
        self.batch(("user/message", data), **{"surfaceOp": "append", **more})

    def model(self, text: str = "done", **more: Any) -> None:
        """Add a message of the model, with what repeats it."""
        ident = f"{self.session}-model-{self.seq:08d}"
        message = {"id": ident, "role": "assistant", "content": [{"type": "text", "text": text}]}
        chunk = {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": text}}
        self.batch(("step/start", {}), ("assistant/chunk", chunk), ("assistant/message", {"message": message}), **more)

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Add a call, and return its id: small servers number them anew in each session, after a short prefix."""
        self._calls += 1
        ident = f"{self.call_prefix}{self._calls}"
        self.batch(("tool/call", {"turn": 1, "callId": ident, "name": tool, "arguments": json.dumps(arguments)}))
        return ident

    def result(self, call: str, *, error: bool = False, meta: dict[str, Any] | None = None, **more: Any) -> None:
        """Add the result of a call, in the form of this log's version."""
        inner = [{"type": "text", "text": "…"}]
        if self.version >= 4:
            message: dict[str, Any] = {"role": "tool", "toolCallId": call, "content": inner, "isError": error}
        else:
            block = {"type": "tool-result", "toolCallId": call, "content": inner, "isError": error}
            message = {"role": "user", "source": {"kind": "tool", "callId": call}, "content": [block]}
        data: dict[str, Any] = {"turn": 1, "message": message, **({"meta": meta} if meta else {})}
        if error:
            data["error"] = {"name": "E", "code": "X"}
        self.batch(("tool/result", data), **more)

    def skill(self, name: str = "probe", *, error: bool = False) -> None:
        """Add a call of the skill tool and its result."""
        self.result(self.call("skill", name=name), error=error)

    def frames(self, begin: int = 0) -> list[bytes]:
        """Return the frames from one on."""
        return [packed(*lines) for lines in self.batches[begin:]]

    def plain(self) -> bytes:
        """Return all lines."""
        return b"".join(text for lines in self.batches for text in lines)

    def write(self, home: Path, *, name: str | None = None, data: bytes | None = None) -> Path:
        """Write the log below *home*, packed unless *name* says otherwise."""
        folder = home / "sessions" / "--home-dev-app--" / self.session
        folder.mkdir(parents=True, exist_ok=True)
        version = f".v{self.version}" if self.version else ""
        path = folder / (name or f"session{version}.jsonl.zstd")
        if data is None:
            data = b"".join(self.frames()) if path.suffix == ".zstd" else self.plain()
        path.write_bytes(data)
        return path


def line(row: dict[str, Any]) -> bytes:
    """Return a row as the host writes it."""
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"
