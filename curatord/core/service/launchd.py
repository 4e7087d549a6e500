"""
The launchd agent, which runs beside the agents of one user of a Mac.

Source: launchd.plist(5). What it says of each key used here stands beside the key, since a plist that is wrong is not
refused: launchd passes over what it does not know.
"""

from __future__ import annotations

from html import escape

from curatord.core.service.facts import ServiceFacts

__all__ = ["LABEL", "agent", "log_folder"]

LABEL = "curatord"


def log_folder(facts: ServiceFacts) -> str:
    """Return where the agent's log goes; launchd makes the file, not the folder."""
    return f"{facts.home}/Library/Logs/curatord"


def agent(facts: ServiceFacts) -> str:
    """Return the property list. launchd expands neither `~` nor variables, so that every path is whole."""
    words = [*facts.command, *(["--config", facts.config] if facts.config is not None else [])]
    variables = {"HOME": facts.home, **facts.variables}
    log = f"{log_folder(facts)}/curatord.log"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
        '<plist version="1.0">',
        "<!--",
        "curatord as a launchd agent of the user who installs it.",
        "",
        "  curatord service install launchd     writes this file to ~/Library/LaunchAgents/curatord.plist",
        "  launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/curatord.plist",
        "  launchctl kill HUP gui/$(id -u)/curatord     reads the configuration again",
        "-->",
        "<dict>",
        *_text("Label", LABEL),
        "  <key>ProgramArguments</key>",
        "  <array>",
        *(f"    <string>{escape(word, quote=False)}</string>" for word in (*words, "daemon", "--exit-zero-if-final")),
        "  </array>",
        "  <key>EnvironmentVariables</key>",
        "  <dict>",
        *(line for name, value in sorted(variables.items()) for line in _text(name, value, indent="    ")),
        "  </dict>",
        "  <!-- No path of it is relative; this is where a stray one would end, and be refused. -->",
        *_text("WorkingDirectory", "/"),
        "  <!-- In the desktop's session and, bootstrapped into user/UID, in the background one: there it goes on when",
        "       the desktop is left, as long as the user has any session. -->",
        "  <key>LimitLoadToSessionType</key>",
        "  <array>",
        "    <string>Aqua</string>",
        "    <string>Background</string>",
        "  </array>",
        *_flag("RunAtLoad"),
        "  <!-- Started again after a failure only. Errors that a new start would not mend (a wrong configuration,",
        "       another daemon) end with 0 by the option above: launchd knows failure and success, and no codes. -->",
        "  <key>KeepAlive</key>",
        "  <dict>",
        "    <key>SuccessfulExit</key>",
        "    <false/>",
        "  </dict>",
        "  <!-- Never more than one start a minute. -->",
        *_number("ThrottleInterval", 60),
        "  <!-- It finishes the action at hand and stops within ten seconds; the rest is margin for a slow disk. -->",
        *_number("ExitTimeOut", 30),
        "  <!-- A good neighbour: the agents and their user come first. -->",
        *_text("ProcessType", "Background"),
        *_flag("LowPriorityIO"),
        *_flag("LowPriorityBackgroundIO"),
        *_number("Nice", 10),
        "  <!-- 077 in octal: what it writes is private to the user. -->",
        *_number("Umask", 0o077),
        "  <!-- One line for each thing that happened; the folder was made when this was installed. -->",
        *_text("StandardOutPath", log),
        *_text("StandardErrorPath", log),
        "</dict>",
        "</plist>",
        "",
    ]
    return "\n".join(lines)


def _text(key: str, value: str, *, indent: str = "  ") -> list[str]:
    return [f"{indent}<key>{escape(key, quote=False)}</key>", f"{indent}<string>{escape(value, quote=False)}</string>"]


def _flag(key: str) -> list[str]:
    return [f"  <key>{key}</key>", "  <true/>"]


def _number(key: str, value: int) -> list[str]:
    return [f"  <key>{key}</key>", f"  <integer>{value}</integer>"]
