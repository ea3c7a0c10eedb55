"""What all figures have in common: style, scales, axes, and the rows that they show."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeAlias, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib import ticker
from matplotlib.axes import Axes
from scipy import stats

from tidegate._native import Comparison, StoredTable, Table, WaysComparison
from tidegate._sweep import Study

Result: TypeAlias = Comparison | WaysComparison

COLOURS = [
    "#404040",
    "#305398",
    "#c73827",
    "#3a8c7d",
    "#a46bcc",
    "#ca7c2f",
    "#3389ff",
    "#54165c",
]
DASHES = ["-", (0, (8, 3)), (0, (2.5, 2.5)), (0, (9, 3, 2, 3)), (0, (14, 4)), (0, (5, 2, 1.5, 2))]

STYLE: dict[str, Any] = {
    "figure.figsize": (3.5, 2.5),
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    # Text stays text, so that journals can set it.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
"""What all figures set of matplotlib: a column of a journal, thin lines, text as text."""

# What a quantity is shown in, from the largest unit on; the last word of a metric names it, or
# the unit of a key.
UNITS = {
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "bps": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    "bytes": [(1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    "ratio": [(0.01, "%")],
    "packets": [(1.0, "packets")],
}
UNITS |= {"bit/s": UNITS["bps"], "B": UNITS["bytes"]}
# Parts of gateways' results have no unit in their name.
UNITS |= dict.fromkeys(["share", "utilisation", "full"], UNITS["ratio"])

STATISTICS = {
    "mean": "mean",
    "median": "median",
    "p50": "median",
    "p95": "95%",
    "p99": "99%",
    "max": "longest",
}
WORDS = {"response": "response time", "small": "small responses", "full": "link full"}

P = ParamSpec("P")


def styled(draw: Callable[P, Axes]) -> Callable[P, Axes]:
    """In our style, whatever that of the notebook is."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Axes:
        with mpl.rc_context(cast(Any, STYLE)):
            return draw(*args, **kwargs)

    return styled


class Scale:
    """The unit in which values are shown, the factor that leads there, and an axis's label."""

    def __init__(self, metric: str, values: Any, name: str | None = None) -> None:
        last = metric.rsplit("_", 1)[-1]
        units = UNITS.get(last, [(1.0, "")])
        largest = max((abs(it) for it in values if it == it), default=1.0)
        fits = [unit for unit in units if largest >= unit[0]]
        size, self.unit = fits[0] if fits else units[-1]
        self.factor = 1 / size
        name = in_words(metric) if name is None else name
        self.label = f"{name} ({self.unit})" if self.unit else name


def in_words(metric: str) -> str:
    """The name of a measure without its unit: `delay_p95_s` is "Delay, 95%"."""
    stem, _, last = metric.rpartition("_")
    words = (stem if last in UNITS and stem else metric).split("_")
    statistic = f", {STATISTICS[words.pop()]}" if words[-1] in STATISTICS else ""
    name = " ".join(WORDS.get(word, word) for word in words)
    return name[:1].upper() + name[1:] + statistic


def axes_or_new(ax: Axes | None) -> Axes:
    return plt.subplots()[1] if ax is None else ax


def with_legend(ax: Axes, *, beside: bool = False) -> Axes:
    """Within the axes, or beside them where it would hide something."""
    if ax.get_legend_handles_labels()[1]:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {}
        ax.legend(**place)
    return ax


def logarithmic(ax: Axes, which: str, *, first: float | None = None) -> None:
    """With plain numbers at 1, 2 and 5, or at 1 alone where there would be too many."""
    ax.set(**{f"{which}scale": "log"})
    if first is not None:
        ax.set(**{f"{which}lim": (first, None)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    low, high = axis.get_view_interval()
    subs = (1, 2, 5) if high < 300 * low else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def middle_of(values: Iterable[float]) -> list[float]:
    """What decides on the unit of a logarithmic axis: its numbers are then short at both ends."""
    positive = [it for it in values if it > 0]
    return [float(np.sqrt(min(positive) * max(positive)))] if positive else []


def first_shown(values: Iterable[float], lows: Iterable[float], scale: Scale) -> float | None:
    """Where a logarithmic axis begins: with the lowest interval, but not far below all values.

    It has no place for an end at zero or below, so it cuts off what reaches there.
    """
    positive = [it for it in values if it > 0]
    if not positive:
        return None
    least = min(positive)
    lowest = min((it for it in lows if it < least), default=least)
    return max(lowest, least / 2) / 1.1 * scale.factor


def labels_down(ax: Axes, labels: list[str]) -> None:
    """The first one on top."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)


def rows_where(table: Table | StoredTable, **where: str | None) -> pd.DataFrame:
    """The rows of a table in which these columns have these values."""
    rows = pa.table(table).to_pandas()
    for column, value in where.items():
        if value is not None:
            known = rows[column].unique()
            rows = rows[rows[column] == value]
            if rows.empty:
                names = ", ".join(map(str, known))
                raise ValueError(f"{column}: found no '{value}', expected one of {names}")
    return rows


def summary(result: Result) -> Any:
    """What the report is drawn from."""
    return json.loads(result.json())


def of_source(result: Comparison, name: str) -> dict[str, Any]:
    """What each discipline did to a source of traffic."""
    disciplines = summary(result)["disciplines"]
    found = {it["label"]: [of for of in it["traffic"] if of["name"] == name] for it in disciplines}
    if not all(found.values()):
        known = ", ".join(of["name"] for of in disciplines[0]["traffic"])
        raise ValueError(f"source: found no '{name}', expected one of {known}")
    return {label: of[0] for label, of in found.items()}


def of_one_subject(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one subject: all flows, where nothing else was said."""
    subjects = list(dict.fromkeys(zip(rows["kind"], rows["name"], strict=True)))
    if ("size class", "all") in subjects:
        return rows[(rows["kind"] == "size class") & (rows["name"] == "all")]
    if len(subjects) > 1:
        expected = ", ".join(f"{kind} '{name}'" for kind, name in subjects)
        raise ValueError(f"'{metric}': found {len(subjects)} subjects, expected one of {expected}")
    return rows


def key_of(study: Study, key: str | None) -> Any:
    if key is None and len(study.over) == 1:
        return study.over[0]
    for axis in study.over:
        if axis.key == key:
            return axis
    names = ", ".join(axis.key for axis in study.over)
    raise ValueError(f"key: found {key!r}, expected one of {names}")


def of_link(
    result: Result, link: str | None, seed: int | None, *, all_seeds: bool = False
) -> tuple[pd.DataFrame, str]:
    rows = rows_where(result.links)
    link = rows["link"].iloc[0] if link is None else link
    rows = rows_where(result.links, link=link)
    if all_seeds:
        return rows, link
    seed = result.seeds[0] if seed is None else seed
    return rows[rows["seed"] == seed], link


def contender_column(rows: pd.DataFrame) -> str:
    return "way" if "way" in rows else "discipline"


def styles(contenders: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """How the lines of each contender look."""
    for place, contender in enumerate(contenders):
        colour, dashes = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        yield contender, {"color": colour, "linestyle": dashes}


def by_contender(
    rows: pd.DataFrame, contenders: list[str]
) -> Iterator[tuple[str, dict[str, Any], pd.DataFrame]]:
    """The rows of each contender that has some, and how its lines look."""
    column = contender_column(rows)
    for contender, style in styles(contenders):
        of = rows[rows[column] == contender]
        if not of.empty:
            yield contender, style, of


def intervals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of each column with the ends of Student's 95% interval."""
    count = len(values)
    mean = values.mean(axis=0)
    if count < 2:
        return mean, mean, mean
    half = stats.t.ppf(0.975, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean, mean - half, mean + half
