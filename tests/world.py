"""Small files for all commands at once, and how each command may be called with them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import done

DOCUMENTS = "a cat sat\nthe dog ran\na cat ran\nthe dog sat\n"
FILES = {
    "docs": DOCUMENTS,
    "more": "a cat\nthe dog\n",
    "words": "the\n",
    "gold": "0\n1\n0\n1\n",
    "seeds": "cat\ndog\n",
    "topics": "0\n1\n\n\n",
    "dates": "1990\n1991\n1992\n1993\n",
    "train": "pets\ta cat\nfood\tan apple\n",
    "lines": "pets\ta cat\nfood\tan apple\n\tthe cat\n\tthe apple\n",
    "answered": "3\tpets\tthe cat\n4\t\tthe apple\n",
    "classes": "pets\nfood\npets\nfood\n",
    "rules": "pets\tcat\nfood\tapple\n",
    "edges": "0\t2\n1\t3\n",
    "views": "pets\tcat\tsat\nfood\tapple\tate\n\tcat\tran\n\tapple\tate\n",
    "books": "good\tfine book\nbad\tpoor book\ngood\tfine plot\nbad\tpoor plot\n",
    "kitchen": "\tfine pan\n\tpoor pan\n",
    "votes": "1\tann\tx\n1\tbob\tx\n2\tann\ty\n2\tbob\tx\n3\tbob\ty\n",
    "bags": "1\tyes\ta cat\n1\tyes\tthe apple\n2\tno\tan apple\n",
    "known": "1\tx\n",
    "true": "2\ty\n3\ty\n",
    "pairs": "a b ||| x y\nb ||| y\na ||| x\n",
    "source": "a b\nb\n",
    "target": "x y\ny\n",
    "dictionary": "a\tx\n",
    "links": "0-0 1-1\n0-0\n0-0\n",
    "tags": "a\tD\ncat\tN\n",
    "tagged": "a/D cat/N\n",
    "grammar": "S -> N V [1.0]\nN -> 'x' [0.5] | 'y' [0.5]\nV -> 'y' [1.0]\n",
    "sentences": "x y\ny y\n",
    "trees": "(S (N x) (V y))\n",
    "tosses": "HHT\nTTH\n",
    "coins.py": "import softcount as sc\nimport sides\n\n"
    'which, flip = sc.table("which"), sc.table("flip")\n\n\n'
    "@sc.story\ndef coins(tosses):\n    for z in sides.SIDES:\n"
    "        yield which[z], *(flip[z, x] for x in tosses)\n",
    "sides.py": 'SIDES = "AB"\n',
}
ARCHIVE = "archive"
QUICK = ("--max-iter", "1", "--threads", "1")


@dataclass(frozen=True)
class Call:
    """A way to call a command.

    ``read``      files it needs, in the order of ``{}`` in ``words``
    ``optional``  options that read a file, and which
    ``written``   options that write one
    ``also``      files that are read though nobody names them
    """

    words: str
    read: tuple[str, ...]
    written: tuple[str, ...] = ()
    optional: dict[str, str] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


BOTH = ("--save", "--html")
OF_ALIGN = ("--output", "--dictionary-out", "--phrases", "--html")
CALLS = [
    Call("cluster {}", ("docs",), BOTH, {"--gold": "gold", "--stop-words": "words"}, QUICK),
    Call("cluster {} --load {}", ("docs", "cluster.m"), ("--html",), {"--gold": "gold"}),
    Call(
        "classify {} --train {}",
        ("more", "train"),
        BOTH,
        {"--unlabelled": "docs", "--stop-words": "words"},
        QUICK,
    ),
    Call("classify {} --load {}", ("docs", "classify.m"), ("--html",)),
    Call("annotators {}", ("votes",), BOTH, {"--known": "known", "--gold": "true"}, QUICK),
    Call("annotators {} --load {}", ("votes", "annotators.m"), ("--html",)),
    Call(
        "rules {} {}",
        ("rules", "docs"),
        BOTH,
        {"--known": "gold", "--gold": "gold", "--stop-words": "words"},
        QUICK,
    ),
    Call("rules {} {} --load {}", ("rules", "docs", "rules.m"), ("--html",)),
    Call("bags {}", ("bags",), BOTH, {"--stop-words": "words"}, QUICK),
    Call("bags {} --load {}", ("bags", "bags.m"), ("--html",)),
    Call(
        "bootstrap {} --seeds {}",
        ("lines", "rules"),
        ("--rules", "--html"),
        {"--gold": "classes", "--stop-words": "words"},
    ),
    Call("propagate {}", ("lines",), BOTH, {"--gold": "classes"}),
    Call("propagate {} --graph {}", ("lines", "edges"), ("--html",), {"--gold": "classes"}),
    Call("propagate {} --load {}", ("lines", "propagate.m")),
    Call(
        "cotrain {} --views one,two --max-iter 1",
        ("views",),
        ("--html",),
        {"--gold": "classes"},
    ),
    Call("ask {}", ("lines",), ("--output",), {"--answers": "answered", "--stop-words": "words"}),
    Call("adapt --source {} --target {} --method source-only", ("books", "kitchen"), ("--html",)),
    Call("select {} -k 1,2", ("docs",), ("--html",), {"--stop-words": "words"}, QUICK),
    Call(
        "topics {} -k 2",
        ("docs",),
        (*BOTH, "--pyldavis"),
        {"--seed-words": "seeds", "--labels": "topics", "--stop-words": "words"},
        QUICK,
    ),
    Call("topics {} -k 2 --dates {}", ("docs", "dates"), ("--over-time", "--html"), {}, QUICK),
    Call("topics {} -k 2", (ARCHIVE,), (*BOTH, "--pyldavis"), {"--labels": "topics"}, QUICK),
    Call("topics {} {} --load {}", ("docs", "more", "topics.m"), ("--html", "--pyldavis")),
    Call("similar {} cat {}", ("topics.m", "docs")),
    Call("similar {} cat {}", ("topics.m", ARCHIVE)),
    Call("senses {} --word cat --min-count 1", ("docs",), BOTH, {"--stop-words": "words"}, QUICK),
    Call("senses {} --load {}", ("docs", "senses.m"), ("--html",)),
    Call(
        "align {} -m ibm1",
        ("pairs",),
        ("--save", *OF_ALIGN),
        {"--dictionary": "dictionary", "--links": "links", "--gold": "links"},
        QUICK,
    ),
    Call("align -s {} -t {} -m ibm1", ("source", "target"), ("--save", *OF_ALIGN), {}, QUICK),
    Call("align {} --load {}", ("pairs", "align.m"), OF_ALIGN, {"--gold": "links"}),
    Call("translate {} --pairs {} -m ibm1", ("source", "pairs"), ("--save",), {}, QUICK),
    Call("translate {} --load {}", ("source", "translate.m")),
    Call("tag {} -k 2", ("docs",), BOTH, {"--dictionary": "tags", "--tagged": "tagged"}, QUICK),
    Call("tag {} --load {}", ("docs", "tag.m"), ("--html",)),
    Call(
        "grammar {} -k 2",
        ("source",),
        ("--save", "--html", "--grammar-text"),
        {},
        QUICK,
    ),
    Call(
        "grammar {} --rules {}",
        ("sentences", "grammar"),
        ("--save", "--html", "--grammar-text"),
        {},
        QUICK,
    ),
    Call("grammar --treebank {}", ("trees",), ("--save", "--html")),
    Call("parse {} {}", ("grammar.m", "target")),
    Call("story {} {} --chars", ("coins.py", "tosses"), BOTH, {}, QUICK, ("sides.py",)),
    Call("corpus build {} {}", ("docs", "more"), ("--output",), {"--stop-words": "words"}),
    Call("corpus build {} --like {}", ("docs", ARCHIVE), ("--output",)),
    Call("corpus info {}", (ARCHIVE,)),
]
MODELS = {
    "cluster.m": "cluster docs -k 2 --save",
    "classify.m": "classify more --train train --save",
    "annotators.m": "annotators votes --save",
    "rules.m": "rules rules docs --save",
    "bags.m": "bags bags --save",
    "propagate.m": "propagate lines --save",
    "topics.m": "topics docs -k 2 --save",
    "senses.m": "senses docs --word cat --min-count 1 --save",
    "align.m": "align pairs -m ibm1 --save",
    "translate.m": "translate --pairs pairs -m ibm1 --save",
    "tag.m": "tag docs -k 2 --save",
    "grammar.m": "grammar --treebank trees --save",
    ARCHIVE: "corpus build docs --output",
}
"""Files that commands make, and other commands read."""


def make_world(folder: Path) -> None:
    """All files, in the current folder."""
    assert folder == Path.cwd()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name, words in MODELS.items():
        done(*words.split(), name)


def aliases(base: str, folder: Path) -> list[str]:
    """Other names for a file or folder of the world, which are made if they are not there."""
    link, hard, around = folder / f"link-{base}", folder / f"hard-{base}", folder / "around"
    if not link.is_symlink():
        link.symlink_to(base)
    if not around.is_symlink():
        around.symlink_to(folder, target_is_directory=True)
    (folder / "sub").mkdir(exist_ok=True)
    names = [base, f"./{base}", str(folder / base), link.name, f"around/{base}", f"sub/../{base}"]
    if (folder / base).is_file():
        if not hard.exists():
            os.link(folder / base, hard)
        names.append(hard.name)
    return names


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name there; links are not followed."""
    found = {}
    for here, _, files in os.walk(folder):
        for name in files:
            path = Path(here, name)
            if not path.is_symlink():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def restore(folder: Path, before: dict[str, bytes]) -> None:
    """Bring a folder back to what it was, links to it included."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name, raw in before.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
