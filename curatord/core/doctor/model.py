"""Whether the configured models can be asked: reachable, key accepted, an answer in the asked form, price known."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, Level, check_of
from curatord.core.model import Fault, FaultKind
from curatord.core.words import plural

__all__ = ["ModelFacts", "check_model", "no_model"]

_MEND = {
    FaultKind.CONFIG: "correct the `llm` section, and put the key where it is looked for",
    FaultKind.AUTH: "is it the right key for this server? Put it where it is looked for",
    FaultKind.PAYMENT: "top up the account, or name another model",
    FaultKind.MODEL_UNKNOWN: "check `base_url` and `model`; the URL that was tried is named here",
    FaultKind.REDIRECT: "set `base_url` to the address the server redirects to, if you trust it",
    FaultKind.NETWORK: "start the server, or correct `base_url`; the URL that was tried is named here",
    FaultKind.TIMEOUT: "raise `timeout` if the model is slow, or look whether the server hangs",
    FaultKind.RATE: "wait, or lower `concurrency`",
    FaultKind.BAD_REPLY: "is it an endpoint of that `api`? What it answered is none of its replies",
    FaultKind.TOO_LONG: "lower `context_tokens` to what the server really has",
    FaultKind.PROMPT_CUT: "lower `context_tokens`, or give the server a larger context",
}
_NO_FORM = frozenset({FaultKind.INVALID, FaultKind.NO_ANSWER, FaultKind.CUT, FaultKind.TOO_LARGE, FaultKind.REFUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """
    One model, and what came of one small question.

    Attributes:
        role: `primary` or `fallback`.
        name, api, url: As they are asked; empty where that cannot be told.
        key: Where its key is looked for, in words, never what it is; None: it needs none.
        unasked: Why it was not asked, or None.
        fault: What went wrong, or None.
        hint: What its error says can be done.
        repaired: It answered in the asked form only when told what was wrong.
        seconds, tokens: What the question took.
        price_known: Prices are configured, or the server told the cost, or it is a server of this machine.
        breaker: Runs leave it alone for now, in words, or None.
        bounds: Its timeouts and limits in words.
        notes: What is better known.
    """

    role: str
    name: str = ""
    api: str = ""
    url: str = ""
    key: str | None = None
    unasked: str | None = None
    fault: Fault | None = None
    hint: str = ""
    repaired: bool = False
    seconds: float = 0.0
    tokens: int = 0
    price_known: bool = False
    breaker: str | None = None
    bounds: str = ""
    notes: Sequence[str] = ()


def no_model() -> Check:
    """Return that none is configured, which is fine."""
    words = "none is configured: rules work without one; distilling and merging by a model are left out"
    return check_of("model", words, [])


def check_model(model: ModelFacts) -> Check:
    """Return whether *model* can be asked."""
    name = "model" if model.role == "primary" else f"model {model.role}"
    summary = f"{model.name} at {model.url}" if model.url else ""
    issues: list[Issue] = []
    if model.fault is not None:
        issues.append(_fault(model.fault, model))
    elif model.unasked is not None:
        issues.append(Issue(level="note", words=f"not asked: {model.unasked}"))
    else:
        summary += f": answered in the asked form in {model.seconds:.1f} s with {plural(model.tokens, 'token')}"
        if model.repaired:
            words = "its first answer was not in the asked form, the second was: each question may cost twice"
            issues.append(
                Issue(level="warning", words=words, mend="a model that holds to a JSON schema does better here")
            )
    if not model.price_known and model.fault is None:
        words = "its price is unknown, so no budget in dollars holds (budgets in tokens and calls do)"
        mend = "set `price` (dollars per million tokens; 0 for a model of your own)"
        issues.append(Issue(level="note", words=words, mend=mend))
    if model.breaker is not None:
        words = f"runs by the daemon leave it alone for now: {model.breaker}"
        issues.append(
            Issue(level="warning", words=words, mend="curatord run asks all the same, and ends this if it works")
        )
    issues += [Issue(level="note", words=words) for words in model.notes]
    key = f"key: {model.key}" if model.key else "no key"
    details = [detail for detail in (f"api {model.api}, {key}" if model.api else key, model.bounds) if detail]
    return check_of(name, summary, issues, details)


def _fault(fault: Fault, model: ModelFacts) -> Issue:
    if fault.kind in _NO_FORM:
        words = f"it can be reached and takes the key, but gave no answer in the asked form: {fault.message}"
        return Issue(level="failure", words=words, mend="name a model that can answer with one JSON object")
    level: Level = "warning" if fault.kind in (FaultKind.RATE, FaultKind.DEFERRED) else "failure"
    where = f" (looked for in {model.key})" if fault.kind is FaultKind.AUTH and model.key else ""
    told = f"; the server says: {fault.words}" if fault.words and fault.words not in fault.message else ""
    mend = _MEND.get(fault.kind) or model.hint or "try again later; the runs do so too"
    return Issue(level=level, words=f"{fault.kind.value}: {fault.message}{where}{told}", mend=mend)
