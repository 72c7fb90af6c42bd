"""The symmetric moments of one d as piecewise polynomials in the gap: a million at a time."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from . import _validate as check
from .errors import PrecisionExhausted
from .symmetric_moments import Moments, scaled_moments, unscale

__all__ = ["MomentTable"]

PIECES_PER_UNIT = 8
DEGREE = 8
# beyond ln d + 37 the scaled moments equal their limits to e^-37 = 8.5e-17
MARGIN = 37.0
BLOCK = 8192
# what the build must show before the table is handed out
LIMIT = 1e-12


class MomentTable:
    """All five moments at one d, ready for very many gaps.

    Parameters
    ----------
    d : int
        Alphabet size, 2 <= d <= 10^15.

    Attributes
    ----------
    d : int
    error : float
        Largest relative difference to the direct scaled moments seen at the build, at both ends
        of every piece, where interpolation at Chebyshev points errs most.

    Raises
    ------
    BadParameter
        When d is out of range.
    PrecisionExhausted
        When the build finds a difference above 1e-12.

    Notes
    -----
    Pieces 1/8 wide of degree 8 on |gap| <= ln d + 37, limits outside; m20, m02, m21, m12 are
    interpolated and M11 = M21 + M12. Source: THEORY 5. Error: estimated at the build.
    """

    def __init__(self, d: int):
        self.d = check.integer("d", d, 2, 10**15)
        reach = math.ceil((math.log(self.d) + MARGIN) * PIECES_PER_UNIT)
        self._reach = reach / PIECES_PER_UNIT
        starts = np.arange(-reach, reach) / PIECES_PER_UNIT
        inner = self._fit(starts)
        ends = self._direct(np.array([-np.inf, np.inf]))
        # one constant piece at each end; layout (power, function, piece) for contiguous look-ups
        self._coefficients = np.zeros((DEGREE + 1, 4, 2 * reach + 2))
        self._coefficients[:, :, 1:-1] = inner
        self._coefficients[0, :, 0], self._coefficients[0, :, -1] = ends[:, 0], ends[:, 1]
        self.error = self._check(starts)

    def __repr__(self) -> str:
        return f"MomentTable(d={self.d}, error={self.error:.1e})"

    def __call__(self, gap: Any, scaled: bool = False) -> Moments:
        """The moments at `gap`; the same contract as `popgd.symmetric.moments(gap, d)`.

        Parameters
        ----------
        gap : array_like
            Logits, any real number or +-inf.
        scaled : bool
            As in `moments`.

        Returns
        -------
        Moments
            Floats, or arrays of the shape of `gap`.

        Notes
        -----
        Source: THEORY 5. Error: estimated, `error` plus a few rounding errors.
        """
        gaps = check.real_array("gap", gap)
        out = self.evaluate(gaps.ravel(), scaled)
        if gaps.ndim == 0:
            return Moments(*(float(m[0]) for m in out))
        return Moments(*(m.reshape(gaps.shape) for m in out))

    def evaluate(self, gap: np.ndarray, scaled: bool) -> Moments:
        """Kernel: flat float array in, arrays out."""
        out = np.empty((5, gap.size))
        for start in range(0, gap.size, BLOCK):
            part = slice(start, start + BLOCK)
            result = self._scaled(gap[part])
            out[:, part] = result if scaled else unscale(result, gap[part])
        return Moments(*out)

    def _scaled(self, gap: np.ndarray) -> Moments:
        inside = np.clip(gap, -self._reach - 0.5, self._reach + 0.5) * PIECES_PER_UNIT
        floor = np.floor(inside)
        piece = floor.astype(np.intp) + int(self._reach * PIECES_PER_UNIT) + 1
        np.clip(piece, 0, self._coefficients.shape[2] - 1, out=piece)
        m20, m02, m21, m12 = self._horner(piece, 2 * (inside - floor) - 1)
        g = np.exp(-np.abs(gap))
        m11 = np.where(gap < 0, m12 + g * m21, m21 + g * m12)
        return Moments(m20, m11, m02, m21, m12)

    def _horner(self, piece: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
        values = []
        for function in range(4):
            rows = self._coefficients[:, function]
            total = rows[DEGREE].take(piece)
            for power in range(DEGREE - 1, -1, -1):
                total *= t
                total += rows[power].take(piece)
            values.append(total)
        return values

    def _direct(self, gap: np.ndarray) -> np.ndarray:
        m = scaled_moments(gap, np.full(gap.size, float(self.d)))
        return np.stack([m.m20, m.m02, m.m21, m.m12])

    def _fit(self, starts: np.ndarray) -> np.ndarray:
        nodes, inverse = _chebyshev()
        gaps = starts[:, None] + (nodes + 1) / (2 * PIECES_PER_UNIT)
        values = self._direct(gaps.ravel()).reshape(4, *gaps.shape)
        # the middle node is t = 0: fitting differences to it keeps the rounding of the fit small
        middle = values[:, :, DEGREE // 2]
        fitted = np.einsum("pk,fik->pfi", inverse, values - middle[:, :, None])
        fitted[0] += middle
        return fitted

    def _check(self, starts: np.ndarray) -> float:
        """Both ends of every piece against direct values."""
        edges = np.append(starts, starts[-1] + 1 / PIECES_PER_UNIT)
        truth = self._direct(edges)
        # the two scalings meet at gap 0, so one direct value serves both neighbours
        pieces = np.arange(1, starts.size + 1)
        ends = np.ones(starts.size)
        left = np.stack(self._horner(pieces, -ends))
        right = np.stack(self._horner(pieces, ends))
        safe = np.where(truth > 0, truth, 1.0)
        error = max(
            float(np.max(np.abs(left - truth[:, :-1]) / safe[:, :-1])),
            float(np.max(np.abs(right - truth[:, 1:]) / safe[:, 1:])),
            float(
                np.max(
                    np.abs(truth[:, [0, -1]] - self._coefficients[0][:, [0, -1]]) / safe[:, [0, -1]]
                )
            ),
        )
        if not error <= LIMIT:
            raise PrecisionExhausted(
                f"the moment table at d = {self.d} is off by {error:.1e}, above {LIMIT:.0e}; "
                "use popgd.symmetric.moments, which needs no table."
            )
        return error


@functools.cache
def _chebyshev() -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points on [-1, 1] and the matrix from values there to monomial coefficients."""
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    return nodes, np.linalg.inv(np.vander(nodes, increasing=True))
