"""Which of their arguments nvcc's tools read as source text. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence


def preprocessed(arguments: Sequence[str]) -> list[str]:
    """The preprocessed files among the arguments of cicc or cudafe++.

    They are recognized by their suffix. The user's own file may have the same one, but is only named after an option.
    """
    options = ("", *arguments)
    return [
        argument
        for option, argument in zip(options, arguments, strict=False)
        if argument.endswith(".ii") and not option.startswith("--orig_src")
    ]


def original(arguments: Sequence[str]) -> str:
    """The user's file, spelled as it was given to nvcc; empty if it is not named."""
    option = "--orig_src_file_name"
    return arguments[arguments.index(option) + 1] if option in arguments[:-1] else ""
