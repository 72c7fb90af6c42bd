"""The report as one HTML file: no script, no external resource, plots as inline SVG."""

from __future__ import annotations

import html

from .notation import as_html
from .outcome import Outcome
from .report import Report, finding, versions
from .report_plot import Plot, constants, slack, symbols
from .report_text import (
    constant,
    found_head,
    found_rows,
    heading,
    margin,
    place,
    share_failing,
    summary,
    tally,
)
from .verdict import Verdict

__all__ = ["render"]

_COLOUR = {
    Verdict.PROVED: "#00664b",
    Verdict.HOLDS: "#1f6f54",
    Verdict.HOLDS_TO: "#1f6f54",
    Verdict.NOT_FALSIFIED: "#005a9c",
    Verdict.FAILS: "#a63a00",
    Verdict.UNDECIDED: "#725400",
    Verdict.ERROR: "#7a1f7a",
    Verdict.OUTSIDE: "#555555",
}
_STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 16px; max-width: 1180px; background: #fff; color: #1a1a1a;
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6em; margin: 0 0 .2em } h2 { font-size: 1.25em; margin: 2em 0 .4em;
  border-bottom: 2px solid #1a1a1a } h3 { font: bold 1em ui-monospace, "DejaVu Sans Mono",
  monospace; margin: 0; display: inline }
a { color: #005a9c } p { margin: .3em 0 }
article { border: 1px solid #ccc; border-radius: 6px; padding: 12px; margin: 12px 0 }
article.step { margin-left: 20px }
.verdict { color: #fff; border-radius: 4px; padding: 1px 8px; font-size: .9em;
  white-space: nowrap; margin-right: 6px; display: inline-block }
.mark { color: #555; font-size: .9em } .statement { font-size: 1.05em }
.finding { border-left: 4px solid #a63a00; padding-left: 10px }
dl { margin: .4em 0 0; display: grid; grid-template-columns: 6.5em minmax(0, 1fr);
  gap: 2px 10px; font-size: .9em } dt { color: #555 } dd { margin: 0 }
nav ul { list-style: none; margin: 0 0 .6em; padding: 0; display: flex; flex-wrap: wrap;
  gap: 4px 14px; font-size: .9em }
nav li::before { content: "■ "; color: var(--verdict) }
figure { margin: 10px 0 0; max-width: 430px } svg { width: 100%; height: auto; display: block }
figcaption { font-size: .85em } .legend span { display: inline-block; margin-right: 12px }
.legend svg { width: 14px; height: 14px; display: inline-block; vertical-align: -2px }
text { font: 12.5px system-ui, "DejaVu Sans", sans-serif; fill: #1a1a1a }
.axis { stroke: #1a1a1a; fill: none } .grid { stroke: #e2e2e2 }
.zero { stroke: #1a1a1a; stroke-dasharray: 4 3 }
.ring { fill: none; stroke: #1a1a1a; stroke-width: 1.6 }
.found { grid-column: 1 / -1; margin-top: 8px; font-size: .9em } .found summary { cursor: pointer }
.found table { border-collapse: collapse; width: 100% } .found .name { display: none }
.found th, .found td { text-align: left; vertical-align: top; padding: 3px 12px 3px 0;
  border-bottom: 1px solid #e2e2e2; font-variant-numeric: tabular-nums; overflow-wrap: normal }
.found td:last-child { white-space: nowrap; padding-right: 0 } .found th { color: #555 }
pre { overflow-x: auto; background: #f4f4f4; padding: 8px; font-size: .8em }
@media (min-width: 900px) { article { display: grid; gap: 0 24px;
  grid-template-columns: minmax(0, 1fr) 400px } figure { margin: 0 0 10px } }
@media (max-width: 500px) { body { padding: 10px } article.step { margin-left: 0 }
  dl { grid-template-columns: minmax(0, 1fr) } dd { margin-bottom: 4px }
  .found thead { display: none } .found tr { display: block; padding: 6px 0;
  border-bottom: 1px solid #ccc } .found td { display: block; border: 0; padding: 1px 0 }
  .found .name { display: inline; color: #555 } .found .name::after { content: ":" } }
"""


def render(report: Report) -> str:
    """The report as an HTML document."""
    sections = "\n".join(_section(name, outcomes) for name, outcomes in report.groups())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Claims judged</title><style>{_STYLE}</style></head>\n<body>\n{symbols()}"
        f"{_top(report)}\n{sections}\n</body></html>\n"
    )


def _top(report: Report) -> str:
    chips = "".join(f"{_chip(v, f'{n} {v.value}')}" for v, n in tally(report))
    built = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        f"<header><h1>Claims judged</h1><p>{html.escape(summary(report))}</p><p>{chips}</p>"
        f'<p class="mark">Largest precision {report.cap} bits; {html.escape(built)}. Every '
        "verdict is the sign of an enclosure or a symbolic proof. A margin is relative, positive "
        "where the claim holds; a ring marks the worst or sharp point.</p></header>"
        f"<nav>{''.join(_contents(name, some) for name, some in report.groups())}</nav>"
    )


def _contents(name: str, outcomes: list[Outcome]) -> str:
    links = "".join(
        f'<li style="--verdict:{_COLOUR[o.verdict]}"><a href="#{_anchor(o)}">{o.claim.id}</a> '
        f"{html.escape(o.verdict.value)}</li>"
        for o in outcomes
    )
    return f"<p><strong>{as_html(heading(name))}</strong></p><ul>{links}</ul>"


def _section(name: str, outcomes: list[Outcome]) -> str:
    articles = "\n".join(map(_article, outcomes))
    return f"<section><h2>{as_html(heading(name))}</h2>\n{articles}</section>"


def _anchor(outcome: Outcome) -> str:
    return html.escape(outcome.claim.id, quote=True)


def _chip(verdict: Verdict, text: str) -> str:
    return f'<span class="verdict" style="background:{_COLOUR[verdict]}">{as_html(text)}</span>'


def _article(outcome: Outcome) -> str:
    claim, known = outcome.claim, finding(outcome)
    step = known is None and claim.id != claim.statement
    said = outcome.text
    if outcome.verdict is Verdict.FAILS:
        said = f"fails at {share_failing(outcome)}"
    parts = [
        f"<div>{_chip(outcome.verdict, said)} <h3>{html.escape(claim.id)}</h3> "
        f'<span class="mark">{claim.mark.value}, {claim.kind.value}; '
        f"{as_html(claim.source)}</span></div>",
        f'<p class="statement">{as_html(claim.title)}</p>',
    ]
    if known is not None:
        parts.append(f'<p class="finding">{as_html(known.consequence)}</p>')
    parts.append(_facts(outcome))
    if outcome.traceback:
        parts.append(f"<pre>{html.escape(outcome.traceback)}</pre>")
    plots = "".join(_figure(plot) for plot in (slack(outcome), constants(outcome)) if plot)
    kind = ' class="step"' if step else ""
    body = f"<div>{''.join(parts)}</div><div>{plots}</div>{_found(outcome)}"
    return f'<article id="{_anchor(outcome)}"{kind}>{body}</article>'


def _facts(outcome: Outcome) -> str:
    worst, sharp = outcome.worst, outcome.sharp
    rows = []
    if worst is not None and margin(outcome):
        rows.append(("worst", f"{margin(outcome)} {place(worst.point)}"))
    if worst is not None and worst.note:
        rows.append(("missing", worst.note))
    if sharp is not None:
        rows.append(("sharp", f"{constant(outcome)} {place(sharp.point)}"))
    rows.append(("coverage", outcome.coverage.text))
    rows.append(("CPU", f"{outcome.seconds:.1f} seconds"))
    return "<dl>" + "".join(f"<dt>{a}</dt><dd>{as_html(b)}</dd>" for a, b in rows) + "</dl>"


def _found(outcome: Outcome) -> str:
    """What searches found at each dimension; on narrow screens each row is a list."""
    if not outcome.rows or outcome.sharp is None:
        return ""
    names = [as_html(name) for name in found_head(outcome)]
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td><span class="name">{name}</span> <span>{as_html(text)}</span></td>'
            for name, text in zip(names, row, strict=True)
        )
        + "</tr>"
        for row in found_rows(outcome)
    )
    title = f"{as_html(outcome.sharp.name)}, by dimension"
    return (
        f'<details class="found"><summary>{title}</summary>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _figure(plot: Plot) -> str:
    swatches = "".join(
        f'<span><svg viewBox="-6 -6 12 12" aria-hidden="true"><use href="#m{i}"/></svg> '
        f"{as_html(label) if len(label) > 1 else html.escape(label)}</span>"
        for i, label in enumerate(plot.series)
    )
    legend = f'<div class="legend">{as_html(plot.by)}: {swatches}</div>' if plot.series else ""
    return f"<figure><figcaption>{as_html(plot.caption)}</figcaption>{plot.svg}{legend}</figure>"
