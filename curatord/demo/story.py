"""
What happened in the demo's year, as data. All of it is invented.

Days count back from the moment the demo is made: 0 is today, 365 a year ago. `HOLIDAY` is a gap without any work, so
that the clock can be seen to stand still. The skills are chosen so that every rule has one that shows it.
"""

from __future__ import annotations

from typing import Literal

from curatord.core.cheap import dataclass, field

__all__ = ["CLAUDE_SKILLS", "FIRST_DAY", "HERMES_SKILLS", "HOLIDAY", "DemoSkill", "every"]

FIRST_DAY = 365
HOLIDAY = range(172, 194)  # three weeks at the sea

Owner = Literal["agent", "user", "bundled", "hub"]


def every(step: int, first: int, last: int) -> tuple[int, ...]:
    """Return days from *first* down to *last*, *step* apart, those of the holiday left out."""
    return tuple(day for day in range(first, last - 1, -step) if day not in HOLIDAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSkill:
    """
    One skill and its story.

    Attributes:
        category: Hermes' folder for it; Claude Code has none.
        born: When it was made, in days ago.
        uses, views, patches: When it was used, read by another tool, changed; days ago.
        shows: Why it is in the demo.
        archived: When Hermes' own curator archived it, days ago.
        files: Support files, path -> text.
    """

    name: str
    description: str
    body: str
    born: int
    shows: str
    category: str = ""
    owner: Owner = "user"
    pinned: bool = False
    uses: tuple[int, ...] = ()
    views: tuple[int, ...] = ()
    patches: tuple[int, ...] = ()
    archived: int | None = None
    broken: bool = False
    scheduled: bool = False
    created_in_session: bool = False
    files: dict[str, str] = field(default_factory=dict)


HERMES_SKILLS: tuple[DemoSkill, ...] = (
    DemoSkill(
        name="deploy-checklist",
        category="devops",
        description="Walks through a deployment of the web shop step by step.",
        body="## Before\n\n1. Announce the window in the team's channel.\n2. Check that today's backup is there.\n\n"
        "## Deploy\n\nRun `scripts/deploy.sh` and watch the error rate for ten minutes.\n\n"
        "## After\n\nTell the channel, and close the ticket.",
        born=340,
        owner="agent",
        uses=every(6, 338, 1),
        patches=(210, 95),
        files={"scripts/deploy.sh": "#!/bin/sh\nset -eu\necho deploying\n"},
        shows="in use: stays active",
    ),
    DemoSkill(
        name="docker-cleanup",
        category="devops",
        description="Frees disk space on build hosts by removing old images.",
        body="List images older than four weeks first. Never remove one that a running container uses.\n\n"
        "```sh\ndocker image prune --filter until=672h\n```",
        born=300,
        owner="agent",
        uses=every(14, 290, 46),
        shows="idle for six weeks: becomes stale",
    ),
    DemoSkill(
        name="nginx-reload",
        category="devops",
        description="Reloads nginx without dropping connections.",
        body="Test the configuration with `nginx -t` before `nginx -s reload`. A failed test changes nothing.",
        born=320,
        owner="agent",
        uses=every(20, 310, 140),
        shows="idle for months: stale first, archived a week later at the earliest",
    ),
    DemoSkill(
        name="k8s-rollback",
        category="devops",
        description="Rolls a deployment back when the new version misbehaves.",
        body="`kubectl rollout undo deployment/NAME`, then `kubectl rollout status`. Write down what was seen.",
        born=330,
        owner="agent",
        pinned=True,
        uses=(320, 250),
        shows="pinned: stays, however long it is idle",
    ),
    DemoSkill(
        name="csv-cleaning",
        category="data",
        description="Cleans CSV files, their encodings, blanks and duplicate rows.",
        body="## Encodings\n\nTry UTF-8, then Latin-1; never guess silently.\n\n"
        "## Blanks\n\nTrim cells, keep empty ones empty.\n\n## Duplicates\n\nOnly whole rows count as duplicates.",
        born=280,
        owner="agent",
        uses=every(9, 270, 3),
        patches=(60,),
        shows="in use; an umbrella for its narrow sisters",
    ),
    DemoSkill(
        name="csv-semicolons",
        category="data",
        description="Reads CSV files whose cells use semicolons as separators.",
        body="Spreadsheets of some countries write `;` between cells. Look at quotes and separators of the first line.",
        born=120,
        owner="agent",
        uses=(118, 90, 55, 22),
        shows="narrow: could be a section of csv-cleaning",
    ),
    DemoSkill(
        name="csv-quoting",
        category="data",
        description="Repairs CSV files whose cells have broken quotes.",
        body="A quote within a quoted cell is doubled. Count quotes and separators per line; odd means a break.",
        born=100,
        owner="agent",
        uses=(98, 71, 25),
        shows="narrow: could be a section of csv-cleaning",
    ),
    DemoSkill(
        name="weekly-figures",
        category="data",
        description="Builds the weekly figures from the sales database.",
        body="Query the view `sales_week`, compare with the week before, and note what changed by more than a tenth.",
        born=310,
        owner="agent",
        uses=every(30, 300, 150),
        scheduled=True,
        shows="named by a schedule: stays active",
    ),
    DemoSkill(
        name="meeting-minutes",
        category="writing",
        description="Turns rough notes into minutes with decisions and owners.",
        body="Decisions first, then who does what until when. Leave out who said what.",
        born=350,
        uses=every(40, 345, 260),
        shows="yours: never touched, only told that it is idle",
    ),
    DemoSkill(
        name="release-notes",
        category="writing",
        description="Writes release notes from merged changes.",
        body="Group by what users see. One line each, problem in the past tense, new behaviour in the present.",
        born=360,
        owner="bundled",
        uses=(330, 300),
        shows="bundled with the host: protected",
    ),
    DemoSkill(
        name="paper-summary",
        category="research",
        description="Summarises a paper in half a page.",
        body="Question, method, finding, doubt. Quote numbers with their page.",
        born=220,
        owner="hub",
        uses=(215, 160),
        shows="installed from a hub: protected",
    ),
    DemoSkill(
        name="arxiv-watch",
        category="research",
        description="Lists new papers on a topic once a week.",
        body="Search by title and abstract, newest first, five at most.",
        born=18,
        owner="agent",
        shows="never used, but young: has its grace",
    ),
    DemoSkill(
        name="half-finished",
        category="misc",
        description="",
        body="The header of this one was never closed.",
        born=70,
        broken=True,
        shows="broken: told, never touched",
    ),
    DemoSkill(
        name="old-vpn-setup",
        category="devops",
        description="Sets up the VPN client of the old office.",
        body="Import the profile, then restart the service.",
        born=364,
        owner="agent",
        uses=(360,),
        archived=200,
        shows="archived by the host's own curator: can be restored",
    ),
)

CLAUDE_SKILLS: tuple[DemoSkill, ...] = (
    DemoSkill(
        name="pdf-forms",
        description="Fills PDF forms from a table of values. Use when a form has to be filled in.",
        body="Read the field names first with `scripts/fields.py`. Fill, flatten, and look at every page once.",
        born=330,
        uses=every(7, 325, 2),
        patches=(130, 30),
        files={
            "scripts/fields.py": "print('field names of the form')\n",
            "references/checkboxes.md": "# Checkboxes\n\nTheir on-value differs from form to form: ask for it.\n",
        },
        shows="in use",
    ),
    DemoSkill(
        name="commit-style",
        description="How commits are written in this team. Use before committing.",
        body="Imperative subject of some sixty characters; the body says why. One change each.",
        born=300,
        uses=every(4, 295, 0),
        views=(200, 100),
        shows="in use every few days",
    ),
    DemoSkill(
        name="react-tables",
        description="Builds sortable tables in the admin front end.",
        body="Use the table component of the design system; sorting happens on the server.",
        born=260,
        uses=every(12, 250, 104),
        shows="yours and idle: told what would become of it",
    ),
    DemoSkill(
        name="terraform-plan",
        description="Reads a terraform plan and points out what is destroyed.",
        body="Every `-/+` is a replacement: name it first, with what depends on it.",
        born=80,
        shows="yours, never used",
    ),
    DemoSkill(
        name="invoice-mail",
        description="Writes the mail that goes with an invoice.",
        body="Number, amount, date due, and one friendly sentence. Nothing else.",
        born=64,
        uses=(60, 41, 12),
        created_in_session=True,
        shows="an agent made it in a session: adopt --agent-made finds it",
    ),
    DemoSkill(
        name="sql-explain",
        description="Explains slow queries from their plan.",
        body="Look for the widest row estimate that is wrong by more than ten times. Start there.",
        born=200,
        uses=every(15, 195, 33),
        shows="yours, idle for a month",
    ),
)
