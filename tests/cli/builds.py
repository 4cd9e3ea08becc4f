"""What the tests of builds share: a small project, ``ccc-nvcc`` as a command, the commands of the page on builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/build-systems.md"

# The command as pip installs it, but that a variable can make it another version.
_COMMAND = f"""\
#!{sys.executable}
import os, sys
sys.path.insert(0, {str(REPOSITORY)!r})
import cccopt.version
cccopt.version.__version__ = os.environ.get("PRETENDED_VERSION", cccopt.version.__version__)
from cccopt.cli.nvcc import main
sys.exit(main())
"""


def make_command(folder: Path) -> Path:
    """Write ``ccc-nvcc`` into ``folder``, which can then go on PATH."""
    folder.mkdir(exist_ok=True)
    command = folder / "ccc-nvcc"
    command.write_text(_COMMAND)
    command.chmod(0o755)
    return command


def copy_project(folder: Path) -> Path:
    """A copy of the project that any of its build systems may change."""
    return Path(shutil.copytree(Path(__file__).parent / "build_project", folder))


def documented(part: str) -> str:
    """The one indented command of the page on builds that holds ``part``."""
    lines = [line.strip() for line in PAGE.read_text().split("\n") if line.startswith("    ")]
    (command,) = [line for line in lines if part in line]
    return command


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command line as a shell does and return what it says; a failure shows it."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def is_rewritten(code: bytes, texts: int) -> bool:
    """Whether a file holds so many PTX texts with annotated kernels (uncompressed), and all are rewritten.

    The kernels of the tests hold no votes of their own.
    """
    pieces = [piece for piece in code.split(b".version ")[1:] if b"work" in piece]
    assert len(pieces) == texts
    votes = {b"vote.sync" in piece for piece in pieces}
    assert len(votes) == 1
    return votes.pop()
