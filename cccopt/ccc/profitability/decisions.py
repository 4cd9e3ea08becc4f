"""What `cccopt tune` measured: the build of each kernel that was fastest on a GPU, and the file with these decisions.

    {"schema": 1, "cccopt": "0.1.0", "device": "NVIDIA H100 80GB HBM3", "driver": "13.0",
     "kernels": {"_Z3bfsPi": {"digests": ["6f3c..."], "build": "always", "gain": 1.42, "low": 1.38, "high": 1.46}}}

A decision holds for the code that was measured: a kernel has one digest for each architecture and file that compiles
it. If its current digest is not one of them, the decision is stale. Kernels are listed by their canonical names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cccopt.ccc.outcome.choices import Form, Mode
from cccopt.ccc.profitability.code_digest import canonical
from cccopt.ccc.profitability.profile import as_bad_profile
from cccopt.diagnostic import Diagnostic, Severity
from cccopt.files import read_text, write_text
from cccopt.version import __version__

SCHEMA = 1
_HELP = "make one with `cccopt tune --build COMMAND --run COMMAND`"


@dataclass(frozen=True, slots=True)
class Build:
    """A way to build a kernel: the options of ccc-nvcc that ask for it."""

    mode: Mode
    form: Form = Form.AUTO
    expand: bool = True


BUILDS: Mapping[str, Build] = {
    "plain": Build(Mode.OFF),
    "auto": Build(Mode.AUTO),
    "always": Build(Mode.ALWAYS),
    "split": Build(Mode.ALWAYS, Form.SPLIT),
    "idle-lanes": Build(Mode.ALWAYS, Form.IDLE_LANES),
    "stack": Build(Mode.ALWAYS, Form.AUTO, expand=False),
    "carried": Build(Mode.ALWAYS, Form.CARRIED),
    "in-lane": Build(Mode.ALWAYS, Form.IN_LANE),
}
"""The builds by their names in the file. Those with a form are made by `--ccc=always --ccc-form=NAME`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one kernel: the digests of the code that was measured, the name of its ``build``, and ``gain``,
    the time of the plain kernel divided by that of this build, with the ends of its 95 % confidence interval.
    """

    digests: tuple[str, ...]
    build: str
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a program, by kernel, and where they were measured."""

    device: str = ""
    driver: str = ""
    kernels: Mapping[str, Decision] = field(default_factory=dict)


def read(path: str | os.PathLike[str]) -> Decisions:
    """Read a file of decisions. Raises CccError if it cannot be read (CCC086) or is something else (CCC069)."""
    text = read_text(path)
    with as_bad_profile(path, "file of decisions", _HELP):
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(
                f"its layout is version {data['schema']}; cccopt {__version__} reads version {SCHEMA}"
            )
        kernels = {name: _decision(entry) for name, entry in data["kernels"].items()}
        unknown = [d.build for d in kernels.values() if d.build not in BUILDS]
        if unknown:
            raise ValueError(f"`{unknown[0]}` is not a build; the builds are {', '.join(BUILDS)}")
        return Decisions(str(data["device"]), str(data["driver"]), kernels)


def _decision(entry: Mapping[str, object]) -> Decision:
    numbers = [entry[name] for name in ("gain", "low", "high")]
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        raise ValueError(f"its gains {numbers} are not numbers")
    gain, low, high = (float(str(n)) for n in numbers)
    digests = entry["digests"]
    if not isinstance(digests, list):
        raise ValueError(f"its digests `{digests}` are not a list")
    return Decision(tuple(map(str, digests)), str(entry["build"]), gain, low, high)


def write(path: str | os.PathLike[str], decisions: Decisions) -> None:
    """Write a file of decisions, whole or not at all. Raises CccError (CCC086)."""
    data = {"schema": SCHEMA, "cccopt": __version__, **asdict(decisions)}
    write_text(path, json.dumps(data, indent=1) + "\n")


def applied(
    decisions: Decisions | None, found: Mapping[str, str]
) -> tuple[dict[str, Build], tuple[Diagnostic, ...]]:
    """The builds of those functions in ``found`` (name: digest) for which a decision holds, and the diagnostics."""
    if decisions is None:
        return {}, ()
    fresh, said = {}, []
    for name, digest in found.items():
        decision = decisions.kernels.get(canonical(name))
        if decision is None:
            continue
        if digest not in decision.digests:
            said.append(_stale(name))
            continue
        fresh[name] = BUILDS[decision.build]
        said.append(_followed(name, decision, decisions.device))
    return fresh, tuple(said)


def _followed(name: str, decision: Decision, device: str) -> Diagnostic:
    gain = f"{decision.gain:.2f}x ({decision.low:.2f} to {decision.high:.2f}) on {device}"
    why = "no other build was faster" if decision.build == "plain" else f"measured gain {gain}"
    message = f"`{name}` is built as `{decision.build}`, as decided"
    return Diagnostic("CCC115", Severity.REMARK, message, why=why)


def _stale(name: str) -> Diagnostic:
    return Diagnostic(
        "CCC115",
        Severity.WARNING,
        f"the decision for `{name}` is stale: the kernel is built as if there were none",
        why="its code is not the code that was measured",
        help="run `cccopt tune` again",
    )
