"""What stands around a word, as features of its senses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from softcount.corpus.contexts import features, is_word

NEAR = 2


def collocations(
    tokens: Sequence[str],
    position: int,
    window: int | None = 25,
    stop_words: Collection[str] = (),
) -> list[str]:
    """Collocations of the token at ``position``, as features whose names can be read.

    After Yarowsky (1994), ``_`` being the place of the token itself: ``in_`` is the word just
    before it and ``_for`` the one just after, ``stood·_`` and ``_·bread`` those with one word
    between; pairs of adjacent words are ``stood in_``, ``in_for`` and ``_for bread``; and every
    word within the ``window`` (None: all) is a feature by its own name, unless it is one of the
    ``stop_words``. Punctuation is passed over.

    >>> collocations("he stood in line , for bread".split(), 3, stop_words={"in", "he", "for"})
    ['stood', 'bread', 'in_', 'stood·_', '_for', '_·bread', 'stood in_', 'in_for', '_for bread']
    """
    before = [token for token in tokens[:position] if is_word(token)][: -NEAR - 1 : -1]
    after = [token for token in tokens[position + 1 :] if is_word(token)][:NEAR]
    pairs = []
    if len(before) == NEAR:
        pairs.append(f"{before[1]} {before[0]}_")
    if before and after:
        pairs.append(f"{before[0]}_{after[0]}")
    if len(after) == NEAR:
        pairs.append(f"_{after[0]} {after[1]}")
    return features(tokens, position, window, NEAR, stop_words) + pairs
