"""Phrase pairs by their definition, every box tried; their scores from plain counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.align.phrases import extract_phrases, phrase_table
from softcount.core.errors import DataError
from softcount.text.bitext import as_bitext
from softcount.text.links import read_links
from tests.real import lines

cases = settings(max_examples=60, deadline=None)
words = st.lists(st.sampled_from(["a", "b", "|||", "~", "é"]), max_size=5)


@st.composite
def corpora(draw):
    pairs, alignments = [], []
    for _ in range(draw(st.integers(1, 4))):
        source, target = draw(words), draw(words)
        cells = list(product(range(len(source)), range(len(target))))
        pairs.append((source, target))
        alignments.append(draw(st.lists(st.sampled_from(cells), max_size=6)) if cells else [])
    return pairs, alignments


def allowed(n_source, n_target, links, max_length):
    """All boxes (ends exclusive) that hold a link and that no link leaves."""
    for a, b, c, d in product(range(n_source), range(n_source), range(n_target), range(n_target)):
        if a <= b < a + max_length and c <= d < c + max_length:
            inside = [(a <= i <= b, c <= j <= d) for i, j in links]
            if any(x and y for x, y in inside) and all(x == y for x, y in inside):
                yield a, b + 1, c, d + 1


def boxes_of(found, pairs):
    starts = np.cumsum([[0, 0]] + [[len(s), len(t)] for s, t in pairs], axis=0)
    return [
        (n, *(s - starts[n][0]).tolist(), *(t - starts[n][1]).tolist())
        for n, s, t in zip(found.pair.tolist(), found.source, found.target, strict=True)
    ]


@cases
@given(corpora(), st.integers(1, 6))
def test_are_all_that_the_definition_allows(corpus, max_length):
    pairs, alignments = corpus
    found = extract_phrases(as_bitext(pairs), alignments, max_length)
    expected = [
        (n, *box)
        for n, (source, target) in enumerate(pairs)
        for box in allowed(len(source), len(target), alignments[n], max_length)
    ]
    boxes = boxes_of(found, pairs)
    assert boxes == sorted(expected, key=lambda box: (box[0], *box[3:], *box[1:3]))
    for k, (n, a, b, c, d) in enumerate(boxes):
        source, target = pairs[n]
        assert found[k] == (" ".join(source[a:b]), " ".join(target[c:d]))
        inside = {(i - a, j - c) for i, j in alignments[n] if a <= i < b}
        assert found.alignment(k) == sorted(inside)


def lexicon(pairs, alignments):
    """w(s | t) and w(t | s) by (s, t); None is the empty word."""
    count = Counter()
    for (source, target), links in zip(pairs, alignments, strict=True):
        count.update((source[i], target[j]) for i, j in set(links))
        count.update((s, None) for i, s in enumerate(source) if all(i != x for x, _ in links))
        count.update((None, t) for j, t in enumerate(target) if all(j != x for _, x in links))
    of_source, of_target = Counter(), Counter()
    for (s, t), c in count.items():
        of_source[s] += c
        of_target[t] += c
    given_target = {(s, t): c / of_target[t] for (s, t), c in count.items()}
    return given_target, {(s, t): c / of_source[s] for (s, t), c in count.items()}


def scored(pairs, alignments, max_length):
    """A phrase table from dictionaries: {(source, target): (scores, alignment, counts)}."""
    seen = defaultdict(Counter)
    for (source, target), links in zip(pairs, alignments, strict=True):
        boxes = sorted(
            allowed(len(source), len(target), links, max_length), key=lambda x: (*x[2:], *x[:2])
        )
        for a, b, c, d in boxes:
            inside = tuple(sorted({(i - a, j - c) for i, j in links if a <= i < b}))
            seen[tuple(source[a:b]), tuple(target[c:d])][inside] += 1
    of_source, of_target = Counter(), Counter()
    for (s, t), several in seen.items():
        of_source[s] += several.total()
        of_target[t] += several.total()
    given_target, given_source = lexicon(pairs, alignments)
    table = {}
    for (s, t), several in seen.items():
        ((links, _),) = several.most_common(1)  # of equals, the first that was counted
        lex_s = lex_t = 1.0
        for i, word in enumerate(s):
            with_it = [given_target[word, t[j]] for x, j in links if x == i]
            lex_s *= np.mean(with_it or [given_target.get((word, None), 0)])
        for j, word in enumerate(t):
            with_it = [given_source[s[i], word] for i, x in links if x == j]
            lex_t *= np.mean(with_it or [given_source.get((None, word), 0)])
        n = several.total()
        scores = n / of_target[t], lex_s, n / of_source[s], lex_t
        table[" ".join(s), " ".join(t)] = scores, list(links), (of_target[t], of_source[s], n)
    return table


@cases
@given(corpora(), st.integers(1, 6))
def test_scores_are_those_of_plain_counts(corpus, max_length):
    expected = scored(*corpus, max_length)
    table = phrase_table(*corpus, max_length)
    assert len(table) == len(expected)
    for one in table:
        scores, alignment, counts = expected.pop((one.source, one.target))
        assert one.scores == pytest.approx(scores, rel=1e-12)
        assert one.counts == counts
        assert one.alignment == alignment
    assert not expected


def test_the_most_frequent_links_are_kept():
    pair = (["a", "b"], ["x", "y"])
    straight, crossed, full = [(0, 0), (1, 1)], [(0, 1), (1, 0)], [(0, 0), (1, 1), (0, 1)]

    def kept(*alignments):
        table = phrase_table([pair] * len(alignments), alignments)
        return next(one.alignment for one in table if one.source == "a b")

    assert kept(straight, crossed, crossed) == crossed
    assert kept(full, crossed, straight, crossed, straight) == crossed
    assert kept(straight, crossed) == straight
    assert kept(crossed, straight) == crossed


def test_lines_are_as_moses_has_them():
    """Scores: source given target (phrase, words), target given source; counts: target, source."""
    pairs = [("das haus", "the house"), ("das", "that"), ("das", "the"), ("das buch", "the book")]
    links = [[(0, 0), (1, 1)], [(0, 0)], [(0, 0)], [(0, 0)]]
    assert list(phrase_table(pairs, links).lines()) == [
        "das buch ||| the book ||| 0.5 1 0.5 0.75 ||| 0-0 ||| 2 2 1",
        "das buch ||| the ||| 0.25 1 0.5 0.75 ||| 0-0 ||| 4 2 1",
        "das haus ||| the house ||| 1 1 1 0.75 ||| 0-0 1-1 ||| 1 1 1",
        "das ||| that ||| 1 1 0.2 0.25 ||| 0-0 ||| 1 5 1",
        "das ||| the book ||| 0.5 1 0.2 0.75 ||| 0-0 ||| 2 5 1",
        "das ||| the ||| 0.75 1 0.6 0.75 ||| 0-0 ||| 4 5 3",
        "haus ||| house ||| 1 1 1 1 ||| 0-0 ||| 1 1 1",
    ]


@cases
@given(corpora())
def test_lines_are_sorted_and_have_five_parts(corpus):
    pairs, alignments = corpus
    pairs = [([w.strip("|") or "w" for w in s], [w.strip("|") or "w" for w in t]) for s, t in pairs]
    written = list(phrase_table(pairs, alignments).lines())
    assert written == sorted(written, key=str.encode)
    assert all(len(line.split(" ||| ")) == 5 for line in written)


def test_bars_are_escaped():
    (line,) = phrase_table([(["|||"], ["a|b"])], [[(0, 0)]]).lines()
    assert line == "&#124;&#124;&#124; ||| a&#124;b ||| 1 1 1 1 ||| 0-0 ||| 1 1 1"


def test_long_phrases():
    n = 40
    pair = [str(i) for i in range(n)], [str(j) for j in range(n)]
    found = extract_phrases([pair], [[(i, i) for i in range(n)]], max_length=n)
    assert len(found) == n * (n + 1) // 2
    corners = extract_phrases([pair], [[(0, n - 1), (n - 1, 0)]], max_length=n)
    assert len(corners) == sum(1 for _ in allowed_corners(n))


def allowed_corners(n):
    """Stretches beside the two links (0, n − 1) and (n − 1, 0), and the box that holds both."""
    yield from product(range(1, n), range(1, n))
    yield from product(range(1, n), range(1, n))
    yield n, n


def test_nothing_to_find():
    for pairs, alignments in [([("a b", "c")], [[]]), ([("", "c")], [[]])]:
        assert list(extract_phrases(pairs, alignments)) == []
        assert list(phrase_table(pairs, alignments).lines()) == []


def test_bad_input():
    with pytest.raises(DataError, match="pair 1: the link 0-1 is outside its pair of 2 source"):
        extract_phrases([("a", "b"), ("a b", "c")], [[], [(0, 1)]])
    with pytest.raises(DataError, match="links of 1 pairs for 2 pairs"):
        phrase_table([("a", "b"), ("a b", "c")], [[]])
    for bad in (0, -1, 2.5, True, "7"):
        with pytest.raises(DataError, match="max_length is"):
            extract_phrases([("a", "b")], [[]], bad)
    with pytest.raises(IndexError, match="no phrase pair 1"):
        extract_phrases([("a", "b")], [[(0, 0)]])[1]


def test_real_text_with_gold_links():
    sides = (lines(f"collins_es_en/dev.{language}") for language in ("en", "es"))
    pairs = [(e.split(), f.split()) for e, f in zip(*sides, strict=True)]
    shapes = [(len(e), len(f)) for e, f in pairs]
    alignments = [list(links) for links in read_links(lines("collins_es_en/dev.align"), shapes)]
    assert len(extract_phrases(pairs[:30], alignments[:30], 3)) == counted(
        pairs[:30], alignments[:30], 3
    )
    table = phrase_table(pairs, alignments, 3)
    best = {}
    for one in table:
        if one.counts[2] > best.get(one.source, ("", 0))[1]:
            best[one.source] = one.target, one.counts[2]
    assert best["parliament"][0] == "parlamento"
    assert best["the european union"][0] == "la unión europea"
    assert (table.scores > 0).all()
    assert (table.scores <= 1 + 1e-12).all()


def counted(pairs, alignments, max_length):
    """How many boxes there are, by their definition: links inside, in its rows, in its columns."""
    count = 0
    for (source, target), links in zip(pairs, alignments, strict=True):
        linked = np.zeros((len(source) + 1, len(target) + 1), int)
        for i, j in links:
            linked[i + 1, j + 1] = 1
        below = linked.cumsum(0).cumsum(1)
        for a, c in product(range(len(source)), range(len(target))):
            for b in range(a + 1, min(a + max_length, len(source)) + 1):
                for d in range(c + 1, min(c + max_length, len(target)) + 1):
                    inside = below[b, d] - below[a, d] - below[b, c] + below[a, c]
                    rows, columns = below[b, -1] - below[a, -1], below[-1, d] - below[-1, c]
                    count += bool(inside and inside == rows == columns)
    return count
