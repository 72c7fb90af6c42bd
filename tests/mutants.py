"""Planted errors in the package, each with the test that has to notice it."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """Replace `old`, which occurs once in the package's `file`, by `new`; `test` must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


VALUES = "test_population.py::test_value_and_gradients_are_those_of_enumerated_words"
DIGITS = "test_population.py::test_every_digit_of_value_and_gradient_in_hard_cases"
PARTS = "test_population.py::test_each_part_of_the_bound_is_needed"
WORDS = "test_words.py::test_differences_keep_every_digit_when_a_group_is_rare"

MUTANTS = [
    # word laws
    Mutant(
        "geometric: order of the derivative off by one",
        "words.py",
        "out.append(out[-1] * (step * n))",
        "out.append(out[-1] * (step * (n - 1)))",
        WORDS,
    ),
    Mutant(
        "geometric: probability of the next length",
        "words.py",
        "self.p * self._survive(np.maximum(m, 1) - 1)",
        "self.p * self._survive(np.maximum(m, 1))",
        "test_words.py::test_lengths_are_those_of_the_definition",
    ),
    Mutant(
        "Poisson: a factor of the rate lost",
        "words.py",
        "return [base * rate**n for n in range(1, order + 1)]",
        "return [base * rate ** (n - 1) for n in range(1, order + 1)]",
        WORDS,
    ),
    Mutant(
        "uniform law: the longest word dropped",
        "words.py",
        "return range(1, self.longest + 1)",
        "return range(1, max(self.longest, 2))",
        "test_words.py::test_lengths_are_those_of_the_definition",
    ),
    Mutant(
        "divided difference of 1/D from the wrong subset",
        "words.py",
        "term = step * parts[mask ^ (1 << i)]",
        "term = step * parts[0]",
        WORDS,
    ),
    Mutant(
        "product of differences over the intersection",
        "differences.py",
        "out[r | q] = _add(out[r | q], a * b)",
        "out[r & q] = _add(out[r & q], a * b)",
        VALUES,
    ),
    # moments, cells and quadrature
    Mutant(
        "second moment without the squares",
        "moments.py",
        "return (self.flat * self.linear + self.phi[0] * self.square).top",
        "return (self.flat * self.linear).top",
        VALUES,
    ),
    Mutant(
        "no centring of the gradient",
        "moments.py",
        "sums.centre = np.where(better, centre, sums.centre)",
        "sums.centre = np.where(better, 0.0, sums.centre)",
        DIGITS + "[gap 40, (1.9, .01)-3]",
    ),
    Mutant(
        "gradient between targets with the wrong sign",
        "moments.py",
        "apart = (s.v - r.v) * r.weight",
        "apart = (r.v - s.v) * r.weight",
        VALUES,
    ),
    Mutant(
        "window ends where the strongest symbol has faded",
        "cells.py",
        "high = math.log(right_cut(tolerance, orders[1])) - self.floor",
        "high = math.log(right_cut(tolerance, orders[1])) - self.top",
        DIGITS + "[gap -40-3]",
    ),
    Mutant(
        "bound of the left cut shrunk tenfold",
        "cells.py",
        "(self.facts.second * one * one + self.facts.first * two) / 2",
        "(self.facts.second * one * one + self.facts.first * two) / 20",
        PARTS + "[start]",
    ),
    Mutant(
        "discretisation bound halved",
        "quadrature.py",
        "total += 2 * math.exp(log_square / 2 - math.lgamma(k))",
        "total += math.exp(log_square / 2 - math.lgamma(k))",
        "test_quadrature.py::test_discretisation_bound_holds_and_is_nearly_attained",
    ),
    Mutant(
        "right tail without its last term",
        "quadrature.py",
        "sum(x**j / math.factorial(j) for j in range(k))",
        "sum(x**j / math.factorial(j) for j in range(k - 1))",
        "test_quadrature.py::test_right_tail_is_the_incomplete_gamma_function",
    ),
    Mutant(
        "an underflow has no error",
        "rounding.py",
        "TINY = 5e-324",
        "TINY = 0.0",
        "test_rounding.py::test_an_underflow_is_not_lost",
    ),
    # the integral route
    Mutant(
        "residual of the wrong class",
        "integral.py",
        "given if piece.sign > 0 else 2.0 + given",
        "given",
        "test_population.py::test_the_residual_that_beta_holds_changes_nothing",
    ),
    Mutant(
        "error bound without the discretisation",
        "integral.py",
        "signed.error + (delta + cut.right) * total + cut.left",
        "signed.error + cut.right * total + cut.left",
        PARTS + "[step]",
    ),
    Mutant(
        "noise: blocks of insertions with a power too many",
        "noise.py",
        "self._y ** (a + b - 1)",
        "self._y ** (a + b + 1)",
        "test_noise.py::test_every_entry_is_that_of_enumerated_words",
    ),
    # symbol-count sums
    Mutant(
        "series: counts of rare symbols off by one",
        "count_law.py",
        "mantissa * (m - (k - 1)) * (odds / k)",
        "mantissa * (m - k) * (odds / k)",
        "test_series.py::test_count_probabilities_sum_to_one",
    ),
    Mutant(
        "series: length tail of the next word",
        "count_law.py",
        "log_mass, mean = longest * rate, 1.0 / law.p",
        "log_mass, mean = (longest + 1) * rate, 1.0 / law.p",
        "test_series.py::test_tail_bounds_hold_and_are_sharp",
    ),
    Mutant(
        "series: tail of the risk shrunk tenfold",
        "count_risk.py",
        "bounded(p.loss_bounds, self.total.left_out[mask])",
        "0.1 * bounded(p.loss_bounds, self.total.left_out[mask])",
        "test_series.py::test_coarse_sums_are_honest",
    ),
    Mutant(
        "series: residuals of positive words around 1",
        "symbol_groups.py",
        "shift = 2 if label == 1 else 0",
        "shift = 1 if label == 1 else 0",
        "test_series.py::test_equal_output_weights_have_a_closed_form",
    ),
    # the symmetric reduction
    Mutant(
        "symmetric: M11 is not all of its two parts",
        "symmetric_moments.py",
        "return m20, m21 + g[:, 0] * m12, m02, m21, m12",
        "return m20, m21, m02, m21, m12",
        "test_symmetric_moments.py::test_closed_forms_at_gap_zero",
    ),
    Mutant(
        "symmetric: odd powers of a negative factor lose their sign",
        "symmetric_descent.py",
        "np.where(odd, -size, size), np.where(odd, -size - 1, moved)",
        "size, moved",
        "test_symmetric_phases.py::test_t_steps_are_t_single_steps",
    ),
    Mutant(
        "symmetric: attention step of the background with the wrong sign",
        "symmetric_phases.py",
        "state.alpha_background + push / (q.d - 1)",
        "state.alpha_background - push / (q.d - 1)",
        "test_symmetric_phases.py::test_phase_two_from_zero_in_closed_form",
    ),
    Mutant(
        "symmetric: negative words count double",
        "symmetric_quadratic.py",
        "+ 0.25 * beta * beta",
        "+ 0.5 * beta * beta",
        "test_symmetric.py::test_risk_and_gradient_over_every_word",
    ),
    # enclosures
    Mutant(
        "certified: discretisation bound halved",
        "certified_quadrature.py",
        "return 2 * first / (1 - second / first)",
        "return first / (1 - second / first)",
        "test_certified_bounds.py::test_the_discretisation_bound_is_the_gamma_series",
    ),
    Mutant(
        "certified: left cut of the risk shrunk tenfold",
        "certified_integral.py",
        "left = magnitude((phi2 * w1 * w1 + phi1 * w2) * tails.t0**2 / 2)",
        "left = magnitude((phi2 * w1 * w1 + phi1 * w2) * tails.t0**2 / 20)",
        "test_certified_bounds.py::test_negative_control_a_left_cut_shrunk_tenfold_is_caught",
    ),
    Mutant(
        "certified: right tail of the moments left out",
        "certified_symmetric.py",
        "relative = magnitude(discretisation(k, m) + right_tail(k, end))",
        "relative = magnitude(discretisation(k, m))",
        "test_certified_symmetric.py::test_a_short_window_widens_the_moments_by_what_it_drops",
    ),
    Mutant(
        "certified: line through the powers of the wrong eigenvalue",
        "certified_symmetric.py",
        "shift = -shift if target_first else shift",
        "shift = shift if target_first else -shift",
        "test_certified_symmetric.py::"
        "test_three_phases_agree_with_steps_along_the_general_gradient",
    ),
    # training
    Mutant(
        "training: the residual stays behind",
        "descent.py",
        "residual = residual - total.take(self.targets, axis=-1)",
        "residual = residual + total.take(self.targets, axis=-1)",
        "test_training.py::test_a_plan_on_the_exact_risk_is_the_hand_written_loop",
    ),
    Mutant(
        "plans: joint phases train attention only",
        "plans.py",
        '"j": "J", "joint": "J"',
        '"j": "J", "joint": "A"',
        "test_plans.py::test_the_plan_language",
    ),
    Mutant(
        "plans: an exponent of a count is not read",
        "plans.py",
        r'digits = self.take(r"[\d_]+(\.\d*)?([eE]\+?\d+)?")',
        r'digits = self.take(r"[\d_]+(\.\d*)?")',
        "test_plans.py::test_the_plan_language",
    ),
]
