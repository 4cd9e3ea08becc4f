"""The settings of a compilation as options of the passes, and the profile that both may name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from cccopt.ccc.outcome.choices import Form, Mode, StackMemory
from cccopt.ccc.profitability import profile as profiles
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.diagnostic import CccError, error
from cccopt.passes.options import Options
from cccopt.toolchain.options import FORMS, MEMORIES
from cccopt.toolchain.settings import Settings

AnyProfile: TypeAlias = "str | os.PathLike[str] | RunProfile"
"""A profile, or the file that holds it."""


def options_of(settings: Settings, file: str) -> Options:
    """The options of the passes for the input ``file`` according to ``settings``.

    Raises CccError for a form or memory that does not exist (CCC089), and whatever `profile_in` raises.
    """
    if settings.form not in FORMS:
        raise CccError(
            error(
                "CCC089", f"`{settings.form}` is not a loop form", help=f"the forms are {' | '.join(FORMS)}"
            )
        )
    if settings.stacks not in MEMORIES:
        help = f"write {' | '.join(MEMORIES)}"
        raise CccError(error("CCC089", f"`{settings.stacks}` is not a memory for stacks", help=help))
    form, expand = FORMS[settings.form]
    return Options(
        mode=Mode(settings.mode),
        keep_going=settings.keep_going,
        file=file,
        form=Form(form),
        expand=expand,
        profile=profile_in(settings.profile),
        resident=settings.resident or None,
        only=tuple(word.strip() for word in settings.only.split(",") if word.strip()),
        stacks=StackMemory(settings.stacks),
    )


def profile_in(profile: AnyProfile | None) -> RunProfile | None:
    """The profile in a file, or the given one itself. Raises CccError (CCC069, CCC086)."""
    if profile is None or isinstance(profile, RunProfile):
        return profile
    return profiles.read(profile) if os.fspath(profile) else None


@contextmanager
def profile_file(profile: AnyProfile | None) -> Iterator[str]:
    """The name of a file that holds the profile; empty without a profile."""
    if profile is None or not isinstance(profile, RunProfile):
        yield "" if profile is None else os.path.abspath(os.fspath(profile))
        return
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        profiles.write(Path(folder) / "profile.json", profile)
        yield str(Path(folder) / "profile.json")
