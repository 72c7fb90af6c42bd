"""The words a claim is judged in: where it comes from, what it compares, what was found."""

from __future__ import annotations

from enum import Enum

__all__ = ["Kind", "Mark", "Verdict"]


class Mark(Enum):
    """Where the statement comes from."""

    PRINTED = "printed"
    RECONSTRUCTED = "reconstructed"
    OURS = "ours"


class Kind(Enum):
    """What a claim compares; it fixes the comparison, so there is no tolerance to choose."""

    IDENTITY = "identity"  # left = right
    UPPER_BOUND = "upper bound"  # left <= right
    LOWER_BOUND = "lower bound"  # left >= right
    EXISTS_CONSTANT = "exists-constant"  # left <= right once a constant is large enough
    RATE = "rate"  # left <= right along a sequence; the margin is ln(right/left)


class Verdict(Enum):
    """What was found. It has no truth value: `if verdict:` would read `fails` as true."""

    PROVED = "proved"
    HOLDS = "holds"
    HOLDS_TO = "holds to"
    NOT_FALSIFIED = "not falsified"
    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    FAILS = "fails"
    ERROR = "error"

    def __bool__(self) -> bool:
        raise TypeError("a Verdict has no truth value; compare it: verdict is Verdict.HOLDS")

    @property
    def key(self) -> str:
        """Its name among the counts of the JSON report."""
        return self.value.replace(" ", "_")
