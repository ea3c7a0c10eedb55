"""Figures of gateways: what each way of sharing a link gives to its classes.

Each class is a group of rows, with a row for each way. Intervals of two seeds often reach
beyond what is possible; axes end where values can.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from tidegate._drawing import (
    Scale,
    axes_or_new,
    by_contender,
    first_shown,
    labels_down,
    logarithmic,
    middle_of,
    rows_where,
    styled,
    summary,
    with_legend,
)
from tidegate._native import WaysComparison

# The part of a group's height that rows fill.
FILLED = 0.8


@styled
def small_responses(result: WaysComparison, *, ax: Axes | None = None) -> Axes:
    """The time within which half of the responses below 10 kB arrived, by class."""
    rows = rows_where(result.summary, metric="small_p50_s")
    rows = rows.assign(name=rows["name"].replace("", "all classes"))
    groups = list(dict.fromkeys(rows["name"]))
    # The only class is all of them.
    groups = groups if len(groups) > 2 else groups[:1]
    rows = rows[rows["name"].isin(groups)]
    ax = axes_or_new(ax)
    scale = Scale("small_p50_s", middle_of(rows["value"]))
    for way, style, of in by_contender(rows, result.ways):
        y = of["name"].map(groups.index) + _offset(result.ways.index(way), len(result.ways))
        _dots(ax, of, y, scale, "o", style["color"])
        ax.plot([], [], "o", markersize=4, color=style["color"], label=way)
    labels_down(ax, groups)
    _lines_between(ax, len(groups))
    _logarithmic(ax, rows, scale)
    ax.set(xlabel=scale.label)
    return with_legend(ax, beside=True)


@styled
def class_shares(result: WaysComparison, *, ax: Axes | None = None) -> Axes:
    """Each class's share of the payload that all classes received, and a line at that by weight.

    Shares follow weights only while the link is full; `estimates` with "full" shows how much
    of the time it was.
    """
    rows = rows_where(result.summary, kind="class", metric="share")
    of_ways = {it["label"]: it["classes"] for it in summary(result)["ways"]}
    weights = {it["name"]: it["weight"] for it in of_ways[result.ways[0]]}
    classes = list(weights)
    ax = axes_or_new(ax)
    scale = Scale("share", rows["value"])
    height = FILLED / len(result.ways)
    for way, style, of in by_contender(rows, result.ways):
        y = of["name"].map(classes.index) + _offset(result.ways.index(way), len(result.ways))
        x = of["value"] * scale.factor
        ax.barh(y, x, height=0.85 * height, color=style["color"], label=way)
        low, high = of["low_95"] * scale.factor, of["high_95"] * scale.factor
        ax.hlines(y, low, high, color="#8b949e", lw=1)
        due = [it["due_share"] for it in of_ways[way]]
        if None not in due:
            marks = np.array(due) * scale.factor
            ends = np.arange(len(due)) + _offset(result.ways.index(way), len(result.ways))
            ax.vlines(marks, ends - height / 2, ends + height / 2, color="black", lw=1.2)
    labels_down(ax, [f"{name}\nweight {weight}" for name, weight in weights.items()])
    ax.plot([], [], "|", color="black", markersize=7, label="by weight")
    every = [it["due_share"] or 0.0 for of in of_ways.values() for it in of]
    most = max(np.nanmax(rows[["value", "high_95"]].to_numpy()), *every) * 1.05
    ax.set_xlim(0, min(most, 1.0) * scale.factor)
    ax.set(xlabel=scale.label)
    ax.grid(axis="y", visible=False)
    return with_legend(ax, beside=True)


@styled
def class_responses(result: WaysComparison, name: str, *, ax: Axes | None = None) -> Axes:
    """Median, mean, 95th and 99th percentile of the response times of a class."""
    markers = {
        "response_p50_s": ("|", "median"),
        "response_mean_s": ("d", "mean"),
        "response_p95_s": ("o", "95%"),
        "response_p99_s": ("s", "99%"),
    }
    rows = rows_where(result.summary, kind="class", name=name)
    rows = rows[rows["metric"].isin(markers)]
    if rows.empty:
        raise ValueError(f"found no response of '{name}', expected a longer run")
    ax = axes_or_new(ax)
    scale = Scale("response_s", middle_of(rows["value"]))
    for way, style, of in by_contender(rows, result.ways):
        for place, (metric, (marker, _)) in enumerate(markers.items()):
            one = of[of["metric"] == metric]
            y = pd.Series(result.ways.index(way) + _offset(place, len(markers)), one.index)
            _dots(ax, one, y, scale, marker, style["color"])
    for marker, words in markers.values():
        ax.plot([], [], marker, markersize=4, color="#57606a", label=words)
    labels_down(ax, result.ways)
    _lines_between(ax, len(result.ways))
    _logarithmic(ax, rows, scale)
    ax.set(xlabel=scale.label, title=name)
    return with_legend(ax, beside=True)


def _offset(place: int, count: int) -> float:
    """Where the row of this place lies in its group."""
    return (place - (count - 1) / 2) * FILLED / count


def _lines_between(ax: Axes, groups: int) -> None:
    ax.grid(axis="y", visible=False)
    for place in range(groups - 1):
        ax.axhline(place + 0.5, color="#e3e6ea", lw=0.6, zorder=0)


def _logarithmic(ax: Axes, rows: pd.DataFrame, scale: Scale) -> None:
    logarithmic(ax, "x", first=first_shown(rows["value"], rows["low_95"], scale))


def _dots(
    ax: Axes, rows: pd.DataFrame, y: pd.Series, scale: Scale, marker: str, colour: str
) -> None:
    """Values with their intervals."""
    x, low, high = (rows[of] * scale.factor for of in ("value", "low_95", "high_95"))
    ax.hlines(y, low, high, color=colour, lw=0.8)
    ax.plot(x, y, marker, markersize=4, color=colour)
