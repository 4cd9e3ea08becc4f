"""The source tree: which of its files are the program's, its copies, and a fingerprint that shows changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.tuning.state import is_work_folder

_LEFT_OUT = (".git", "__pycache__")
_COPIED = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)


def check_work(source: Path, work: Path) -> None:
    """Raise CccError (CCC116) for a folder that cannot be the work folder, whose builds are removed and made again."""
    here, root = work.resolve(), source.resolve()
    if any(character.isspace() for character in str(here)):
        why = f"options are passed in NVCC_APPEND_FLAGS, which is split at spaces, but `{here}` contains some"
    elif here == root or root.is_relative_to(here):
        why = f"`{here}` is the source folder or contains it"
    elif here.exists() and not here.is_dir():
        why = f"`{here}` is not a folder"
    elif here.is_dir() and any(here.iterdir()) and not is_work_folder(here):
        why = f"`{here}` contains files that are not from `cccopt tune`"
    else:
        return
    help = "name another --work: a new folder, or one of an earlier `cccopt tune`"
    raise CccError(error("CCC116", "the work folder of `cccopt tune` cannot be used", why=why, help=help))


def check_compared(source: Path, name: str) -> None:
    """Raise CccError (CCC116) for a file to compare that is not in the tree: such files are removed before each run."""
    path, root = Path(name), source.resolve()
    inside = not path.is_absolute() and (root / path).parent.resolve().is_relative_to(root)
    if not inside or path.name in ("", "..") or (root / path).is_dir():
        why = "each build runs in a copy of the current folder and writes its own file there"
        help = "have the program write it into the current folder, and give its path from there"
        raise CccError(error("CCC116", f"`{name}` cannot be compared", why=why, help=help))


def copy(source: Path, to: Path, without: Collection[Path]) -> None:
    """Copy the tree. Raises CccError (CCC116) with the name of a file that cannot be copied."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if not _belongs(Path(folder) / name, without)}

    try:
        shutil.copytree(source, to, symlinks=True, ignore=left_out)
    except shutil.Error as problem:
        file, _, why = problem.args[0][0]
        raise _uncopied(str(file), str(why)) from problem
    except OSError as problem:
        raise _uncopied(str(problem.filename or source), problem.strerror or str(problem)) from problem


def _uncopied(file: str, why: str) -> CccError:
    help = (
        "each build is made in a copy of the current folder: make its files readable, and leave room for them"
    )
    return CccError(error("CCC116", f"`{file}` cannot be copied", why=why, help=help))


def _belongs(path: Path, without: Collection[Path]) -> bool:
    """Whether a file or folder is the program's: not a socket, and not one of ours."""
    if path.name in _LEFT_OUT or {path.parent.resolve() / path.name, path.resolve()} & {*without}:
        return False
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False  # it is gone
    return any(is_kind(mode) for is_kind in _COPIED) and not is_work_folder(path)


def fingerprint(source: Path, without: Collection[Path]) -> str:
    """A hash of the names, sizes and times of all files of a tree, to detect changes."""
    code = hashlib.sha256()
    for folder, folders, names in os.walk(source):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if _belongs(here / name, without))
        for name in sorted([*names, *folders]):
            path = here / name
            if path.is_symlink():
                code.update(
                    f"{path.relative_to(source)} {os.readlink(path)}\n".encode(errors="surrogateescape")
                )
            elif name not in folders and _belongs(path, without):
                state = path.stat()
                text = f"{path.relative_to(source)} {state.st_size} {state.st_mtime_ns}\n"
                code.update(text.encode(errors="surrogateescape"))
    return code.hexdigest()[:16]
