"""
Which model Hermes' own files name for a curator, and what of that can be used here.

The order is Hermes' own: the slot `auxiliary.curator` where provider and model are both set, else the deprecated
`curator.auxiliary`, else the main model. Key and URL of the slot count only where the slot wins. What Hermes would
find out by trying (provider `auto`), what needs a login instead of a key, and APIs that we do not speak are said to
be unusable. A provider's key from `.env` goes to that provider's host and to no other.

The table of providers holds what their own documentation and Hermes' name alike; a provider that is not in it needs a
`base_url` in Hermes' configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from curatord.core.cheap import dataclass, field
from curatord.core.endpoint import Api, Secret, is_loopback

__all__ = ["HostModel", "NotUsable", "choose", "parse_env"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostModel:
    """What the host's files name. *where* says which section; *notes* what of it is left out here, and why."""

    api: Api
    provider: str
    base_url: str
    model: str
    key: Secret | None
    where: str
    timeout: timedelta | None = None
    context_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUsable:
    """Why the host's choice cannot be used here, and what would help."""

    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Provider:
    url: str
    keys: tuple[str, ...] = ()
    api: Api = "openai-chat"
    url_variable: str = ""


PROVIDERS: Mapping[str, _Provider] = {
    "openrouter": _Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "openai-api": _Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": _Provider(
        "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "anthropic-messages", "ANTHROPIC_BASE_URL"
    ),
    "gemini": _Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai", ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    ),
    "zai": _Provider(
        "https://api.z.ai/api/paas/v4", ("GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"), url_variable="GLM_BASE_URL"
    ),
    "kimi-coding": _Provider(
        "https://api.moonshot.ai/v1", ("KIMI_API_KEY", "KIMI_CODING_API_KEY"), url_variable="KIMI_BASE_URL"
    ),
    "kimi-coding-cn": _Provider("https://api.moonshot.cn/v1", ("KIMI_CN_API_KEY",)),
    "arcee": _Provider("https://api.arcee.ai/api/v1", ("ARCEEAI_API_KEY",), url_variable="ARCEE_BASE_URL"),
    "gmi": _Provider("https://api.gmi-serving.com/v1", ("GMI_API_KEY",), url_variable="GMI_BASE_URL"),
    "minimax": _Provider(
        "https://api.minimax.io/anthropic", ("MINIMAX_API_KEY",), "anthropic-messages", "MINIMAX_BASE_URL"
    ),
    "minimax-cn": _Provider(
        "https://api.minimaxi.com/anthropic", ("MINIMAX_CN_API_KEY",), "anthropic-messages", "MINIMAX_CN_BASE_URL"
    ),
    "alibaba": _Provider(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        url_variable="DASHSCOPE_BASE_URL",
    ),
    "deepseek": _Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), url_variable="DEEPSEEK_BASE_URL"),
    "xai": _Provider("https://api.x.ai/v1", ("XAI_API_KEY",), url_variable="XAI_BASE_URL"),
    "nvidia": _Provider("https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",), url_variable="NVIDIA_BASE_URL"),
    "ai-gateway": _Provider(
        "https://ai-gateway.vercel.sh/v1", ("AI_GATEWAY_API_KEY",), url_variable="AI_GATEWAY_BASE_URL"
    ),
    "huggingface": _Provider("https://router.huggingface.co/v1", ("HF_TOKEN",), url_variable="HF_BASE_URL"),
    "xiaomi": _Provider("https://api.xiaomimimo.com/v1", ("XIAOMI_API_KEY",), url_variable="XIAOMI_BASE_URL"),
    "ollama-cloud": _Provider("https://ollama.com/v1", ("OLLAMA_API_KEY",), url_variable="OLLAMA_BASE_URL"),
    "lmstudio": _Provider("http://127.0.0.1:1234/v1", ("LM_API_KEY",), url_variable="LM_BASE_URL"),
}
ALIASES = {
    alias: name
    for name, aliases in {
        "anthropic": "claude claude-code",
        "openai-api": "openai",
        "gemini": "google google-gemini",
        "zai": "glm z-ai z.ai zhipu",
        "kimi-coding": "kimi moonshot",
        "kimi-coding-cn": "kimi-cn moonshot-cn",
        "arcee": "arcee-ai arceeai",
        "huggingface": "hf",
        "alibaba": "dashscope qwen",
        "xiaomi": "mimo xiaomi-mimo",
        "xai": "grok x-ai",
        "nvidia": "nim",
        "ai-gateway": "vercel",
        "lmstudio": "lm-studio",
        "custom": "ollama vllm llamacpp llama.cpp llama-cpp sglang local",
    }.items()
    for alias in aliases.split()
}
LOGINS = frozenset(
    {
        "nous", "openai-codex", "codex", "qwen-oauth", "xai-oauth", "minimax-oauth", "google-gemini-cli", "copilot",
        "copilot-acp", "bedrock", "vertex",
    }
)  # fmt: skip
MODES: Mapping[str, Api] = {"chat_completions": "openai-chat", "anthropic_messages": "anthropic-messages"}
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
NAME_A_MODEL = "name a model in llm.primary instead of from_host"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """One section's words, before anything is made of them."""

    where: str
    provider: str
    model: str
    row: Mapping[str, Any]


def choose(config: Mapping[str, Any], environment: Mapping[str, str]) -> HostModel | NotUsable:
    """
    Return the model that Hermes would use for its curator, or why it cannot be used here.

    Args:
        config: `config.yaml`, decoded.
        environment: `.env`, decoded. The environment of our own process is not Hermes'.
    """
    slot = _slot(config)
    if isinstance(slot, NotUsable):
        return slot
    wanted = slot.provider.lower().strip()
    if wanted in {"", "auto"} and not _text(slot.row, "base_url"):
        return NotUsable(
            reason=f"{slot.where} leaves the provider to Hermes ({wanted or 'none named'}), which finds it by trying",
            hint=f"set provider and model there, or {NAME_A_MODEL}",
        )
    if not slot.model:
        return NotUsable(reason=f"{slot.where} names no model", hint=NAME_A_MODEL)
    name = ALIASES.get(wanted, wanted)
    if name in LOGINS:
        return NotUsable(
            reason=f"{slot.where} uses {slot.provider}, which is a login and not a key; it stays with Hermes",
            hint=NAME_A_MODEL,
        )
    if name in {"", "auto", "custom"}:
        return _custom(slot, slot.row, environment, "custom")
    row = _named(config, wanted)
    if row is not None:
        return _custom(slot, {**row, **{k: v for k, v in slot.row.items() if v}}, environment, wanted)
    known = PROVIDERS.get(name)
    if known is None:
        if _text(slot.row, "base_url"):
            return _custom(slot, slot.row, environment, name)
        return NotUsable(
            reason=f"{slot.where} uses the provider {slot.provider}, whose address is not known here", hint=NAME_A_MODEL
        )
    return _provided(slot, name, known, environment)


def _slot(config: Mapping[str, Any]) -> _Slot | NotUsable:
    """Return the section that wins."""
    main = _main(config)
    for where, row in (
        ("auxiliary.curator", _section(config, "auxiliary", "curator")),
        ("curator.auxiliary (deprecated)", _section(config, "curator", "auxiliary")),
    ):
        provider, model = _text(row, "provider"), _text(row, "model")
        if not (provider and model) or provider.lower() == "auto":
            continue
        if provider.lower() == "main":
            if main is None:
                return NotUsable(
                    reason=f"{where} points to the main model, and config.yaml names none", hint=NAME_A_MODEL
                )
            return _Slot(where=f"{where} -> model", provider=main.provider, model=model, row=main.row)
        return _Slot(where=where, provider=provider, model=model, row=row)
    return main or NotUsable(reason="Hermes' config.yaml names no model", hint=NAME_A_MODEL)


def _main(config: Mapping[str, Any]) -> _Slot | None:
    row = config.get("model")
    if isinstance(row, str) and row.strip():
        return _Slot(where="model", provider="", model=row.strip(), row={})
    if not isinstance(row, Mapping) or not row:
        return None
    return _Slot(
        where="model", provider=_text(row, "provider"), model=_text(row, "default") or _text(row, "model"), row=row
    )


def _named(config: Mapping[str, Any], wanted: str) -> Mapping[str, Any] | None:
    """Return the user's own provider of that name, from `custom_providers` (a list) or `providers` (by name)."""
    name = wanted.removeprefix("custom:")
    rows = config.get("custom_providers")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping) and _text(row, "name").lower().replace(" ", "-") == name:
            return row
    by_name = config.get("providers")
    if isinstance(by_name, Mapping):
        for key, row in by_name.items():
            if str(key).lower().replace(" ", "-") == name and isinstance(row, Mapping):
                return row
    return None


def _custom(slot: _Slot, row: Mapping[str, Any], environment: Mapping[str, str], name: str) -> HostModel | NotUsable:
    """Return an endpoint that the user named in Hermes' configuration himself; only its own key goes there."""
    url = next((_expand(_text(row, k), environment) for k in ("base_url", "api", "url") if _text(row, k)), "")
    if not url:
        return NotUsable(reason=f"{slot.where} uses the provider {name} without a base_url", hint=NAME_A_MODEL)
    key = _expand(_text(row, "api_key"), environment) or environment.get(_text(row, "key_env"), "").strip()
    path = urlsplit(url).path.rstrip("/")
    usual: Api = "anthropic-messages" if path.endswith(("/anthropic", "/anthropic/v1")) else "openai-chat"
    return _made(slot, row, name, url, key, usual)


def _provided(slot: _Slot, name: str, known: _Provider, environment: Mapping[str, str]) -> HostModel | NotUsable:
    """Return a provider of the table, with its key from the slot or from `.env`."""
    moved = environment.get(known.url_variable, "").strip() if known.url_variable else ""
    url = _expand(_text(slot.row, "base_url"), environment) or moved or known.url
    key = _expand(_text(slot.row, "api_key"), environment)
    if not key:
        usual = {urlsplit(known.url).hostname, urlsplit(moved).hostname if moved else None}
        host, own = urlsplit(url).hostname, urlsplit(known.url).hostname
        if host in usual:
            key = next((environment[n].strip() for n in known.keys if environment.get(n, "").strip()), "")
        elif not is_loopback(url):
            return NotUsable(
                reason=f"{slot.where} sends {name} to {host}, and its key in .env is for {own}",
                hint="put the key of that host beside its base_url",
            )
    if not key and not is_loopback(url):
        return NotUsable(
            reason=f"no key for {name}: none of {', '.join(known.keys)} is set in Hermes' .env",
            hint=NAME_A_MODEL,
        )
    return _made(slot, slot.row, name, url, key, known.api)


def _made(slot: _Slot, row: Mapping[str, Any], name: str, url: str, key: str, usual: Api) -> HostModel | NotUsable:
    mode = _text(row, "api_mode") or _text(row, "transport")
    if mode and mode.lower() not in MODES:
        return NotUsable(reason=f"{slot.where} speaks {mode}, which is not spoken here", hint=NAME_A_MODEL)
    if key.startswith("sk-ant-oat") or (name == "kimi-coding" and key.startswith("sk-kimi-")):
        return NotUsable(
            reason=f"the key of {name} is that of a login or a plan for its own tool, not an API key", hint=NAME_A_MODEL
        )
    extra = row.get("extra_body")
    notes = []
    if _text(row, "reasoning_effort"):
        notes.append("reasoning_effort is not passed on: servers differ in its name")
    return HostModel(
        api=MODES[mode.lower()] if mode else usual,
        provider=name,
        base_url=url,
        model=slot.model,
        key=Secret(key) if key else None,
        where=slot.where,
        timeout=_seconds(row.get("timeout")),
        context_tokens=_tokens(row.get("context_length")),
        extra_body=dict(extra) if isinstance(extra, Mapping) else {},
        notes=tuple(notes),
    )


def _section(config: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    node: Any = config
    for name in names:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """Return *text* with `${NAME}` filled in from *environment*; what is not there becomes empty."""
    return VARIABLE.sub(lambda m: environment.get(m[1], ""), text).strip()


def _seconds(value: Any) -> timedelta | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 86_400
    return timedelta(seconds=value) if usable else None


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 1024 <= value <= 100_000_000 else None


ENV_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$")


def parse_env(text: str) -> dict[str, str]:
    """Return the variables of a `.env` file's *text*; the last one of a name counts, comments and odd lines do not."""
    found = {}
    for line in text.lstrip("\ufeff").splitlines():
        match = ENV_LINE.match(line)
        if match is None:
            continue
        value = match[2].strip()
        if len(value) >= 2 and value[0] in "\"'" and value.find(value[0], 1) > 0:
            value = value[1 : value.find(value[0], 1)]
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].strip()
        found[match[1]] = value
    return found
