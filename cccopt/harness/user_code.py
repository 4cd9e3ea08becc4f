"""A user's ``workload.py`` as a module whose failures are diagnostics with its file and line, never tracebacks.

What it raises and returns is checked here, once, at the boundary: the runners take results as they are.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cccopt.diagnostic import CccError, error
from cccopt.files import read_text
from cccopt.text import Place, Position, SourceText

_HELP = "see the functions of `cccopt.harness.workload.Workload`"
_Form: TypeAlias = "tuple[Callable[[Any], bool], str]"
"""What a value must be: a test, and a description."""
_MAPPING: _Form = (lambda value: isinstance(value, Mapping), "a mapping from names")
_NAMES: _Form = (
    lambda value: isinstance(value, (tuple, list)) and all(isinstance(name, str) for name in value),
    "a tuple of names",
)
_RETURNED: Mapping[str, _Form] = {
    "inputs": _MAPPING,
    "reference": _MAPPING,
    "check": (lambda value: isinstance(value, str), "a string, empty if the result is right"),
    "least_bytes": (lambda value: isinstance(value, (int, np.integer)), "a number of bytes"),
    "spmv": (lambda value: isinstance(value, tuple), "a tuple"),
}
"""What the functions of a workload return; those in `_LAUNCHING` yield launches."""
_LAUNCHING = ("launches", "launches_of", "setup")
_CONSTANTS = ("SIZES", "INPUTS", "FORMS", "RESULTS", "SCRATCH")
"""Tuples of names."""
_VALUES = (np.ndarray, np.generic, int, float)


class Guarded:
    """A workload's module. Its functions raise `CccError` (CCC090) for what the user's functions raise, and if these
    return something of the wrong kind.
    """

    def __init__(self, module: ModuleType, path: Path) -> None:
        self._module, self._path = module, path

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name in _LAUNCHING:
            return lambda *given: self._launched(name, value, given)
        return (lambda *given: self._called(name, value, given)) if name in _RETURNED else value

    def require(self, parts: Sequence[str]) -> None:
        """Raise `CccError` (CCC090) if one of ``parts`` is missing or is not of the right kind."""
        missing = [part for part in parts if not hasattr(self._module, part)]
        if missing:
            raise self._wrong(f"it does not define {', '.join(f'`{part}`' for part in missing)}", 1)
        for name in (*_RETURNED, *_LAUNCHING):
            if not callable(getattr(self._module, name, print)):
                raise self._wrong(f"`{name}` is not a function", self._line(name))
        is_right, wanted = _NAMES
        for name in _CONSTANTS:
            if not is_right(getattr(self._module, name, ())):
                raise self._wrong(f"`{name}` is not {wanted}", self._line(name))

    def _called(self, name: str, function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        with blamed(self._path):
            result = function(*given)
        is_right, wanted = _RETURNED[name]
        if not is_right(result):
            raise self._wrong(f"`{name}` returns {_named(result)}, not {wanted}", self._line(name))
        if name == "inputs":
            self._check_inputs(result)
        return result

    def _check_inputs(self, inputs: Mapping[Any, Any]) -> None:
        for name, value in inputs.items():
            # `Zeros` represent an array.
            if not isinstance(name, str) or not (isinstance(value, _VALUES) or hasattr(value, "make")):
                why = f"`inputs` has {_named(value)} for {name!r}: it must map names to arrays, `Zeros` or numbers"
                raise self._wrong(why, self._line("inputs"))

    def _launched(
        self, name: str, function: Callable[..., Any], given: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        with blamed(self._path):
            launches = function(*given)
        if not isinstance(launches, Iterator):
            raise self._wrong(f"`{name}` returns {_named(launches)} and yields no launches", self._line(name))
        while True:
            with blamed(self._path):
                launch = next(launches, None)
            if launch is None:
                return
            why = _no_launch(launch)
            if why:
                raise self._wrong(f"`{name}` yields {why}", self._line(name))
            yield launch

    def _line(self, name: str) -> int:
        """The line at which the file defines ``name``, or else its first line."""
        defined = re.compile(rf"(def |class )?{name}\b")
        lines = read_text(self._path).splitlines()
        return next((number for number, line in enumerate(lines, 1) if defined.match(line)), 1)

    def _wrong(self, why: str, line: int) -> CccError:
        place = _place(str(self._path), line)
        return CccError(error("CCC090", "this file is not a workload", place, why=why, help=_HELP))


def load_module(path: Path) -> Guarded:
    """The module in the file ``path``. Raises `CccError`: CCC090 for what it raises, CCC086 if it cannot be read."""
    # Workloads of different sets may have the same name.
    name = f"cccopt_workload_{path.parent.parent.name}_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    with blamed(path):
        spec.loader.exec_module(module)
    return Guarded(module, path)


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """Raise `CccError` (CCC090) for what the code in the file ``path`` raises, at its line."""
    try:
        yield
    except CccError:
        raise
    except (Exception, SystemExit) as problem:
        raise _failure(problem, path) from problem


class _Raised(NamedTuple):
    """A line of the user's file, and the one where the exception was raised, if that is another."""

    here: Place
    deeper: Place | None


def _failure(problem: BaseException, path: Path) -> CccError:
    said = " ".join(str(problem).split())
    if isinstance(problem, SyntaxError) and problem.filename is not None:
        at = _place(problem.filename, problem.lineno or 1, problem.offset or 1)
        why = f"{type(problem).__name__}: {problem.msg}"
        return CccError(error("CCC090", "a workload's file is not valid Python", at, why=why))
    raised = _raised(problem, path)
    return CccError(
        error(
            "CCC090",
            f"a workload failed with {type(problem).__name__}" + (f": {said}" if said else ""),
            None if raised is None else raised.here,
            why="" if raised is not None else f"in `{path}`",
            notes=() if raised is None or raised.deeper is None else (("raised here", raised.deeper),),
        )
    )


def _raised(problem: BaseException, path: Path) -> _Raised | None:
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if frame.filename == str(path)]
    if not ours:
        return None
    last = frames[-1]
    here = _place(ours[-1].filename, ours[-1].lineno or 1)
    return _Raised(here, None if last is ours[-1] else _place(last.filename, last.lineno or 1))


def _place(file: str, line: int, column: int | None = None) -> Place:
    try:
        text = SourceText(file, read_text(file))
    except CccError:
        return Place(file, Position(line, column or 1))
    written = text.line(line)
    return text.place(Position(line, column or 1 + len(written) - len(written.lstrip())))


def _named(value: Any) -> str:
    return "None" if value is None else f"a value of type `{type(value).__name__}`"


def _no_launch(launch: Any) -> str:
    """What was given instead of a launch, or what is wrong with the launch; empty if nothing is."""
    if not hasattr(launch, "_fields") or not hasattr(launch, "timed"):
        return f"{_named(launch)}, not a `Launch`"
    if not isinstance(launch.kernel, str):
        return f"a launch whose kernel is {_named(launch.kernel)}, not a name"
    for part in ("grid", "block"):
        shape = getattr(launch, part)
        numbers = isinstance(shape, tuple) and all(isinstance(n, (int, np.integer)) and n > 0 for n in shape)
        if not numbers or len(shape) != 3:
            return f"a launch of `{launch.kernel}` whose {part} is {shape!r}, not three positive numbers"
    if not isinstance(launch.arguments, (tuple, list)):
        return f"a launch of `{launch.kernel}` whose arguments are {_named(launch.arguments)}, not a tuple"
    for number, argument in enumerate(launch.arguments):
        if not isinstance(argument, _VALUES):
            return f"a launch of `{launch.kernel}` whose argument {number} is {_named(argument)}"
    return ""
