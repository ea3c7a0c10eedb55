"""Figures of gateways: what they show is what the tables say."""

from __future__ import annotations

import json
import pathlib
from typing import Any, cast

import matplotlib.pyplot as plt
import polars as pl
import pytest
import tidegate
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from test_figures import close, heights, saved
from tidegate import figures

__all__ = ["close"]

FACTORS = {"ms": 1e3, "s": 1.0, "%": 100.0, "Mbit/s": 1e-6}


@pytest.fixture(scope="module")
def result() -> tidegate.WaysComparison:
    # Six, since medians of fewer have no interval.
    return tidegate.compare_ways("unfilled", seeds=6)


@pytest.fixture(scope="module")
def lossy() -> tidegate.WaysComparison:
    text = tidegate.Gateway.builtin("unfilled").text.replace('"300 kB"', '"6 kB"')
    # One class, and a queue that loses packets.
    first, second, _ = text.split("[[class]]")
    return tidegate.compare_ways(tidegate.Gateway.parse(f"{first}[[class]]{second}"), seeds=2)


def factor(label: str) -> float:
    """From the unit of a table to that of an axis."""
    return FACTORS[label.rsplit("(", 1)[1].rstrip(")")]


def dots(axes: Axes) -> list[tuple[float, float]]:
    """Places and values of all markers; entries of the legend have none."""
    marked = [line for line in axes.lines if line.get_marker() != "None"]
    return [(float(y), float(x)) for line in marked for x, y in cast(Any, line.get_xydata())]


def strokes(axes: Axes) -> list[Any]:
    """Both ends of each interval and mark that is known."""
    paths = [path.vertices for of in axes.collections for path in of.get_paths()]
    return [it for it in cast(Any, paths) if it[0][0] == it[0][0]]


def spans(axes: Axes) -> list[tuple[float, float, float]]:
    """Places and ends of all intervals."""
    return [
        (float(y), float(low), float(high))
        for (low, y), (high, end) in strokes(axes)
        if y == end
    ]


def marks(axes: Axes) -> list[tuple[int, float]]:
    """The groups and places of all upright marks."""
    upright = [(x, y, end) for (x, y), (_, end) in strokes(axes) if y != end]
    return sorted((round((y + end) / 2), float(x)) for x, y, end in upright)


def known_spans(rows: pl.DataFrame, label: str) -> list[tuple[float, float]]:
    """The ends of the intervals, as an axis shows them."""
    table = rows.select(pl.col("low_95", "high_95") * factor(label)).drop_nulls()
    return sorted(cast(Any, table.rows()))


def labels(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def rows_of(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def test_small_responses_stand_by_class_and_way(
    result: tidegate.WaysComparison, tmp_path: pathlib.Path
) -> None:
    axes = saved(figures.small_responses(result), tmp_path)
    assert rows_of(axes) == ["all classes", "four", "one"] and labels(axes) == result.ways
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "Small responses, median (ms)")
    summary = pl.DataFrame(result.summary).filter(metric="small_p50_s")
    assert summary.height == 3 * len(result.ways)
    for place, name in enumerate(["", "four", "one"]):
        rows = summary.filter(name=name)
        shown = sorted(it for it in dots(axes) if round(it[0]) == place)
        # From the first way on top to the last.
        assert [x for _, x in shown] == pytest.approx(list(rows["value"] * 1e3))
        ends = [it[1:] for it in sorted(spans(axes)) if round(it[0]) == place]
        assert [low for low, _ in ends] == pytest.approx(list(rows["low_95"] * 1e3))
        assert [high for _, high in ends] == pytest.approx(list(rows["high_95"] * 1e3))


def test_of_one_class_all_are_shown_alone(lossy: tidegate.WaysComparison) -> None:
    axes = figures.small_responses(lossy)
    assert rows_of(axes) == ["all classes"] and len(dots(axes)) == len(lossy.ways)


def test_shares_of_classes_are_all_that_there_is(
    result: tidegate.WaysComparison, tmp_path: pathlib.Path
) -> None:
    axes = saved(figures.class_shares(result), tmp_path)
    assert rows_of(axes) == ["four\nweight 4", "one\nweight 1"] and labels(axes) == [
        "by weight",
        *result.ways,
    ]
    assert axes.get_xlabel() == "Share (%)" and axes.get_xlim()[0] == 0
    bars = cast(list[Rectangle], axes.patches)
    assert len(bars) == 2 * len(result.ways)
    classes = json.loads(result.json())["ways"]
    for way, both in zip(classes, zip(bars[::2], bars[1::2], strict=True), strict=True):
        widths = [bar.get_width() for bar in both]
        assert widths == pytest.approx([100 * it["share"]["value"] for it in way["classes"]])
        assert sum(widths) == pytest.approx(100)
        assert [round(bar.get_y() + bar.get_height() / 2) for bar in both] == [0, 1]
    ends = known_spans(pl.DataFrame(result.summary).filter(metric="share"), "(%)")
    assert sorted(it[1:] for it in spans(axes)) == [pytest.approx(it) for it in ends]
    assert len(ends) == len(bars)
    # Four users in each class: those of weight 4 are due four fifths where there are weights.
    due = [[of["due_share"] for of in way["classes"]] for way in classes]
    assert due[result.ways.index("msf")] == pytest.approx([0.8, 0.2])
    assert due[result.ways.index("direct")] == [None, None]
    expected = [(place, 100 * it) for of in due for place, it in enumerate(of) if it is not None]
    assert marks(axes) == [pytest.approx(it) for it in sorted(expected)]


def test_responses_of_a_class_have_their_percentiles(
    result: tidegate.WaysComparison, tmp_path: pathlib.Path
) -> None:
    axes = saved(figures.class_responses(result, "four"), tmp_path)
    assert rows_of(axes) == result.ways and axes.get_title() == "four"
    assert labels(axes) == ["median", "mean", "95%", "99%"]
    assert axes.get_xscale() == "log" and axes.get_xlabel().startswith("Response time (")
    summary = pl.DataFrame(result.summary).filter(kind="class", name="four")
    metrics = ["response_p50_s", "response_mean_s", "response_p95_s", "response_p99_s"]
    for place, way in enumerate(result.ways):
        shown = sorted(it for it in dots(axes) if round(it[0]) == place)
        values = [summary.filter(way=way, metric=it)["value"].item() for it in metrics]
        expected = [it * factor(axes.get_xlabel()) for it in values]
        assert [x for _, x in shown] == pytest.approx(expected)
    ends = known_spans(summary.filter(pl.col("metric").is_in(metrics)), axes.get_xlabel())
    assert sorted(it[1:] for it in spans(axes)) == [pytest.approx(it) for it in ends]
    assert len(ends) == 4 * len(result.ways)
    with pytest.raises(ValueError, match="name: found no 'three', expected one of four, one"):
        figures.class_responses(result, "three")


def test_what_is_of_disciplines_is_of_ways_too(
    result: tidegate.WaysComparison, tmp_path: pathlib.Path
) -> None:
    links = pl.DataFrame(result.links).filter(seed=result.seeds[0])
    axes = saved(figures.over_time(result), tmp_path)
    assert labels(axes) == result.ways
    for line, way in zip(axes.lines, result.ways, strict=True):
        assert heights(line) == links.filter(way=way)["queue_packets"].to_list()

    axes = saved(figures.throughput(result, window_s=5), tmp_path)
    mean = links.filter(way="msf")["delivered_bytes"].last() * 8e-6 / 60  # type: ignore[operator]
    windows = heights(axes.lines[0])[1:]
    assert sum(windows) / len(windows) == pytest.approx(mean, rel=0.1)

    axes = saved(figures.distribution(result, traffic="four"), tmp_path)
    assert [line.get_label() for line in axes.lines] == result.ways
    flows = pl.DataFrame(result.flows).filter(way="paper", traffic="four").drop_nulls("response_s")
    at, part = cast(Any, axes.lines[result.ways.index("paper")].get_xydata())[50]
    longer = (flows["response_s"] > at / factor(axes.get_xlabel())).to_frame("it")
    by_seed = pl.concat([flows.select("seed"), longer], how="horizontal").group_by("seed")
    assert part == pytest.approx(by_seed.agg(pl.mean("it"))["it"].mean())


@pytest.mark.parametrize(
    ("metric", "name", "label"),
    [
        ("share", "one", "Share (%)"),
        ("full", None, "Link full (%)"),
        ("response_p50_s", "four", "Response time, median (ms)"),
        ("queueing_p95_s", None, "Queueing, 95% (ms)"),
    ],
)
def test_estimates_are_of_ways(
    metric: str, name: str | None, label: str, result: tidegate.WaysComparison
) -> None:
    axes = figures.estimates(result, metric, name=name)
    assert axes.get_xlabel() == label and rows_of(axes) == result.ways
    rows = pl.DataFrame(result.summary).filter(metric=metric, name=name or "")
    values = [x for _, x in sorted(dots(axes))]
    assert values == pytest.approx(list(rows["value"] * factor(label)))


def test_losses_are_of_ways(lossy: tidegate.WaysComparison, tmp_path: pathlib.Path) -> None:
    axes = saved(figures.losses(lossy), tmp_path)
    last = pl.DataFrame(lossy.links).sort("time_s").group_by("way", "seed").last()
    of_way = last.group_by("way").agg(pl.sum("refused_packets", "offered_packets"))
    for bar, way in zip(cast(list[Rectangle], axes.patches), lossy.ways, strict=True):
        [(_, refused, offered)] = of_way.filter(way=way).rows()
        assert bar.get_width() == pytest.approx(100 * refused / offered) and refused > 0


def test_they_go_into_given_axes(result: tidegate.WaysComparison) -> None:
    _, axes = plt.subplots(1, 3)
    assert figures.small_responses(result, ax=axes[0]) is axes[0]
    assert figures.class_shares(result, ax=axes[1]) is axes[1]
    assert figures.class_responses(result, "one", ax=axes[2]) is axes[2]
