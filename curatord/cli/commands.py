"""
All commands, as data: name, group, help, an example, arguments, and where the function is that does it.

The parser, the help, the completions, the suggestions and a test of README are made from this table. Functions are
named, not imported: a command imports what it needs and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["COMMANDS", "GROUPS", "Command", "Parser"]

Parser = Any
"""An `argparse.ArgumentParser`; argparse itself is not needed to hold the table."""


class Command(NamedTuple):
    """
    One command.

    Attributes:
        run: `module:function` below `curatord.cli`; the function takes a `Context` and returns the exit code.
        arguments: Adds its arguments to the parser it is given.
        json: Whether it takes `--json`.
        inner: Its own commands (`config show`); it then does nothing by itself.
    """

    name: str
    group: str
    help: str
    example: str
    run: str = ""
    arguments: Callable[[Parser], None] | None = None
    json: bool = False
    inner: tuple[Command, ...] = ()


GROUPS = (
    ("set up", "Set up"),
    ("long-running", "Long-running"),
    ("look", "Look"),
    ("work", "Work"),
    ("decide", "Decide"),
    ("steer", "Steer"),
)


def _skill(parser: Parser) -> None:
    parser.add_argument("skill", metavar="SKILL", help="name, or library/name where the name alone is ambiguous")


def _skills(parser: Parser) -> None:
    parser.add_argument("skills", metavar="SKILL", nargs="+", help="name, or library/name where that is ambiguous")


def _since(parser: Parser) -> None:
    parser.add_argument("--since", metavar="WHEN", help="a period back (7d), a date (2026-01-31) or a time (ISO 8601)")


def _host(parser: Parser) -> None:
    parser.add_argument("--host", metavar="HOST", help="of this host only, such as claude-code")


def _demo(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        help="an empty or new folder; default: a new one for temporary files, which stays",
    )
    parser.add_argument("--no-run", action="store_true", help="make the home, but do not run on it")


def _try(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        help="an empty or new folder, where the demo is kept if no host is found; default: it is removed at the end",
    )


def _init(parser: Parser) -> None:
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--output", metavar="FILE", help="write there instead of the default place; - prints it")


def _service(parser: Parser) -> None:
    parser.add_argument("kind", choices=("systemd", "launchd", "docker"), help="what is to run it")
    parser.add_argument("--user", action="store_true", help="systemd: your own service manager (the default)")
    parser.add_argument(
        "--system", action="store_true", help="systemd: the system's manager, for the agents of one user"
    )
    parser.add_argument("--for", dest="whose", metavar="USER", help="with --system: whose agents it serves")
    parser.add_argument("--output", metavar="DIR", help="this folder instead of the usual one")


def _service_change(parser: Parser) -> None:
    _service(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be done; change nothing")
    parser.add_argument("--yes", action="store_true", help="ask nothing")


def _service_install(parser: Parser) -> None:
    _service_change(parser)
    parser.add_argument("--replace", action="store_true", help="set a changed file aside and write it anew")


def _doctor(parser: Parser) -> None:
    parser.add_argument("--no-llm", action="store_true", help="ask no model; offline")


def _shell(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def _daemon(parser: Parser) -> None:
    parser.add_argument(
        "--exit-zero-if-final",
        action="store_true",
        help="end with 0 on a signal and where a new start would not help (2, 4, 5): for managers without exit codes",
    )


def _status(parser: Parser) -> None:
    parser.add_argument("--check", action="store_true", help="exit 3 unless a live daemon is healthy")


def _skills_list(parser: Parser) -> None:
    parser.add_argument("--problems", action="store_true", help="only those with problems, and which")
    parser.add_argument("--library", metavar="NAME", help="of this library only")


def _sessions(parser: Parser) -> None:
    _host(parser)
    _since(parser)


def _events(parser: Parser) -> None:
    parser.add_argument("--skill", metavar="SKILL", help="of this skill only")
    parser.add_argument("--distil", action="store_true", help="what came of sessions that were distilled instead")
    _host(parser)
    _since(parser)


def _report(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", default="last", help="a run's id; default: last")


def _scan(parser: Parser) -> None:
    parser.add_argument(
        "--backfill", action="store_true", help="then distil older sessions too, as far as the budget goes"
    )


def _refine(parser: Parser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help="a session's id, its beginning, or host:id")
    parser.add_argument("--focus", metavar="TEXT", help="what to look at first")
    parser.add_argument(
        "--retry", action="store_true", help="take it, or all that were put aside, back to be distilled"
    )


def _run(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be done; change nothing")
    parser.add_argument("--respect-gates", action="store_true", help="only if it is due, as the daemon would")
    parser.add_argument("--no-llm", action="store_true", help="rules only, no model")
    parser.add_argument("--library", metavar="NAME", help="this library only")


def _proposal(parser: Parser) -> None:
    parser.add_argument("proposal", metavar="ID", help="a proposal's id (curatord pending)")


def _approve(parser: Parser) -> None:
    parser.add_argument("proposals", metavar="ID", nargs="*", help="proposals' ids")
    parser.add_argument("--all", action="store_true", help="all that wait")


def _reject(parser: Parser) -> None:
    parser.add_argument("proposals", metavar="ID", nargs="+", help="proposals' ids")
    parser.add_argument("--reason", metavar="TEXT", help="why; kept with the proposal")


def _undo(parser: Parser) -> None:
    parser.add_argument("what", metavar="RUN|ID", help="a run's id, `last`, or one action's id")


def _importance(parser: Parser) -> None:
    _skill(parser)
    parser.add_argument("level", choices=("critical", "important", "normal", "low"), help="what it is worth to you")


def _adopt(parser: Parser) -> None:
    parser.add_argument("skills", metavar="SKILL", nargs="*", help="names, or library/name")
    parser.add_argument("--all", action="store_true", help="all that nothing protects")
    parser.add_argument("--agent-made", action="store_true", help="all that a transcript shows an agent creating")
    parser.add_argument("--dry-run", action="store_true", help="show which; change nothing")


def _restore(parser: Parser) -> None:
    _skills(parser)
    parser.add_argument("--anyway", action="store_true", help="also what a merge absorbed, beside its umbrella")


def _backup_create(parser: Parser) -> None:
    parser.add_argument("--reason", metavar="TEXT", help="why; shown by backup list")


def _backup_verify(parser: Parser) -> None:
    parser.add_argument("backup", metavar="BACKUP", nargs="?", help="a backup's id, or last; default: all")


def _backup_restore(parser: Parser) -> None:
    parser.add_argument("backup", metavar="BACKUP", help="a backup's id (curatord backup list), or last")
    parser.add_argument("--library", metavar="NAME", help="this library only")
    parser.add_argument("--skill", metavar="SKILL", action="append", help="this skill only; may be said again")
    parser.add_argument("--to", metavar="DIR", help="into this new or empty folder, touching no library")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done; change nothing")


COMMANDS: tuple[Command, ...] = (
    Command(
        "try",
        "set up",
        "show what curatord would do on this machine, changing nothing; without any agent host, the demo",
        "curatord try",
        "setup:try_out",
        _try,
    ),
    Command(
        "demo",
        "set up",
        "make a small home with a year of history in an empty folder and run on it; no key needed",
        "curatord demo /tmp/curatord-demo",
        "setup:demo",
        _demo,
    ),
    Command(
        "init",
        "set up",
        "find the hosts of this machine and write a commented configuration; touches nothing else",
        "curatord init --yes",
        "init:init",
        _init,
    ),
    Command(
        "doctor",
        "set up",
        "examine everything, with the mend for what is wrong; exit 3 if anything is; changes nothing",
        "curatord doctor --no-llm",
        "doctor:doctor",
        _doctor,
        json=True,
    ),
    Command(
        "config",
        "set up",
        "show, check or describe the configuration",
        "curatord config show",
        inner=(
            Command(
                "show",
                "set up",
                "the configuration in force, and where each value comes from",
                "curatord config show --json",
                "setup:config_show",
                json=True,
            ),
            Command(
                "check",
                "set up",
                "read the configuration and tell what is wrong with it; exit 2 if anything is",
                "curatord --config ./curatord.yaml config check",
                "setup:config_check",
                json=True,
            ),
            Command(
                "schema",
                "set up",
                "the JSON Schema of the configuration file, for editors",
                "curatord config schema > curatord.schema.json",
                "setup:config_schema",
            ),
        ),
    ),
    Command(
        "service",
        "set up",
        "run it as a service of systemd, launchd or docker",
        "curatord service install systemd --dry-run",
        inner=(
            Command(
                "print",
                "set up",
                "print the files of a service, made for the configuration in force",
                "curatord service print systemd --system --for alice",
                "service:show",
                _service,
            ),
            Command(
                "install",
                "set up",
                "write them, after showing what will be done; a changed file is never overwritten unasked",
                "curatord service install systemd",
                "service:install",
                _service_install,
            ),
            Command(
                "uninstall",
                "set up",
                "remove those that are unchanged; state and configuration stay",
                "curatord service uninstall systemd --yes",
                "service:uninstall",
                _service_change,
            ),
        ),
    ),
    Command(
        "completion",
        "set up",
        "print completions for a shell",
        "curatord completion fish > ~/.config/fish/completions/curatord.fish",
        "setup:completion",
        _shell,
    ),
    Command(
        "man",
        "set up",
        "print the manual page, made from this help",
        "curatord man > ~/.local/share/man/man1/curatord.1",
        "setup:man",
    ),
    Command(
        "daemon",
        "long-running",
        "watch, and curate when things are quiet; in the foreground, until a signal",
        "curatord --log-format json daemon",
        "work:daemon",
        _daemon,
    ),
    Command(
        "status",
        "look",
        "whether it works, what it did last, what comes next",
        "curatord status --check",
        "look:status",
        _status,
        json=True,
    ),
    Command(
        "skills",
        "look",
        "all skills, their use and their state",
        "curatord skills --problems",
        "look:skills",
        _skills_list,
        True,
    ),
    Command(
        "show", "look", "all that is known of one skill", "curatord show claude/pdf-forms", "look:show", _skill, True
    ),
    Command(
        "sessions", "look", "sessions that were read", "curatord sessions --since 7d", "look:sessions", _sessions, True
    ),
    Command(
        "events",
        "look",
        "which session used, viewed, changed or made which skill, and when",
        "curatord events --skill pdf-forms --json",
        "look:events",
        _events,
        json=True,
    ),
    Command("runs", "look", "past runs, newest first", "curatord runs", "look:runs", json=True),
    Command("report", "look", "the report of a run", "curatord report last", "look:report", _report, json=True),
    Command(
        "cost",
        "look",
        "what the libraries cost in every call, and what curation has cost",
        "curatord cost",
        "look:cost",
        json=True,
    ),
    Command(
        "explain",
        "look",
        "why a skill is in its state, and what happens next and when",
        "curatord explain pdf-forms",
        "look:explain",
        _skill,
        json=True,
    ),
    Command("scan", "work", "read the transcripts up to now", "curatord scan --json", "work:scan", _scan, True),
    Command(
        "run",
        "work",
        "one whole curation now, whatever the gates say",
        "curatord run --dry-run",
        "work:run",
        _run,
        json=True,
    ),
    Command(
        "refine",
        "work",
        "distil one session now, whatever the gates say, and tell what came of it",
        "curatord refine 5f2c9d1e --focus 'the release steps'",
        "work:refine",
        _refine,
        json=True,
    ),
    Command("pending", "decide", "changes that wait for your yes", "curatord pending", "decide:pending", json=True),
    Command("diff", "decide", "what one of them would change", "curatord diff 3f9a2c", "decide:diff", _proposal, True),
    Command(
        "approve", "decide", "apply some, or all", "curatord approve 3f9a2c", "decide:approve", _approve, json=True
    ),
    Command(
        "reject",
        "decide",
        "refuse some; the same is not asked again",
        "curatord reject 3f9a2c --reason 'still in use'",
        "decide:reject",
        _reject,
        json=True,
    ),
    Command(
        "undo",
        "decide",
        "put back what a run or one action did, byte for byte",
        "curatord undo last",
        "decide:undo",
        _undo,
        json=True,
    ),
    Command(
        "pause",
        "steer",
        "hold automatic runs until resume; also across restarts",
        "curatord pause",
        "steer:pause",
        json=True,
    ),
    Command(
        "reload",
        "steer",
        "have the running daemon read its configuration again; a wrong one changes nothing",
        "curatord reload",
        "work:reload",
        json=True,
    ),
    Command("resume", "steer", "let automatic runs begin again", "curatord resume", "steer:resume", json=True),
    Command("pin", "steer", "never change these skills", "curatord pin deploy-checklist", "steer:pin", _skills, True),
    Command(
        "unpin", "steer", "let them be changed again", "curatord unpin deploy-checklist", "steer:unpin", _skills, True
    ),
    Command(
        "importance",
        "steer",
        "say what a skill is worth: critical never changes, low ages twice as fast",
        "curatord importance deploy-checklist important",
        "steer:importance",
        _importance,
        json=True,
    ),
    Command(
        "adopt",
        "steer",
        "hand skills over to curatord",
        "curatord adopt --agent-made --dry-run",
        "steer:adopt",
        _adopt,
        json=True,
    ),
    Command(
        "disown",
        "steer",
        "take skills back; they stay as they are",
        "curatord disown notes",
        "steer:disown",
        _skills,
        True,
    ),
    Command("archive", "steer", "archive skills now", "curatord archive old-notes", "steer:archive", _skills, True),
    Command(
        "restore",
        "steer",
        "bring archived skills back; their clock starts anew",
        "curatord restore old-notes",
        "steer:restore",
        _restore,
        json=True,
    ),
    Command(
        "backup",
        "steer",
        "copies of libraries with their archives: make, list, check, take out",
        "curatord backup create",
        inner=(
            Command(
                "create",
                "steer",
                "make one now; what did not change since the last costs nothing",
                "curatord backup create --reason 'before the clean-up'",
                "backup:create",
                _backup_create,
                json=True,
            ),
            Command(
                "list", "steer", "all that there are, newest first", "curatord backup list", "backup:list_", json=True
            ),
            Command(
                "verify",
                "steer",
                "read them back and tell what is damaged",
                "curatord backup verify last",
                "backup:verify",
                _backup_verify,
                json=True,
            ),
            Command(
                "restore",
                "steer",
                "take skills out; what stands there now goes into the archive",
                "curatord backup restore last --skill old-notes",
                "backup:restore",
                _backup_restore,
                json=True,
            ),
        ),
    ),
)
