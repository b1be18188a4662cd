#!/usr/bin/env python3
"""Writes golden.json: what NumPy and SciPy say of the statistics that this crate computes itself.

    python3 -m venv venv && venv/bin/pip install numpy scipy && venv/bin/python make_golden.py
"""

import json
import pathlib
import random

import numpy as np
import scipy
from scipy import stats

PERCENTILES = [1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9]


def percentiles(rng):
    """Type 7 percentiles and moments of samples of several shapes."""
    shapes = {
        "lognormal": lambda n: rng.lognormal(5, 0.6, n),
        "exponential": lambda n: rng.exponential(100, n),
        "ties": lambda n: rng.integers(0, 5, n).astype(float),
    }
    for shape, draw in shapes.items():
        for n in [1, 2, 3, 10, 99, 500]:
            x = draw(n)
            yield {
                "shape": shape,
                "samples": x.tolist(),
                "percentiles": np.percentile(x, PERCENTILES, method="linear").tolist(),
                "mean": x.mean(),
                "stddev": x.std(ddof=1) if n > 1 else None,
                "t95": list(stats.t.interval(0.95, n - 1, x.mean(), stats.sem(x))) if n > 1 and x.std() > 0 else None,
            }


def one_sequence():
    """Samples of one sequence, so that anyone with Python can draw the same ones."""
    draw = random.Random(7).lognormvariate
    for n in [50, 100, 200, 1000]:
        x = [draw(5, 0.6) for _ in range(n)]
        yield {"samples": x, "p99": np.percentile(x, 99), "max": max(x)}


def ranks():
    """Ranks, from 1, of the order statistics around a quantile; null where there is none."""
    for n in [1, 2, 5, 10, 20, 50, 59, 60, 100, 200, 500, 1000, 3000, 10_000, 100_000, 10_000_000]:
        for p in [0.01, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]:
            low = int(stats.binom.ppf(0.025, n, p))
            high = int(stats.binom.ppf(0.975, n, p)) + 1
            yield {"n": n, "p": p, "low": low if low > 0 else None, "high": high if high <= n else None}


def wilson():
    for hits, n in [(0, 1), (1, 1), (0, 20), (20, 20), (19, 20), (95, 100), (999, 1000), (123_456, 234_567)]:
        interval = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
        yield {"hits": hits, "n": n, "interval": [interval.low, interval.high]}


def main():
    rng = np.random.default_rng(7)
    golden = {
        "made_with": f"numpy {np.__version__}, scipy {scipy.__version__}",
        "percentiles": list(percentiles(rng)),
        "one_sequence": list(one_sequence()),
        "order_ranks": list(ranks()),
        "wilson": list(wilson()),
    }
    path = pathlib.Path(__file__).with_name("golden.json")
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
