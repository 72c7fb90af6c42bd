"""Training plans: which layer takes how many gradient steps, in which order.

A plan is written as the paper writes it, ``"O(1x) -> A(1x) -> O(200x)"``:

==============  ==================================================================
``O``           the output layer (beta); also ``output``
``A``           the attention layer (alpha); also ``attention``
``J``           both layers at every step; also ``joint``
``O(200x)``     200 gradient steps (the ``x`` may be left out; ``1e6x`` is a number too)
``O``           steps until convergence, by the rule of `popgd.train`
``O(inf)``      the exact minimum over beta, by the objective's ``minimize_output``
``O(1x, lr=5)`` its own learning rate; phases without one take `popgd.train`'s
``->``          then; ``→`` is the same
==============  ==================================================================
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import _validate as check
from .errors import BadParameter

__all__ = ["Phase", "Plan"]

LAYERS = {"o": "O", "output": "O", "a": "A", "attention": "A", "j": "J", "joint": "J"}
EXAMPLE = '"O(1x) -> A(1x) -> O(200x, lr=0.5)"'


@dataclass(frozen=True)
class Phase:
    """One phase of a plan.

    Parameters
    ----------
    layer : str
        "O" or "output", "A" or "attention", "J" or "joint"; case does not matter.
    steps : int, inf or None
        Number of gradient steps, >= 0. None: until convergence (the rule of `popgd.train`).
        ``math.inf``, output layer only: the exact minimum over beta.
    learning_rate : float or callable, optional
        Step size > 0, or a function of the step's number within the phase (0, 1, ...).
        None: the learning rate given to `popgd.train`.

    Raises
    ------
    BadParameter
        When a layer is unknown, a count is no count, or a learning rate is not positive.
    """

    layer: str
    steps: int | float | None = None
    learning_rate: float | Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        layer = LAYERS.get(self.layer.lower()) if isinstance(self.layer, str) else None
        if layer is None:
            raise check.refuse(
                "layer",
                self.layer,
                "is no layer",
                "choose 'O' (output), 'A' (attention), 'J' (joint)",
            )
        object.__setattr__(self, "layer", layer)
        object.__setattr__(self, "steps", _steps(self.steps, layer))
        object.__setattr__(self, "learning_rate", _rate(self.learning_rate))
        if self.steps == math.inf and self.learning_rate is not None:
            raise check.refuse(
                "learning_rate", self.learning_rate, "an exact minimum takes no steps",
                "leave it out, or give a number of steps",
            )  # fmt: skip

    @property
    def exact(self) -> bool:
        """Whether the phase is the exact minimum over beta."""
        return self.steps == math.inf

    @property
    def moves(self) -> str:
        """The layers that move: "O", "A" or "AO"."""
        return "AO" if self.layer == "J" else self.layer

    def to_string(self) -> str:
        """The phase in the plan language; a callable rate is shown by its name.

        >>> Phase("output", 200, 0.5).to_string()
        'O(200x, lr=0.5)'
        """
        count = [] if self.steps is None else ["inf" if self.exact else f"{self.steps}x"]
        rate = self.learning_rate
        if rate is not None:
            shown = getattr(rate, "__name__", "schedule") if callable(rate) else _number(rate)
            count.append(f"lr={shown}")
        return self.layer + (f"({', '.join(count)})" if count else "")

    __str__ = to_string


def _steps(value: Any, layer: str) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and value == math.inf:
        if layer != "O":
            raise check.refuse(
                "steps", value, "only an output phase has an exact minimum",
                f"write a number of steps, or '{layer}' alone for steps until convergence",
            )  # fmt: skip
        return math.inf
    remedy = "pass an integer >= 0, math.inf for the exact output minimum, None until convergence"
    return check.integer("steps", value, 0, remedy=remedy)


def _rate(value: Any) -> Any:
    if value is None or callable(value):
        return value
    return check.real(
        "learning_rate", value, 0.0, remedy="pass a finite step size > 0 or a function of the step"
    )


def _number(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


@dataclass(frozen=True)
class Plan:
    """A sequence of phases.

    Parameters
    ----------
    phases : sequence of Phase
        At least one. `Plan.parse` reads the plan language.

    Notes
    -----
    Plans concatenate with ``+`` and repeat with ``*``: ``10 * Plan.parse("O(1x) -> A(1x)")``.

    Examples
    --------
    >>> plan = Plan.parse("O(1x, lr=2.5) → A(1x) → joint(50x)")
    >>> plan.to_string()
    'O(1x, lr=2.5) -> A(1x) -> J(50x)'
    >>> len(plan), plan[1].layer
    (3, 'A')
    """

    phases: Sequence[Phase]

    def __post_init__(self) -> None:
        phases = self.phases
        if isinstance(phases, Phase):
            phases = (phases,)
        bad = isinstance(phases, str) or not isinstance(phases, Iterable)
        phases = () if bad else tuple(phases)
        if bad or not phases or not all(isinstance(p, Phase) for p in phases):
            raise check.refuse(
                "phases", self.phases, "must be a non-empty sequence of Phase",
                f"pass [Phase('O', 1), Phase('A', 1)], or use Plan.parse({EXAMPLE})",
            )  # fmt: skip
        object.__setattr__(self, "phases", phases)

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan such as ``"O(1x) -> A(1x, lr=5e4) -> O"``.

        Raises
        ------
        BadParameter
            With the position of the first character that does not fit and what would.
        """
        if not isinstance(text, str):
            raise check.refuse(
                "plan", text, "must be text or a Plan", f"pass for example {EXAMPLE}"
            )
        return cls(_Reader(text).plan())

    @classmethod
    def of(cls, plan: Any) -> Plan:
        """A Plan from a Plan, a Phase, a sequence of phases, or text."""
        if isinstance(plan, Plan):
            return plan
        if isinstance(plan, str):
            return cls.parse(plan)
        try:
            return cls(plan)
        except BadParameter:
            raise check.refuse(
                "plan", plan, "must be text, a Plan or phases", f"pass for example {EXAMPLE}"
            ) from None

    def to_string(self) -> str:
        """The plan in the plan language: `parse` gives it back when all rates are numbers."""
        return " -> ".join(phase.to_string() for phase in self.phases)

    __str__ = to_string

    def __len__(self) -> int:
        return len(self.phases)

    def __iter__(self) -> Iterator[Phase]:
        return iter(self.phases)

    def __getitem__(self, index: int) -> Phase:
        return self.phases[index]

    def __add__(self, other: Any) -> Plan:
        if not isinstance(other, (Plan, Phase, str)):
            return NotImplemented
        return Plan((*self.phases, *Plan.of(other).phases))

    def __mul__(self, times: int) -> Plan:
        return Plan(tuple(self.phases) * check.integer("times", times, 1))

    __rmul__ = __mul__


class _Reader:
    """A cursor over the text of a plan."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def fail(self, rule: str, remedy: str, at: int | None = None) -> BadParameter:
        if at is None:
            self.take("")
            at = self.at
        found = repr(self.text[at]) if at < len(self.text) else "the end"
        return check.refuse("plan", self.text, f"{rule}, found {found} at position {at}", remedy)

    def take(self, pattern: str) -> str | None:
        """Skip blanks, then consume `pattern` if it is there."""
        self.at += len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def plan(self) -> list[Phase]:
        phases = [self.phase()]
        while self.take("->|→"):
            phases.append(self.phase())
        self.take("")
        if self.at < len(self.text):
            raise self.fail("expected '->' between phases", f"write for example {EXAMPLE}")
        return phases

    def phase(self) -> Phase:
        self.take("")
        start = self.at
        name = self.take(r"[^\W\d_]+")
        if name is None or name.lower() not in LAYERS:
            raise self.fail(
                "expected a layer", "write O (output), A (attention) or J (joint) there", start
            )
        layer = LAYERS[name.lower()]
        steps, rate = self.arguments(layer) if self.take(r"\(") else (None, None)
        if steps == math.inf and (rate is not None or layer != "O"):
            raise self.fail(
                "'inf' is the exact minimum of an output phase without learning rate",
                "write O(inf), or a number of steps", start,
            )  # fmt: skip
        return Phase(layer, steps, rate)

    def arguments(self, layer: str) -> tuple[int | float | None, float | None]:
        steps: int | float | None = None
        rate: float | None = None
        while True:
            if rate is None and self.take(r"(lr|learning_rate)\s*="):
                rate = self.learning_rate()
            elif steps is None and rate is None:
                steps = self.count(layer)
            else:
                remedy = f"write steps, then a learning rate, as in {layer}(10x, lr=0.5)"
                raise self.fail("expected nothing more in these brackets", remedy)
            if self.take(r"\)"):
                return steps, rate
            if not self.take(","):
                raise self.fail("expected ',' or ')'", f"write for example {layer}(10x, lr=0.5)")

    def count(self, layer: str) -> int | float:
        remedy = f"write for example {layer}(10x), or {layer} alone for steps until convergence"
        self.take("")
        start = self.at
        if self.take("inf|∞"):
            return math.inf
        digits = self.take(r"[\d_]+(\.\d*)?([eE]\+?\d+)?")
        value = None if digits is None else _float(digits)
        if value is None or not math.isfinite(value) or value != int(value):
            raise self.fail("expected a whole number of steps or 'inf'", remedy, start)
        self.take("[x×]")
        assert digits is not None
        return int(digits) if digits.isdigit() else int(value)

    def learning_rate(self) -> float:
        self.take("")
        start = self.at
        word = self.take(r"[^,)\s]+")
        value = None if word is None else _float(word)
        if value is None or not 0 < value < math.inf:
            raise self.fail("expected a learning rate > 0", "write for example lr=2.5", start)
        return value


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
