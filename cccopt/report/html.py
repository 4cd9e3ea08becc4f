"""HTML from Python values: text is escaped wherever it comes from, so no source line can end an element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from cccopt.report.profile_view import printable


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"

VOID = frozenset({"rect", "col", "meta", "br", "line"})


def element(name: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. ``class_`` and ``for_`` lose their underscore, other underscores become hyphens; an attribute that
    is None or False is left out, one that is True has no value.
    """
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    if name in VOID:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{markup(children)}</{name}>")


def _attribute(name: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(printable(str(value)))}"'


def markup(child: Child) -> Markup:
    """Children as HTML: markup as it is, text escaped, None as nothing."""
    if child is None:
        return Markup("")
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(escape(printable(child)))
    return Markup("".join(markup(each) for each in child))


# --- tables ---


def table(names: Sequence[str], rows: Sequence[Markup], *, texts: Sequence[str]) -> Markup | None:
    """A sortable table; None without rows."""
    if not rows:
        return None
    heads = [element("th", name, scope="col", class_="text" if name in texts else None) for name in names]
    return element("table", element("thead", element("tr", heads)), element("tbody", rows), class_="sortable")


def cell(shown: Child, value: float | str | None, class_: str | None = None) -> Markup:
    """A cell with the value that it is sorted by."""
    return element("td", shown, class_=class_, data_value=value)


def soft(text: str) -> Markup:
    """Text that is shown in a muted color."""
    return element("span", text, class_="soft")
