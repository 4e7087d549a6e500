"""The user's configuration: YAML text and environment variables, read by the settings' own types into `Config`."""

from __future__ import annotations

from curatord.config.parse import Found, Loaded, check_resolved, default_state_dir, parse

__all__ = ["Found", "Loaded", "check_resolved", "default_state_dir", "parse"]
