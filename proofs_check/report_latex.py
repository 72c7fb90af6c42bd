r"""The report as a LaTeX longtable: needs \usepackage{booktabs,longtable}, nothing else."""

from __future__ import annotations

from .notation import as_latex, escape_latex
from .outcome import Outcome
from .report import FINDINGS, Report, finding
from .report_text import constant, heading, margin, place, share_failing, summary
from .verdict import Verdict

__all__ = ["render"]

_WIDTHS = (".15", ".34", ".17", ".23")  # of the line; the rest is between the columns
_HEAD = r"\toprule claim & statement & verdict & worst margin; sharp constant\\ \midrule"


def render(report: Report) -> str:
    """The report as a LaTeX fragment, to be read by \\input."""
    columns = "".join(rf"p{{{width}\linewidth}}" for width in _WIDTHS)
    lines = [
        r"% needs \usepackage{booktabs,longtable}",
        r"\begingroup\footnotesize",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        rf"\caption{{{as_latex(summary(report))}}}\\",
        rf"{_HEAD}\endfirsthead",
        rf"{_HEAD}\endhead",
        r"\bottomrule\endlastfoot",
    ]
    for i, (name, outcomes) in enumerate(report.groups()):
        lines += [r"\addlinespace"] if i else []
        lines += [
            rf"\multicolumn{{4}}{{@{{}}p{{.95\linewidth}}@{{}}}}"
            rf"{{\bfseries {as_latex(heading(name))}}}\\*",
            *(_row(outcome, name == FINDINGS) for outcome in outcomes),
        ]
    return "\n".join([*lines, r"\end{longtable}", r"\endgroup", ""])


def _row(outcome: Outcome, with_consequence: bool) -> str:
    claim, known = outcome.claim, finding(outcome)
    statement = as_latex(claim.title)
    if with_consequence and known is not None:
        statement += rf"\newline \emph{{{as_latex(known.consequence)}}}"
    verdict = outcome.text
    if outcome.verdict is Verdict.FAILS:
        verdict = f"fails at {share_failing(outcome)}"
    cells = [
        _name(claim.id),
        statement,
        rf"{as_latex(verdict)}\newline ({claim.mark.value})",
        r"\newline ".join(_numbers(outcome)),
    ]
    return " & ".join(rf"\raggedright {cell}" for cell in cells) + r"\tabularnewline"


def _name(id: str) -> str:
    return rf"\texttt{{{escape_latex(id)}}}".replace(".", r".\allowbreak{}")


def _numbers(outcome: Outcome) -> list[str]:
    out = []
    if margin(outcome):
        assert outcome.worst is not None
        out.append(as_latex(f"{margin(outcome)} {place(outcome.worst.point)}"))
    if outcome.sharp is not None:
        out.append(as_latex(f"{constant(outcome)} {place(outcome.sharp.point)}"))
    return out
