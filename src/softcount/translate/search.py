"""Stack decoding: the beam search for the best translation (Koehn 2004).

A hypothesis has read (translated) some words of X and written a prefix of Y. Words are read in any
order, but at most ``reorder`` positions beyond the first unread one. There is one stack of
hypotheses for each number of words read; the paths through the stacks form a lattice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.translate.language_model import END, MARKS, Automaton, LanguageModel, advance
from softcount.translate.parameters import SearchSettings

NULL, SHARED = -1, -2
"""In place of a word of Y: x is aligned to NULL, or to the word that was written last."""
NOWHERE = -1
"""In place of a position in X: a word of Y is inserted, aligned to no x."""


class DecodingTask(NamedTuple):
    """The input of the decoder for one sentence X; scores are weighted log-probabilities.

    The candidate words of Y are numbered locally, for this sentence.

    ``first``, ``candidates``  the translations of x_j are candidates first_j to first_{j+1}
    ``insertable``  words that can be inserted without an x
    ``words``       the language model's index of each word
    ``channel``     log t(x_j | y), one row per word
    ``null``        log t(x_j | NULL) plus the log-probability of NULL
    ``estimate``    an estimate of the best score for reading x_j (the future score)
    """

    first: IntArray  # (words of X + 1,)
    candidates: IntArray
    insertable: IntArray
    words: IntArray  # (words of Y,)
    channel: FloatArray  # (words of Y, words of X)
    null: FloatArray  # (words of X,)
    estimate: FloatArray  # (words of X,)


class StepCosts(NamedTuple):
    """Weights of the language model and of a jump by one word, and log-probabilities of steps.

    ``insertion`` is for words y of fertility 0, ``sharing`` for those of fertility 2 or more.
    """

    language: float
    jump: float
    insertion: float
    sharing: float
    reorder: int


class HypothesisStack(NamedTuple):
    """Hypotheses, best first.

    ``unread``  the first unread position
    ``mask``    bit b: position unread + 1 + b is read
    ``at``      the position read last
    ``state``   the state of the language model
    ``last``    the word written last
    ``open``    1 after an insertion, until the next x is translated
    ``score``   the score so far
    ``rest``    the estimated future score of the unread positions
    """

    unread: IntArray  # each (hypotheses,)
    mask: IntArray
    at: IntArray
    state: IntArray
    last: IntArray
    open: IntArray
    score: FloatArray
    rest: FloatArray

    def first(self, n: int) -> HypothesisStack:
        """Return the first n hypotheses."""
        return HypothesisStack._make(field[:n] for field in self)


class SearchSteps(NamedTuple):
    """Extensions of hypotheses: which hypothesis, the position read, the word written, results."""

    source: IntArray  # each (steps,)
    place: IntArray
    word: IntArray
    state: IntArray
    score: FloatArray
    rest: FloatArray

    @classmethod
    def empty(cls, n: int) -> SearchSteps:
        """Allocate n steps."""
        return cls._make([*(np.empty(n, np.int64) for _ in range(4)), np.empty(n), np.empty(n)])

    def first(self, n: int) -> SearchSteps:
        """Return the first n steps."""
        return SearchSteps._make(field[:n] for field in self)


@inline
def _put(steps: Any, n: Any, h: Any, j: Any, u: Any, state: Any, score: Any, rest: Any) -> None:
    steps.source[n], steps.place[n], steps.word[n], steps.state[n] = h, j, u, state
    steps.score[n], steps.rest[n] = score, rest


@njit
def extend_by_insertion(
    stack: HypothesisStack,
    task: DecodingTask,
    weights: StepCosts,
    model: Automaton,
    steps: SearchSteps,
) -> None:
    """Insert a word without reading one; ``steps`` gets one per hypothesis and insertable word."""
    n = 0
    for h in range(len(stack.score)):
        for u in task.insertable:
            log_p, state = advance(model, stack.state[h], task.words[u])
            score = stack.score[h] + weights.insertion + weights.language * log_p
            _put(steps, n, h, NOWHERE, u, state, score, stack.rest[h])
            n += 1


@njit
def extend_by_reading(
    stack: HypothesisStack,
    task: DecodingTask,
    weights: StepCosts,
    model: Automaton,
    margin: float,
    steps: SearchSteps,
) -> int:
    """Read one more word: translate it, or align it to NULL or to the word written last.

    Steps that score more than ``margin`` below the best are pruned. Returns the number of steps.
    """
    n_places = len(task.estimate)
    n, worst = 0, -np.inf
    for h in range(len(stack.score)):
        begin = stack.unread[h]
        for j in range(begin, min(n_places, begin + weights.reorder + 1)):
            if j > begin and (stack.mask[h] >> (j - begin - 1)) & 1:
                continue
            rest = stack.rest[h] - task.estimate[j]
            base = stack.score[h] - weights.jump * abs(j - stack.at[h] - 1)
            if base + rest < worst:
                continue
            for c in range(task.first[j], task.first[j + 1]):
                u = task.candidates[c]
                score = base + task.channel[u, j]
                if score + rest < worst:  # log-probabilities can only lower the score
                    continue
                log_p, state = advance(model, stack.state[h], task.words[u])
                score += weights.language * log_p
                if score + rest >= worst:
                    _put(steps, n, h, j, u, state, score, rest)
                    n += 1
                    worst = max(worst, score + rest - margin)
            if stack.open[h]:
                continue
            for u in (NULL, SHARED):  # x_j is read without writing a word
                if u == NULL:
                    score = base + task.null[j]
                elif stack.last[h] >= 0:
                    score = base + (weights.sharing + task.channel[stack.last[h], j])
                else:
                    score = -np.inf
                if score > -np.inf and score + rest >= worst:
                    _put(steps, n, h, j, u, stack.state[h], score, rest)
                    n += 1
                    worst = max(worst, score + rest - margin)
    return n


def select_best(
    stack: HypothesisStack, steps: SearchSteps, beam: int, margin: float
) -> tuple[HypothesisStack, Array, Array]:
    """Return the best resulting hypotheses, the kept steps, and the hypothesis each leads to.

    At most ``beam`` hypotheses are kept. Steps recombine (lead to the same hypothesis) if no future
    step can distinguish them: the same positions are read, the last position and the last word are
    the same, and the language model is in the same state.
    """
    size = min(beam, len(steps.score))
    new = HypothesisStack._make(np.empty(size, field.dtype) for field in stack)
    n_hypotheses, kept, where = _fill_stack(stack, steps, beam, margin, new)
    return new.first(n_hypotheses), kept, where


@njit
def _fill_stack(
    stack: HypothesisStack, steps: SearchSteps, beam: int, margin: float, new: HypothesisStack
) -> tuple[int, Array, Array]:
    """Fill ``new``, best first; return its size, the kept steps, and where each leads."""
    priority = steps.score + steps.rest
    worst = (np.max(priority) if len(priority) else 0.0) - margin
    good = np.flatnonzero(priority >= worst)
    order = good[np.argsort(-priority[good])]
    found, room = 0, min(beam, len(order))
    bits = 2
    while (1 << bits) < 2 * room:
        bits += 1
    slots = np.full(1 << bits, -1, np.int64)  # a hash table of recombination keys
    arrived, where = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    n = 0
    for e in order:
        state = steps.state[e]
        unread, mask, at, last, is_open = _read(stack, steps, e)
        key = mix(np.uint64(state) + np.uint64(0x9E3779B97F4A7C15))
        key = mix(key ^ np.uint64(((unread << 31) ^ mask) * 2 + is_open))
        key = mix(key ^ np.uint64(((at + 1) << 32) ^ (last + 1)))
        slot = np.int64(key & np.uint64(len(slots) - 1))
        while slots[slot] >= 0:
            i = slots[slot]
            if (
                new.state[i] == state
                and new.unread[i] == unread
                and new.mask[i] == mask
                and new.at[i] == at
                and new.last[i] == last
                and new.open[i] == is_open
            ):
                break
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            if found == room:
                continue
            slots[slot] = found
            new.unread[found], new.mask[found], new.at[found] = unread, mask, at
            new.state[found], new.last[found], new.open[found] = state, last, is_open
            new.score[found], new.rest[found] = steps.score[e], steps.rest[e]
            found += 1
        arrived[n], where[n] = e, slots[slot]
        n += 1
    return found, arrived[:n], where[:n]


@njit
def score_endings(stack: HypothesisStack, model: Automaton, end: Any) -> Array:
    """Compute log p(</s>) after each hypothesis."""
    logs = np.empty(len(stack.state))
    for h in range(len(logs)):
        logs[h] = advance(model, stack.state[h], end)[0]
    return logs


@njit
def _read(stack: HypothesisStack, steps: SearchSteps, e: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return unread, mask, at, last and open of the hypothesis after step e."""
    h, place, word = steps.source[e], steps.place[e], steps.word[e]
    unread, mask = stack.unread[h], stack.mask[h]
    if place == NOWHERE:
        return unread, mask, stack.at[h], word, 1
    if place == unread:
        unread += 1
        while mask & 1:
            unread, mask = unread + 1, mask >> 1
        mask >>= 1
    else:
        mask |= 1 << (place - unread - 1)
    return unread, mask, place, stack.last[h] if word < 0 else word, 0


def weigh_logs(weight: float, log: Any) -> Any:
    """Compute ``weight`` · ``log``; −inf stays −inf, even with a weight of 0."""
    with np.errstate(invalid="ignore"):
        times = np.where(np.isneginf(log), -np.inf, weight * np.asarray(log))
    return float(times) if times.ndim == 0 else times


@dataclass(frozen=True)
class Translation:
    """One translation Y of a sentence X, and its scores.

    ``words``       the words of Y
    ``score``       weights · (channel, language) + distortion
    ``channel``     log P(X, a | Y): Σ log t(x_j | y_i), with NULL, sharing and insertion
    ``language``    log P(Y)
    ``distortion``  minus the weighted sum of all jump widths
    ``links``       the alignment: (i, j) links y_i and x_j
    """

    words: tuple[str, ...]
    score: float
    channel: float
    language: float
    distortion: float
    links: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class TranslationExplanation:
    """How P(Y | X) ∝ P(X | Y) P(Y) selects the translation of one sentence.

    ``best``            the best translations
    ``channel_alone``   the best translation without P(Y)
    ``language_alone``  the most fluent word-for-word translation, without P(X | Y)
    """

    sentence: tuple[str, ...]
    best: Sequence[Translation]
    channel_alone: Translation
    language_alone: Translation

    @property
    def posteriors(self) -> list[float]:
        """P(Y | X), normalised over ``best``: proportional to exp(score)."""
        scores = np.array([translation.score for translation in self.best])
        p = np.exp(scores - scores.max())
        return [float(value) for value in p / p.sum()]

    def __str__(self) -> str:
        lines = [
            f"X: {' '.join(self.sentence)}",
            "  P(Y|X)  log P(X|Y)   log P(Y)     order   Y",
        ]
        for p, translation in zip(self.posteriors, self.best, strict=True):
            lines.append(f"  {p:6.3f} {_format_scores(translation)}   {translation}")
        lines.append(f"channel alone  {_format_scores(self.channel_alone)}   {self.channel_alone}")
        lines.append(
            f"language alone {_format_scores(self.language_alone)}   {self.language_alone}"
        )
        return "\n".join(lines)


def _format_scores(translation: Translation) -> str:
    scores = translation.channel, translation.language, translation.distortion
    return "{:11.2f} {:10.2f} {:9.2f}".format(*scores)


class FittedAligner(Protocol):
    """The interface of a fitted aligner, whose target side is X and source side Y."""

    @property
    def source_words_(self) -> Any:
        """The words y, in the order of the table's rows."""

    @property
    def target_words_(self) -> Any:
        """The words x, in the order of the table's columns."""

    def table(self) -> Any:
        """Return t(x | y) as a sparse matrix: one row per word y, the last row for NULL."""


class TranslationChannel:
    """t(x | y) by columns, and the prior of each y.

    ``sources``  the words y
    ``targets``  the index of each word x
    ``prior``    (words y,) p(y)
    """

    def __init__(self, sources: list[str], targets: list[str], table: Any, prior: Array) -> None:
        self.sources, self.prior = sources, prior
        self.targets = {word: i for i, word in enumerate(targets)}
        self.columns = sparse.csc_matrix(table)
        self._candidates: dict[tuple[int, int], Array] = {}

    def column(self, x: int) -> tuple[Array, Array, float]:
        """Return the words y with t(x | y) > 0, their t(x | y), and t(x | NULL)."""
        part = slice(*self.columns.indptr[x : x + 2])
        rows, t = self.columns.indices[part], self.columns.data[part]
        words = (rows < len(self.sources)) & (t > 0)
        return rows[words], t[words], float(t[rows == len(self.sources)].sum())

    def candidates(self, x: int, n: int) -> Array:
        """Return candidates y for x: the n best by t(x | y) p(y), and the n best by t(x | y)."""
        if (x, n) not in self._candidates:
            rows, t, _ = self.column(x)
            likely = np.lexsort((rows, -t * self.prior[rows]))[:n]
            faithful = np.lexsort((rows, -t))[:n]
            self._candidates[x, n] = rows[np.union1d(likely, faithful)]
        return self._candidates[x, n]


def make_channel(aligner: FittedAligner, prior: Any) -> TranslationChannel:
    """Make the channel from a fitted aligner; ``prior`` maps a word y to p(y)."""
    missing = [
        name for name in ("table", "source_words_", "target_words_") if not hasattr(aligner, name)
    ]
    if missing:
        raise LearnerError(
            f"{type(aligner).__name__} has no {missing[0]}: it is no aligner, or is not fitted",
            "give a fitted aligner, such as IBM1().fit(pairs)",
        )
    sources, targets = list(aligner.source_words_), list(aligner.target_words_)
    table = sparse.csc_matrix(aligner.table())
    if table.shape != (len(sources) + 1, len(targets)):
        raise DataError(
            f"the aligner's table has shape {table.shape} for {len(sources)} source and "
            f"{len(targets)} target words",
            "it needs a row for each source word and for NULL, and a column for each target word",
        )
    if not np.isfinite(table.data).all() or table.data.min(initial=0.0) < 0.0:
        raise DataError(
            "the aligner's table holds numbers that are not probabilities", "fit it again"
        )
    return TranslationChannel(sources, targets, table, np.array([prior(word) for word in sources]))


class PreparedSentence(NamedTuple):
    """A sentence X, the decoder's task, the candidate words of Y, and unweighted log t."""

    x: list[str]
    task: DecodingTask
    words: list[str]
    log_t: FloatArray  # (words of Y, words of X)
    log_null: FloatArray  # (words of X,)


def prepare(
    x: list[str],
    channel: TranslationChannel,
    language: LanguageModel,
    insertable: Array,
    how: SearchSettings,
) -> PreparedSentence:
    """Collect candidates and scores for every x; a word without candidates is copied."""
    columns = [channel.targets.get(word) for word in x]
    none = np.zeros(0, np.int64)
    chosen = [none if c is None else channel.candidates(c, how.candidates) for c in columns]
    known = np.unique(np.concatenate([insertable, *chosen]))
    words = [channel.sources[y] for y in known] + [
        word for word, ys in zip(x, chosen, strict=True) if not len(ys)
    ]
    places = np.full(len(channel.sources), -1)
    places[known] = np.arange(len(known))
    log_t = np.full((len(words), len(x)), -np.inf)
    log_null = np.full(len(x), -np.inf)
    options: list[IntArray] = []
    copied = len(known)  # the index of the next copied word
    for j, (column, ys) in enumerate(zip(columns, chosen, strict=True)):
        if column is not None:
            rows, t, null_t = channel.column(column)
            here = places[rows] >= 0
            log_t[places[rows[here]], j] = np.log(np.minimum(t[here], 1.0))
            if null_t:
                log_null[j] = np.log(min(null_t, 1.0))
        if len(ys):
            options.append(places[ys])
        else:
            log_t[copied, j] = 0.0
            options.append(np.array([copied]))
            copied += 1
    log_null += np.log(how.null) if how.null else -np.inf
    numbers = np.array([language._numbers.get(word, 0) for word in words], np.int64)
    unigram = how.language * language._automaton.log_prob[1 + numbers]
    weighted, null = weigh_logs(how.channel, log_t), weigh_logs(how.channel, log_null)
    # the future-cost estimate of Pharaoh (Koehn 2004): the best word, without context
    best = [np.max(weighted[us, j] + unigram[us]) for j, us in enumerate(options)]
    task = DecodingTask(
        np.cumsum([0, *map(len, options)]),
        np.concatenate([none, *options]),
        places[insertable],
        numbers,
        weighted,
        null,
        np.maximum(best, null),
    )
    return PreparedSentence(x, task, words, log_t, log_null)


Path = tuple[tuple[int, int], ...]
"""Steps in order: (the position of X that is read, the word of Y that is written)."""


class LatticeLayer(NamedTuple):
    """The hypotheses of a stack, numbered from ``begin``, and the steps that lead to them.

    ``source``, ``target``  the hypotheses before and after each step
    ``gain``                the difference of their scores
    """

    begin: int
    score: FloatArray  # (hypotheses,)
    target: IntArray  # each (steps,)
    source: IntArray
    place: IntArray
    word: IntArray
    gain: FloatArray


class Lattice(NamedTuple):
    """All hypotheses and steps that the search has kept.

    ``ends``    the complete hypotheses, which have read all of X
    ``totals``  their scores, including the end of the sentence
    """

    layers: list[LatticeLayer]
    ends: IntArray  # each (complete hypotheses,)
    totals: FloatArray


def search(task: DecodingTask, how: SearchSettings, model: Automaton, start: int) -> Lattice:
    """Read X word by word, with an optional insertion before each word that is translated."""
    with np.errstate(divide="ignore"):
        insertion, sharing = (weigh_logs(how.channel, np.log(p)) for p in (how.insert, how.share))
    costs = float(how.language), float(how.distortion), insertion, sharing
    weights = StepCosts(*costs, int(how.reorder))
    empty = (np.full(1, number, np.int64) for number in (0, 0, -1, start, -1, 0))
    stack = HypothesisStack._make([*empty, np.zeros(1), np.full(1, task.estimate.sum())])
    none = np.zeros(0, np.int64)
    layers = [LatticeLayer(0, stack.score, none, none, none, none, np.zeros(0))]
    ids, size = np.zeros(1, np.int64), 1
    for _ in range(len(task.estimate)):
        if len(task.insertable) and weights.insertion > -np.inf:
            steps = SearchSteps.empty(len(stack.score) * len(task.insertable))
            extend_by_insertion(stack, task, weights, model, steps)
            opened, layer = _keep_best(stack, ids, steps, how, size)
            layers.append(layer)
            ids = np.concatenate([ids, np.arange(size, size + len(opened.score))])
            size += len(opened.score)
            stack = HypothesisStack._make(map(np.concatenate, zip(stack, opened, strict=True)))
        most = np.max(np.diff(task.first)) + 2
        steps = SearchSteps.empty(len(stack.score) * (weights.reorder + 1) * most)
        n = extend_by_reading(stack, task, weights, model, how.margin, steps)
        steps = steps.first(n)
        stack, layer = _keep_best(stack, ids, steps, how, size)
        layers.append(layer)
        ids = np.arange(size, size + len(stack.score))
        size += len(ids)
    last = score_endings(stack, model, MARKS.index(END))
    return Lattice(layers, ids, stack.score + how.language * last)


def _keep_best(
    stack: HypothesisStack, ids: Array, steps: SearchSteps, how: SearchSettings, begin: int
) -> tuple[HypothesisStack, LatticeLayer]:
    """Make the next stack from the best steps, and its layer of the lattice."""
    new, kept, where = select_best(stack, steps, how.width, how.margin)
    source = steps.source[kept]
    layer = LatticeLayer(
        begin,
        new.score,
        begin + where,
        ids[source],
        steps.place[kept],
        steps.word[kept],
        steps.score[kept] - stack.score[source],
    )
    return new, layer


def find_best_paths(lattice: Lattice) -> Iterator[tuple[float, Path]]:
    """Yield the paths through the lattice, best first.

    A* search from the end: the heuristic is exact, because the best score of a path from the start
    to a hypothesis is the hypothesis's score.
    """
    scores = np.concatenate([layer.score for layer in lattice.layers])
    source, place, word, gain = (
        np.concatenate([getattr(layer, name) for layer in lattice.layers])
        for name in ("source", "place", "word", "gain")
    )
    target = np.concatenate([layer.target for layer in lattice.layers])
    order = np.argsort(target, kind="stable")
    first = np.searchsorted(target[order], np.arange(len(scores) + 1))
    tie = count()
    ends = zip(lattice.totals, lattice.ends, strict=True)
    queue: list[tuple[float, int, int, float, Any]] = [
        (-total, next(tie), int(end), total - scores[end], None) for total, end in ends
    ]
    heapq.heapify(queue)
    while queue:
        total, _, node, after, path = heapq.heappop(queue)
        if node == 0:
            steps = []
            while path is not None:
                steps.append((path[0], path[1]))
                path = path[2]
            yield float(-total), tuple(steps)
            continue
        for e in order[first[node] : first[node + 1]]:
            gained = after + gain[e]
            there = int(source[e])
            step = (int(place[e]), int(word[e]), path)
            heapq.heappush(queue, (-(gained + scores[there]), next(tie), there, gained, step))
