"""Differences seed by seed, beside those of a library for statistics."""

from __future__ import annotations

import polars as pl
import pytest
import tidegate
from scipy import stats
from small import SMALL


@pytest.fixture(scope="module")
def result() -> tidegate.Comparison:
    twin = tidegate.Tide(label="twin")
    return tidegate.compare(SMALL, disciplines=["fifo", "tide", twin], seeds=8)


def test_intervals_and_p_values_are_those_of_scipy(result: tidegate.Comparison) -> None:
    found = pl.DataFrame(tidegate.differences(result, against="fifo"))
    runs = pl.DataFrame(result.runs)
    checked = 0
    for row in found.iter_rows(named=True):
        of = runs.filter(kind=row["kind"], name=row["name"], metric=row["metric"])
        one, other = (of.filter(discipline=it).sort("seed") for it in (row["discipline"], "fifo"))
        both = one.join(other, on="seed", suffix="_fifo").sort("seed")
        assert row["seeds"] == both.height
        assert row["value"] == pytest.approx(both["value"].mean(), rel=1e-12)
        assert row["against_value"] == pytest.approx(both["value_fifo"].mean(), rel=1e-12)
        gaps = both["value"] - both["value_fifo"]
        if gaps.std() == 0:
            assert row["p"] == (1 if gaps[0] == 0 else 0)
            continue
        test = stats.ttest_rel(both["value"], both["value_fifo"])
        low, high = test.confidence_interval(0.95)
        assert row["p"] == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)
        # Of the width and not of an end, which may be next to nothing: quantiles of t have four
        # digits.
        within = 1e-3 * (high - low) / 2
        assert row["low_95"] == pytest.approx(low, abs=within, rel=0)
        assert row["high_95"] == pytest.approx(high, abs=within, rel=0)
        checked += 1
    assert checked > 20
    marked = stats.false_discovery_control(found["p"].to_numpy()) <= 0.05
    assert found["significant"].to_list() == marked.tolist()


def test_what_is_the_same_does_not_differ_and_what_users_feel_does(
    result: tidegate.Comparison,
) -> None:
    twins = pl.DataFrame(tidegate.differences(result, against="tide")).filter(discipline="twin")
    assert twins.height > 20
    assert twins["significant"].sum() == 0 and set(twins["p"]) == {1.0}
    web = tidegate.compare("dumbbell", disciplines=["fifo", "tide"], seeds=20, duration="20 s")
    found = pl.DataFrame(tidegate.differences(web, metrics=["response_mean_s"]))
    [row] = found.filter(pl.col("name").str.starts_with("short")).to_dicts()
    assert row["better"] == "less" and row["high_95"] < 0 and row["significant"]


def test_points_of_a_study_are_compared_one_by_one() -> None:
    study = tidegate.sweep(SMALL, over={"rate": ["5 Mbit/s", "9 Mbit/s"]}, seeds=4)
    found = pl.DataFrame(tidegate.differences(study, metrics=["response_mean_s"]))
    assert found.columns[:4] == ["rate", "kind", "name", "metric"]
    assert found.filter(name="all")["rate"].to_list() == ["5 Mbit/s", "9 Mbit/s"]


def test_what_there_is_not_is_refused(result: tidegate.Comparison) -> None:
    with pytest.raises(tidegate.ScenarioError, match="found 'las', expected one of fifo, tide"):
        tidegate.differences(result, against="las")
    assert len(tidegate.differences(result, metrics=["weight"])) == 0


def test_ways_are_set_beside_each_other_too() -> None:
    result = tidegate.compare_ways("unfilled", seeds=4, ways=["direct", "msf", "paper"])
    found = pl.DataFrame(tidegate.differences(result, metrics=["response_mean_s", "completed"]))
    assert set(found["way"]) == {"msf", "paper"} and set(found["against"]) == {"direct"}
    assert set(found.filter(metric="response_mean_s")["better"]) == {"less"}
    runs = pl.DataFrame(result.runs).filter(metric="response_mean_s", name="four")
    direct, paper = (runs.filter(way=it).sort("seed")["value"] for it in ("direct", "paper"))
    [row] = found.filter(way="paper", metric="response_mean_s", name="four").to_dicts()
    test = stats.ttest_rel(paper, direct)
    assert row["p"] == pytest.approx(test.pvalue, rel=1e-6)
    assert row["difference"] == pytest.approx((paper - direct).mean())
    with pytest.raises(tidegate.ScenarioError, match="against: found 'fifo', expected one of direct"):
        tidegate.differences(result, against="fifo")
