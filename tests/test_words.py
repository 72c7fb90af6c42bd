"""Length laws: generating function, derivatives, subset differences, sampler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from strategies import length_laws

from popgd import BadParameter, FixedLength, Geometric, Poisson, UniformLength, Words
from popgd.differences import Occupancy

RELATIVE = 1e-12
"""Differences are sums of positive terms: only rounding, times the word length, is allowed."""

LAWS = [
    Geometric(0.02),
    Geometric(1.0),
    Geometric(0.7),
    Poisson(0.3),
    Poisson(200.0),
    FixedLength(1),
]
LAWS += [FixedLength(7), FixedLength(1000), UniformLength(1), UniformLength(30)]


def derivative(law, u, n):
    """The n-th derivative of Phi at 60 digits, from the definition of the law."""
    if isinstance(law, Geometric):
        p = mpf(law.exact_p.numerator) / law.exact_p.denominator
        return mp.factorial(n) * p * (1 - p) ** (n - 1) / (1 - (1 - p) * u) ** (n + 1)
    if isinstance(law, Poisson):
        rate = mpf(law.exact_rate.numerator) / law.exact_rate.denominator
        return rate**n * mp.exp(rate * u) / mp.expm1(rate)
    return mp.fsum(mp.ff(k, n) * u ** (k - n) for k in law.lengths if k >= n) / len(law.lengths)


def alternating(law, base, steps, n):
    """The top subset difference by inclusion-exclusion at 60 digits."""
    total = mpf(0)
    for mask in range(2 ** len(steps)):
        u = base + sum(x for i, x in enumerate(steps) if mask >> i & 1)
        total += (-1) ** (len(steps) - bin(mask).count("1")) * derivative(law, u, n)
    return total


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("groups", [0, 1, 2, 3])
@pytest.mark.parametrize("left", [0.3, 1e-9, 0.999999])
def test_differences_keep_every_digit_when_a_group_is_rare(law, groups, left):
    steps = [x * left for x in (1e-3, 1e-14, 0.2)[:groups]]
    with mp.workdps(80):
        missing = [
            mpf(left) - sum(mpf(x) for i, x in enumerate(steps) if mask >> i & 1)
            for mask in range(2**groups)
        ]
        base = 1 - mpf(left)
        at = Occupancy(
            np.array([float(base)]),
            tuple(np.array([x]) for x in steps),
            tuple(np.array([float(x)]) for x in missing),
        )
        for n, value in enumerate(law.derivatives(at, 3), start=1):
            truth = alternating(law, base, [mpf(x) for x in steps], n)
            top = value.top
            got = 0.0 if top is None else float(np.asarray(top).reshape(-1)[0])
            assert got == pytest.approx(float(truth), rel=RELATIVE, abs=1e-290)


@given(length_laws())
def test_probabilities_add_up(law):
    k = np.arange(1, 200)
    assert law.pmf(0) == 0
    assert law.tail(0) == pytest.approx(1, rel=1e-12)
    total = law.pmf(k).sum() + law.tail(199)
    assert total == pytest.approx(1, rel=1e-9)


def test_lengths_are_those_of_the_definition():
    assert list(FixedLength(4).lengths) == [4]
    assert list(UniformLength(4).lengths) == [1, 2, 3, 4]
    assert Geometric(0.25).pmf([0, 1, 2]).tolist() == [0.0, 0.25, 0.1875]
    assert (UniformLength(4).mean, FixedLength(4).mean, Geometric(0.25).mean) == (2.5, 4.0, 4.0)
    # conditioned on at least one symbol
    assert Poisson(1.0).pmf(1) == pytest.approx(1 / (np.e - 1), rel=1e-14)


@given(length_laws(), st.integers(0, 2**32 - 1))
def test_the_sampler_has_the_mean_of_the_law(law, seed):
    draws = law.sample(4000, np.random.default_rng(seed))
    assert draws.dtype == np.int64 or draws.dtype.kind == "i"
    assert draws.min() >= 1
    variance = law.factorial_moment(2) + law.mean - law.mean**2
    six_sigma = 6 * np.sqrt(max(variance, 0) / 4000)
    assert abs(draws.mean() - law.mean) <= six_sigma + 1e-9


def test_a_fraction_is_kept_exactly():
    from fractions import Fraction

    assert Geometric(Fraction(1, 49)).exact_p == Fraction(1, 49)
    assert Geometric(1 / 49).exact_p != Fraction(1, 49)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Geometric(0.0), "p = 0.0: must lie in (0, 1]"),
        (lambda: Geometric(1.5), "p = 1.5"),
        (lambda: Geometric(float("nan")), "is not a number"),
        (lambda: Geometric(True), "must be a real number"),
        (lambda: Geometric("0.5"), "must be a real number"),
        (lambda: Poisson(0), "rate = 0"),
        (lambda: Poisson(np.inf), "rate = inf"),
        (lambda: FixedLength(0), "length = 0: must be in [1, 1000000]"),
        (lambda: FixedLength(2.5), "must be an integer"),
        (lambda: FixedLength(True), "a bool is not an integer here"),
        (lambda: UniformLength(10**6), "longest = 1000000"),
        (lambda: Words(0.5), "must be a length law"),
        (lambda: Words(Geometric(0.5), [0.5, 0.6]), "probabilities must sum to 1"),
        (lambda: Words(Geometric(0.5), [1.0, 0.0]), "every entry must lie in (0, 1]"),
        (lambda: Words(Geometric(0.5), [[0.5, 0.5]]), "must be a vector of d >= 2 entries"),
    ],
)
def test_malformed_laws_are_refused_in_a_sentence(call, words):
    with pytest.raises(BadParameter) as caught:
        call()
    assert words in str(caught.value)
    assert ";" in str(caught.value)
