"""What each pass makes of each function, in the layout of Compiler Explorer's pipeline view.

The layout is its `OptPipelineOutput`: for each function, a list of passes, each with the lines before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cccopt.ptx.ir import Module
from cccopt.ptx.printer import print_function


def pipeline_view(stages: Sequence[tuple[str, Module]]) -> dict[str, Any]:
    """The JSON data of a module's ``stages``: the original, then what each pass made of it, with the pass's name.
    Passes that change no line of a function are included. A pass may add functions and drop some.
    """
    texts = [
        {f.name: print_function(f).split("\n") for f in module.functions() if f.body is not None}
        for _, module in stages
    ]
    names = dict.fromkeys(name for text in texts for name in text)
    return {
        "results": {
            name: [
                _pass(stages[after][0], texts[after - 1].get(name, []), texts[after].get(name, []))
                for after in range(1, len(stages))
            ]
            for name in names
        }
    }


def _pass(name: str, before: Sequence[str], after: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "machine": False,
        "before": [{"text": line} for line in before],
        "after": [{"text": line} for line in after],
        "irChanged": before != after,
    }
