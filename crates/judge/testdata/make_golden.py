#!/usr/bin/env python3
"""Writes golden.json: what NumPy and SciPy say of the statistics that this crate computes itself.

    python3 -m venv venv && venv/bin/pip install numpy scipy && venv/bin/python make_golden.py
"""

import json
import pathlib
import random

import numpy as np
import scipy
from scipy import integrate, optimize, stats

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


def places():
    """Places, from 1, among samples in order that lie above a quantile with a given probability; null where there is
    none. Between two ranks the cover is that of a density which is even around the quantile: the distances to the
    neighbours are exponential, and the place is found by root finding on the integral over them."""

    def place(n, p, mass):
        below = stats.binom(n, p)
        r = int(below.ppf(mass))
        if r in (0, n):
            return None
        share = (mass - below.cdf(r - 1)) / below.pmf(r)
        down, up = r / p, (n - r) / (1 - p)

        def covered(weight):
            # P((1 − w)·U ≤ w·V), U and V the distances down and up: the distance up is exceeded by its exponential law.
            if weight in (0, 1):
                return weight
            return integrate.quad(
                lambda u: down * np.exp(-down * u - up * (1 - weight) / weight * u), 0, np.inf
            )[0]

        scale = max(down, up)
        down, up = down / scale, up / scale
        return r + optimize.brentq(lambda weight: covered(weight) - share, 0, 1, xtol=1e-12)

    for n in [1, 2, 5, 10, 20, 50, 59, 60, 100, 200, 367, 368, 500, 1000, 3000, 10_000]:
        for p in [0.01, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]:
            low, high = place(n, p, 0.025), place(n, p, 0.975)
            if high is None and low is not None:
                low = place(n, p, 0.05) or low
            elif low is None and high is not None:
                high = place(n, p, 0.95) or high
            yield {"n": n, "p": p, "low": low, "high": high}


def changes():
    """The largest standardised sum of normal scores over all places where a series could be cut, and the place."""
    rng = np.random.default_rng(11)
    for n, at, factor in [(40, 10, 3.0), (200, 150, 1.5), (500, 20, 2.0), (100, 50, 1.0)]:
        x = rng.lognormal(5, 0.4, n)
        x[:at] *= factor
        x = x.round(1)
        scores = stats.norm.ppf((stats.rankdata(x) - 0.5) / n)
        scores /= np.sqrt((scores**2).mean())
        k = np.arange(1, n)
        heights = np.abs(scores.cumsum()[:-1]) / np.sqrt(k * (n - k) / n)
        yield {"values": x.tolist(), "at": int(k[heights.argmax()]), "height": heights.max()}


def kolmogorov_smirnov():
    """Distance and two-sided p-value of samples against the distributions of gaps."""
    rng = np.random.default_rng(5)
    for n in [50, 400, 1000]:
        for name, law, drawn in [
            ("exponential", stats.expon(), rng.exponential(1, n)),
            ("exponential", stats.expon(), rng.gamma(0.8, 1.25, n)),
            ("gamma", stats.gamma(2.5, scale=1 / 2.5), rng.gamma(2.5, 1 / 2.5, n)),
        ]:
            found = stats.kstest(drawn, law.cdf, mode="asymp")
            yield {
                "law": name,
                "shape": 2.5 if name == "gamma" else 1.0,
                "samples": drawn.tolist(),
                "distance": found.statistic,
                "p_value": found.pvalue,
            }


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
        "order_places": list(places()),
        "wilson": list(wilson()),
        "changes": list(changes()),
        "kolmogorov_smirnov": list(kolmogorov_smirnov()),
    }
    path = pathlib.Path(__file__).with_name("golden.json")
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
