"""Tagged sentences: all, some, or none of the words have a tag.

In text, each word is followed by its tag, "the/DT dog/NN" or "the_DT dog_NN". A token is split at
its last separator if both sides are non-empty; otherwise it is a word without a tag.

Sentences may be on disk: words and tags are then `DiskArray`s, and everything else is as usual.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import IntArray
from softcount.text.disk import (
    DAMAGED,
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    new_corpus,
    read_in_blocks,
)
from softcount.text.lines import Name, encode_texts, read_pieces, read_text
from softcount.text.sequences import (
    Like,
    Sequences,
    Side,
    count_noun,
    describe_size,
    list_sentences,
    make_side,
    open_sequences,
    sentence_names,
    sequences,
)
from softcount.text.vocabulary import (
    WORDS,
    NumberedLines,
    SideBuilder,
    Vocabulary,
    add_lines,
    add_sentences,
    is_sound,
)

UNKNOWN = -1
PAIRS = 'give lists of (word, tag) tuples, or strings "word/TAG word/TAG"'
TAGS = "give tags as non-empty strings, or all of them as numbers; None: unknown"
FORM = "write word TAB tag tag …, or word TAB tag TAB count"
MAPPING = "give a mapping from words to lists of tags"
MOST_STATES = 1 << 20


class Units(NamedTuple):
    """Names of sequences and of their elements, for messages."""

    sequence: str = "sentence"
    token: str = "word"


SENTENCES = Units()


@dataclass(frozen=True, eq=False, repr=False)
class Tagged:
    """Sentences and the tags of their words.

    ``sequences``  the sentences
    ``tags``       tag index of each token, sentences concatenated (int32); −1: unknown. Of a corpus
                   on disk a `DiskArray`
    ``names``      the distinct tags, those of ``names=`` first, then by first occurrence

    >>> some = tagged([[("the", "DT"), ("dog", None)], [("the", "DT"), ("cat", "NN")]])
    >>> len(some), some.tags.tolist(), some.names
    (2, [0, -1, 0, 1], ['DT', 'NN'])
    >>> some.sentence(0)
    [('the', 'DT'), ('dog', None)]
    >>> some
    <Tagged: 2 sentences, 4 words; 2 tags of 3 words>
    """

    sequences: Sequences
    tags: IntArray
    names: list[str]

    def __len__(self) -> int:
        return len(self.sequences)

    def __repr__(self) -> str:
        tags = count_noun(len(self.names), "tag")
        if isinstance(self.tags, DiskArray):  # whose tagged words would have to be counted
            return f"<Tagged: {describe_size(self.sequences)}; {tags}>"
        words = count_noun(int(np.count_nonzero(self.tags != UNKNOWN)), "word")
        return f"<Tagged: {describe_size(self.sequences)}; {tags} of {words}>"

    def tags_of(self, n: int) -> list[str | None]:
        """Return the tags of a sentence; None: unknown."""
        first, last = self.sequences.indptr[n : n + 2]
        return [None if t < 0 else self.names[t] for t in self.tags[first:last].tolist()]

    def sentence(self, n: int) -> list[tuple[str, str | None]]:
        """Return the words of a sentence with their tags."""
        return list(zip(self.sequences.sentence(n), self.tags_of(n), strict=True))

    def select(self, numbers: Any) -> Tagged:
        """Select sentences, in this order; the vocabulary, tags and names stay the same.

        See `Sequences.select` on words that occur in none of them.
        """
        chosen = np.arange(len(self))[numbers]
        tags = Side(self.names, self.tags, self.sequences.indptr).select(chosen).tokens
        return Tagged(self.sequences.select(chosen), tags, self.names)

    def dictionary(self) -> dict[str, list[str]]:
        """Return the tags that each word has, the most frequent first.

        >>> tagged(["can/MD fish/VB", "a can/NN", "can/NN"]).dictionary()
        {'can': ['NN', 'MD'], 'fish': ['VB']}
        """
        words, n = self.sequences.words, len(self.names)
        counts: Counter[int] = Counter()  # of pairs, in order of first occurrence
        for tokens, tags in self._parts():
            known = tags >= 0
            pairs = tokens[known].astype(np.int64) * n + tags[known]
            found, first, uses = np.unique(pairs, return_index=True, return_counts=True)
            order = np.argsort(first)
            counts.update(dict(zip(found[order].tolist(), uses[order].tolist(), strict=True)))
        dictionary: dict[str, list[str]] = {words[pair // n]: [] for pair in counts}
        for pair, _ in counts.most_common():
            dictionary[words[pair // n]].append(self.names[pair % n])
        return dictionary

    def _parts(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield words and tags; of a corpus on disk, those of one file at a time."""
        tokens, tags = self.sequences.tokens, self.tags
        if isinstance(tokens, DiskArray) and isinstance(tags, DiskArray):
            return zip(tokens.parts(), tags.parts(), strict=True)
        return iter([(tokens, tags)])


def tagged(
    data: Any,
    tags: Any = None,
    *,
    like: Like | None = None,
    names: Sequence[str] = (),
    lowercase: bool = False,
    separator: str = "/",
) -> Tagged:
    """Make tagged sentences from Python data.

    ``data``       lists of (word, tag) tuples; or strings "word/TAG word/TAG"; or a Tagged
    ``tags``       if given, ``data`` are sentences as for `sequences`, and these are their tags: a
                   list for each sentence, or None if all are unknown. A tag is a name, None
                   (unknown), or an index (into ``names``, if given; −1: unknown)
    ``like``       an existing vocabulary, whose words keep their indices
    ``names``      existing tags, which keep their indices
    ``lowercase``  whether to lower-case words
    ``separator``  separator between a word and its tag in strings

    >>> tagged(["the dog", "a cat", "it"], [["DT", None], None, ["PR"]]).tags.tolist()
    [0, -1, -1, -1, 1]
    >>> tagged(["1/2/CD cup/NN of tea_NN"]).sentence(0)
    [('1/2', 'CD'), ('cup', 'NN'), ('of', None), ('tea_NN', None)]
    """
    if tags is not None:
        text = sequences(data, like=like, lowercase=lowercase)
        return Tagged(text, *number_tags(tags, text.lengths, text.name, names))
    if isinstance(data, Tagged):
        text = sequences(data.sequences, like=like, lowercase=lowercase)
        numbers = dict(Vocabulary.of(names).numbers)  # existing names first
        new = [numbers.setdefault(name, len(numbers)) for name in data.names]
        number_of = np.array([*new, UNKNOWN], np.int32)  # of −1 it is the last
        if isinstance(data.tags, DiskArray):
            known = cast(IntArray, data.tags.renumbered(number_of))
            return Tagged(text, known, list(numbers))
        return Tagged(text, number_of[data.tags], list(numbers))
    items = list_sentences(data)
    if items and all(isinstance(item, str) for item in items):
        return from_pieces(
            encode_texts(items),
            "",
            like=like,
            names=names,
            lowercase=lowercase,
            separator=separator,
        )
    words, tags = _split_pairs(items, sentence_names(""))
    text = sequences(words, like=like, lowercase=lowercase)
    return Tagged(text, *number_tags(tags, text.lengths, text.name, names))


def _split_pairs(items: Iterable[Any], name: Name) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the words and the tags of sentences of (word, tag) tuples."""
    words, tags = [], []
    for n, item in enumerate(items):
        if not isinstance(item, list | tuple):
            raise DataError(f"{name(n)} is {brief(item)}", PAIRS)
        for pair in item:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise DataError(f"{name(n)} has {brief(pair)} in it", PAIRS)
        words.append([word for word, _ in item])
        tags.append([tag for _, tag in item])
    return words, tags


def read_tagged(
    path: str | os.PathLike[str],
    *,
    like: Like | None = None,
    names: Sequence[str] = (),
    lowercase: bool = False,
    separator: str = "/",
) -> Tagged:
    """Read tagged sentences from a file of lines "word/TAG word/TAG": UTF-8, optionally gzipped.

    A blank line is an empty sentence; the arguments are those of `tagged`.
    """
    origin = os.fspath(path)
    return from_pieces(
        read_pieces(origin),
        origin,
        like=like,
        names=names,
        lowercase=lowercase,
        separator=separator,
    )


def from_pieces(
    pieces: Iterable[bytes],
    origin: str,
    *,
    like: Like | None = None,
    names: Sequence[str] = (),
    lowercase: bool = False,
    separator: str = "/",
) -> Tagged:
    """Read words and tags from pieces of text."""
    builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
    numbers = dict(Vocabulary.of(names).numbers)
    tags = _add_tagged_lines(pieces, sentence_names(origin), builder, numbers, separator)
    if not len(builder):
        raise DataError(f"no sentences in {origin or 'the data'}", "give at least one")
    return Tagged(Sequences(make_side(builder), origin), tags, list(numbers))


def _add_tagged_lines(
    pieces: Iterable[bytes], name: Name, builder: SideBuilder, numbers: dict[str, int], by: str
) -> IntArray:
    """Add the words of lines to a builder, and new tags to ``numbers``; return the tags' numbers.

    Each distinct token is split only once, at its last separator (``by``).
    """
    if not by or any(letter.isspace() for letter in by):
        raise DataError(
            f"the separator is {brief(by)}", "give one without white space, such as / or _"
        )
    raw = SideBuilder(Vocabulary(()))
    add_lines(pieces, raw, name)
    words, tags = [], []
    for token in raw.words:
        word, _, tag = token.rpartition(by)
        words.append(word if word and tag else token)
        tags.append(tag if word and tag else None)
    builder.add(NumberedLines(raw.tokens, raw.indptr[1:], words))
    tag_of = [UNKNOWN if t is None else numbers.setdefault(t, len(numbers)) for t in tags]
    of_tokens: IntArray = np.array(tag_of, np.int32)[raw.tokens]
    return of_tokens


# Tagged sentences on disk

KIND = "tagged"


def build_tagged(
    data: Any,
    path: str | os.PathLike[str],
    *,
    lowercase: bool = False,
    separator: str = "/",
    on_progress: OnProgress = lambda sentences: None,
) -> Tagged:
    """Write tagged sentences to a folder, for corpora larger than memory, and open them.

    ``data``       an iterable of sentences, as for `tagged`, or a mapping from names to such
    ``path``       the folder to create
    ``lowercase``  whether to lower-case words
    ``separator``  separator between a word and its tag in strings

    >>> import tempfile
    >>> some = build_tagged(["the/DT dog", "a/DT cat/NN"], tempfile.mkdtemp() + "/corpus")
    >>> some, some.select([1]).sentence(0)
    (<Tagged: 2 sentences, 4 words; 2 tags>, [('a', 'DT'), ('cat', 'NN')])
    """
    columns = {name: StoredColumn("<i4") for name in ("tokens", "tags", "lengths")}
    with new_corpus(path, KIND, columns, on_progress) as writer:
        builder, numbers = SideBuilder(Vocabulary(()), lowercase), dict[str, int]()
        by_number: bool | None = None  # whether tags are given as numbers
        for block, name in read_in_blocks(data, writer, "sentence"):
            if all(isinstance(item, str) for item in block):
                tags = _add_tagged_lines(encode_texts(block), name, builder, numbers, separator)
            else:
                words, given = _split_pairs(block, name)
                add_sentences(words, builder, name, "is")
                lengths = np.array([len(sentence) for sentence in words], np.int64)
                tags, names = number_tags(given, lengths, name)
                if names:
                    are_numbers = not any(isinstance(tag, str) for tag in chain(*given))
                    if by_number not in (None, are_numbers):
                        raise DataError(f"{name(0)} or one soon after it has other tags", TAGS)
                    by_number = are_numbers
                new = [numbers.setdefault(tag, len(numbers)) for tag in names]
                tags = np.array([*new, UNKNOWN], np.int32)[tags]
            tokens, sizes = builder.take()
            writer.append(len(block), tokens=tokens, tags=tags, lengths=sizes)
        if not writer.n_items:
            raise DataError("there are no tagged sentences", "give at least one")
        writer.write_names("words", builder.words)
        writer.write_names("tags", list(numbers))
    return open_tagged(CorpusFolder.open(path))


def open_tagged(corpus: CorpusFolder) -> Tagged:
    """Open tagged sentences on disk; words and tags are read when they are needed."""
    text, names = open_sequences(corpus), corpus.read_names("tags")
    tags = corpus.column("tags", least=UNKNOWN, below=len(names))
    columns = corpus.facts.columns
    if columns["tags"].rows != columns["tokens"].rows:
        raise StoreError(f"the tags of the corpus in {corpus.folder} do not fit", DAMAGED)
    return Tagged(text, cast(IntArray, tags), names)


def number_tags(
    tags: Any, lengths: IntArray, name: Name, known: Sequence[str] = (), units: Units = SENTENCES
) -> tuple[IntArray, list[str]]:
    """Convert the tags of sequences of these lengths to indices; return these and the names.

    Tags are names; or indices, whose names are ``known`` or, without these, the numbers themselves.

    >>> number_tags([["A", None], None], np.array([2, 1]), str)
    (array([ 0, -1, -1], dtype=int32), ['A'])
    """
    given = list_sentences(tags)
    if len(given) != len(lengths):
        raise DataError(
            f"there are {len(lengths)} {units.sequence}s and tags for {len(given)}",
            f"give a list of tags for each {units.sequence}, or None if all are unknown",
        )
    flat: list[tuple[int, Any]] = []  # the sequence and the tag of each token
    for n, (own, length) in enumerate(zip(given, lengths.tolist(), strict=True)):
        if not isinstance(own, list | tuple | np.ndarray | None):
            raise DataError(f"{name(n)} has the tags {brief(own)}", "give a list of tags")
        if own is not None and len(own) != length:
            raise DataError(
                f"{name(n)} has {length} {units.token}s and {len(own)} tags",
                f"give one tag per {units.token}; None where it is unknown",
            )
        flat.extend((n, tag) for tag in ([None] * length if own is None else own))
    kinds = {type(tag) for _, tag in flat} - {type(None)}
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        most = (len(known) or MOST_STATES) - 1
        for n, tag in flat:
            if tag is not None and not UNKNOWN <= tag <= most:
                raise DataError(
                    f"{name(n)} has the tag {tag}",
                    f"tag indices are from 0 to {most}; −1: unknown",
                )
        indices = np.array([UNKNOWN if tag is None else int(tag) for _, tag in flat], np.int32)
        return indices, list(known) or list(map(str, range(indices.max(initial=-1) + 1)))
    numbers = dict(Vocabulary.of(known).numbers)
    for n, tag in flat:
        if tag is None or (isinstance(tag, str) and tag in numbers):
            continue
        if not is_sound(tag):
            raise DataError(f"{name(n)} has the tag {brief(tag)}", TAGS)
        numbers[str(tag)] = len(numbers)
    indices = np.array([UNKNOWN if tag is None else numbers[tag] for _, tag in flat], np.int32)
    return indices, list(numbers)


def read_tag_dictionary(source: str | os.PathLike[str] | Iterable[str]) -> dict[str, list[str]]:
    """Read a tag dictionary from a file (UTF-8, optionally gzipped) or from lines.

    A line is "word TAB tag tag …" or "word TAB tag TAB count"; a word may have several lines. The
    tags of a word are in the order of the lines, without repetition. Blank lines are ignored.

    >>> read_tag_dictionary(["can\\tMD NN", "fish\\tNN\\t7", "fish\\tVB\\t2"])
    {'can': ['MD', 'NN'], 'fish': ['NN', 'VB']}
    """
    if isinstance(source, str | os.PathLike):
        origin = os.fspath(source)
        source, where = read_text(origin).removeprefix("\ufeff").split("\n"), f"{origin}:"
    else:
        origin, where = "the lines", "line "
    dictionary: dict[str, dict[str, None]] = {}
    for number, line in enumerate(source, 1):
        here = f"{where}{number}"
        if not isinstance(line, str):
            raise DataError(f"{here} is {brief(line)}", "give lines of text")
        if not line.strip():
            continue
        line = line.rstrip("\r\n")
        word, *columns = line.split("\t")
        if not 1 <= len(columns) <= 2:
            raise DataError(f"{here} has {len(columns)} TABs: {brief(line)}", FORM)
        tags = columns[0].split()
        if not is_sound(word):
            raise DataError(f"{here} has the word {brief(word)}", WORDS)
        if not tags or not all(map(is_sound, tags)):
            raise DataError(f"{here} has the tags {brief(columns[0])} for {brief(word)}", FORM)
        if len(columns) == 2 and (len(tags) > 1 or not _is_count(columns[1])):
            raise DataError(
                f"{here}: {brief(columns[1])} is not a count of {brief(columns[0])}",
                f"{FORM}; a count is positive",
            )
        dictionary.setdefault(word, {}).update(dict.fromkeys(tags))
    if not dictionary:
        raise DataError(f"no words in {origin}", FORM)
    return {word: list(tags) for word, tags in dictionary.items()}


def _is_count(text: str) -> bool:
    try:
        return 0.0 < float(text) < float("inf")
    except ValueError:
        return False


def tag_dictionary(data: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Check a mapping from words to tags; remove repetitions, and sort the tags of sets.

    >>> tag_dictionary({"can": ("MD", "NN", "MD")})
    {'can': ['MD', 'NN']}
    """
    if not isinstance(data, Mapping):
        raise DataError(f"the tag dictionary is {brief(data)}", MAPPING)
    dictionary = {}
    for word, tags in data.items():
        if not is_sound(word):
            raise DataError(f"the tag dictionary has the word {brief(word)}", WORDS)
        # a string is iterable too, and would be read as a list of its letters
        if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
            raise DataError(f"the tag dictionary has {brief(tags)} for {brief(word)}", MAPPING)
        names = list(tags)
        if not names or not all(map(is_sound, names)):
            raise DataError(
                f"the tag dictionary has {brief(names)} for {brief(word)}",
                "give at least one tag; tags are non-empty strings",
            )
        # the order of a set varies between runs
        is_set = isinstance(tags, set | frozenset)
        dictionary[str(word)] = sorted(names) if is_set else list(dict.fromkeys(names))
    return dictionary
