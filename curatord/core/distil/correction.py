"""
Whether a user put the model right: one of the few signs, found for free, that a session may have taught something.

Only the beginning of a message is read, since that is where people say no. A miss costs nothing but a call that is not
made where nothing else speaks for it, a false hit one call; so the list is short and in several languages.
"""

from __future__ import annotations

import re

__all__ = ["corrects"]

READ_CHARS = 400

_START = re.compile(
    r"\A[\s\"'(*>-]{0,8}(?:no|nope|wrong|stop|wait|actually|don'?t|do not|not like that"
    r"|nein|falsch|nicht so|halt|stopp|non|faux|arr[eê]te|incorrecto|para|n[aã]o|errado|sbagliato|fermati|nee|fout"
    r"|нет|неверно|не так|стой)\b",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(
    r"\b(?:that(?:'s| is| was) (?:wrong|not (?:right|what|how|it))"
    r"|you (?:should(?:n'?t| not)? have|forgot|missed|broke|ignored|keep)|i (?:told|asked) you|as i said"
    r"|use .{1,40} instead|instead of .{1,40}use|please (?:don'?t|do not|never|always)|from now on|next time"
    r"|das (?:ist|war) (?:falsch|nicht)|du (?:hast .{1,30} vergessen|sollst)|stattdessen|ab jetzt|n[aä]chstes mal"
    r"|c'est (?:faux|pas)|plut[oô]t que|la prochaine fois|d[eé]sormais"
    r"|eso (?:no|est[aá] mal)|en (?:vez|lugar) de|la pr[oó]xima vez|de ahora en adelante"
    r"|isso (?:n[aã]o|est[aá] errado)|da pr[oó]xima vez|ao inv[eé]s|invece di|la prossima volta"
    r"|в следующий раз|вместо этого|это (?:не|неправильно))\b",
    re.IGNORECASE,
)
_UNSPACED = re.compile(
    "不对|不是这样|错了|别这样|不要这样|应该用|以后都|下次|改用|違う|違います|そうじゃな|間違|じゃなくて|次回|今後は"
    "|아니야|아니요|틀렸|말고|다음부터|다음에는"
)


def corrects(text: str) -> bool:
    """Return whether a user's *text* corrects what was done or said before it."""
    head = text[:READ_CHARS]
    return bool(_START.search(head) or _ANYWHERE.search(head) or (not head.isascii() and _UNSPACED.search(head)))
