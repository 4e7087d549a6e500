"""curatord: a background curator for the skill libraries of AI agents."""

__version__ = "0.1.0"
