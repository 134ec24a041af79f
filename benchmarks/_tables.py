"""Tables of figures, as studies print them."""

from __future__ import annotations

Table = dict[str, dict[str, float]]


def show(title: str, table: Table, digits: int) -> None:
    """A table in Markdown: a row for each key, a column for each of its figures."""
    columns = list(next(iter(table.values())))
    print(f"\n| {title} | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for row, figures in table.items():
        cells = (f"{figures[name]:.{digits}f}" for name in columns)
        print(f"| {row} | {' | '.join(cells)} |", flush=True)
