"""The map of the packages in docs/design.md, drawn from their imports: `python -m bench.package_map` writes it anew.

A package imports those that it points to, and what these point to: edges that follow from others are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- packages: python -m bench.package_map -->\n", "<!-- end of packages -->\n"


def package_of(module: str) -> str:
    """Of ``cccopt.ccc.plan.stack`` the package ``ccc.plan``; a module directly in `cccopt` is its own package."""
    parts = module.split(".")[1:]
    if parts[:1] == ["ccc"] and len(parts) > 1:
        return ".".join(parts[:2])
    return parts[0] if parts else "cccopt"


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "cccopt":
            if node.module in ("cccopt", "cccopt.ccc"):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            else:
                yield node.module


@cache
def imports() -> networkx.DiGraph:
    """Which package imports which."""
    graph = networkx.DiGraph()
    for file in sorted((ROOT / "cccopt").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name in ("cccopt", "cccopt.ccc"):
            continue
        own = package_of(name)
        graph.add_node(own)
        graph.add_edges_from((own, other) for m in _imported(file) if (other := package_of(m)) != own)
    graph.remove_nodes_from(["__version__", "version"])
    return graph


def _sentence(package: str) -> str:
    """The first sentence of its docstring."""
    path = ROOT / "cccopt" / package.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def drawn() -> str:
    """The picture, as Mermaid, and a table with one sentence for each package, those that import most first."""
    graph = imports()
    order = sorted(graph, key=lambda name: (-len(networkx.descendants(graph, name)), name))
    edges = sorted(networkx.transitive_reduction(graph).edges)
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"    {name.replace('.', '_')}[{name}]" for name in order]
    lines += [f"    {a.replace('.', '_')} --> {b.replace('.', '_')}" for a, b in edges]
    lines += ["```", "", "| package | what lies there |", "|---|---|"]
    lines += [f"| `{name}` | {_sentence(name)} |" for name in order]
    return "\n".join(lines) + "\n\n"


def page(text: str) -> str:
    """The page with the map as the imports are now."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + drawn() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
