"""Figures of files that the program wrote: of the papers' pages, and of `tidegate curves`.

Their values have the program's units: seconds, bits a second, bytes, and parts of one.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import pathlib
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from tidegate._drawing import (
    COLOURS,
    Scale,
    axes_or_new,
    first_shown,
    logarithmic,
    middle_of,
    styled,
    styles,
    with_legend,
)

Path = str | os.PathLike[str]

# By the quantities of papers.
METRICS = {"time": "s", "rate": "bps", "size": "bytes", "share": "ratio", "count": ""}
# More lines than this need a legend beside the axes, and more points no markers.
MOST_LABELS = 4
MOST_MARKERS = 20
# More straight pieces than a figure has columns show nothing more.
MOST_PIECES = 2_000


@styled
def paper(results: Path, name: str, *, ax: Axes | None = None) -> Axes:
    """A figure of a paper, from what `tidegate reproduce` measured.

    Args:
        results: The file `results.json`, or its folder, which is that of `--out`. Tidegate's own
            is in docs/reproduction.
        name: The figure's id, for example "EFD-5-underload".
    """
    claims = _read(results, "results.json")
    if not isinstance(claims, list):
        raise ValueError(f"{results}: found no claims, expected what `tidegate reproduce` wrote")
    figures = {of["id"]: of for claim in claims for of in claim["figures"]}
    if name not in figures:
        near = difflib.get_close_matches(name, figures) or figures
        raise ValueError(f"name: found no '{name}', expected one of {', '.join(near)}")
    figure = figures[name]
    lines, stepped = figure["lines"], figure["stepped"]
    points = [np.array(line["points"], float).reshape(-1, 2).T for line in lines]
    bands = [np.array(line["band"], float).reshape(-1, 3).T for line in lines]
    x_scale = _scale(figure["x"], _flat(x for x, _ in points))
    y_scale = _scale(figure["y"], _flat([*(y for _, y in points), *(it[2] for it in bands)]))
    form: dict[str, Any] = {"drawstyle": "steps-post" if stepped else "default"}
    if not stepped and max((x.size for x, _ in points), default=0) <= MOST_MARKERS:
        form |= {"marker": "o", "markersize": 3}
    ax = axes_or_new(ax)
    looks = enumerate(styles([line["label"] for line in lines]))
    for (place, (label, style)), (x, y), (at, low, high) in zip(looks, points, bands, strict=True):
        if place == len(COLOURS):
            # Colours begin again, with open markers.
            form["markerfacecolor"] = "white"
        ax.plot(x * x_scale.factor, y * y_scale.factor, label=label, **form, **style)
        low, high = low * y_scale.factor, high * y_scale.factor
        ax.fill_between(at * x_scale.factor, low, high, color=style["color"], alpha=0.15, lw=0)
    if figure["x"]["logarithmic"]:
        logarithmic(ax, "x")
    if figure["y"]["logarithmic"]:
        values, lows = _flat(y for _, y in points), _flat(low for _, low, _ in bands)
        logarithmic(ax, "y", first=first_shown(values, lows, y_scale))
    else:
        ax.set_ylim(bottom=0)
    if not any(np.isfinite(y).any() for _, y in points):
        ax.text(0.5, 0.5, "no finite value", transform=ax.transAxes, ha="center")
    ax.set(xlabel=x_scale.label, ylabel=y_scale.label, title=_in_lines(figure["title"]))
    return with_legend(ax, beside=len(lines) > MOST_LABELS)


@styled
def curves(results: Path, *, until_s: float | None = None, ax: Axes | None = None) -> Axes:
    """What promises to real-time flows leave to best-effort packets, from `tidegate curves`.

    That is the exact curve E with its approximations.

    Args:
        results: The file `curves.json`, or its folder, which is that of `--out`.
        until_s: The longest time shown; as far as deadlines of real-time flows matter unless it
            is said. The other plots of the report show four times the deadline of the largest
            packet, and ten times what is shown here.
    """
    found = _read(results, "curves.json")
    if "effective" not in found:
        fault = found.get("fault", "no curves") if isinstance(found, dict) else "no curves"
        raise ValueError(f"{results}: found {fault}, expected promises that the link can keep")
    until_s = _until(found) if until_s is None else until_s
    if until_s <= 0:
        raise ValueError(f"until_s: found {until_s:g}, expected a time above zero")
    by_name = {"E, exact": found["effective"]}
    by_name |= {it["scheme"]: it["curve"] for it in found["approximations"]}
    points = {name: _points(curve, until_s) for name, curve in by_name.items()}
    ax = axes_or_new(ax)
    x_scale = Scale("s", [until_s], "Length of time")
    values = [value for of in points.values() for _, value in of]
    y_scale = Scale("bytes", values, "Best-effort traffic")
    for name, style in styles(list(points)):
        x = [at * x_scale.factor for at, _ in points[name]]
        y = [value * y_scale.factor for _, value in points[name]]
        ax.plot(x, y, label=name, **style)
    ax.set_xlim(0, until_s * x_scale.factor)
    ax.set_ylim(bottom=0)
    ax.set(xlabel=x_scale.label, ylabel=y_scale.label, title=pathlib.Path(found["file"]).stem)
    return with_legend(ax)


def _read(results: Path, name: str) -> Any:
    path = pathlib.Path(results)
    return json.loads((path / name if path.is_dir() else path).read_text(encoding="utf-8"))


def _scale(axis: dict[str, Any], values: list[float]) -> Scale:
    unit_by = middle_of(values) if axis["logarithmic"] else values
    return Scale(METRICS[axis["measure"]], unit_by, axis["name"])


def _flat(values: Iterable[np.ndarray]) -> list[float]:
    return [float(it) for of in values for it in of]


def _in_lines(title: str) -> str:
    """Lines of about the same length that a column of a journal has room for."""
    lines = math.ceil(len(title) / 48)
    width = len(title) // lines + 6 if lines > 1 else 48
    return textwrap.fill(title, width, break_on_hyphens=False)


def _until(found: dict[str, Any]) -> float:
    """As far as the second plot of the report: a little beyond the last corner of E.

    It is not far beyond the longest deadline, and at least twice as far as the first packets.
    """
    corner = found["effective"]["corners"][-1]["from_s"] * 1.25
    longest = [4 * it["deadline_s"] for it in found["flows"] if "deadline_s" in it]
    exact = {it["packet_bytes"]: it["exact_s"] for it in found["best_effort_deadlines"]}
    first = 4 * exact[found["largest_packet_bytes"]]
    return float(max(min(corner, max(longest, default=corner)), 2 * first))


def _points(curve: dict[str, Any], until_s: float) -> list[tuple[float, float]]:
    """Both ends of each straight piece up to then: a jump is a line straight up."""
    pieces = [(it["from_s"], it["bytes"], it["slope_bps"] / 8) for it in curve["corners"]]
    repeats = curve.get("repeats")
    if repeats:
        start, period, rise = repeats["from_s"], repeats["period_s"], repeats["rise_bytes"]
        tail = [it for it in pieces if it[0] >= start]
        periods = math.ceil((until_s - start) / period)
        if periods * len(tail) > MOST_PIECES:
            pieces = [it for it in pieces if it[0] < start] + [(*tail[0][:2], rise / period)]
        else:
            pieces += [
                (at + number * period, value + number * rise, slope)
                for number in range(1, periods)
                for at, value, slope in tail
            ]
    pieces = [it for it in pieces if it[0] < until_s]
    ends = [it[0] for it in pieces[1:]] + [until_s]
    points = []
    for (at, value, slope), end in zip(pieces, ends, strict=True):
        points += [(at, value), (end, value + slope * (end - at))]
    return points
