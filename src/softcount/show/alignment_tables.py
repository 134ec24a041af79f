"""Tables of words, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from softcount.show.alignment_matrix import word_html
from softcount.show.alignment_words import Entry, Uncertain, Unlinked


def uncertain_table(words: Sequence[Uncertain], caption: str) -> str:
    """Words that leave most open, with their best translations."""
    rows = (
        [
            word_html(one.word),
            f"{one.times:,}",
            f"{one.bits:.2f}",
            ", ".join(f"{word_html(word)}&nbsp;<i>{p:.2f}</i>" for word, p in one.translations),
        ]
        for one in words
    )
    return table(caption, ["word", "times", "bits", "best translations"], rows)


def entry_table(entries: Sequence[Entry], caption: str) -> str:
    """Words with their most certain translations."""
    both = any(one.back is not None for one in entries)
    heads = ["word", "times", "p", *["p back"] * both, "translation"]
    rows = (
        [
            word_html(one.word),
            f"{one.times:,}",
            f"{one.p:.3f}",
            *([] if one.back is None else [f"{one.back:.3f}"]),
            word_html(one.translation),
        ]
        for one in entries
    )
    return table(caption, heads, rows)


def unlinked_table(words: Sequence[Unlinked], caption: str) -> str:
    """Words without a link."""
    rows = (
        [word_html(one.word), f"{one.times:,}", f"{100 * one.without / one.times:.0f} %"]
        for one in words
    )
    return table(caption, ["word", "times", "without a link"], rows)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is its rows' name; cells are HTML already. No rows: nothing."""
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    if not body:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return (
        f'<div class="wide"><table class="facts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
