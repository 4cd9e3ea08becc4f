"""Runs the commands of docs/tutorial.md, and puts what they print below them: `python -m bench.tutorial FOLDER`.

FOLDER is where the tutorial's first command has put the program. A GPU is needed. In blocks of `console`, lines that
begin with `$` are commands, and what follows them is what they printed. A comment before a block says how much of it
is shown, the rest being `...`:

    <!-- shown: 12 -->                the first 12 lines of each command's output
    <!-- shown: 12; from: "speed" --> from the line on that holds a text
    <!-- not run -->                  the block stays as it is
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs/tutorial.md"
BLOCK = re.compile(r"(?:<!-- (?P<how>[^\n]*) -->\n+)?```console\n(?P<text>.*?)```\n", re.DOTALL)
PROMPT = "$ "
LIMIT = 600  # seconds for a command


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of an output is shown: ``most`` lines, from the first one on that holds ``start``."""

    most: int | None = None
    start: str = ""

    def of(self, output: str) -> list[str]:
        """The lines that are shown of an output, those left out before and after as one line of dots."""
        lines = [line.rstrip() for line in output.strip("\n").split("\n")] if output.strip() else []
        first = next((i for i, line in enumerate(lines) if self.start in line), 0)
        last = len(lines) if self.most is None else min(first + self.most, len(lines))
        return [*["..."][: first > 0], *lines[first:last], *["..."][: last < len(lines)]]


def how_shown(comment: str) -> Shown | None:
    """What the comment ahead of a block says; None for a block that is not run. Raises ValueError for other text."""
    if comment == "not run":
        return None
    found = re.fullmatch(r'(?:shown: (\d+))?(?:; )?(?:from: "([^"]*)")?', comment)
    if found is None:
        raise ValueError(f"`{comment}` says nothing of what is shown")
    return Shown(int(found[1]) if found[1] else None, found[2] or "")


def commands(text: str) -> Iterator[str]:
    """The commands of a block; a line that ends with a backslash goes on."""
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith(PROMPT):
            while line.endswith("\\"):
                line += "\n" + next(lines)
            yield line.removeprefix(PROMPT)


class Shell:
    """Runs commands one after the other, each in the folder that the one before it was left in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, command: str) -> str:
        """What a command prints. Raises RuntimeError if it fails."""
        reading, writing = os.pipe()
        script = f"{command}\nstatus=$?\npwd >&{writing}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT,
            pass_fds=(writing,),
        )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self._folder = Path(pipe.read().strip() or self._folder)
        if done.returncode != 0:
            raise RuntimeError(f"`{command}` ends with status {done.returncode}:\n{done.stdout}")
        return done.stdout.replace(str(self._folder) + "/", "")


def made(page: str, shell: Shell) -> str:
    """The page with what its commands print."""

    def block(found: re.Match[str]) -> str:
        shown = how_shown(found["how"] or "")
        if shown is None:
            return found[0]
        lines: list[str] = []
        for command in commands(found["text"]):
            print(PROMPT + command, file=sys.stderr, flush=True)
            lines += [PROMPT + command, *shown.of(shell.run(command))]
        head = f"<!-- {found['how']} -->\n\n" if found["how"] else ""
        return f"{head}```console\n" + "".join(f"{line}\n" for line in lines) + "```\n"

    return BLOCK.sub(block, page)


def main() -> None:
    """Run the commands, write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("folder", type=Path, help="where the commands run")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--output", type=Path, help="write the page there (default: in place)")
    given = parser.parse_args()
    text = made(given.page.read_text(encoding="utf-8"), Shell(given.folder.resolve()))
    (given.output or given.page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
