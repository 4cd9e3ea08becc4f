"""A module on a GPU, launched as on the emulator, so that the checks of tests for one run on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cccopt.device.gpu import Gpu
from cccopt.emulator.semantics import TYPES
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module


class ProgramOnGpu:
    """What `cccopt.emulator.Program` is, as far as tests for a GPU need it."""

    def __init__(self, gpu: Gpu, ptx: str | Module) -> None:
        module = parse(ptx) if isinstance(ptx, str) else ptx
        self._gpu = gpu
        self._loaded = gpu.load(ptx if isinstance(ptx, str) else print_module(ptx))
        self._parameters = {function.name: function.parameters for function in module.functions()}

    def launch(self, kernel: str, grid: Any, block: Any, args: Sequence[Any]) -> None:
        """Runs a kernel to its end: arrays in ``args`` are updated in place, numbers take the parameter's type."""
        here = [
            self._gpu.upload(argument)
            if isinstance(argument, np.ndarray)
            else _number(argument, variable.type)
            for argument, variable in zip(args, self._parameters[kernel], strict=True)
        ]
        grid, block = ((*np.atleast_1d(shape).tolist(), 1, 1)[:3] for shape in (grid, block))
        self._gpu.launch(self._loaded.kernel(kernel), grid, block, here)
        for array, buffer in zip(args, here, strict=True):
            if isinstance(array, np.ndarray):
                self._gpu.read(buffer, array)


def _number(value: Any, kind: str) -> np.generic:
    """``value`` as a PTX type; nvcc writes .u32 for a C int, too."""
    dtype = TYPES[kind.lstrip(".")]
    if dtype.kind == "u":
        value = int(value) % 2 ** (8 * dtype.itemsize)
    return dtype.type(value)
