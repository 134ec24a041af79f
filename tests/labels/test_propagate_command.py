"""``softcount propagate``."""

from __future__ import annotations

import json

import pytest

from tests.commands import done, file_of, lines, refused, reported, run

ROWS = "+\tgood fine\n-\tbad awful\n\tfine great\n-1\tawful dreadful\n\t\n\n\tgreat film\n"


@pytest.fixture
def some(tmp_path):
    return file_of(tmp_path / "some.tsv", ROWS)


def test_every_line_comes_back_with_a_label(some):
    result = done("propagate", some)
    said = [line.split("\t") for line in lines(result)]
    assert said.pop(5) == [""], "a blank line stays blank"
    assert [row[0] for row in said][:4] == ["+", "-", "+", "-"]
    assert [row[1] for row in said] == [
        "good fine", "bad awful", "fine great", "awful dreadful", "", "great film",
    ]  # fmt: skip
    assert said[0][2] == said[1][2] == "1"
    assert all(0.5 <= float(row[2]) <= 1.0 for row in said)
    assert "no label reaches 1 line (5)" in result.stderr
    assert "converged" in result.stderr


def test_json_lines(tmp_path):
    rows = [{"label": 1, "text": "a b"}, {"label": 0, "text": "c d"}, {"text": "b", "id": 7}]
    file = file_of(tmp_path / "some.jsonl", "\n".join(map(json.dumps, rows)))
    said = [json.loads(line) for line in lines(done("propagate", file))]
    assert [row["label"] for row in said] == [1, 0, 1]
    assert said[2]["id"] == 7
    assert said[2]["confidence"] > 0.5


def test_a_graph_instead_of_text(tmp_path):
    file = file_of(tmp_path / "some.tsv", "a\tx\n\tx\n\tx\nb\tx\n")
    edges = file_of(tmp_path / "edges.tsv", "0\t1\n1\t2\t1\n\n2\t3\t1.0\n")
    said = lines(done("propagate", file, "--graph", edges, "--no-class-mass"))
    assert [line.split("\t")[0] for line in said] == ["a", "a", "b", "b"]
    assert [float(line.split("\t")[2]) for line in said] == pytest.approx(
        [1, 2 / 3, 2 / 3, 1], abs=1e-5
    )


@pytest.mark.parametrize(
    "edge", ["0", "0\tx", "0\t9", "-1\t0", "0\t1\t2\t3", "0\t1\t-1", "0\t1\tnan"]
)
def test_wrong_edges_are_told_with_their_line(some, tmp_path, edge):
    edges = file_of(tmp_path / "edges.tsv", "0\t1\n" + edge.replace(" ", "\t"))
    refused("propagate", some, "--graph", edges, message="edges.tsv:2")


def test_gold(some, tmp_path):
    gold = file_of(tmp_path / "gold.txt", "+\n-\n+\n-\n\n\n-\n")
    assert "accuracy 0.667 on 3 lines" in done("propagate", some, "--gold", gold).stderr


@pytest.mark.parametrize("more", [(), ("--svd", "2"), ("--weights", "gaussian", "--alpha", "2")])
def test_a_model_labels_new_lines(some, tmp_path, more):
    model = tmp_path / "m.softcount"
    done("propagate", some, "--save", model, *more)
    new = file_of(tmp_path / "new.tsv", "\tdreadful awful\n?\tfine\n\tunseen\n")
    result = done("propagate", "--load", model, new)
    said = [line.split("\t") for line in lines(result)]
    assert said[0][0] == "-"
    assert said[1] == ["?", "fine", "1"]
    assert "no label reaches 1 line (3)" in result.stderr


def test_threads_and_seeds_change_nothing_that_they_should_not(some):
    one = done("propagate", some, "--threads", "1", "--svd", "2", "--seed", "3").stdout
    assert one == done("propagate", some, "--threads", "2", "--svd", "2", "--seed", "3").stdout


def test_options_that_do_not_go_together(some, tmp_path):
    edges = file_of(tmp_path / "edges.tsv", "0\t1\n")
    for options in (("--graph", edges, "--svd", "3"), ("--load", some, "--seed", "1")):
        result = run("propagate", some, *options)
        assert result.exit_code == 2
        assert "does not go with" in result.stderr
    assert run("propagate", "-", "--gold", "-", stdin=ROWS).exit_code == 2


def test_too_few_labels_are_told(tmp_path):
    file = file_of(tmp_path / "one.tsv", "a\tx\n\ty\n")
    refused("propagate", file, message="no labels other than 'a'")


def test_models_of_other_commands_are_told(tmp_path):
    train = file_of(tmp_path / "train.tsv", "a\tx y\nb\tz\n")
    done("classify", "--train", train, "--save", tmp_path / "m")
    refused("propagate", "--load", tmp_path / "m", train, message="NaiveBayes")


def test_the_page(some, tmp_path):
    page = tmp_path / "page.html"
    done("propagate", some, "--html", page)
    assert "What to label next" in page.read_text()


@pytest.mark.parametrize("option", ["--save", "--html"])
def test_nothing_is_written_over_what_is_read(some, tmp_path, option):
    edges, gold = file_of(tmp_path / "g", "0\t2\n"), file_of(tmp_path / "y", "+\n" * 7)
    before = [file.read_text() for file in (some, edges, gold)]
    refused("propagate", some, option, some, message="this is the file of FILE")
    refused("propagate", some, "--gold", gold, option, gold, message="this is the file of --gold")
    if option == "--html":
        graph = ("propagate", some, "--graph", edges)
        refused(*graph, option, edges, message="this is the file of --graph")
        refused("propagate", some, "--save", tmp_path / "m", option, tmp_path / "m", message="of")
    assert [file.read_text() for file in (some, edges, gold)] == before


def test_a_loaded_model_speaks_of_lines_that_it_labels(some, tmp_path):
    done("propagate", some, "--save", tmp_path / "m")
    rows = "+\tstrange\n\tfine\n\n\tstrange\n\tbad\n-\t\n"
    file, gold = file_of(tmp_path / "new", rows), file_of(tmp_path / "y", "+\n-\n+\n+\n-\n+\n")
    result = done("propagate", "--load", tmp_path / "m", file, "--gold", gold)
    said = [line.split("\t") for line in lines(result)]
    assert [row[0] for row in said] == ["+", "+", "", "+", "-", "-"]
    assert [row[-1] for row in said][::5] == ["1", "1"]
    assert "no label reaches 1 line (4)" in result.stderr
    assert "0.6667 of 3 lines" in result.stderr
    labelled = file_of(tmp_path / "all", "+\tstrange\n-\t\n")
    assert reported(done("propagate", "--load", tmp_path / "m", labelled)) == ""


def test_weights_that_add_up_to_infinity(some, tmp_path):
    edges = file_of(tmp_path / "g", "0\t2\t1e308\n0\t2\t1e308\n")
    refused("propagate", some, "--graph", edges, message="sum of the weights overflows")
