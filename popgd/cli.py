"""`popgd`: exact risks, moments and training runs from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import cli_crossvalidate, cli_reproduce, cli_sweeps
from .cli_output import facts, one_sentence, show_json, show_versions, table, versions

__all__ = ["app", "main"]

HELP = """Exact population risk and training of a shallow attention model.

Numbers may be expressions: --gap "ln(4*50/0.01)", --beta-target 1/3. Every command takes --json.
"""

app = typer.Typer(
    help=HELP,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _whole(text: str) -> int:
    """A whole number, also written 1e12."""
    try:
        size = float(text)
        if size == int(size):
            return int(text) if text.lstrip("-").isdigit() else int(size)
    except (ValueError, OverflowError):
        pass
    # late: the first command shall not wait for what most do not need
    from .cli_inputs import text_number
    from .errors import BadParameter

    try:
        exact = getattr(text_number("d", text), "fraction", None)
    except BadParameter:
        exact = None
    if exact is not None and exact.denominator == 1:
        return int(exact)
    raise typer.BadParameter(f"{text!r} is no whole number; write for example 50 or 1e12.")


def _option(*names: str, help: str, metavar: str | None = "NUMBER", **more: Any) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


D = Annotated[
    int | None,
    _option("--d", "-d", help="Alphabet size; 50, or the file's.", parser=_whole),
]
Language = Annotated[
    str, _option("--language", "-l", help="occurrence (default), or, and.", metavar="NAME")
]
Target = Annotated[
    list[int] | None, _option("--target", help="Target symbol, from 0; repeatable.", metavar="INT")
]
P = Annotated[
    str | None, _option("--p", help="Stopping probability of words; balances labels by default.")
]
Gap = Annotated[str, _option("--gap", help="Attention weight, target minus background; 0.")]
BetaTarget = Annotated[str, _option("--beta-target", help="Output weight of the target; 0.")]
BetaBackground = Annotated[
    str, _option("--beta-background", help="Output weight of every other symbol; 0.")
]
WeightsFile = Annotated[
    Path | None,
    _option("--weights", "-w", help="Weights from an npz, csv or json file.", metavar="FILE"),
]
Digits = Annotated[
    int | None, _option("--digits", help="Proved bounds, to so many digits.", metavar="INT")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
DEFAULT_D = 50


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_versions, is_eager=True, help="Show versions."),
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """The `popgd` command."""
    app()


def _problem(
    weights: Path | None, d: int | None, language: str, target: list[int] | None, p: str | None
) -> tuple[Any, Any]:
    """The task, and the file's weights or None."""
    from . import cli_inputs as inputs

    given = None if weights is None else inputs.read_weights(weights)
    size = d if d is not None else DEFAULT_D if given is None else len(given.alpha)
    return inputs.task(language, size, target or [], p), given


@app.command()
@one_sentence
def risk(
    d: D = None,
    gap: Gap = "0",
    beta_target: BetaTarget = "0",
    beta_background: BetaBackground = "0",
    weights: WeightsFile = None,
    language: Language = "occurrence",
    target: Target = None,
    p: P = None,
    digits: Digits = None,
    json: Json = False,
) -> None:
    """Exact risk at given weights.

    Example: popgd risk -d 50 --gap 12 --beta-target 2
    """
    from . import cli_inputs as inputs
    from . import cli_risk

    task, given = _problem(weights, d, language, target, p)
    scalars = (gap, beta_target, beta_background)
    inputs.one_start(given, scalars)
    if digits is not None:
        answer, note = cli_risk.enclosed(task, scalars, given, digits)
    elif given is not None:
        answer, note = cli_risk.general(task, *given.floats())
    else:
        answer, note = cli_risk.scalar(task, inputs.state(*scalars))
    if json:
        show_json({"task": repr(task), **answer, "versions": versions()})
        return
    shown = {name: value for name, value in answer.items() if getattr(value, "ndim", 0) == 0}
    facts(f"{type(task).__name__}, d = {task.d}", shown, note)


@app.command()
@one_sentence
def moments(
    d: D = None,
    gap: Annotated[
        list[str] | None, _option("--gap", help="Attention gap; repeatable, default 0.")
    ] = None,
    scaled: Annotated[
        bool, typer.Option("--scaled", help="Times e^(b gap), which cannot underflow.")
    ] = False,
    digits: Digits = None,
    json: Json = False,
) -> None:
    """Moments of the target's attention.

    M_ab = E_+[gamma_s^a (1 - gamma_s)^b] at symmetric weights and balanced lengths.

    Example: popgd moments -d 50 --gap 0 --gap 10 --gap 40
    """
    from . import cli_risk

    size, gaps = DEFAULT_D if d is None else d, gap or ["0"]
    rows = [cli_risk.moments(size, one, scaled, digits) for one in gaps]
    if json:
        show_json({"d": size, "scaled": scaled, "moments": rows, "versions": versions()})
        return
    note = cli_risk.moments_note(size, gaps, rows, digits)
    title = f"{'Scaled moments' if scaled else 'Moments'}, d = {size}"
    names = [name for name in rows[0] if name != "gap"]
    columns = ["gap", *(row["gap"] for row in rows)]
    table(title, columns, [[name, *(row[name] for row in rows)] for name in names], note)


@app.command()
@one_sentence
def train(
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help='As in "O(1x) -> A(1x, lr=5e4) -> O(200x)".'),
    ],
    d: D = None,
    lr: Annotated[str, _option("--lr", help="Learning rate of phases without their own; 1.")] = "1",
    lr_attention: Annotated[
        str | None, _option("--lr-attention", help="The same for the attention.")
    ] = None,
    until: Annotated[str | None, _option("--until", help="Stop at this risk.")] = None,
    gap: Gap = "0",
    beta_target: BetaTarget = "0",
    beta_background: BetaBackground = "0",
    weights: WeightsFile = None,
    random: Annotated[
        float | None, _option("--random", help="Start from random weights of this deviation.")
    ] = None,
    samples: Annotated[
        int | None,
        _option("--samples", help="Train on so many drawn words.", parser=_whole, metavar="INT"),
    ] = None,
    seed: Annotated[int, _option("--seed", help="Of start and words; 0.", metavar="INT")] = 0,
    record_every: Annotated[
        str, _option("--record-every", help="Steps between records, log (default) or none.")
    ] = "log",
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Report accuracies too.")] = False,
    save: Annotated[
        Path | None, _option("--save", help="Save the trajectory (npz).", metavar="FILE")
    ] = None,
    language: Language = "occurrence",
    target: Target = None,
    p: P = None,
    json: Json = False,
) -> None:
    """Train by a plan.

    Phases: O trains the output, A the attention, J both. O(3x) is three steps, O runs until the
    risk settles, O(inf) is the exact minimum.

    Example: popgd train "O(1x) -> A(1x, lr=5e4) -> O(200x)" -d 50
    """
    from . import _validate as check
    from . import cli_inputs as inputs
    from . import cli_train

    seed = check.integer("seed", seed, 0)
    if save is not None:
        inputs.output_file("save", save)
    task, given = _problem(weights, d, language, target, p)
    scalars = (gap, beta_target, beta_background)
    inputs.one_start(given, scalars)
    start = cli_train.start(task, given, scalars)
    if random is not None:
        start = cli_train.random(task, random, seed, start)
    rates = inputs.rates(lr, lr_attention)
    limit = None if until is None else inputs.number("until", until)
    run = cli_train.run(
        task, plan, start, rates, samples, seed,
        accuracy=accuracy, record_every=cli_train.spacing(record_every), until=limit,
    )  # fmt: skip
    if save is not None:
        run.save(save)
    if json:
        show_json(cli_train.as_data(run, samples, seed) | {"versions": versions()})
    else:
        cli_train.show(task, run, samples)
    if run.stop_reason == "diverged":
        raise typer.Exit(1)


cli_crossvalidate.register(app)
cli_reproduce.register(app)
cli_sweeps.register(app)
