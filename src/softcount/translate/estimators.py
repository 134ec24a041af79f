"""`Translator`: a noisy-channel decoder from an aligner's table and a language model."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.errors import LearnerError, StoreError
from softcount.core.parameters import check_whole
from softcount.core.store import AGAIN, convert_errors, numbers
from softcount.translate.language_model import LanguageModel, split_words
from softcount.translate.parameters import SearchSettings
from softcount.translate.search import (
    NOWHERE,
    NULL,
    SHARED,
    FittedAligner,
    Path,
    PreparedSentence,
    Translation,
    TranslationExplanation,
    find_best_paths,
    make_channel,
    prepare,
    search,
)

LANGUAGE, TABLE = "language.", "table."


PATHS_PER_TRANSLATION = 50
"""Lattice paths examined per translation of an n-best list: many paths yield the same words."""


class Translator(store.Saveable):
    """Noisy-channel translator: Ŷ = argmax P(X | Y) P(Y) (Brown et al. 1990).

    X is in the language of the aligner's target side and Y in that of its source side, because an
    aligner models how sources generate targets. Words of X are read (translated) in some order. A
    word x that is read either produces a new word y of Y, with probability t(x | y); or is aligned
    to NULL; or is aligned to the y that was produced last (share). Before a y, one further word may
    be inserted that is aligned to no x. So

        log P(X, a | Y) = Σ_j log t(x_j | y_{a_j}) + log null, share or insert for each such step.

    The score is reduced for every jump of |j - j' - 1| words between two reads, and P(Y) comes from
    the language model. Instead of summing over alignments, the best one is used. Words unknown to
    the aligner are copied unchanged.

    The decoder is a beam search with one stack for each number of words read; hypotheses are
    compared by their score plus an estimate of the future score: for each unread x the best word,
    by its channel and unigram probabilities (Koehn 2004), without jumps.

    ``beam``         the stack size; None: all hypotheses (exact, but only for very short sentences)
    ``reorder``      the reordering limit: how far beyond the first unread word a word may be read
    ``candidates``   candidates y for each x: this many by t(x | y) p(y), and as many by t(x | y)
    ``insertions``   how many of the most frequent words y can be inserted without an x
    ``channel``, ``language``, ``distortion``  weights of log P(X | Y), of log P(Y), of one jump
    ``null``, ``share``, ``insert``  probabilities of these steps; 0: never

    >>> from scipy.sparse import csr_matrix
    >>> class Aligner:
    ...     source_words_, target_words_ = ["the", "house", "green"], ["la", "casa", "verde"]
    ...     def table(self):
    ...         return csr_matrix([[.9, 0, .1], [0, 1, 0], [0, 0, 1], [.4, .3, .3]])
    >>> language = LanguageModel(2).fit(["the green house", "the house"])
    >>> str(Translator(Aligner(), language).translate("la casa verde"))
    'the green house'
    """

    def __init__(
        self,
        aligner: FittedAligner,
        language_model: LanguageModel,
        *,
        beam: int | None = 100,
        reorder: int = 3,
        candidates: int = 10,
        insertions: int = 8,
        channel: float = 1.0,
        language: float = 1.0,
        distortion: float = 0.5,
        null: float = 0.03,
        share: float = 0.01,
        insert: float = 0.2,
    ) -> None:
        self.settings = SearchSettings(
            beam=beam,
            reorder=reorder,
            candidates=candidates,
            insertions=insertions,
            channel=channel,
            language=language,
            distortion=distortion,
            null=null,
            share=share,
            insert=insert,
        )
        if not hasattr(language_model, "_automaton"):
            raise LearnerError(
                f"{type(language_model).__name__} is no language model, or is not fitted",
                "give a fitted one, such as LanguageModel().fit(sentences)",
            )
        self.language_model = language_model
        p = np.exp(language_model._automaton.log_prob)
        numbers = language_model._numbers
        self.channel_ = make_channel(aligner, lambda word: p[1 + numbers.get(word, 0)])
        # insertable words: the most frequent ones that consist of letters
        words = [
            y
            for y, word in enumerate(self.channel_.sources)
            if word.isalpha() and word in language_model._numbers
        ]
        words.sort(key=lambda y: -self.channel_.prior[y])
        self._insertable = np.array(words[: self.settings.insertions], np.int64)

    def translate(self, sentence: Any) -> Translation:
        """Return the best translation of a sentence: a text, or a list of words."""
        return self.n_best(sentence, 1)[0]

    def n_best(self, sentence: Any, n: int = 10) -> list[Translation]:
        """Return the n best distinct translations, or fewer if there are no more."""
        check_whole("n", n)
        return self._n_best(split_words(sentence), n, self.settings)

    def explain(self, sentence: Any, n: int = 10) -> TranslationExplanation:
        """Return the n best translations, and what P(X | Y) and P(Y) would each choose alone."""
        x = split_words(sentence)
        word_by_word = replace(self.settings, channel=0.0, null=0.0, share=0.0, insert=0.0)
        return TranslationExplanation(
            tuple(x),
            self.n_best(x, n),
            self._n_best(x, 1, replace(self.settings, language=0.0))[0],
            self._n_best(x, 1, word_by_word)[0],
        )

    def _n_best(self, x: list[str], n: int, how: SearchSettings) -> list[Translation]:
        model = self.language_model
        prepared = prepare(x, self.channel_, model, self._insertable, how)
        lattice = search(prepared.task, how, model._automaton, model._start)
        best: dict[tuple[str, ...], Translation] = {}
        for _, path in islice(find_best_paths(lattice), n * PATHS_PER_TRANSLATION):
            translation = self._read_path(prepared, path, how)
            best.setdefault(translation.words, translation)
            if len(best) == n:
                break
        return list(best.values())

    def _read_path(
        self, prepared: PreparedSentence, path: Path, how: SearchSettings
    ) -> Translation:
        """Convert a lattice path to a translation: its words, its links, and its partial scores."""
        words: list[str] = []
        links: list[tuple[int, int]] = []
        channel, jumps, at, last = 0.0, 0, -1, -1
        for place, word in path:
            if word >= 0:
                last = word
                words.append(prepared.words[word])
            if place == NOWHERE:
                channel += np.log(how.insert)
                continue
            jumps += abs(place - at - 1)
            at = place
            if word == NULL:
                channel += prepared.log_null[place]
                continue
            channel += prepared.log_t[last, place] + (np.log(how.share) if word == SHARED else 0.0)
            links.append((len(words) - 1, place))
        language, distortion = self.language_model.log_prob(words), 0.0 - how.distortion * jumps
        score = how.channel * channel + how.language * language + distortion
        return Translation(
            tuple(words), float(score), float(channel), language, distortion, tuple(sorted(links))
        )

    # files: the table, the language model and the settings of the search
    def content(self) -> store.Stored:
        channel, language = self.channel_, self.language_model.content()
        table = channel.columns
        arrays = {TABLE + name: getattr(table, name) for name in ("data", "indices", "indptr")}
        arrays |= {LANGUAGE + name: array for name, array in language.arrays.items()}
        meta = {
            "settings": asdict(self.settings),
            "source_words": channel.sources,
            "target_words": list(channel.targets),
            "language": language.meta,
        }
        return store.Stored(type(self).__name__, arrays, meta, language.signature)

    @classmethod
    def restore(cls, stored: store.Stored) -> Self:  # type: ignore[override]  # all is in the file
        def make() -> Any:
            sources = store.vocabulary(stored.meta["source_words"])
            targets = store.vocabulary(stored.meta["target_words"])
            data = numbers(stored, TABLE + "data", (None,))
            indices, indptr = (stored.arrays[TABLE + name] for name in ("indices", "indptr"))
            if any(part.dtype.kind != "i" for part in (indices, indptr)):
                raise StoreError("positions in the table are not integers", AGAIN)
            table = sparse.csc_matrix((data, indices, indptr), (len(sources) + 1, len(targets)))
            table.check_format(full_check=True)
            if not table.has_canonical_format or np.any(data > 1.0 + 1e-9):
                raise StoreError("the table does not hold probabilities", AGAIN)
            aligner = SimpleNamespace(
                source_words_=sources, target_words_=targets, table=lambda: table
            )
            arrays = {
                name.removeprefix(LANGUAGE): array
                for name, array in stored.arrays.items()
                if name.startswith(LANGUAGE)
            }
            kind, meta = LanguageModel.__name__, stored.meta["language"]
            language = LanguageModel.restore(store.Stored(kind, arrays, meta, stored.signature))
            return cls(aligner, language, **stored.meta["settings"])

        return convert_errors(cls, make)
