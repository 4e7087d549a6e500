"""Keys of the small facts that the store keeps between processes."""

from __future__ import annotations

__all__ = ["PAUSED_SINCE", "RUN_COUNT"]

PAUSED_SINCE = "paused_since"  # an ISO time while somebody has said `pause`
RUN_COUNT = "runs.count"  # runs that were no dry runs, ever; their rows are only kept as long as their folders
