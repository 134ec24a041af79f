"""Every command on a few lines, with the options that bring other kernels into play.

`softcount warm-up` runs these calls to have compiled what a command needs, and so do builds of
wheels. A new model, learner or kind of data of a command belongs here.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

REHEARSALS = {
    "cluster": """
        cluster texts.txt -k 2
        cluster texts.txt -k 2 --model bernoulli
        cluster texts.txt -k 2 --model process
        cluster texts.txt -k 2 --learner variational-bayes
        cluster texts.txt -k 2 --learner collapsed-gibbs --max-iter 3
        cluster texts.txt -k 2 --learner online-em --max-iter 3
        cluster texts.txt -k 2 --init kmeans
        cluster texts.txt -k 2 --init spectral
        cluster texts.txt -k 2 --save cluster.softcount --html cluster.html
        cluster --load cluster.softcount texts.txt --proba
        cluster points.txt -k 2 --model gaussian
        cluster points.txt -k 2 --model process-gaussian
        cluster points.txt -k 2 --model kmeans
        cluster points.txt -k 2 --model soft-kmeans
    """,
    "classify": """
        classify --train train.tsv --unlabelled texts.txt texts.txt
        classify --train train.tsv --unlabelled texts.txt texts.txt --bernoulli
        classify --train train.tsv texts.txt
    """,
    "annotators": """
        annotators votes.tsv
        annotators votes.tsv --learner variational-bayes
    """,
    "rules": """
        rules patterns.tsv texts.txt
        rules patterns.tsv texts.txt --words
        rules patterns.tsv texts.txt --silence --tying one-coin
    """,
    "bags": "bags bags.tsv",
    "bootstrap": "bootstrap some.tsv --seeds seeds.tsv",
    "propagate": "propagate some.tsv",
    "cotrain": "cotrain views.tsv --views one,two --columns label,one,two",
    "ask": "ask some.tsv",
    "adapt": "adapt --source source.tsv --target target.tsv --method all",
    "select": "select texts.txt -k 1:2",
    "topics": """
        topics texts.txt -k 2
        topics texts.txt -k 2 --model plsa
        topics texts.txt -k 2 --dtype float32
        topics texts.txt -k 2 --learner variational-bayes --max-iter 3
        topics texts.txt -k 2 --learner collapsed-gibbs --max-iter 3
        topics texts.txt -k 2 --learner online-em --max-iter 3
        topics texts.txt -k 2 --init anchors
        topics texts.txt -k 2 --save topics.softcount --html topics.html
        topics --load topics.softcount texts.txt
    """,
    "similar": """
        topics texts.txt -k 2 --save topics.softcount
        similar topics.softcount wind texts.txt
    """,
    "senses": "senses --word the texts.txt --min-count 1",
    "align": """
        align pairs.txt
        align pairs.txt --html align.html --save align.softcount
        align --load align.softcount pairs.txt
        align -i pairs.txt -m ibm1 -c table.tsv
        align pairs.txt -m ibm2
        align -d -o -v -i pairs.txt
        align pairs.txt -m hmm --proba
        align pairs.txt -m gibbs
        align pairs.txt --dtype float64
        align pairs.txt --no-agree
        align pairs.txt --phrases phrases.txt --learner hard-em
    """,
    "translate": """
        translate --pairs pairs.txt tokens.txt
        translate --pairs pairs.txt -m ibm1 tokens.txt --n-best 2
    """,
    "tag": """
        tag tokens.txt -k 2
        tag tokens.txt -k 2 --dtype float32
        tag tokens.txt -k 2 --order 2
        tag tokens.txt -k 2 --learner hard-em --decode posterior
        tag tokens.txt -k 2 --learner variational-bayes
        tag tokens.txt -k 2 --learner gibbs --max-iter 3
        tag tokens.txt -k 2 --learner collapsed-gibbs --max-iter 3
        tag tokens.txt -k 2 --proba --save tag.softcount --html tag.html
        tag --load tag.softcount tokens.txt
        tag tokens.txt --tagged tagged.txt
        tag tokens.txt --dictionary dictionary.tsv
    """,
    "grammar": """
        grammar tokens.txt -k 2
        grammar tokens.txt -k 2 --dtype float32
        grammar tokens.txt -k 2 --learner hard-em
        grammar tokens.txt -k 2 --learner gibbs --max-iter 3
        grammar tokens.txt -k 2 --learner variational-bayes --max-iter 3
        grammar tokens.txt -k 2 --save grammar.softcount --html grammar.html --show 1
        grammar ruled.txt --rules rules.txt
        grammar ruled.txt --rules rules.txt --learner hard-em
        grammar ruled.txt --rules rules.txt --learner collapsed-gibbs --max-iter 3
        grammar --treebank trees.txt --save counted.softcount
    """,
    "parse": """
        grammar tokens.txt -k 2 --save grammar.softcount
        parse grammar.softcount tokens.txt
        parse grammar.softcount tokens.txt --method brackets
        parse grammar.softcount tokens.txt --k-best 2
        grammar --treebank trees.txt --save counted.softcount
        parse counted.softcount ruled.txt
        parse counted.softcount ruled.txt --prune 0.01
        parse counted.softcount ruled.txt --k-best 2
    """,
    "story": """
        story story.py tokens.txt
        story story.py tokens.txt --best --learner variational-bayes
        story story.py tokens.txt --learner gibbs --max-iter 3
        story story.py tokens.txt --learner monte-carlo-em --max-iter 3
    """,
    "corpus": """
        corpus build texts.txt -o archive
        topics archive -k 2
    """,
    "resume": """
        cluster texts.txt -k 2 --folder run
        resume run
    """,
    "demo": "demo",
}
"""By command: calls in an order in which each finds the files that it needs."""

COMPILES_NOTHING = {"show", "warm-up"}
"""The other commands."""

STORY = """
import softcount as sc

which, says = sc.table("which"), sc.table("says")

@sc.story
def words(line):
    for z in "AB":
        yield which[z], *(says[z, word] for word in line)
"""

RULES = """
S -> NP VP
NP -> 'she' | 'the' N | NP PP
VP -> 'sees' NP | 'sleeps' | VP PP
PP -> 'with' NP
N -> 'dog' | 'man'
"""


def write_files(folder: Path) -> None:
    """Write the files that the calls read."""
    from softcount import samples

    notes, pairs = samples.notes()[::6], samples.pairs()[:8]
    tokens = [" ".join(words) for words in samples.sentences()[:8]]
    known = ["sea", "sea", "", "kitchen", "kitchen", "", "", "football", "football", ""]
    noted = [f"{label}\t{note}" for label, note in zip(known, notes, strict=True)]
    votes = [(item, who) for item in range(6) for who in range(4)]
    words = sorted({word for line in tokens for word in line.split()})
    files = {
        "texts.txt": notes,
        "points.txt": [f"{x}\t{x * x % 7}" for x in range(9)],
        "train.tsv": [line for line in noted if not line.startswith("\t")],
        "some.tsv": noted,
        "seeds.tsv": ["sea\twind", "kitchen\tonion"],
        "votes.tsv": [f"{i}\t{who}\t{(i + i * who // 3) % 2}" for i, who in votes],
        "patterns.tsv": ["sea\twind|sea|boat", "kitchen\tonion|rice", "football\tgoal|match"],
        "bags.tsv": [
            f"bag{i}\t{'yn'[i % 2]}\t{'ab'[i % 2]} {word}" for i in range(6) for word in "xyz"
        ],
        "views.tsv": [f"{'ab'[i % 2] if i < 4 else ''}\t{i % 2}w {i}\t{i % 2}v" for i in range(8)],
        "source.tsv": 4 * ["pos\tgood plot", "neg\tbad page"],
        "target.tsv": ["pos\tgood knife", "neg\tbad pan", *3 * ["\tgood knife", "\tbad blunt pan"]],
        "pairs.txt": [f"{' '.join(source)} ||| {' '.join(target)}" for source, target in pairs],
        "tokens.txt": tokens,
        "tagged.txt": [" ".join(f"{word}/{len(word) % 2}" for word in tokens[0].split())],
        "dictionary.tsv": [f"{word}\t{'A B'[n % 2 :]}" for n, word in enumerate(words)],
        "rules.txt": RULES.strip().split("\n"),
        "ruled.txt": ["she sees the dog with the man", "the man sleeps", "the dog sees the man"],
        "trees.txt": [
            "(S (NP she) (VP (VBZ sees) (NP (DT the) (NN dog))))",
            "(S (NP (DT the) (NN man)) (VP sleeps))",
        ],
        "story.py": [STORY],
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def calls(command: str) -> list[list[str]]:
    """Return the arguments of the calls that rehearse a command."""
    lines = REHEARSALS[command].strip().split("\n")
    return [shlex.split(line) for line in lines]


def rehearse(command: str, folder: Path) -> list[str]:
    """Run the calls of a command in a folder; return what went wrong."""
    from typer.main import get_command

    from softcount.cli.app import app

    failed, before = [], Path.cwd()
    os.chdir(folder)
    try:
        write_files(Path())
        for call in calls(command):
            with run_quietly() as said:
                try:
                    code = get_command(app).main(call, prog_name="softcount", standalone_mode=False)
                except Exception as error:
                    code = error
            if code:
                failed.append(f"softcount {shlex.join(call)}: {code!r} {said.getvalue()}")
    finally:
        os.chdir(before)
    return failed


@contextmanager
def run_quietly() -> Iterator[io.StringIO]:
    """Run without standard input and output; what is said on stderr goes to the text."""
    said, stdin = io.StringIO(), sys.stdin
    with (
        open(os.devnull, "r+", encoding="utf-8") as nothing,
        redirect_stdout(nothing),
        redirect_stderr(said),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.stdin = nothing
        try:
            yield said
        finally:
            sys.stdin = stdin
