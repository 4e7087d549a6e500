"""
A small home with a year of history, made up so that curatord can be tried without touching anything of one's own.

Everything in here is invented: skills, sessions, people, hosts. The files have the shapes that Claude Code and Hermes
write, so the demo goes the same way as the real thing; nothing in curatord knows that it is one.
"""

from __future__ import annotations

from curatord.demo.make import DemoHome, make_demo

__all__ = ["DemoHome", "make_demo"]
