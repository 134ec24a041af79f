"""Stories as plain text: each factory takes ``table`` and ``story`` and gives the story back.

So the same story is told to the library (``softcount.table``, ``softcount.story``) and to the
brute-force interpreter (`tests.oracles.enumeration`), which share no code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Table = Callable[..., Any]
Decorator = Callable[[Callable[..., Iterator[Any]]], Any]


def coins(table: Table, story: Decorator) -> Any:
    """A card hides which of two coins is tossed."""
    which, flip = table("which"), table("flip")

    @story
    def tossed(tosses: Sequence[str]) -> Iterator[Any]:
        for z in "AB":
            yield which[z], *(flip[z, x] for x in tosses)

    return tossed


def labelled_coins(table: Table, story: Decorator) -> Any:
    """The same with the coin in sight: nothing is hidden."""
    which, flip = table("which"), table("flip")

    @story
    def tossed(coin: str, tosses: Sequence[str]) -> Iterator[Any]:
        yield which[coin], *(flip[coin, x] for x in tosses)

    return tossed


def documents(table: Table, story: Decorator) -> Any:
    """A document mixture: one class a document, words drawn from the class."""
    theme, word = table("theme"), table("word")

    @story
    def document(words: Sequence[str]) -> Iterator[Any]:
        for z in (1, 2):
            yield theme[z], *(word[z, w] for w in words)

    return document


def hmm(table: Table, story: Decorator, tags: str = "XY") -> Any:
    """A hidden Markov model with a start and a stop."""
    first, trans, emit, stop = table("first"), table("trans"), table("emit"), table("stop")

    @story
    def tail(words: Sequence[str], i: int, tag: str) -> Iterator[Any]:
        if i == len(words):
            yield stop[tag, "end"]
            return
        for after in tags:
            yield (
                stop[tag, "go"],
                trans[tag, after],
                emit[after, words[i]],
                tail(words, i + 1, after),
            )

    @story
    def sentence(words: Sequence[str]) -> Iterator[Any]:
        for tag in tags:
            yield first[tag], emit[tag, words[0]], tail(words, 1, tag)

    return sentence


def partly_tagged(table: Table, story: Decorator, tags: str = "XY") -> Any:
    """A hidden Markov model in which some tags are known: it looks at the values it is given."""
    trans, emit = table("trans"), table("emit")

    @story
    def tail(pairs: Sequence[tuple[str, str | None]], i: int, tag: str) -> Iterator[Any]:
        if i == len(pairs):
            yield trans[tag, "end"]
            return
        word, known = pairs[i]
        for after in tags:
            if known is None or known == after:
                yield trans[tag, after], emit[after, word], tail(pairs, i + 1, after)

    @story
    def sentence(pairs: Sequence[tuple[str, str | None]]) -> Iterator[Any]:
        yield tail(pairs, 0, "start")

    return sentence


def ibm1(table: Table, story: Decorator) -> Any:
    """IBM Model 1 without an empty word; the choice among the source words is not weighed."""
    t = table("t")

    @story
    def link(es: Sequence[str], f: str) -> Iterator[Any]:
        for e in es:
            yield t[e, f]

    @story
    def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
        yield tuple(link(es, f) for f in fs)

    return pair


def ibm1_null(table: Table, story: Decorator) -> Any:
    """IBM Model 1 in which a word may also come from nowhere."""
    t = table("t")

    @story
    def link(es: Sequence[str], f: str) -> Iterator[Any]:
        yield t[None, f]
        for e in es:
            yield t[e, f]

    @story
    def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
        yield tuple(link(es, f) for f in fs)

    return pair


def pcfg(
    table: Table, story: Decorator, branches: Sequence[str] = ("SSS", "SSA", "SAS", "ASA")
) -> Any:
    """A context-free grammar in Chomsky's normal form with root S; a branch ABC is A → B C."""
    rule = table("rule")

    @story
    def span(words: Sequence[str], i: int, j: int, left: str) -> Iterator[Any]:
        if j - i == 1:
            yield rule[left, words[i]]
            return
        for k in range(i + 1, j):
            for a, b, c in branches:
                if a == left:
                    yield rule[a, (b, c)], span(words, i, k, b), span(words, k, j, c)

    @story
    def sentence(words: Sequence[str]) -> Iterator[Any]:
        yield span(words, 0, len(words), "S")

    return sentence


def twice(table: Table, story: Decorator) -> Any:
    """The same call twice in one alternative: its hidden values are drawn twice, independently."""
    which, flip, how = table("which"), table("flip"), table("how")

    @story
    def toss(x: str) -> Iterator[Any]:
        for z in "AB":
            yield which[z], flip[z, x]

    @story
    def repeated(x: str) -> Iterator[Any]:
        yield how["single"], toss(x)
        yield how["double"], toss(x), toss(x)
        yield how["both"], toss(x), flip["A", x], flip["A", x], toss(x)

    return repeated


def segmentation(
    table: Table, story: Decorator, lexicon: Sequence[str] = ("a", "ab", "bab")
) -> Any:
    """A text cut into words of a lexicon: a cut after which no word fits is a dead end."""
    piece = table("piece")

    @story
    def rest(text: str, i: int) -> Iterator[Any]:
        if i == len(text):
            yield piece["end"]
        for word in lexicon:
            if text.startswith(word, i):
                yield piece[word], rest(text, i + len(word))

    @story
    def cut(text: str) -> Iterator[Any]:
        yield rest(text, 0)

    return cut


def bags(table: Table, story: Decorator) -> Any:
    """A document mixture over (word, how often) pairs: equal words are one event, repeated."""
    theme, word = table("theme"), table("word")

    @story
    def bag(pairs: Sequence[tuple[str, int]]) -> Iterator[Any]:
        for z in (1, 2):
            yield theme[z], *(event for w, n in pairs for event in (word[z, w],) * n)

    return bag
