"""Statements set as mathematics: HTML and LaTeX, with nothing left unescaped."""

from __future__ import annotations

import re

import pytest
from report_helpers import Balanced

from proofs_check import collect
from proofs_check.notation import as_html, as_latex


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beta~ >= 1", "β̃ ≥ 1"),
        ("||beta'-beta*||^2", "‖β&#x27;−β*‖<sup>2</sup>"),
        ("(1 - q/d)^-(m+1)", "(1 − <i>q</i>/<i>d</i>)<sup>−(<i>m</i>+1)</sup>"),
        ("e^(-T/(4d))", "<i>e</i><sup>−<i>T</i>/(4<i>d</i>)</sup>"),
        ("eta1 = 1e-08", "η<sub>1</sub> = 10<sup>−8</sup>"),
        ("4.2e-03", "4.2 × 10<sup>−3</sup>"),
        ("attention-only", "attention-only"),
        ("a lambda of meta beta-decay", "a lambda of meta β-decay"),
        ("dL/dalpha_i", "dL/dα<sub><i>i</i></sub>"),
        ("<script>", "&lt;script&gt;"),
        ("x^", "<i>x</i>^"),
        ("2^(a", "2<sup>(a</sup>"),
    ],
)
def test_statements_as_html(text, expected):
    assert as_html(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100% & #1_x {y} \\", r"100\% \& \#1$_{x}$ \{$y$\} \textbackslash{}"),
        ("beta_s <= 1e-8", r"$\beta _{s}$ $\le$ $10 ^{-8}$"),
        ("$5 ~", r"\$5 \textasciitilde{}"),
    ],
)
def test_statements_as_latex(text, expected):
    found = as_latex(text)
    assert found == expected or found.replace("$10 ^", "10$^") == expected.replace("$10 ^", "10$^")


@pytest.mark.parametrize("claim", list(collect.by_id().values()), ids=lambda c: c.id)
def test_every_statement_is_well_formed_in_every_format(claim):
    latex = as_latex(claim.title)
    bare = re.sub(r"\\[\\{}$&%#_]", "", latex)
    assert bare.count("$") % 2 == 0
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)[&%#]", latex)
    parser = Balanced()
    parser.feed(as_html(claim.title))
    assert parser.open == []
