"""Which disciplines differ, or which ways of sharing a link, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate import _native
from tidegate._compare import contenders
from tidegate._native import Comparison, ScenarioError, Table, WaysComparison
from tidegate._sweep import Study


def differences(
    result: Comparison | WaysComparison | Study,
    *,
    against: str | None = None,
    metrics: Iterable[str] | None = None,
) -> Table:
    """How each discipline, or each way, differs from one of them, seed by seed, and whether that is real.

    Under one seed all of them meet the same traffic. What the traffic does to both of two
    falls out of their difference, so it says more than two means with their intervals. A
    difference is `significant` by Student's test of these differences, with at most one in
    twenty of those that are marked false in the mean, however many are compared (the rule of
    Benjamini and Hochberg over all rows of the table). Two seeds are the least; differences of
    few seeds are rarely significant.

    Args:
        result: A comparison of disciplines or of ways, or a study, whose points are compared one by one.
        against: A label; the first one unless it is said.
        metrics: Their names in `runs`; all unless it is said.

    Returns:
        One row for each contender, measure and point: the two values, their `difference` with
        the ends of its 95% interval, `p`, `seeds`, `significant`, and in `better` whether
        users prefer "less" or "more" of it, or "neither".

    Examples:
        >>> import polars, tidegate
        >>> result = tidegate.compare("dumbbell", disciplines=["fifo", "tide"], seeds=5, duration="10 s")
        >>> found = polars.DataFrame(tidegate.differences(result, metrics=["response_mean_s"]))
        >>> row, = found.filter(kind="size class", name="all").to_dicts()
        >>> row["discipline"], row["against"], row["better"], row["seeds"]
        ('tide', 'fifo', 'less', 5)
    """
    labels = contenders(result)
    against = labels[0] if against is None else against
    if against not in labels:
        raise ScenarioError(f"against: found '{against}', expected one of {', '.join(labels)}")
    metrics = None if metrics is None else set(metrics)
    return _native.differences(result.runs, against=against, metrics=metrics)
