"""Whether draws are from the distribution that they should be from."""

from __future__ import annotations

from collections import Counter

from scipy.stats import chi2


def surprise(seen: Counter, expected: dict) -> float:
    """χ² over its 0.9999 quantile; what is expected less than five times is put together."""
    assert set(seen) <= set(expected)
    n = seen.total()
    common = [key for key, p in expected.items() if n * p >= 5]
    pairs = [(seen[key], n * expected[key]) for key in common]
    rest = n - sum(o for o, _ in pairs), n - sum(e for _, e in pairs)
    pairs += [rest] if rest[1] >= 5 else []
    return sum((o - e) ** 2 / e for o, e in pairs) / chi2.ppf(0.9999, len(pairs) - 1)
