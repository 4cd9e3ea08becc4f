"""Runs of a program that was built: what a worker does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.real import result
from bench.real.measure import Measured, measure, prepare
from bench.real.recipe import read_recipe

RECIPE = "recipe.toml"
"""The file of a program's build that has its recipe."""


def run_program(found: dict[str, Any], out: Path, rounds: int, limit: float) -> dict[str, Any]:
    """Run the builds of a program that succeeded; `plain` must be one of them."""
    place = out / found["program"]
    recipe = read_recipe(place / RECIPE)
    folders = {
        variant: place / variant / "tree" / found["folder"]
        for variant, each in found["builds"].items()
        if each["succeeded"]
    }
    if "plain" not in folders:
        return found
    inputs = place / "inputs"
    wrong = prepare(recipe, inputs)
    # Each build tells of the same kernels.
    kernels = {kernel["kernel"] for of in found["kernels"].values() for kernel in of}
    runs = (
        {"plain": Measured({}, wrong)} if wrong else measure(recipe, kernels, folders, inputs, rounds, limit)
    )
    found = result.with_runs(found, runs)
    result.write(found, out)
    return found
