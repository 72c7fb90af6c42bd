"""What the commands answer to wrong calls: one sentence on stderr, exit code 2."""

from __future__ import annotations

import difflib
import math
from typing import Any

import typer

from popgd._validate import refuse

from . import collect

__all__ = ["alone", "refused", "refused_claim", "refused_value", "seconds"]

NEAREST = 3  # ids proposed for an unknown one


def refused(sentence: object) -> typer.Exit:
    """Print the sentence; callers raise what this returns."""
    typer.echo(f"error: {sentence}", err=True)
    return typer.Exit(2)


def refused_value(name: str, value: Any, rule: str, remedy: str) -> typer.Exit:
    """The same in the usual shape: name = value: rule; remedy."""
    return refused(refuse(name, value, rule, remedy))


def refused_claim(name: str, id: str, statements: bool = True) -> typer.Exit:
    """No claim has this id: propose the nearest ones."""
    claims = collect.by_id()
    known = list(claims)
    if statements:
        known += [claim.statement for claim in claims.values()]
    near = difflib.get_close_matches(id, dict.fromkeys(known), NEAREST, 0.5)
    noun = "claim or statement" if statements else "claim"
    firsts = dict.fromkeys(claim.statement for claim in claims.values())
    remedy = f"nearest: {', '.join(near)}" if near else f"statements: {', '.join(firsts)}"
    rule = f"no {noun} is called so"
    return refused_value(name, id, rule, f"{remedy} (all ids: proofs-check --json)")


def seconds(name: str, value: float | None) -> None:
    """Raise unless a time is absent or a positive number."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise refused_value(name, value, "must be a positive number of seconds", "pass one")


def alone(context: typer.Context) -> None:
    """Raise when options of the check itself precede a command, which would ignore them."""
    command = context.invoked_subcommand
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            option = max(parameter.opts, key=len)
            raise refused(
                f"{option}: stands before `{command}`, which would ignore it; leave it out, or "
                f"write it after `{command}` if `proofs-check {command} --help` has it."
            )
