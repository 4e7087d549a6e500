"""
curatord's own memory: one SQLite file (WAL) in the state folder.

The standard library's `sqlite3` is used directly: `curatord status` must start in a few times the time of a bare
interpreter, and the ingest path writes a hundred thousand rows a second; a layer between would cost more than either.
All SQL stands in this package, so another database would be another package. Times are integers, milliseconds since
1970 in UTC (`to_ms`, `from_ms`).
"""

from curatord.adapters.store.database import Database, from_ms, open_database, to_ms

__all__ = ["Database", "from_ms", "open_database", "to_ms"]
