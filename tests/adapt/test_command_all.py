"""``softcount adapt --method all``, and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from softcount.adapt.command import DEFAULT_WITHOUT_LABELS, METHODS
from tests.adapt.reviews import (
    cells,
    reviews,
    table,
    written,
)
from tests.commands import done, file_of, refused
from tests.labels.test_report import Parts


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks that are trained for a moment only, where all methods run many times."""
    from softcount.adapt import adversarial

    monkeypatch.setattr(adversarial, "FEWEST_BATCHES", 3)


@pytest.mark.usefixtures("quick")
def test_all_methods_are_judged_by_labels_that_were_held_out(
    books: Path, few: Path, tmp_path: Path
) -> None:
    given = ("adapt", "--source", books, "--target", few)
    result = done(*given, "--method", "all")
    rows = table(result)
    assert list(rows) == list(METHODS)
    assert set(rows["merge"]) == {"method", "held-out target", "seconds", "chosen"}
    assert (
        "# Held-out target: accuracy on 8 labels of the target, held out in 4 folds"
        in result.stderr
    )
    accuracy = {name: float(row["held-out target"]) for name, row in rows.items()}
    error = re.search(r"the best is uncertain by about ±(\S+)\n", result.stderr)
    assert error
    p = (1 + 8 * max(accuracy.values())) / 10
    assert float(error[1]) == pytest.approx((p * (1 - p) / 10) ** 0.5, abs=1e-3)
    (chosen,) = [name for name, row in rows.items() if row["chosen"]]
    assert accuracy[chosen] == max(accuracy.values())
    if accuracy["easyadapt"] == accuracy[chosen]:
        assert chosen == "easyadapt"
    assert result.stdout == done(*given, "--method", chosen).stdout


@pytest.mark.usefixtures("quick")
def test_the_best_is_chosen_even_if_it_is_not_usual(tmp_path: Path) -> None:
    """Here words mean the contrary, and only the target's own labels are of use."""
    flip = {"pos": "neg", "neg": "pos"}
    source = [(flip[y], text) for y, text in reviews("kitchen", 400, seed=1)]
    books = file_of(tmp_path / "s.tsv", written(source))
    target = file_of(tmp_path / "t.tsv", written(reviews("kitchen"), 20))
    rows = table(done("adapt", "--source", books, "--target", target, "--method", "all"))
    assert float(rows["source-only"]["held-out target"]) < 0.1
    assert float(rows["target-only"]["held-out target"]) > 0.9
    (chosen,) = [name for name, row in rows.items() if row["chosen"]]
    assert float(rows[chosen]["held-out target"]) > 0.9


@pytest.mark.usefixtures("quick")
def test_what_is_held_out_is_not_learned(books: Path, tmp_path: Path) -> None:
    """Lines that have nothing in common, and labels by chance: nobody can foretell these."""
    rows = [(("pos", "neg")[k // 2 % 2], f"a{k} b{k} c{k}") for k in range(40)]
    target = file_of(tmp_path / "t.tsv", written(rows))
    rows = table(done("adapt", "--source", books, "--target", target, "--method", "all"))
    assert all(float(row["held-out target"]) < 0.7 for row in rows.values())


@pytest.mark.usefixtures("quick")
def test_without_labels_of_the_target_nothing_judges_there(
    books: Path, kitchen: Path, gold: Path
) -> None:
    given = ("adapt", "--source", books, "--target", kitchen)
    result = done(*given, "--method", "all")
    rows = table(result)
    assert list(rows) == [one for one, entry in METHODS.items() if not entry.n_labels]
    assert "# Held-out source: " in result.stderr
    assert "this is no measure of the target" in result.stderr
    assert "no labels in the target to judge methods by" in result.stderr
    assert [name for name, row in rows.items() if row["chosen"]] == [DEFAULT_WITHOUT_LABELS]
    assert result.stdout == done(*given).stdout
    beside = done(*given, "--method", "all", "--gold", gold)
    assert beside.stdout == result.stdout, "gold labels choose nothing"
    assert "accuracy on 40 lines of the target with a gold label; it had no part" in beside.stderr
    rows = table(beside)
    for name in rows:
        alone = done(*given, "--method", name, "--gold", gold).stderr
        assert f"# accuracy {float(rows[name]['gold']):.3f} on 40 lines" in alone


@pytest.mark.usefixtures("quick")
def test_too_few_labels_of_the_target_judge_nothing(books: Path, tmp_path: Path) -> None:
    target = file_of(tmp_path / "t.tsv", "pos\tsharp pan\nneg\tblunt pan\n\tgood knife\n")
    result = done("adapt", "--source", books, "--target", target, "--method", "all")
    assert "easyadapt labels the lines" in result.stderr
    assert "too few labels of some class in the target" in result.stderr
    assert "held-out source" in table(result)["merge"]


@pytest.mark.usefixtures("quick")
def test_too_few_labels_anywhere(tmp_path: Path) -> None:
    source = file_of(tmp_path / "s.tsv", "pos\tgood pan\nneg\tbad pan\n")
    target = file_of(tmp_path / "t.tsv", "pos\tgood knife\nneg\tbad knife\n\tgood\n")
    result = done("adapt", "--source", source, "--target", target, "--method", "all")
    assert [row[0] for row in cells(result)] == ["pos", "neg", "pos"]
    assert "method\t" not in result.stderr


@pytest.mark.usefixtures("quick")
def test_methods_that_cannot_do_are_named(
    books: Path, few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from softcount.adapt.denoising import DenoisingProjection
    from softcount.adapt.supervised import EasyAdapt
    from softcount.core.errors import DataError

    def learn(self: object, task: object) -> None:
        raise DataError("it will not", "be patient")

    monkeypatch.setattr(EasyAdapt, "_learn", learn)
    result = done("adapt", "--source", books, "--target", few, "--method", "all")
    assert "# easyadapt was left out: it will not" in result.stderr
    assert "easyadapt" not in table(result)
    refused("adapt", "--source", books, "--target", few, message="it will not")
    monkeypatch.setattr(DenoisingProjection, "_learn", learn)
    one = file_of(few.parent / "one.tsv", "pos\tsharp pan\n\tgood knife\n")
    result = done("adapt", "--source", books, "--target", one, "--method", "all")
    assert "# source-only labels the lines" in result.stderr


@pytest.mark.usefixtures("quick")
def test_seeds(books: Path, few: Path) -> None:
    given = ("adapt", "--source", books, "--target", few, "--method", "adversarial", "--seed")
    one = done(*given, "3")
    assert one.stdout == done(*given, "3").stdout
    assert one.stdout != done(*given, "4").stdout


@pytest.mark.usefixtures("quick")
def test_gold_labels_that_nobody_learned_are_wrong(books: Path, tmp_path: Path) -> None:
    target = file_of(tmp_path / "t.tsv", "\tgood\n\n\tbad\n")
    gold = file_of(tmp_path / "y", "pos\nneg\nstrange\n")
    given = ("adapt", "--source", books, "--target", target, "--gold", gold, "--method")
    told = done(*given, "source-only").stderr
    assert "accuracy 0.500 on 2 lines with a gold label, given ones left out\n" in told
    assert table(done(*given, "all"))["source-only"]["gold"] == "0.5000"
    file_of(gold, "pos\n")
    refused(*given, "all", message="1 lines, while")


@pytest.mark.usefixtures("quick")
def test_a_target_whose_lines_all_have_labels(books: Path, tmp_path: Path) -> None:
    target = file_of(tmp_path / "t.tsv", written(reviews("kitchen", 12)))
    result = done("adapt", "--source", books, "--target", target, "--method", "all")
    assert [row[:2] for row in cells(result)] == [list(row) for row in reviews("kitchen", 12)]
    assert "12 had a label, 0 got one" in result.stderr


# the page
@pytest.mark.usefixtures("quick")
def test_the_page(books: Path, few: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    true = file_of(tmp_path / "y", "".join(f"{y}\n" for y, _ in reviews("kitchen")) + "\n\n")
    result = done(
        "adapt",
        "--source",
        books,
        "--target",
        few,
        "--method",
        "all",
        "--html",
        page,
        "--gold",
        true,
    )
    html = page.read_text()
    parts = Parts(html)
    assert parts.open == []
    assert not {"script", "link", "img", "iframe"} & set(parts.tags)
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert html.count('<svg class="sc-chart"') == 2
    for name, row in table(result).items():
        found = [row_ for row_ in parts.rows if row_[0] == name and len(row_) == 4]
        assert [f"{float(row[head]):.3f}" for head in ("held-out target", "gold")] == found[0][1:3]
    assert "What to label next" in html
    assert html.count('<line class="reference"') == 4, "in the picture and in its legend"
    assert "accuracy on 32 lines of the target with a gold label" in result.stderr


@pytest.mark.usefixtures("quick")
def test_a_page_has_no_picture_of_what_does_not_measure_the_target(
    books: Path, kitchen: Path, gold: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    given = ("adapt", "--source", books, "--target", kitchen, "--method", "all", "--html", page)
    done(*given)
    assert '<svg class="sc-chart"' not in page.read_text()
    assert "no measure of the target" in page.read_text()
    done(*given, "--gold", gold)
    assert page.read_text().count('<svg class="sc-chart"') == 1


def test_a_page_without_a_comparison(books: Path, few: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = done("adapt", "--source", books, "--target", few, "--html", page)
    assert "Words that moved" in page.read_text()
    assert "Methods" not in page.read_text()
    assert "word\t" not in result.stderr
