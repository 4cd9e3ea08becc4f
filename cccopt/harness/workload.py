"""What a workload is: inputs, launches, a reference and a meaning of "same", once for every machine.

A sample's ``workload.py`` is a module with the four functions of `Workload`. The emulator and the GPU both
run it, so a before/after comparison means the same inputs and the same launches. DESIGN chapter 8.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from cccopt import resources
from cccopt.diagnostic import CccError, error

Array: TypeAlias = NDArray[Any]
Argument: TypeAlias = "Array | np.generic | int | float"
Inputs: TypeAlias = "Mapping[str, Array | int | float]"
State: TypeAlias = "MutableMapping[str, Array | int | float]"


class Launch(NamedTuple):
    """One kernel launch.

    ``arguments`` are numpy arrays of the state (device buffers, updated in place) and numbers, as numpy
    scalars of the parameters' types where a GPU is to run it. ``host`` names the arrays of the state that the
    generator changes before this launch or reads after it: a GPU copies only those between launches.
    ``label`` tells launches of one kernel apart in a table.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    host: tuple[str, ...] = ()
    label: str = ""


class Workload(Protocol):
    """The four functions of a ``workload.py``, and the sizes that they know.

    ``state`` is a copy of the inputs that belongs to one run. What a run results in is its state at the end.
    """

    SIZES: tuple[str, ...]

    def inputs(self, size: str, seed: int) -> Inputs:
        """The named arrays and numbers of one run, the same for the same ``size`` and ``seed``."""

    def launches(self, state: State) -> Generator[Launch, None, None]:
        """The launches in order. What a launch wrote may be read (see `Launch.host`) once it is resumed."""

    def reference(self, inputs: Inputs) -> Mapping[str, Array]:
        """What the arrays must hold in the end, by numpy alone."""

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        """An empty string when ``result`` (a state) is as ``expected``, else what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A workload with its name and its CUDA source."""

    name: str
    source: Path
    workload: Workload

    def inputs(self, size: str, seed: int) -> Inputs:
        """The workload's inputs; an unknown size is a `CccError` (CCC091) that lists the known ones."""
        if size not in self.workload.SIZES:
            raise CccError(
                error(
                    "CCC091",
                    f"workload `{self.name}` has no size `{size}`",
                    help=f"choose one of {', '.join(f'`{s}`' for s in self.workload.SIZES)}",
                )
            )
        return self.workload.inputs(size, seed)


def fresh_state(inputs: Inputs) -> State:
    """A state to run in: arrays are copied, so that every run starts from the same inputs."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in inputs.items()}


def names() -> tuple[str, ...]:
    """The workloads that come with this installation, sorted."""
    return tuple(sorted(path.parent.name for path in resources.folder("samples").glob("*/workload.py")))


def load(name: str) -> Sample:
    """The workload ``name``: one that comes with cccopt, or a folder with ``workload.py`` and its source.

    The source is the ``.cu`` file that bears the folder's name. Raises `CccError` (CCC090) where there is no
    such workload or it lacks one of the functions.
    """
    folder = resources.folder("samples") / name
    if not (folder / "workload.py").is_file():
        folder = Path(name)
    folder = folder.resolve()
    source = folder / f"{folder.name}.cu"
    for file in (folder / "workload.py", source):
        if not file.is_file():
            raise CccError(
                error(
                    "CCC090",
                    f"unknown workload `{name}`",
                    why=f"there is no file `{file}`",
                    help=f"name a folder that has it, or one of {', '.join(f'`{n}`' for n in names())}",
                )
            )
    return Sample(folder.name, source, _module(folder / "workload.py"))


def _module(path: Path) -> Workload:
    name = f"cccopt_workload_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    missing = [
        part for part in ("SIZES", "inputs", "launches", "reference", "check") if not hasattr(module, part)
    ]
    if missing:
        raise CccError(
            error(
                "CCC090",
                f"`{path}` is not a workload",
                why=f"it does not define {', '.join(f'`{part}`' for part in missing)}",
                help="see the functions of `cccopt.harness.workload.Workload`",
            )
        )
    return cast(Workload, module)
