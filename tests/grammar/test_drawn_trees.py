"""Trees for people to look at: in the terminal and as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from softcount.grammar.report import ASCENT, DESCENT, draw_tree, tree_svg
from softcount.text.trees import Tree, tree
from tests import real

DEEP = 10_000
UP, DOWN, LEFT, RIGHT = "│┴┼├┤", "│┬┼┌┐├┤", "─┬┴┼┐┤", "─┬┴┼┌├"
SVG = "{http://www.w3.org/2000/svg}"
SENTENCE = tree("(S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ barks)))")
INDENTED = """\
S
├─ NP
│  ├─ DT the
│  ├─ JJ old
│  └─ NN dog
└─ VP
   └─ VBZ barks"""

words = st.sampled_from(["a", "bb", "abcdefgh", "日本語", "e\u0301", "naïve", "(", "<&>"])


def above(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    children = st.lists(below | words, min_size=1, max_size=5)
    return st.builds(lambda label, some: Tree(label, tuple(some)), words, children)


any_trees = st.recursive(st.builds(lambda t, w: Tree(t, (w,)), words, words), above, max_leaves=15)


def cells(line: str) -> list[str]:
    """What stands in each column of the terminal."""
    found: list[str] = []
    for letter in line:
        if cell_len(letter):
            found += [letter] * cell_len(letter)
        else:
            found[-1] += letter
    return found


# in the terminal
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            str(SENTENCE),
            [
                "           S",
                "      ┌────┴─────┐",
                "      NP         VP",
                " ┌────┼────┐     │",
                " DT   JJ   NN   VBZ",
                " │    │    │     │",
                "the  old  dog  barks",
            ],
        ),
        (
            "(S a (X (Y b) c))",
            ["  S", "┌─┴─┐", "│   X", "│  ┌┴─┐", "│  Y  │", "│  │  │", "a  b  c"],
        ),
        (
            "(S (NP 日本語 (LONGER は)) (V e\u0301))",
            [
                "           S",
                "      ┌────┴────┐",
                "      NP        V",
                "  ┌───┴───┐     │",
                "  │     LONGER  │",
                "  │       │     │",
                "日本語    は    e\u0301",
            ],
        ),
        ("(LONGEST a b)", ["LONGEST", "  ┌┴─┐", "  a  b"]),
        ("(A a)", ["A", "│", "a"]),
    ],
)
def test_a_tree_from_the_top_down(text: str, lines: list[str]) -> None:
    assert draw_tree(tree(text), 60).split("\n") == lines


@given(any_trees)
def test_lines_lead_from_each_label_to_what_is_below(one: Tree) -> None:
    lines = draw_tree(one, 10**6).split("\n")
    assert "".join(lines[-1].split()) == "".join(one.words())
    rows = [cells(line) for line in lines]
    width = max(map(len, rows))
    rows = [row + [" "] * (width - len(row) + 1) for row in rows]
    tops = 0
    for y in range(1, len(rows) - 1, 2):
        for x, cell in enumerate(rows[y][:-1]):
            tops += cell in UP
            assert (cell in UP) <= (rows[y - 1][x] != " ")
            assert (cell in DOWN) <= (rows[y + 1][x] != " ")
            assert (cell in LEFT) <= (rows[y][x - 1] in RIGHT)
            assert (cell in RIGHT) <= (rows[y][x + 1] in LEFT)
    # one line leaves each label, and one goes on from each │ in a row of labels
    assert tops == sum(1 for _ in one.nodes()) + sum(row.count("│") for row in rows[::2])


def test_a_tree_that_is_too_wide_is_indented() -> None:
    assert draw_tree(SENTENCE, 19) == INDENTED
    assert draw_tree(SENTENCE, 20) != INDENTED
    assert draw_tree(tree("(S aaa (X bbb ccc))"), 6) == "S\n├─ aaa\n└─ X\n   ├─ bbb\n   └─ ccc"


@given(any_trees)
def test_indented_trees_have_all_labels_and_words_in_order(one: Tree) -> None:
    lines = draw_tree(one, 0).split("\n")
    names = [name for line in lines for name in re.sub(r"^[…│├└─ ]*", "", line).split(" ")]
    assert names == [s if isinstance(s, str) else s.label for s in one.steps() if s is not None]


def test_the_room_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (19, 20):
        monkeypatch.setenv("COLUMNS", str(room))
        assert draw_tree(SENTENCE) == draw_tree(SENTENCE, room)


def test_margins_of_deep_trees_are_cut() -> None:
    chain = tree("(A " * DEEP + "x" + ")" * DEEP)
    assert draw_tree(chain, 80) == "A\n│\n" * DEEP + "x"
    branching = tree("(A y " * DEEP + "x" + ")" * DEEP)
    lines = draw_tree(branching, 80).split("\n")
    assert len(lines) == 2 * DEEP + 1
    assert lines[:3] == ["A", "├─ y", "└─ A"]
    assert lines[-2:] == [f"…{'':36}├─ y", f"…{'':36}└─ x"]
    assert max(map(len, lines)) == len(lines[-1])


def test_strange_words_do_no_harm() -> None:
    one = Tree("S", (Tree("A", ("a\x1b[2J\nb",)), Tree("B", ("שלום",)), Tree("C", ("\u200b",))))
    for width in (0, 80):
        text = draw_tree(one, width)
        assert "\x1b" not in text
        assert "a␛[2J b" in text
        assert "\u2068שלום\u2069" in text


# as a picture
def picture(one: Tree) -> ET.Element:
    return ET.fromstring(tree_svg(one))


@given(any_trees)
def test_a_picture_has_all_labels_and_words(one: Tree) -> None:
    texts = picture(one).findall(f"{SVG}text")
    assert [t.text for t in texts] == [
        s if isinstance(s, str) else s.label for s in one.steps() if s is not None
    ]
    below = [t for t in texts if t.get("class") == "w"]
    assert [t.text for t in below] == one.words()
    assert len({t.get("y") for t in below}) == 1
    places = [int(t.get("x", "")) for t in below]
    assert places == sorted(set(places))


@given(any_trees)
def test_lines_of_a_picture_join_what_belongs_together(one: Tree) -> None:
    root = picture(one)
    texts = [(int(t.get("x", "")), int(t.get("y", ""))) for t in root.findall(f"{SVG}text")]
    path = root.find(f"{SVG}path")
    assert path is not None
    found = re.findall(r"M(\d+) (\d+)L(\d+) (\d+)", path.get("d", ""))
    edges = {tuple(map(int, edge)) for edge in found}
    expected: set[tuple[int, ...]] = set()
    numbers = iter(range(len(texts)))
    above: list[int] = []
    for step in one.steps():
        if step is None:
            above.pop()
            continue
        number = next(numbers)
        if above:
            (x0, y0), (x1, y1) = texts[above[-1]], texts[number]
            expected.add((x0, y0 + DESCENT, x1, y1 - ASCENT - 2))
        if isinstance(step, Tree):
            above.append(number)
    assert edges == expected


def test_a_picture_stands_by_itself() -> None:
    text = tree_svg(Tree("<S>", (Tree("A&B", ("</svg><script>",)), "a\x00b", "\ud800")))
    root = ET.fromstring(text)
    assert [t.text for t in root.findall(f"{SVG}text")] == [
        "<S>",
        "A&B",
        "</svg><script>",
        "a␀b",
        "⟨U+D800⟩",
    ]
    assert root.findtext(f"{SVG}title") == "</svg><script> a␀b ⟨U+D800⟩"
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"<script|href|url\(|@import", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_a_picture_is_as_large_as_what_is_in_it() -> None:
    root = picture(tree("(VERYLONGLABEL (A a) (B b))"))
    width, height = (int(root.get(name, "")) for name in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width} {height}"
    assert width >= 8 * len("VERYLONGLABEL")
    for text in root.findall(f"{SVG}text"):
        assert 0 < int(text.get("x", "")) < width
        assert 0 < int(text.get("y", "")) < height


def test_pictures_of_deep_trees() -> None:
    assert tree_svg(tree("(A " * DEEP + "x" + ")" * DEEP)).count("<text") == DEEP + 1


def test_real_trees_are_drawn() -> None:
    for line in real.lines("wsj_sample/wsj_sample.mrg.gz")[::60]:
        one = tree(line)
        assert "".join(draw_tree(one, 10**6).split("\n")[-1].split()) == "".join(one.words())
        shown = draw_tree(one, 100).split("\n")
        assert "└" in "".join(shown) or max(map(cell_len, shown)) <= 100
        assert [t.text for t in picture(one).findall(f"{SVG}text[@class='w']")] == one.words()
