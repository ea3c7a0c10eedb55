"""Figures: what they show is what the tables say."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, cast

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import polars as pl
import pytest
import tidegate
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from scipy import stats
from tidegate import figures, tables

DISCIPLINES = ["fifo", "fq-codel", "tide"]


@pytest.fixture(scope="module")
def result() -> tidegate.Comparison:
    return tidegate.compare("household", disciplines=DISCIPLINES, seeds=3, duration="12 s")


@pytest.fixture(scope="module")
def study() -> tidegate.Study:
    return tidegate.sweep(
        "dumbbell",
        over={"rate": "5 Mbit/s,10 Mbit/s,50 Mbit/s", "buffer": ["30 ms", "300 ms"]},
        disciplines=DISCIPLINES,
        seeds=3,
        duration="5 s",
        flows=True,
    )


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    plt.close("all")


def saved(axes: Axes, folder: pathlib.Path) -> Axes:
    figure = axes.get_figure(root=True)
    assert figure is not None
    for form in ("png", "pdf", "svg"):
        figure.savefig(folder / f"figure.{form}")
        assert (folder / f"figure.{form}").stat().st_size > 1000
    return axes


def heights(line: Line2D) -> list[float]:
    """The values that a line shows."""
    return [float(it) for it in cast(Any, line.get_ydata())]


def test_response_by_size_shows_the_summary(
    result: tidegate.Comparison, tmp_path: pathlib.Path
) -> None:
    axes = saved(figures.response_by_size(result), tmp_path)
    summary = json.loads(result.json())["disciplines"]
    for line, discipline in zip(axes.lines, summary, strict=True):
        means = [it["mean_s"]["value"] for it in discipline["response_by_size"] if it["mean_s"]]
        assert line.get_label() == discipline["label"]
        assert heights(line) == pytest.approx(means) and len(means) > 5
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Size (kB)", "Response time, mean (s)")


def test_tails_are_those_of_the_report(result: tidegate.Comparison, tmp_path: pathlib.Path) -> None:
    for draw, source in ((figures.delays, "call, down"), (figures.page_loads, "web")):
        axes = saved(draw(result, source), tmp_path)
        assert axes.get_ylabel().endswith(f"of {source} that take longer")
        for line in axes.lines:
            # From all of them down to few.
            assert heights(line) == sorted(heights(line), reverse=True)
            assert 0 < heights(line)[-1] <= heights(line)[0] <= 1
    with pytest.raises(ValueError, match="source: found no 'sideways', expected one of web"):
        figures.delays(result, "sideways")


def test_progress_is_that_of_each_flow(tmp_path: pathlib.Path) -> None:
    long = tables.TransferSource(
        name="long", from_="senders", to="receivers", count=2, sizes="endless", follow=True
    )
    link = tidegate.scenario(
        title="Two long ones",
        duration="5 s",
        disciplines=DISCIPLINES,
        seeds=1,
        dumbbell={"rate": "8 Mbit/s"},
        traffic=tables.Traffic(transfers=[long]),
    )
    axes = saved(figures.progress(tidegate.compare(link), "long"), tmp_path)
    assert len(axes.lines) == 2 * len(DISCIPLINES) and axes.get_ylabel() == "Arrived (MB)"
    for line in axes.lines:
        assert heights(line) == sorted(heights(line))
    # Both together are what the link carries in five seconds, but for headers and the start.
    first, second = (heights(line)[-1] for line in axes.lines[:2])
    assert 3.5 < first + second < 5


@pytest.mark.parametrize(
    ("draw", "label"),
    [
        (lambda it: figures.distribution(it, largest_bytes=30_000), "Response time (s)"),
        (lambda it: figures.over_time(it), "Time (s)"),
        (lambda it: figures.throughput(it, window_s=2), "Time (s)"),
        (lambda it: figures.shares(it), "Throughput (Mbit/s)"),
        (lambda it: figures.estimates(it, "utilisation_ratio", name="down"), "Utilisation (%)"),
        (lambda it: figures.percentiles(it, "down"), "Delay (ms)"),
        (
            lambda it: figures.differences(tidegate.differences(it, metrics=["delay_p95_s"])),
            "Difference from fifo (%)",
        ),
    ],
)
def test_figures_of_a_comparison(
    draw: Callable[[tidegate.Comparison], Axes],
    label: str,
    result: tidegate.Comparison,
    tmp_path: pathlib.Path,
) -> None:
    axes = saved(draw(result), tmp_path)
    assert axes.get_xlabel() == label
    assert axes.has_data()


def test_losses_stand_by_reason(tmp_path: pathlib.Path) -> None:
    result = tidegate.compare("dumbbell-overload", disciplines=DISCIPLINES, seeds=2, duration="9 s")
    axes = saved(figures.losses(result), tmp_path)
    links = pl.DataFrame(result.links).sort("time_s").group_by("discipline", "seed").last()
    lost = pl.sum_horizontal(pl.col("^(refused|pushed_out|early|superseded|excess)_packets$"))
    sums = links.group_by("discipline").agg(lost.sum() / pl.col("offered_packets").sum() * 100)
    shown = dict.fromkeys(range(len(DISCIPLINES)), 0.0)
    for bar in cast(list[Rectangle], axes.patches):
        shown[round(bar.get_y() + bar.get_height() / 2)] += bar.get_width()
    for place, discipline in enumerate(DISCIPLINES):
        [(_, expected)] = sums.filter(discipline=discipline).rows()
        assert shown[place] == pytest.approx(expected) and expected > 0.1


def test_curves_over_a_key_are_means_of_runs(
    study: tidegate.Study, tmp_path: pathlib.Path
) -> None:
    axes = saved(figures.over_key(study, "response_mean_s", key="rate"), tmp_path)
    assert (axes.get_xlabel(), axes.get_xscale()) == ("rate (Mbit/s)", "log")
    runs = pl.DataFrame(study.runs).filter(metric="response_mean_s", name="all", rate="5 Mbit/s")
    for line, discipline in zip(axes.lines, DISCIPLINES, strict=True):
        assert list(cast(Any, line.get_xdata())) == [5, 10, 50]
        mean = cast(float, runs.filter(discipline=discipline)["value"].mean())
        factor = 1e3 if "ms" in axes.get_ylabel() else 1
        assert heights(line)[0] == pytest.approx(factor * mean)
    # The band is over three seeds, each with the mean over both buffers.
    by_seed = runs.filter(discipline="fifo").group_by("seed").agg(pl.mean("value"))["value"]
    assert len(by_seed) == 3
    low, high = stats.t.interval(0.95, 2, by_seed.mean(), stats.sem(by_seed))
    band = cast(Any, axes.collections[0]).get_paths()[0].vertices
    ends = sorted(y for x, y in band if x == 5)
    assert (ends[0], ends[-1]) == pytest.approx((factor * low, factor * high))


def test_maps_have_a_cell_for_each_point(study: tidegate.Study, tmp_path: pathlib.Path) -> None:
    axes = saved(figures.heat_map(study, "response_mean_s", discipline="tide"), tmp_path)
    assert (axes.get_xlabel(), axes.get_ylabel(), len(axes.texts)) == ("buffer", "rate", 6)
    axes = figures.heat_map(study, "response_mean_s", discipline="fifo", against="fifo")
    assert {text.get_text() for text in axes.texts} == {"1"}


def test_figures_go_into_given_axes(result: tidegate.Comparison) -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert figures.over_time(result, ax=left) is left
    assert figures.losses(result, ax=right) is right
    assert mpl.rcParams["font.size"] != figures.STYLE["font.size"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda it: figures.estimates(it, "delay_p95_s"), "subjects, expected one of"),
        (lambda it: figures.estimates(it, "delay_p96_s"), "metric: found no 'delay_p96_s'"),
        (lambda it: figures.percentiles(it, "sideways"), "name: found no 'sideways'"),
        (lambda it: figures.over_time(it, link="sideways"), "link: found no 'sideways'"),
        (lambda it: figures.progress(it, "web"), "found no flow of 'web' that is followed"),
    ],
)
def test_what_there_is_not_is_told(
    draw: Callable[[tidegate.Comparison], Axes], message: str, result: tidegate.Comparison
) -> None:
    with pytest.raises(ValueError, match=message):
        draw(result)


def test_what_a_study_lacks_is_told(study: tidegate.Study) -> None:
    with pytest.raises(ValueError, match="key: found None, expected one of rate, buffer"):
        figures.over_key(study, "response_mean_s")
    with pytest.raises(ValueError, match="found no 'las', expected one of fifo"):
        figures.heat_map(study, "response_mean_s", discipline="las")
