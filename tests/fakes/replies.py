"""Replies of models that are as small as they may be."""

from __future__ import annotations

from curatord.core.model import Task
from curatord.core.replies import Cluster, DistilReply, MergeMember, MergeReply, Reply, SurveyReply, UmbrellaText

__all__ = ["minimal_reply"]


def minimal_reply(task: Task) -> Reply:
    """Return the smallest valid reply to *task*, to be pushed through the whole path (bugs B012)."""
    match task:
        case "survey":
            return SurveyReply(clusters=(Cluster(umbrella="all", members=("one", "two")),))
        case "merge":
            return MergeReply(
                umbrella=UmbrellaText(name="all", description="Use for one and two."),
                members=(MergeMember(name="one", how="reference", path="references/one.md"),),
            )
        case "distil":
            return DistilReply(nothing="one-off work")
