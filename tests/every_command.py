"""Every command once, on a little data of its own; with any odd text among it, if wanted."""

from __future__ import annotations

import re
from pathlib import Path

Call = tuple[str | Path, ...]

STORY = """
import softcount as sc

which, says = sc.table("which"), sc.table("says")

@sc.story
def words(line):
    for z in "AB":
        yield which[z], *(says[z, word] for word in line)
"""


def _file(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def every_call(folder: Path, odd: str = "", name: str = "") -> dict[str, Call]:
    """Arguments of each command, in an order in which each finds what it needs; writes its files.

    ``odd``   a text without tabs and line ends that is put among the words of all files, and is a
              word of its own where words stand between spaces
    ``name``  a part of the names of all files
    """
    word = odd.replace(" ", "") or "word"
    odd = odd or "word"

    def file(kind: str, *lines: str) -> Path:
        return _file(folder / f"{kind}{name}.txt", *lines)

    def kept(kind: str) -> Path:
        return folder / f"{kind}{name}.softcount"

    texts = file(
        "texts",
        *(f"apple phone screen {odd} phone", f"phone apple {odd} tablet", "screen tablet apple"),
        *(f"cat dog mouse {odd} cat", f"dog cat {odd} bird", "mouse bird cat"),
    )
    some = file(
        "some",
        *(f"tech{word}\tapple phone {odd}", f"pets{word}\tcat dog {odd}", "\tphone screen apple"),
        *(f"\tmouse cat {odd}", f"\tscreen {odd} tablet phone", "\tdog bird cat"),
    )
    tokens = file(
        "tokens",
        *(
            f"the {word} barks",
            f"a {word} sleeps",
            "the cat barks",
            "a dog sleeps",
            "the dog barks",
        ),
        *(f"the cat sees a {word}", "a dog sees the cat"),
    )
    pairs = file(
        "pairs",
        *(f"das {word} ||| the {word}", "das haus ||| the house", f"ein {word} ||| a {word}"),
        *("ein haus ||| a house", f"das haus ein {word} ||| the house a {word}"),
    )
    votes = file(
        "votes",
        *(
            f"{word}{item}\t{word}{rater}\t{('yes', 'no')[(item + item * rater // 3) % 2]}{word}"
            for item in range(6)
            for rater in range(4)
        ),
    )
    patterns = file("patterns", f"tech{word}\tphone|{re.escape(word)}", f"pets{word}\tcat|dog")
    instances = file(
        "instances",
        *(f"{word}1\tyes{word}\tapple {odd}", f"{word}1\tyes{word}\tcat dog"),
        *(f"{word}2\tno{word}\tcat {odd}", f"{word}3\t\tapple phone"),
    )
    views = file(
        "views",
        *(f"auto{word}\tcar for sale {odd}\ttwo doors", "sport\tmy hockey team\tgoal after goal"),
        *(f"\tcar sale\tnew engine doors {odd}", f"\thockey\tpuck goal {odd}", "\tsale\tengine"),
    )
    source = file(
        "source",
        *(
            f"{y}{word}\t{text} {odd}"
            for y, text in 4 * [("pos", "good plot"), ("neg", "bad page")]
        ),
    )
    target = file(
        "target",
        *(f"{y}{word}\t{text} {odd}" for y, text in [("pos", "good knife"), ("neg", "bad pan")]),
        *(f"\t{text} {odd}" for text in 3 * ["good sharp knife", "bad blunt pan"]),
    )
    train = file("train", f"tech{word}\tapple phone {odd}", f"pets{word}\tcat dog {odd}")
    seeds = file("seeds", f"tech{word}\tphone", f"pets{word}\tcat")
    story = _file(folder / f"story{len(name)}.py", STORY)
    archive, run = folder / f"archive{name}", folder / f"run{name}"
    return {
        "cluster": ("cluster", texts, "-k", "2", "--folder", run),
        "classify": ("classify", "--train", train, "--unlabelled", texts, texts),
        "annotators": ("annotators", votes),
        "rules": ("rules", patterns, texts),
        "bags": ("bags", instances),
        "bootstrap": ("bootstrap", some, "--seeds", seeds),
        "propagate": ("propagate", some),
        "cotrain": ("cotrain", views, "--views", "one,two", "--columns", "label,one,two"),
        "ask": ("ask", some, "-n", "2"),
        "adapt": ("adapt", "--source", source, "--target", target, "--method", "all"),
        "select": ("select", texts, "-k", "1:3"),
        "topics": ("topics", texts, "-k", "2", "--save", kept("topics")),
        "similar": ("similar", kept("topics"), "apple", texts),
        "senses": ("senses", "--word", "phone", texts, "--min-count", "1"),
        "align": ("align", pairs),
        "translate": ("translate", "--pairs", pairs, "-m", "ibm1", tokens),
        "tag": ("tag", tokens, "-k", "2"),
        "grammar": ("grammar", tokens, "-k", "2", "--save", kept("grammar")),
        "parse": ("parse", kept("grammar"), tokens),
        "story": ("story", story, tokens),
        "resume": ("resume", run),
        "show": ("show", run),
        "corpus build": ("corpus", "build", texts, "-o", archive),
        "corpus info": ("corpus", "info", archive),
        "warm-up": ("warm-up", "annotators"),
        "demo": ("demo",),
    }
