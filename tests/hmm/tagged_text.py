"""Small texts for tests of tagging, as lines and as CoNLL-U."""

from __future__ import annotations

from typing import Any

TEXT = "the dog barks\na cat sleeps\n\nthe old cat barks\nA dog sleeps\n"
SENTENCES = [line.split() for line in TEXT.splitlines()]
WORDS = "the\tD\na\tD\nA\tD\ndog\tN V\ncat\tN\nold\tJ N\nold\tJ\n"
DICTIONARY = {"the": ["D"], "a": ["D"], "A": ["D"], "dog": ["N", "V"], "cat": ["N"]} | {
    "old": ["J", "N"]
}
KNOWN = "the/D dog/N barks/V\na/D old/J cat/N\n"
KNOWN_PAIRS = [[tuple(token.split("/")) for token in line.split()] for line in KNOWN.splitlines()]
ROW = "{}\t{}\t_\t{}\t{}\t_\t_\t_\t_\t{}"


def conllu(sentences: list[list[tuple[str, str]]], misc: str = "_", last: str = "\n") -> str:
    """A file with a comment, a token of two words and an empty word in every sentence."""
    parts = []
    for n, sentence in enumerate(sentences):
        rows = [f"# sent_id = {n}", ROW.format("1-2", "both", "_", "_", "_")]
        rows += [ROW.format(i, *pair, "X", misc) for i, pair in enumerate(sentence, 1)]
        rows.append(ROW.format(f"{len(sentence)}.1", "ghost", "_", "_", "_"))
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts) + last


def joined(sentences: Any, states: Any, separator: str = "/") -> list[str]:
    return [
        " ".join(f"{word}{separator}{state}" for word, state in zip(some, own, strict=True))
        for some, own in zip(sentences, states, strict=True)
    ]
