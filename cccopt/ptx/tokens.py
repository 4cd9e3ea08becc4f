"""Lark's token class, and the parts of Lark that lark-cython replaces if it is installed (extra ``fast``).

With lark-cython, parsing takes two thirds as long and makes the same nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

PLUGINS: dict[str, Any] = {}
"""The ``_plugins`` argument of `Lark`."""

if TYPE_CHECKING:
    from lark import Token
else:
    try:
        import lark_cython
    except ImportError:
        from lark import Token
    else:
        Token = lark_cython.Token
        PLUGINS = lark_cython.plugins

__all__ = ["PLUGINS", "Token"]
