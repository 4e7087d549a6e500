"""What is measured, each in a process of its own: `python -m tests.bench.sides NAME ARGUMENT…`; few imports."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

MIB = 1024 * 1024


def side_scan(projects: str, state: str, workers: str) -> None:
    """Scan into a state folder, new or used."""
    from datetime import timedelta

    from curatord.adapters.clock import SystemClock
    from curatord.adapters.sources.registry import open_source
    from curatord.adapters.store.database import open_database
    from curatord.adapters.store.ingest import IngestStore
    from curatord.core.settings import SourceSettings
    from curatord.passes.ingest import scan

    clock = SystemClock()
    settings = SourceSettings(host="claude-code")
    Path(state).mkdir(exist_ok=True)
    database = open_database(Path(state), now=clock.now())
    pool = None
    if int(workers):
        from curatord.adapters.sources.pool import reader_processes

        def pool():  # type: ignore[no-untyped-def]
            return reader_processes([(settings, projects)], count=int(workers))

    source = open_source(settings, projects)
    scan([source], IngestStore(database), clock=clock, quiet=timedelta(minutes=30), pool=pool)
    database.close()


def side_imports() -> None:
    """Import what a scan imports, and open nothing."""
    import curatord.adapters.sources.registry
    import curatord.adapters.store.ingest
    import curatord.passes.ingest  # noqa: F401


def side_one_field(projects: str) -> None:
    """Decode one field of each line with msgspec."""
    import msgspec

    class Line(msgspec.Struct, gc=False):
        type: str = ""

    decode = msgspec.json.Decoder(Line).decode
    for path in transcripts(projects):
        with Path(path).open("rb", buffering=MIB) as file:
            for line in file:
                try:  # noqa: SIM105 -- suppress() would cost more than what is measured
                    decode(line)
                except msgspec.MsgspecError:
                    pass


def side_orjson(projects: str) -> None:
    """Decode each line whole with orjson."""
    import orjson  # type: ignore[import-not-found, unused-ignore]

    for path in transcripts(projects):
        with Path(path).open("rb", buffering=MIB) as file:
            for line in file:
                try:  # noqa: SIM105 -- as above
                    orjson.loads(line)["type"]
                except (ValueError, KeyError):
                    pass


def side_stat(projects: str) -> None:
    """List the tree and stat each transcript."""
    for path in transcripts(projects):
        os.stat(path)  # noqa: PTH116 -- the barest there is


def side_append(projects: str, state: str, times: str) -> None:
    """Append a record to one of the files and commit it, *times* times; print the milliseconds of each."""
    from datetime import timedelta

    from curatord.adapters.clock import SystemClock
    from curatord.adapters.sources.registry import open_source
    from curatord.adapters.store.database import open_database
    from curatord.adapters.store.ingest import IngestStore
    from curatord.core.settings import SourceSettings
    from curatord.passes.ingest import ingest_paths

    clock = SystemClock()
    database = open_database(Path(state), now=clock.now())
    store = IngestStore(database)
    source = open_source(SourceSettings(host="claude-code"), projects)
    paths = sorted(transcripts(projects))[:: max(1, len(list(transcripts(projects))) // 50)]
    took = []
    for number in range(int(times)):
        path = paths[number % len(paths)]
        record = {"type": "user", "uuid": f"{number:08x}-0000-4000-8000-{os.getpid():012x}", "sessionId": "bench"}
        with Path(path).open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
        began = time.perf_counter()
        report = ingest_paths(source, [path], store, clock=clock, quiet=timedelta(minutes=30))
        took.append((time.perf_counter() - began) * 1000)
        assert report.sources[0].records == 1, report
    database.close()
    sys.stderr.write("")
    Path(state, "append.json").write_text(json.dumps(sorted(took)), encoding="utf-8")


def transcripts(projects: str) -> list[str]:
    """Return the paths of the transcripts below *projects*."""
    found = []
    folders = [projects]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    found.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


SIDES = {
    "scan": side_scan,
    "imports": side_imports,
    "one_field": side_one_field,
    "orjson": side_orjson,
    "stat": side_stat,
    "append": side_append,
}


if __name__ == "__main__":
    SIDES[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
