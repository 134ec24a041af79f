"""How large the house is, and how far one walks in it: figures of the code itself.

    python benchmarks/house.py [CHECKOUT] [--json]

Files and lines of code (without docstrings, comments and blanks), and what these lines are;
functions, modules with one importer, raise statements, uses of ``Any``, class names that stand for
two things, public names at the top; and the files and functions of the package that are met on
three journeys: a command, a fit, and a story.

A package loads what its stub (``__init__.pyi``) lists when it is first used, so the stub counts as
an importer. Rooms, which every package has under the same names, mostly have one importer, and are
counted apart.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

ROOMS = {
    *("estimators", "core", "kernels", "data", "starts"),
    *("gibbs", "metrics", "report", "command", "parameters"),
}

COMPILED = {"njit", "inline", "lean", "merged", "part", "_njit", "vectorised"}
"""Decorators of compiled loops."""

JOURNEYS = {
    "softcount align pairs.txt": """
from softcount.cli import main
sys.argv = ["softcount", "align", "-i", "pairs.txt"]
""",
    "sc.HMM(45).fit(sentences)": """
import softcount as sc
def main():
    sc.HMM(45).fit(["the dog barks", "a cat sleeps", "the old dog sleeps"])
""",
    "a story's fit": """
import softcount as sc
which, flip = sc.table("which"), sc.table("flip")
@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)
def main():
    sc.StoryModel(coins).fit(["HHH", "TTT", "HHH", "TTT"])
""",
}

# The journey is made twice in one process, and looked at the second time: what runs only because a
# module is imported, or a kernel loaded, is not met by somebody who reads along.
WALK = """
import os, sys, threading
met = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and os.sep + "softcount" + os.sep in code.co_filename:
        if not code.co_name.startswith("<"):
            met.add((code.co_filename, code.co_qualname))
def travel():
    try:
        main()
    except SystemExit:
        pass
{journey}
travel()
threading.setprofile(note)
sys.setprofile(note)
travel()
sys.setprofile(None)
print(len({{file for file, _ in met}}), len(met), file=sys.stderr)
"""


def walk(checkout: Path, journey: str) -> tuple[int, int]:
    """The files and functions of the package that are met on a journey."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pairs.txt").write_text("the house ||| das haus\nthe book ||| das buch\n")
        done = subprocess.run(
            [sys.executable, "-c", WALK.format(journey=journey)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
        files, functions = done.stderr.split()[-2:]
    return int(files), int(functions)


def lines_of_code(text: str, tree: ast.Module) -> set[int]:
    """Lines that are neither blank, nor comments, nor strings that stand by themselves."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            prose.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in prose
    }


def _is_compiled(node: ast.AST) -> bool:
    """Whether a function is a compiled loop, by its decorator."""
    decorators = getattr(node, "decorator_list", ())
    names = (each.func if isinstance(each, ast.Call) else each for each in decorators)
    return any(isinstance(name, ast.Name) and name.id in COMPILED for name in names)


def kinds_of_lines(tree: ast.Module, code: set[int]) -> Counter[str]:
    """How many lines of code are compiled loops, imports, signatures, errors and declarations."""
    left, found = set(code), Counter[str]()  # what is compiled counts as nothing else

    def take(kind: str, first: int, last: int | None) -> None:
        lines = left.intersection(range(first, (last or first) + 1))
        found[kind] += len(lines)
        left.difference_update(lines)

    nodes = list(ast.walk(tree))
    for node in filter(_is_compiled, nodes):
        take("compiled loops", node.lineno, node.end_lineno)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            take("imports", node.lineno, node.end_lineno)
        elif isinstance(node, ast.Raise):
            take("raise statements", node.lineno, node.end_lineno)
        elif isinstance(node, ast.FunctionDef):
            take("signatures", node.lineno, max(node.lineno, node.body[0].lineno - 1))
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign):
                    take("declared fields, options and parameters", field.lineno, field.end_lineno)
    return found


def _name(path: Path, root: Path) -> str:
    """The dotted name of a module."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imports(tree: ast.Module) -> list[str]:
    """All that a module imports, wherever in it; a name may be a module of a package."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def measure(checkout: Path) -> dict[str, int]:
    """All figures of a checkout."""
    root = checkout / "src"
    modules = {_name(path, root): path for path in root.rglob("*.py")}
    figures: Counter[str] = Counter({"files": len(modules)})
    kinds: Counter[str] = Counter()
    importers, by_modules, classes = (defaultdict[str, set[str]](set) for _ in range(3))
    for path in [*modules.values(), *root.rglob("*.pyi")]:
        module = _name(path, root)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for name in _imports(tree):
            if name in modules and name != module:
                importers[name].add(module)
                if path.suffix == ".py":
                    by_modules[name].add(module)
        if path.suffix == ".pyi":
            continue
        code = lines_of_code(text, tree)
        figures["lines of code"] += len(code)
        kinds.update(kinds_of_lines(tree, code))
        figures["lines of docstrings and comments"] += sum(
            bool(line.strip()) for line in text.splitlines()
        ) - len(code)
        for node in ast.walk(tree):
            figures["functions and methods"] += isinstance(node, ast.FunctionDef)
            figures["raises"] += isinstance(node, ast.Raise)
            figures["Any"] += isinstance(node, ast.Name) and node.id == "Any"
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(module)
    figures.update({f"… {kind}": n for kind, n in kinds.most_common()})
    figures["modules with one importer, stubs not counted"] = sum(
        len(by_modules[name]) == 1 for name in modules
    )
    single = [name for name in modules if len(importers[name]) == 1]
    figures["modules with one importer"] = len(single)
    figures["modules with one importer, rooms apart"] = sum(
        name.rpartition(".")[2] not in ROOMS for name in single
    )
    figures["class names used twice"] = sum(len(homes) > 1 for homes in classes.values())
    count = "import softcount; print(len(softcount.__all__))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    figures["public names at the top"] = int(
        subprocess.run([sys.executable, "-c", count], env=environment, capture_output=True).stdout
    )
    for name, journey in JOURNEYS.items():
        figures[f"{name}: files"], figures[f"{name}: functions"] = walk(checkout, journey)
    return dict(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?", default=HERE)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options.checkout.resolve())
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:50} {value:8,}")


if __name__ == "__main__":
    main()
