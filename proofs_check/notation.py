"""Statements in plain ASCII, set as mathematics: Unicode with HTML tags, or LaTeX.

Claims are written once, in words any terminal shows ("gamma_s >= 2/(2 + eps)"). This splits them
into pieces that each format renders its own way.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["as_html", "as_latex", "escape_latex"]

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "eta": "η", "rho": "ρ",
    "mu": "μ",
}  # fmt: skip
_SIGNS = {
    "<=": ("≤", r"\le"), ">=": ("≥", r"\ge"), "->": ("→", r"\to"), "||": ("‖", r"\|"),
    "<": ("<", "<"), ">": (">", ">"), "|": ("|", "|"), "-": ("−", "-"),
    "infinity": ("∞", r"\infty"), "sqrt": ("√", r"\surd"),
}  # fmt: skip
_NAMES = "|".join(_GREEK)
_TOKEN = re.compile(
    r"(?P<decimal>\d+(?:\.\d+)?e[+-]?\d+)"
    # dalpha is d alpha
    rf"|(?P<greek>(?:(?<![A-Za-z])|(?<=(?<![A-Za-z])d))(?:{_NAMES})(?![a-z]))"
    # a minus unless it joins two words
    r"|(?P<sign><=|>=|->|\|\||<|>|\||\binfinity\b|\bsqrt(?=\()|-(?=[\d( ])|(?<![A-Za-z])-)"
    # a letter alone is a variable, unless it is the article
    r"|(?P<variable>(?<![A-Za-z'])(?:A(?=\()|[B-Zb-z])(?![A-Za-z]))"
    r"|(?P<script>[_^](?=[\w(+-]))"
    r"|(?P<text>.)",
    re.DOTALL,
)
_SCRIPT = re.compile(r"[+-]?(?:[A-Za-z]+|\d+)|[+-]")


@dataclass(frozen=True)
class _Format:
    """How one format writes the pieces."""

    text: Callable[[str], str]
    greek: Callable[[str, str, str], str]
    sign: Callable[[str], str]
    times: str
    variable: Callable[[str], str]
    script: Callable[[str, str], str]


def _split(text: str, form: _Format) -> str:
    return "".join(_pieces(text, form))


def _pieces(text: str, form: _Format) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        at, kind, piece = match.end(), match.lastgroup, match.group()
        if kind == "greek":
            number = re.compile(r"\d*").match(text, at)
            accent = "~" if text[number.end() : number.end() + 1] == "~" else ""  # type: ignore[union-attr]
            at = number.end() + len(accent)  # type: ignore[union-attr]
            yield form.greek(piece, number.group(), accent)  # type: ignore[union-attr]
        elif kind == "decimal":
            digits, power = piece.split("e")
            yield "" if digits == "1" else digits + form.times
            yield "10" + form.script("^", _split(str(int(power)), form))
        elif kind == "sign":
            yield form.sign(piece)
        elif kind == "variable":
            yield form.variable(piece)
        elif kind == "script":
            inner, at = _operand(text, at)
            yield form.script(piece, _split(inner, form))
        else:
            yield form.text(piece)


def _operand(text: str, at: int) -> tuple[str, int]:
    """What a sub- or superscript at `at` covers: a word, a number, or a bracket's inside."""
    if text.startswith("-(", at):
        inner, end = _operand(text, at + 1)
        return f"-({inner})", end
    if text[at] == "(":
        depth = 0
        for end in range(at, len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0:
                return text[at + 1 : end], end + 1
        return text[at:], len(text)
    match = _SCRIPT.match(text, at)
    end = match.end() if match else at + 1
    return text[at:end], end


def _html_greek(name: str, number: str, accent: str) -> str:
    tilde = "\N{COMBINING TILDE}" if accent else ""
    return _GREEK[name] + tilde + (f"<sub>{number}</sub>" if number else "")


def _html_script(mark: str, inner: str) -> str:
    tag = "sub" if mark == "_" else "sup"
    return f"<{tag}>{inner}</{tag}>"


_HTML = _Format(
    text=html.escape,
    greek=_html_greek,
    sign=lambda sign: html.escape(_SIGNS[sign][0]),
    times=" × ",
    variable=lambda letter: f"<i>{letter}</i>",
    script=_html_script,
)

_SPECIAL = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "*": r"${*}$", "/": r"/\allowbreak{}", "<": "$<$", ">": "$>$", "|": "$|$", "'": "${'}$",
    **{c: "\\" + c for c in "&%$#_{}"},
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Plain text as LaTeX text, every special character escaped."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def _latex_greek(name: str, number: str, accent: str) -> str:
    symbol = r"\varepsilon" if name == "eps" else f"\\{name}"
    symbol = rf"\tilde{{{symbol}}}" if accent else symbol
    return f"${symbol}_{{{number}}}$" if number else f"${symbol}$"


def _latex_script(mark: str, inner: str) -> str:
    return f"${mark}{{{_DOLLAR.sub('', inner)}}}$"


_DOLLAR = re.compile(r"(?<!\\)\$")


_LATEX = _Format(
    text=escape_latex,
    greek=_latex_greek,
    sign=lambda sign: f"${_SIGNS[sign][1]}$",
    times=r"$\times$",
    variable=lambda letter: f"${letter}$",
    script=_latex_script,
)


def as_html(text: str) -> str:
    """A statement as HTML: Greek letters, relations, <sub> and <sup>; safe to insert."""
    return _split(text, _HTML)


def as_latex(text: str) -> str:
    """A statement as LaTeX text with formulas in it."""
    # neighbouring formulas are one
    return re.sub(r"(?<!\\)\$\$", " ", _split(text, _LATEX))
