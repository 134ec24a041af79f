"""What adaptation costs: CPU seconds and memory of a transfer, beside `adapt` and `skada`.

From reviews of books to reviews of kitchen things: 2,000 with labels and 2,000 without, of which
100 show theirs to methods that want some (see adaptation.py). Learning and predicting 5,945 test
reviews, each method in a process of its own, one thread, memory above what the data take. The
peers want dense matrices and get them; making these is not counted. They are shown as far as they
are installed (``pip install adapt skada``; the first brings TensorFlow).

    python benchmarks/adaptation_cost.py [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from _costs import forget_peak, memory
from _reviews import domain, weigher
from numpy.typing import NDArray
from scipy import sparse

from softcount.adapt.base import make_classifier
from softcount.adapt.comparison import WITH_TARGET_LABELS, WITHOUT_TARGET_LABELS

SOURCE, TARGET, SHOWN = "books", "kitchen", 50
HIDDEN, STEPS, BATCH, DIMENSIONS = 50, 10, 64, 100
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
Figures = dict[str, float]
Run = Callable[["Rows"], Any]


class Rows(NamedTuple):
    """Items to learn from, their labels (−1: hidden) and domains; items to test on."""

    X: Any
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    test: Any
    y_test: NDArray[np.int64]


class Method(NamedTuple):
    """What to run, what it needs."""

    run: Run
    labels: bool = False
    package: str = "softcount"


def read(labels: bool, dense: bool) -> Rows:
    """The transfer; ``labels``: of 50 reviews of each kind in the target."""
    here, there = domain(SOURCE), domain(TARGET)
    weigh = weigher().fit(sparse.vstack([here.X, there.X]))
    X = weigh.transform(sparse.vstack([here.X, there.X]))
    test = weigh.transform(there.X_test)
    shown = np.full(len(there.y), -1)
    for k in (0, 1) if labels else ():
        shown[np.flatnonzero(there.y == k)[:SHOWN]] = k
    y = np.concatenate([here.y, shown])
    where = np.repeat([1, -1], [len(here.y), len(shown)])
    if dense:
        X, test = X.toarray(), test.toarray()
    return Rows(X, y, where, test, there.y_test)


def ours(method: Any) -> Run:
    return lambda data: method().fit(data.X, data.y, data.domain).predict(data.test)


def of_adapt(module: str, name: str, told: Mapping[str, Any] | None = None, **settings: Any) -> Run:
    """A method of `adapt` that gets a classifier of scikit-learn."""

    def run(data: Rows) -> Any:
        source, target = data.domain > 0, data.domain < 0
        known = target & (data.y >= 0)
        given = {"Xt": data.X[target]}
        if known.any():
            given = {"Xt": data.X[known], "yt": data.y[known]}
        model = getattr(import_module(f"adapt.{module}"), name)(
            make_classifier(), **given, **settings, verbose=0, random_state=0
        )
        model.fit(data.X[source], data.y[source])
        return model.predict(data.test, **(told or {}))

    return run


def weights_of_adapt(data: Rows) -> Any:
    """Its logistic regression drawn towards the source's weights."""
    transfer = import_module("adapt.parameter_based").RegularTransferLC
    source, known = data.domain > 0, (data.domain < 0) & (data.y >= 0)
    start = make_classifier().fit(data.X[source], data.y[source])
    model = transfer(start, lambda_=1.0, verbose=0, random_state=0)
    return model.fit(data.X[known], data.y[known]).predict(data.test)


def network_of_adapt(data: Rows) -> Any:
    """Its domain-adversarial network with one hidden layer."""
    keras = import_module("tensorflow").keras
    keras.utils.set_random_seed(0)

    def layer(width: int, activation: str) -> Any:
        return keras.Sequential([keras.layers.Dense(width, activation=activation)])

    model = import_module("adapt.feature_based").DANN(
        encoder=layer(HIDDEN, "relu"),
        task=layer(1, "sigmoid"),
        discriminator=layer(1, "sigmoid"),
        Xt=data.X[data.domain < 0],
        loss="bce",
        optimizer=keras.optimizers.Adam(1e-3),
        verbose=0,
        random_state=0,
    )
    source = data.domain > 0
    model.fit(data.X[source], data.y[source], epochs=STEPS, batch_size=BATCH, verbose=0)
    return model.predict(data.test)


def of_skada(name: str, **settings: Any) -> Run:
    def run(data: Rows) -> Any:
        skada = import_module("skada")
        chain = skada.make_da_pipeline(getattr(skada, name)(**settings), make_classifier())
        chain.fit(data.X, data.y, sample_domain=np.where(data.domain > 0, 1, -2))
        return chain.predict(data.test)

    return run


METHODS: dict[str, Method] = {
    **{one.__name__: Method(ours(one)) for one in WITHOUT_TARGET_LABELS},
    "adapt: SA": Method(of_adapt("feature_based", "SA", n_components=DIMENSIONS), package="adapt"),
    "adapt: DANN, ten epochs": Method(network_of_adapt, package="adapt"),
    "skada: SubspaceAlignment": Method(
        of_skada("SubspaceAlignmentAdapter", n_components=DIMENSIONS), package="skada"
    ),
    "skada: TransferComponentAnalysis": Method(
        of_skada("TransferComponentAnalysisAdapter", n_components=DIMENSIONS), package="skada"
    ),
    **{one.__name__: Method(ours(one), labels=True) for one in WITH_TARGET_LABELS},
    "adapt: FA (EasyAdapt)": Method(
        of_adapt("feature_based", "FA", {"domain": "tgt"}), True, "adapt"
    ),
    "adapt: PRED": Method(of_adapt("feature_based", "PRED"), True, "adapt"),
    "adapt: RegularTransferLC (prior)": Method(weights_of_adapt, True, "adapt"),
}


def one(name: str) -> Figures:
    """A method in this process."""
    method = METHODS[name]
    data = read(method.labels, dense=method.package != "softcount")
    if method.package != "softcount":
        import_module(method.package)
    forget_peak()
    before, began = memory("VmRSS"), time.process_time()
    said = np.asarray(method.run(data), dtype=float).ravel() > 0.5  # some say probabilities
    seconds = time.process_time() - began
    right = float((said == data.y_test).mean())
    return {"CPU s": seconds, "MB": memory("VmHWM") - before, "accuracy": right}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one)))
        return
    read(labels=False, dense=False)  # says so and ends where the reviews are not there
    figures: dict[str, Figures] = {}
    for name, method in METHODS.items():
        if find_spec(method.package) is None:
            print(f"skipped: {name}, for {method.package} is not installed", file=sys.stderr)
            continue
        done = subprocess.run(
            [sys.executable, __file__, "--one", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
        )
        figures[name] = json.loads(done.stdout.splitlines()[-1])
        cells = ", ".join(f"{what} {figure:.4g}" for what, figure in figures[name].items())
        print(f"{name}: {cells}", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(figures))
        return
    print("| | CPU s | MB | accuracy |\n|---|---|---|---|")
    for name, found in figures.items():
        print(f"| {name} | {found['CPU s']:.2f} | {found['MB']:.0f} | {found['accuracy']:.3f} |")


if __name__ == "__main__":
    main()
