"""What the tests of reports share: planted claims, reports of outcomes, a strict HTML parser."""

from __future__ import annotations

import html.parser

from proofs_check.claim import Claim, Sides
from proofs_check.point import Point
from proofs_check.report import Report
from proofs_check.verdict import Kind, Mark

FAST = ("prop1.short", "thm1.large", "thm2.start", "thm2.sum")
NASTY = "a < b & |x|_2^(n-1) >= 100% of #1 {c} \\ ~ $5 `code` *bold* [link](x) 'q' \"r\""


def planted(**given) -> Claim:
    """A claim made for a test."""
    settings = {
        "id": "planted",
        "title": NASTY,
        "mark": Mark.OURS,
        "kind": Kind.UPPER_BOUND,
        "source": "derivation",
        "sides": lambda point: Sides(1, 2),
        "grid": lambda level: [Point(d=3), Point(d=5)],
        **given,
    }
    return Claim(**settings)


def reported(*outcomes, **given) -> Report:
    order = [outcome.claim.id for outcome in outcomes]
    return Report.of(outcomes, given.pop("order", order), "quick", 768, **given)


class Balanced(html.parser.HTMLParser):
    """Tags still open, and every address the document refers to."""

    VOID = frozenset({"meta", "br", "path", "use", "circle", "link", "img"})

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.addresses += [v for k, v in attrs if k in ("href", "src")]
        self.ids += [v for k, v in attrs if k == "id"]

    def handle_startendtag(self, tag, attrs):
        self.addresses += [v for k, v in attrs if k in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
