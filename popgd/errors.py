"""Every error this package raises on purpose derives from `PopgdError`."""

from __future__ import annotations

__all__ = [
    "BadFile",
    "BadParameter",
    "Diverged",
    "NotAvailable",
    "PopgdError",
    "PrecisionExhausted",
]


class PopgdError(Exception):
    """Base of all errors raised on purpose."""


class BadParameter(PopgdError, ValueError):
    """An argument broke a rule; the message names parameter, value, rule and remedy."""


class BadFile(PopgdError, OSError):
    """A file could not be read or written; nothing that was there has been lost."""


class NotAvailable(PopgdError, NotImplementedError):
    """The question has no exact answer on this route; the message names another route."""


class PrecisionExhausted(PopgdError, ArithmeticError):
    """The wanted accuracy was not reached at the precision or node cap."""


class Diverged(PopgdError, ArithmeticError):
    """Gradient descent diverges at this learning rate, so there is no number to return."""
