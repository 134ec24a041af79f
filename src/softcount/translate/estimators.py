"""`Translator`, as users call it: an aligner's table, a language model, and a search."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import islice
from os import PathLike
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.errors import LearnerError, StoreError
from softcount.core.parameters import check_whole
from softcount.core.store import AGAIN, guarded, numbers, strings
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


PATHS_LOOKED_AT = 50
"""Paths that are looked at for each translation of an n-best list: most say the same."""


class Translator:
    """Translates by the noisy channel: Ŷ = argmax P(X | Y) P(Y) (Brown et al. 1990).

    X is in the language of the aligner's target side, Y in that of its source side, for an aligner
    learns how targets come about from sources. Words of X are read in some order, and each read
    word x becomes a word y of Y, t(x | y), or came from NULL, or shares the y that was written
    last; and before a y there may be one more word that no x came from. So

        log P(X, a | Y) = Σ_j log t(x_j | y_{a_j}) + log null, share or insert for each such step,

    every jump of |j - j' - 1| words between two reads is taken off, and P(Y) is the language
    model's. The best alignment stands for all. Words that the aligner never saw pass unchanged.

    A beam search with one stack for each number of words read; hypotheses are compared by their
    score and an estimate of what is still unread: the best word for each x, by its channel and
    unigram probabilities (Koehn 2004), without jumps.

    ``beam``         the size of a stack; None: all hypotheses (for a few words only, but exact)
    ``reorder``      how far beyond the first word that is still unread a word may be read
    ``candidates``   words y for each x: this many by t(x | y) p(y), and as many by t(x | y) alone
    ``insertions``   how many of the commonest words y may come from no x
    ``channel``, ``language``, ``distortion``  weights: of log P(X | Y), of log P(Y), of one jump
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
                f"{type(language_model).__name__} is no language model, or not fitted",
                "give a fitted one, such as LanguageModel().fit(sentences)",
            )
        self.language_model = language_model
        p = np.exp(language_model._automaton.log_prob)
        numbers = language_model._numbers
        self.channel_ = make_channel(aligner, lambda word: p[1 + numbers.get(word, 0)])
        # the commonest words that are written with letters
        words = [
            y
            for y, word in enumerate(self.channel_.sources)
            if word.isalpha() and word in language_model._numbers
        ]
        words.sort(key=lambda y: -self.channel_.prior[y])
        self._insertable = np.array(words[: self.settings.insertions], np.int64)

    def translate(self, sentence: Any) -> Translation:
        """The likeliest translation of a sentence: a text, or a list of words."""
        return self.n_best(sentence, 1)[0]

    def n_best(self, sentence: Any, n: int = 10) -> list[Translation]:
        """The n likeliest translations that differ in their words (fewer, if there are no more)."""
        check_whole("n", n)
        return self._n_best(split_words(sentence), n, self.settings)

    def explain(self, sentence: Any, n: int = 10) -> TranslationExplanation:
        """The n likeliest translations, and what P(X | Y) and P(Y) would each choose alone."""
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
        found: dict[tuple[str, ...], Translation] = {}
        for _, path in islice(find_best_paths(lattice), n * PATHS_LOOKED_AT):
            one = self._read_path(prepared, path, how)
            found.setdefault(one.words, one)
            if len(found) == n:
                break
        return list(found.values())

    def _read_path(
        self, prepared: PreparedSentence, path: Path, how: SearchSettings
    ) -> Translation:
        """A path as a translation: its words and links, and what each part is worth."""
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

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write table, language model and settings to one file, for `softcount.load`."""
        channel, language = self.channel_, self.language_model._content()
        table = channel.columns
        arrays = {TABLE + name: getattr(table, name) for name in ("data", "indices", "indptr")}
        arrays |= {LANGUAGE + name: array for name, array in language.arrays.items()}
        meta = {
            "settings": asdict(self.settings),
            "source_words": channel.sources,
            "target_words": list(channel.targets),
            "language": language.meta,
        }
        store.write(path, type(self).__name__, arrays, meta, language.signature)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a translator that `save` wrote."""
        return cls.restore(store.read(path, cls.__name__))

    @classmethod
    def restore(cls, stored: store.Stored) -> Self:
        """A translator from what a file holds (see `softcount.load`)."""

        def make() -> Any:
            sources, targets = stored.meta["source_words"], stored.meta["target_words"]
            for words in (sources, targets):
                strings(words, len(words), "words")
                if len(set(words)) != len(words):
                    raise StoreError("a word is there twice", AGAIN)
            data = numbers(stored, TABLE + "data", (None,))
            indices, indptr = (stored.arrays[TABLE + name] for name in ("indices", "indptr"))
            if any(part.dtype.kind != "i" for part in (indices, indptr)):
                raise StoreError("positions in the table are not whole numbers", AGAIN)
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

        return guarded(cls, make)
