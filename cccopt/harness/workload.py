"""What a workload is: inputs, launches, a reference and a meaning of "same", once for every machine.

A sample's ``workload.py`` is a module with the functions of `Workload`. It may also have:

* ``setup(state)``: launches that fill inputs, like `Workload.launches`. The plain build runs them once; they are never
  timed.
* ``RESULTS``: the names of the arrays that the launches write. If it is missing, these are all arrays but the scratch.
* ``SCRATCH``: the names of further arrays that they write, which are not checked at size `FULL`, where they are large.
* ``launches_of(state, build)``: replaces ``launches`` if the source has kernels that only some of its builds have.
* ``FULL_REFERENCE = True``: the reference is used at size `FULL` as well.
* ``LAUNCHES_VARY = True``: launches may differ from run to run, so only whole runs have times.

The emulator and the GPU both run it, so a before/after comparison means the same inputs and the same launches. DESIGN
chapter 8.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cccopt import resources
from cccopt.diagnostic import CccError, error
from cccopt.harness.choices import BuildName
from cccopt.harness.user_code import Guarded, load_module

Array: TypeAlias = NDArray[Any]
Argument: TypeAlias = "Array | np.generic | int | float"
Inputs: TypeAlias = "Mapping[str, Array | Zeros | int | float]"
State: TypeAlias = "MutableMapping[str, Array | int | float]"

FULL = "full"
"""The size at which the plain build says what is right: `Workload.reference` need not be fast enough for it."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """An array of zeros in `Workload.inputs`, made where the kernels run: no copy on the host, no upload."""

    shape: int | tuple[int, ...]
    dtype: DTypeLike

    def make(self) -> Array:
        """The array. Its pages take no memory until they are touched."""
        return np.zeros(self.shape, self.dtype)


class Launch(NamedTuple):
    """One kernel launch.

    ``arguments`` are numpy arrays of the state (device buffers, updated in place) and numbers; if a GPU is to run
    the launch, these are numpy scalars of the parameters' types. ``host`` names the arrays of the state that the
    generator changes before this launch or reads after it: a GPU copies only those between launches. ``label``
    distinguishes launches of one kernel in a table. A launch that is not ``timed`` (a reset, a kernel that counts
    what is wrong) always uses the plain build's kernel, whichever build is running, and is not part of any
    measurement.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    host: tuple[str, ...] = ()
    label: str = ""
    timed: bool = True


class Workload(Protocol):
    """The functions that every ``workload.py`` has, and the sizes that they know.

    ``state`` holds the inputs, with arrays in place of `Zeros`. Arrays in ``RESULTS`` and ``SCRATCH`` belong to one run
    and begin as ``setup`` left them; all others are read-only, and the builds share them.
    """

    SIZES: tuple[str, ...]

    def inputs(self, size: str, seed: int) -> Inputs:
        """The named arrays and numbers of one run, the same for the same ``size`` and ``seed``."""

    def launches(self, state: State) -> Generator[Launch, None, None]:
        """The launches in order. Once the generator is resumed, it may read what a launch wrote (see `Launch.host`)."""

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        """What the arrays must hold in the end, computed only with numpy; ``inputs`` is the state after ``setup``.

        It is not called at size `FULL`: there, the results of the plain build are expected.
        """

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        """An empty string if ``result`` is as ``expected``, else what is wrong with it.

        ``result`` holds the arrays in ``RESULTS`` as a run left them, those in ``SCRATCH`` unless the size is
        `FULL`, and those inputs that were made on the host.
        """


@dataclass(frozen=True, slots=True)
class Sample:
    """A workload with its name and its CUDA source. ``plain`` is the build that others are compared with."""

    name: str
    source: Path
    workload: Workload
    plain: str = BuildName.PLAIN

    def instance(self, size: str, seed: int) -> Instance:
        """The workload on its inputs for ``size`` and ``seed``. Raises `CccError` as `inputs` does."""
        return Instance(self, self.inputs(size, seed), size)

    def inputs(self, size: str, seed: int) -> Inputs:
        """The workload's inputs. Raises `CccError` (CCC091), which lists the known sizes, for an unknown size."""
        if size not in self.workload.SIZES:
            raise CccError(
                error(
                    "CCC091",
                    f"workload `{self.name}` has no size `{size}`",
                    help=f"choose one of {', '.join(f'`{s}`' for s in self.workload.SIZES)}",
                )
            )
        return self.workload.inputs(size, seed)

    def setup(self, state: State) -> Generator[Launch, None, None]:
        """The launches that fill inputs; none if the workload has no ``setup``."""
        launches = getattr(self.workload, "setup", None)
        if launches is not None:
            yield from launches(state)

    def launches(self, state: State, build: str) -> Generator[Launch, None, None]:
        """The launches of a run of ``build``."""
        of_build = getattr(self.workload, "launches_of", None)
        return self.workload.launches(state) if of_build is None else of_build(state, build)

    def results(self, state: Mapping[str, Any], size: str) -> tuple[str, ...]:
        """The names of the arrays that are checked after a run, at `FULL` without scratch. Raises `CccError` for a
        name that is not an array of the state.
        """
        scratch = self._named(state, "SCRATCH", ())
        named = self._named(state, "RESULTS", [name for name in arrays(state) if name not in scratch])
        return tuple(dict.fromkeys(named if size == FULL else (*named, *scratch)))

    def written(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the arrays that the launches write, scratch and all. Raises `CccError` as `results` does."""
        return tuple(dict.fromkeys((*self.results(state, FULL), *self._named(state, "SCRATCH", ()))))

    def _named(self, state: Mapping[str, Any], attribute: str, default: Sequence[str]) -> tuple[str, ...]:
        named = tuple(getattr(self.workload, attribute, default))
        known = tuple(arrays(state))
        unknown = [name for name in named if name not in known]
        if unknown:
            raise CccError(
                error(
                    "CCC090",
                    f"workload `{self.name}` has no array `{unknown[0]}`, which its `{attribute}` names",
                    help=f"its arrays are {', '.join(f'`{name}`' for name in known)}",
                )
            )
        return named


@dataclass(frozen=True, slots=True)
class Instance:
    """A sample on the inputs of one size and seed: what runs, whatever the machine."""

    sample: Sample
    inputs: Inputs
    size: str

    @property
    def has_reference(self) -> bool:
        """Whether `Workload.reference` says what is right, rather than the plain build."""
        return self.size != FULL or getattr(self.sample.workload, "FULL_REFERENCE", False)

    def results(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the arrays that are checked after a run, as `Sample.results` gives them."""
        return self.sample.results(state, self.size)

    def wrong(self, state: State, expected: Mapping[str, Array] | None) -> str:
        """What is wrong with the state that a run left, or a sentence saying that nothing is there to compare with."""
        if expected is None:
            return "the plain build failed, so there are no reference results"
        made_here = {name for name, value in self.inputs.items() if not isinstance(value, Zeros)}
        seen = (made_here - set(self.sample.written(state))) | set(self.results(state))
        return self.sample.workload.check({name: state[name] for name in state if name in seen}, expected)


def base_state(inputs: Inputs) -> State:
    """The inputs with arrays in place of `Zeros`, before ``setup``."""
    return {name: value.make() if isinstance(value, Zeros) else value for name, value in inputs.items()}


def run_state(base: State, results: Sequence[str]) -> State:
    """A state for one run: ``results`` are copies, the other arrays are shared and cannot be written."""
    return {name: _of_run(value, name in results) for name, value in base.items()}


def _of_run(value: Array | int | float, written: bool) -> Array | int | float:
    if not isinstance(value, np.ndarray):
        return value
    own: Array = value.copy() if written else value.view()
    own.flags.writeable = written
    return own


def arrays(state: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a state."""
    return {name: value for name, value in state.items() if isinstance(value, np.ndarray)}


def fresh_state(inputs: Inputs) -> State:
    """A state to run in: all arrays of ``inputs`` are copied, so that every run starts from the same ones."""
    base = base_state(inputs)
    return run_state(base, tuple(base))


SAMPLES = "samples"
PARTS = ("SIZES", "inputs", "launches", "reference", "check")


def names(among: str = SAMPLES) -> tuple[str, ...]:
    """The workloads that come with this installation in its folder ``among``, sorted."""
    return tuple(sorted(path.parent.name for path in _shelf(among).glob("*/workload.py")))


def _shelf(among: str) -> Path:
    top, *rest = among.split("/")
    return resources.folder(top).joinpath(*rest)


def load(name: str) -> Sample:
    """The workload ``name``: one that comes with cccopt, or a folder with ``workload.py`` and its source.

    The source is the ``.cu`` file with the folder's name. Raises `CccError` (CCC090) if there is no such workload, if
    its file raises an exception, or if it lacks one of the functions. The workload's functions raise it, too, if they
    fail.
    """
    source, module = find(name)
    return Sample(source.stem, source, cast(Workload, module))


def find(name: str, among: str = SAMPLES, parts: Sequence[str] = PARTS) -> tuple[Path, Guarded]:
    """The source and the ``workload.py`` of ``name``, one of `names` or a folder. Raises `CccError` as `load` does, and
    if it lacks one of ``parts``.
    """
    folder = _shelf(among) / name
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
                    help=f"name a folder that has it, or one of {', '.join(f'`{n}`' for n in names(among))}",
                )
            )
    module = load_module(folder / "workload.py")
    module.require(parts)
    return source, module
