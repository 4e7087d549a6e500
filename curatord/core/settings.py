"""
What a user can configure, as frozen values with every default in this one place (contract, section 4).

`curatord.config` makes these from YAML text and the environment; nothing else does. Paths are absolute text: `~`,
`${VAR}` and paths relative to the file are resolved before a value is built. Each default has its reason or precedent
beside it; `config/curatord.yaml` is held equal to them by a test.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from curatord.core.cheap import dataclass, field
from curatord.core.setting_rules import (
    AnyPath,
    Count,
    GlobText,
    HttpUrl,
    Many,
    Money,
    NameText,
    Niceness,
    NoticeChars,
    Pause,
    Period,
    Share,
    ShortPeriod,
    SizeAtLeast,
    ViewPath,
)
from curatord.core.units import ByteSize
from curatord.core.values import Mode

__all__ = [
    "HOSTS",
    "NO_SETTING",
    "ArchiveCap",
    "BackupSettings",
    "Config",
    "DaemonSettings",
    "DigestSettings",
    "DistilSettings",
    "GateSettings",
    "HostName",
    "KeyRef",
    "LibrarySettings",
    "LifecycleSettings",
    "LlmBudget",
    "LlmEndpoint",
    "LlmPrice",
    "LlmSettings",
    "MetricsSettings",
    "NoticeSettings",
    "ReportSettings",
    "SourceSettings",
    "UmbrellaSettings",
    "UndoSettings",
]

# Marks a field that is told with the settings but cannot be said by the user.
NO_SETTING = {"setting": False}

HostName = Literal[
    "claude-code",
    "hermes",
    "codex",
    "pi",
    "openclaw",
    "dsh",
    "opencode",
    "gemini-cli",
    "qwen-code",
    "copilot-cli",
    "cursor",
    "jsonl",
]
HOSTS: tuple[HostName, ...] = (
    "claude-code",
    "hermes",
    "codex",
    "pi",
    "openclaw",
    "dsh",
    "opencode",
    "gemini-cli",
    "qwen-code",
    "copilot-cli",
    "cursor",
    "jsonl",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """
    One place with transcripts.

    *path* None: every default place of the host. *libraries* None: the libraries with this host, else all.
    """

    host: HostName
    path: AnyPath | None = None
    libraries: tuple[NameText, ...] | None = None
    distil: Literal["on", "off", "auto"] = "auto"
    exclude: tuple[GlobText, ...] = ()
    fields: dict[str, Any] | None = None  # `jsonl` only: where a record holds session, role, text, time, tool, skill


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySettings:
    """One library. *archive* None: Hermes' own `.archive`, else `.<folder>-archive` beside the library."""

    name: NameText
    path: AnyPath
    host: HostName | None = None
    layout: Literal["auto", "agent-skills", "hermes", "flat"] = "auto"
    manage: Literal["none", "owned", "all"] = "owned"
    seen_as: tuple[ViewPath, ...] = ()
    archive: AnyPath | None = None
    external_dirs: tuple[AnyPath, ...] = ()
    host_curator: Literal["warn", "pause"] = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """When a run may begin and when a session counts as settled."""

    interval: Period = timedelta(days=7)  # Hermes' own curator: 168 h
    min_idle: Pause = timedelta(hours=2)  # Hermes' own curator: 2 h
    session_quiet: Pause = timedelta(minutes=30)
    session_force: Period = timedelta(hours=24)
    first_run: Literal["baseline", "run"] = "baseline"  # a first tick that archived 54 of 87 skills: bugs B001


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveCap:
    """Per library and run: the smaller of *count* and *share* of the managed skills, but at least 3."""

    count: Count = 10
    share: Share = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleSettings:
    """The periods of the state table."""

    stale_after: Period = timedelta(days=30)  # Hermes before its 14/30 days, which its users contest
    archive_after: Period = timedelta(days=90)
    notice: Pause = timedelta(days=7)
    never_used_grace: Pause = timedelta(days=30)
    away_after: Period = timedelta(days=7)
    max_archive: ArchiveCap = field(default_factory=ArchiveCap)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSettings:
    """Bounds of the text of one session that a model is shown, in messages and characters."""

    tail_messages: Many = 24
    message_chars: Many = 2000
    older_user_chars: Count = 600
    older_assistant_chars: Count = 400
    max_chars: Many = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilSettings:
    """When and how sessions become small changes of the library (contract, section 8)."""

    enabled: bool = True
    min_turns: Many = 3
    min_tool_calls: Many = 10
    cooldown: Pause = timedelta(hours=1)
    create_after_sessions: Many = 2
    max_managed_skills: Count = 50
    max_new_per_day: Count = 3
    digest: DigestSettings = field(default_factory=DigestSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class UmbrellaSettings:
    """How narrow skills are merged (contract, section 9)."""

    enabled: bool = True
    planner: Literal["llm", "lexical"] = "llm"
    detail: Literal["cards", "bodies"] = "cards"
    max_rounds: Many = 3
    min_age: Pause = timedelta(days=7)  # a skill of this morning is not settled yet: bugs B007


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRef:
    """Where a key is found when it is needed; never the key itself."""

    kind: Literal["env", "file", "credential"]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmPrice:
    """US dollars per million tokens."""

    input: Money
    cached_input: Money
    output: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmEndpoint:
    """
    One model behind one URL.

    *context_tokens* None: 8,192 for a loopback server, 128,000 else. *timeout*, the longest silence, None: 600 s for
    a loopback server, which is silent while a slow model thinks (bugs B131), 120 s else.
    """

    base_url: HttpUrl
    model: str
    api: Literal["openai-chat", "anthropic-messages"] = "openai-chat"
    api_key: KeyRef | None = None
    timeout: Period | None = None
    context_tokens: Many | None = None
    max_output_tokens: Many = 8192
    price: LlmPrice | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmBudget:
    """What all model calls together may spend, per run and per UTC day."""

    tokens_per_run: Count = 600_000  # Hermes' reviewer: 600,000 input tokens
    tokens_per_day: Count = 2_000_000
    usd_per_run: Money = 5.0
    usd_per_day: Money = 10.0
    calls_per_run: Count = 200
    wall_per_run: Period = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    """Either *primary* or *from_host* is set. *concurrency* None: 1 for a loopback server, 4 else."""

    primary: LlmEndpoint | None = None
    fallback: LlmEndpoint | None = None
    from_host: Literal["hermes"] | None = None
    concurrency: Many | None = None
    budget: LlmBudget = field(default_factory=LlmBudget)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """How the daemon notices change. Events only make the periodic rescan come sooner."""

    watch: Literal["auto", "events", "poll"] = "auto"
    rescan_every: Period = timedelta(seconds=60)
    nice: Niceness = 10  # as in the units under systemd/: the agents and their user come first
    io: Literal["idle", "low", "normal"] = (
        "low"  # idle can starve on a busy disk; the first scan of much is idle anyway
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Figures for Prometheus. *listen*: `127.0.0.1:9464`, `[::1]:9464` or `unix:/path`; None: nobody may ask."""

    listen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSettings:
    """How a person hears of a run that changed something. *command*: its arguments, the summary on standard input."""

    log: bool = True
    file: AnyPath | None = None
    chars: NoticeChars = 120  # what a shell's prompt has room for beside the rest
    command: tuple[str, ...] | None = None
    timeout: ShortPeriod = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings:
    """How many runs' folders are kept."""

    keep: Many = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings:
    """How many backups are kept, how large they may be together, and whether runs make them."""

    before_run: bool = True  # where nothing changed since the newest one, none is made
    keep: Many = 10  # Hermes' own curator: 5, each a whole copy
    max_size: SizeAtLeast = ByteSize(1024**3)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoSettings:
    """How many actions are remembered with what it takes to undo them."""

    keep: Many = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """
    The whole configuration.

    *origin* is the file it came from, or None for the embedded defaults with whatever hosts were found. *fingerprint*
    is a hash over all values that matter to a run, as `run.json` shows it.
    """

    state_dir: AnyPath
    mode: Mode = Mode.GUARDED
    sources: tuple[SourceSettings, ...] = ()
    libraries: tuple[LibrarySettings, ...] = ()
    gates: GateSettings = field(default_factory=GateSettings)
    lifecycle: LifecycleSettings = field(default_factory=LifecycleSettings)
    distill: DistilSettings = field(default_factory=DistilSettings)
    umbrella: UmbrellaSettings = field(default_factory=UmbrellaSettings)
    prompts: AnyPath | None = None
    llm: LlmSettings | None = None
    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    reports: ReportSettings = field(default_factory=ReportSettings)
    backups: BackupSettings = field(default_factory=BackupSettings)
    undo: UndoSettings = field(default_factory=UndoSettings)
    notices: NoticeSettings = field(default_factory=NoticeSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    origin: str | None = field(default=None, metadata=NO_SETTING)
    fingerprint: str = field(default="", metadata=NO_SETTING)
