"""What `curatord doctor` makes of the facts: one module a kind of subject, each function facts in and checks out."""

from __future__ import annotations

from curatord.core.doctor.check import Check, Issue, Level, check_of, worst

__all__ = ["Check", "Issue", "Level", "check_of", "worst"]
