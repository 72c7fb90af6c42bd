"""`popgd crossvalidate`: every route to the same numbers, or training on words against exact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .cli_output import one_sentence, show_json, table, versions

__all__ = ["EXITS", "register"]

EXITS = {"agree": 0, "disagree": 1, "undecided": 3}
"""Exit status by verdict."""


def _option(*names: str, help: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(crossvalidate)


@one_sentence
def crossvalidate(
    d: Annotated[
        str | None, _option("--d", "-d", help="Alphabet size; 50, or the file's.", metavar="INT")
    ] = None,
    gap: Annotated[str, _option("--gap", help="Attention weight of the target; 0.")] = "0",
    beta_target: Annotated[str, _option("--beta-target", help="Its output weight; 0.")] = "0",
    beta_background: Annotated[
        str, _option("--beta-background", help="Output weight of every other symbol; 0.")
    ] = "0",
    weights: Annotated[
        Path | None, _option("--weights", "-w", help="Weights (npz, csv, json).", metavar="FILE")
    ] = None,
    random: Annotated[
        float | None,
        _option("--random", help="Random weights N(0, NUMBER^2), drawn from --seed."),
    ] = None,
    plan: Annotated[
        str | None,
        _option("--plan", help="Compare training by this plan from these weights.", metavar="PLAN"),
    ] = None,
    samples: Annotated[
        list[str] | None,
        _option(
            "--samples",
            "-n",
            help="Words to draw; 1e5, and 0 for none. With --plan words of each run, two sizes or "
            "more: -n 1000 -n 4000 -n 16000.",
            metavar="INT",
        ),
    ] = None,
    seed: Annotated[int, _option("--seed", help="Of all random numbers; 0.", metavar="INT")] = 0,
    seeds: Annotated[
        int | None, _option("--seeds", help="With --plan: runs at each size; 150.", metavar="INT")
    ] = None,
    lr: Annotated[str | None, _option("--lr", help="With --plan: learning rate; 1.")] = None,
    lr_attention: Annotated[
        str | None, _option("--lr-attention", help="With --plan: that of the attention; as --lr.")
    ] = None,
    prediction: Annotated[
        str | None,
        _option(
            "--prediction",
            help="With --plan: exact, sampled, or auto (default): exact where it applies.",
            metavar="NAME",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        _option(
            "--reference",
            help="With --plan: words that a sampled prediction averages over; 30000.",
            metavar="INT",
        ),
    ] = None,
    level: Annotated[
        str, _option("--level", help="Probability of a false verdict, chosen beforehand; 0.01.")
    ] = "0.01",
    resolution: Annotated[
        str | None,
        _option("--resolution", help="Relative difference worth finding; 0.05, with --plan 0.5."),
    ] = None,
    correction: Annotated[
        str | None,
        _option("--correction", help="holm (default) or bonferroni.", metavar="NAME"),
    ] = None,
    gradients: Annotated[
        bool | None,
        typer.Option(
            "--gradients/--no-gradients",
            help="Compare gradients too, which is the default.",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        str, _option("--language", "-l", help="occurrence (default), or, and.", metavar="NAME")
    ] = "occurrence",
    target: Annotated[
        list[int] | None,
        _option("--target", help="Target symbol; repeatable; 0, or 0 and 1.", metavar="INT"),
    ] = None,
    p: Annotated[
        str | None,
        _option("--p", help="Stopping probability of words; that which balances the labels."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Do all routes to the same numbers agree?

    Integral, series, symmetric and proved enclosure against each other, and drawn words against
    them. With --plan: training on drawn words against training on the population, all along the
    plan.

    Exit status 0: they agree; 1: they disagree; 3: undecided, and the words or seeds it would take.

    Example: popgd crossvalidate -d 50 --gap 2 --beta-target 1.5

    Example: popgd crossvalidate -d 10 --plan "O(1x) -> A(1x, lr=200) -> O(60x)"

    Example: popgd crossvalidate -d 8 -l or --random 0.1 --plan "J(20x)"
    """
    from . import _validate as check
    from . import cli_inputs as inputs

    training = {"seeds": seeds, "lr": lr, "lr-attention": lr_attention}
    training |= {"prediction": prediction, "reference": reference}
    point = {"correction": correction, "gradients": gradients}
    _unused(point if plan is not None else training, plan)
    given = None if weights is None else inputs.read_weights(weights)
    size = 50 if given is None else len(given.alpha)
    if d is not None:
        size = int(d) if d.isdigit() else inputs.number("d", d)
    task = inputs.task(language, check.integer("d", size, 2, 10**7), target or [], p)
    scalars = (gap, beta_target, beta_background)
    inputs.one_start(given, scalars)
    common = {"level": inputs.number("level", level), "rng": check.integer("seed", seed, 0)}
    if resolution is not None:
        common["resolution"] = inputs.number("resolution", resolution)
    sizes = [check.integer("samples", inputs.number("samples", text), 0) for text in samples or []]
    if plan is not None:
        if sizes:
            common["n"] = sizes
        start: Any = inputs.state(*scalars)
        if given is not None or random is not None:
            start = _weights(task, scalars, given, random, seed)
            start = start if start[-1] is not None else start[:2]
        report = _training(task, plan, start, common | _of_training(training))
    else:
        if len(sizes) > 1:
            raise check.refuse("samples", sizes, "is one number", "repeat it only with --plan")
        if sizes:
            common["n"] = sizes[0]
        at = _weights(task, scalars, given, random, seed)
        report = _routes(task, at, common | {k: v for k, v in point.items() if v is not None})
    answer, show = report
    if json:
        show_json(answer | {"task": repr(task), "seed": seed, "versions": versions()})
    else:
        show()
    raise typer.Exit(EXITS[answer["verdict"]])


def _unused(options: dict[str, Any], plan: str | None) -> None:
    """Refuse options that would change nothing."""
    from . import _validate as check

    for name, value in options.items():
        if value is not None:
            where = "without --plan" if plan is None else "with --plan"
            option = "no-gradients" if value is False else name
            remedy = f"leave out --{option}" + (" or add --plan" if plan is None else "")
            raise check.refuse(name, value, f"changes nothing {where}", remedy)


def _of_training(given: dict[str, Any]) -> dict[str, Any]:
    """Options of `cross_validate_training` from the command line's."""
    from . import cli_inputs as inputs

    lr = "1" if given["lr"] is None else given["lr"]
    out: dict[str, Any] = {"learning_rate": inputs.rates(lr, given["lr-attention"])}
    out |= {name: given[name] for name in ("seeds", "prediction") if given[name] is not None}
    if given["reference"] is not None:
        out["reference"] = inputs.number("reference", given["reference"])
    return out


def _weights(task: Any, scalars: Any, given: Any, random: float | None, seed: int) -> Any:
    import numpy as np

    from . import _validate as check
    from . import cli_inputs as inputs
    from .cli_risk import dense
    from .starts import random_start

    if given is not None:
        if random is not None:
            remedy = "pass one of them"
            raise check.refuse("random", random, "is one point, a file another", remedy)
        return given.floats()
    if random is None:
        return dense(task, inputs.state(*scalars))
    if not inputs.zero(scalars):
        raise check.refuse("random", random, "is one point, weights another", "pass one of them")
    random = check.real("random", random, 0.0, closed="left")
    # another stream than the words', which take the seed itself
    return random_start(task.d, random, rng=np.random.default_rng([seed, 1]))


def _routes(task: Any, at: Any, options: dict[str, Any]) -> Any:
    from .crossvalidate import cross_validate

    found = cross_validate(task, *at, **options)
    answer = {
        "verdict": found.verdict.value,
        "samples_needed": found.samples_needed,
        "routes": found.routes,
        "missing": found.missing,
        "risk": {r.route: float(r.value[0]) for r in found.readings},
        "error": {r.route: float(r.error[0]) for r in found.readings},
        "proved": {r.route: bool(r.proved[0]) for r in found.readings},
        "pulls": found.pulls[0],
        "n": found.n,
        "standard_error": float(found.standard_error[0]),
        "empirical_standard_error": float(found.empirical_standard_error[0]),
        "empirical_error": float(found.empirical_error[0]),
        "p_value": found.p_values[0],
        "quantities": len(found.quantities),
        "worst_exact": found.worst(),
        "verdicts": {v: sum(x.value == v for x in found.verdicts) for v in EXITS},
        "level": found.level,
        "resolution": found.resolution,
        "correction": found.correction,
    }
    return answer, lambda: _show_routes(task, found)


def _show_routes(task: Any, found: Any) -> None:
    columns = ["route", "risk", "error", "", *(f"pull {name}" for name in found.routes)]
    rows = []
    for i, r in enumerate(found.readings):
        sort = "proved" if r.proved[0] else "estimated"
        if r.route == "sample":
            sort = f"{100 * (1 - found.level):g} % interval"
        pulls = ["" if i == j else f"{x:.2f}" for j, x in enumerate(found.pulls[0, i])]
        rows.append([r.route, f"{r.value[0]:.15g}", f"{r.error[0]:.2g}", sort, *pulls])
    pull = "pull: row less column, over the sum of their errors"
    pull += "; against the sample, over its standard error" if found.n else ""
    note = [_verdict(found), pull]
    note += [f"no {route}: {why}" for route, why in found.missing.items()]
    if found.n:
        exact, own = found.standard_error[0], found.empirical_standard_error[0]
        note.append(
            f"{found.n} words: standard error {exact:.4g} from the exact variance, {own:.4g} from "
            f"the words'; interval from the words' own variance: {found.empirical_error[0]:.2g}"
        )
    if len(found.quantities) > 1:
        quantity, left, right, pull = found.worst()
        note.append(
            f"{len(found.quantities)} quantities (risk and gradients); the largest pull between "
            f"exact routes is {pull:.2f}, {left} and {right} on {quantity}"
        )
    table(f"{type(task).__name__}, d = {task.d}", columns, rows, "\n".join(note))


def _verdict(found: Any) -> str:
    text = f"{found.verdict.value} at level {found.level:g} ({found.correction})"
    if found.verdict.value == "undecided":
        return f"{text}: a relative difference of {found.resolution:g} could hide; " + (
            "no number of words would show it"
            if found.samples_needed is None
            else f"{found.samples_needed:.3g} words would decide"
        )
    if found.verdict.value == "disagree":
        bad = [q for q, v in zip(found.quantities, found.verdicts) if v.value == "disagree"]
        return f"{text}: {', '.join(bad[:5])}{', ...' if len(bad) > 5 else ''}"
    return text


def _training(task: Any, plan: str, start: Any, options: dict[str, Any]) -> Any:
    from .crossvalidate_training import cross_validate_training

    found = cross_validate_training(task, plan, start, **options)
    names = list(found.observed)
    answer = {
        "verdict": found.verdict.value,
        "reason": found.reason,
        "seeds_needed": found.seeds_needed,
        "plan": found.population.plan,
        "n": found.n,
        "seeds": found.seeds,
        "step": found.step,
        "observed": {name: found.observed[name] for name in names},
        "prediction": found.prediction,
        "reference": found.reference,
        "predicted_for_one_word": {name: found.predicted[name] for name in names},
        "predicted_error": {name: found.predicted_error[name] for name in names},
        "slopes": {name: found.slopes[name] for name in names},
        "p_values": found.p_values,
        "level": found.level,
        "resolution": found.resolution,
    }
    return _finite(answer), lambda: _show_training(task, found)


def _finite(answer: dict[str, Any]) -> dict[str, Any]:
    answer["slopes"] = {
        name: None if slope != slope else [slope, half]
        for name, (slope, half) in answer["slopes"].items()
    }
    return answer


def _kind(found: Any) -> str:
    if found.prediction == "exact":
        return "which is exact"
    sizes = [x for x, (slope, _) in found.slopes.items() if slope == slope]
    worst = max((found.predicted_error[x][-1] / found.predicted[x][-1] for x in sizes), default=0.0)
    return f"sampled from {found.reference} words to {100 * worst:.2g} % (one standard error)"


def _show_training(task: Any, found: Any) -> None:
    columns = ["deviation of", *(f"n = {n}" for n in found.n), "slope in n"]
    rows = []
    for name in found.observed:
        slope, half = found.slopes[name]
        ratios = found.ratio(name)[:, -1]
        seen = found.observed[name][:, -1]
        if slope == slope:
            cells = [f"{x:.3g} ({r:.2f})" for x, r in zip(seen, ratios)]
            rows.append([name, *cells, f"{slope:.3f} ± {half:.3f}"])
        else:
            rows.append([name, *("rounding" if x else "0" for x in seen), ""])
    why = f": {found.reason}" if found.reason else ""
    if found.seeds_needed is not None:
        why += f"; {found.seeds_needed} seeds would decide"
    note = (
        f"{found.verdict.value} at level {found.level:g} (holm){why}\n"
        f"root mean square over {found.seeds} seeds after the last step; in brackets over the "
        f"linearised prediction, {_kind(found)}; slope -0.5 is expected"
    )
    table(f"{type(task).__name__}, d = {task.d}: {found.population.plan}", columns, rows, note)
