"""Figures for papers and notebooks, with matplotlib.

Each function draws into the axes that it gets, or into new ones, and returns them. A
discipline has the same colour and dashes in all figures of a result: the colours are those of
Tidegate's reports, which also the colour-blind tell apart, and the dashes are for print
without colour. Bands and bars are 95% intervals over the seeds.

    pip install 'tidegate[figures]'

Examples:
    >>> import tidegate
    >>> from tidegate import figures
    >>> result = tidegate.compare("dumbbell", disciplines=["fifo", "tide"], seeds=3, duration="10 s")
    >>> axes = figures.response_by_size(result)
    >>> axes.get_ylabel()
    'Response time, mean (s)'
    >>> axes.figure.savefig("response-by-size.pdf")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib import ticker
from matplotlib.axes import Axes
from scipy import stats

from tidegate._native import Comparison, StoredTable, Table
from tidegate._sweep import Study

__all__ = [
    "STYLE",
    "differences",
    "distribution",
    "estimates",
    "heat_map",
    "losses",
    "over_key",
    "over_time",
    "percentiles",
    "response_by_size",
    "shares",
    "throughput",
]

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

# What a quantity is shown in, from the largest unit on; the last word of a metric names it.
UNITS = {
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "bps": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    "bytes": [(1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    "ratio": [(0.01, "%")],
    "packets": [(1.0, "packets")],
}

P = ParamSpec("P")


def _styled(draw: Callable[P, Axes]) -> Callable[P, Axes]:
    """In our style, whatever that of the notebook is."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Axes:
        with mpl.rc_context(cast(Any, STYLE)):
            return draw(*args, **kwargs)

    return styled


@_styled
def response_by_size(
    result: Comparison, *, metric: str = "response_mean_s", ax: Axes | None = None
) -> Axes:
    """How long transfers take, by their size.

    Args:
        metric: "response_mean_s", "response_median_s", "response_p95_s" or "slowdown_ratio".
    """
    ax = _axes(ax)
    rows = _rows(result.summary, kind="size class", metric=metric)
    rows = rows[~rows["name"].str.startswith("short") & (rows["name"] != "all")]
    classes = list(dict.fromkeys(rows["name"]))
    places = {name: place for place, name in enumerate(classes)}
    scale = _scale(metric, rows["value"])
    for discipline, style, of in _by_discipline(rows, result.disciplines):
        # A little apart, so that none hides the interval of another.
        shift = (result.disciplines.index(discipline) - (len(result.disciplines) - 1) / 2) * 0.06
        x = of["name"].map(places) + shift
        y = of["value"] * scale.factor
        ax.plot(x, y, marker="o", markersize=3, label=discipline, **style)
        ax.vlines(
            x, of["low_95"] * scale.factor, of["high_95"] * scale.factor, color=style["color"], lw=1
        )
    ax.set_xticks(range(len(classes)), classes, rotation=30, ha="right")
    _logarithmic(ax, "y")
    ax.set(xlabel="Size", ylabel=scale.label)
    return _legend(ax)


@_styled
def estimates(
    result: Comparison,
    metric: str,
    *,
    kind: str | None = None,
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The value of one measure for each discipline, with its interval.

    Args:
        metric: Its name in `summary`, for example "utilisation_ratio".
        kind: "size class", "traffic", "traffic ratio" or "link", where several have it.
        name: Of the subject, where several have it.
    """
    rows = _rows(result.summary, metric=metric, kind=kind, name=name)
    subjects = list(dict.fromkeys(zip(rows["kind"], rows["name"], strict=True)))
    if len(subjects) != 1:
        expected = "one of " + ", ".join(f"{of} '{it}'" for of, it in subjects)
        raise ValueError(f"'{metric}': found {len(subjects)} subjects, expected {expected}")
    ax = _axes(ax)
    scale = _scale(metric, rows["value"])
    for discipline, style, of in _by_discipline(rows, result.disciplines):
        place = result.disciplines.index(discipline)
        ax.hlines(
            place, of["low_95"] * scale.factor, of["high_95"] * scale.factor, color=style["color"]
        )
        ax.plot(of["value"] * scale.factor, [place], "o", markersize=4, color=style["color"])
    _down(ax, result.disciplines)
    ax.set(xlabel=scale.label, title=f"{subjects[0][1]}")
    return ax


@_styled
def percentiles(result: Comparison, name: str, *, ax: Axes | None = None) -> Axes:
    """Median, 95th and 99th percentile and the longest delay of a source or a link."""
    names = ["delay_median_s", "delay_p95_s", "delay_p99_s", "delay_max_s"]
    rows = _rows(result.summary, name=name)
    rows = rows[rows["metric"].isin(names)]
    if rows.empty:
        known = _rows(result.summary, metric=names[1])["name"].unique()
        raise ValueError(f"found no delays of '{name}', expected one of {', '.join(known)}")
    ax = _axes(ax)
    scale = _scale("delay_s", rows["value"])
    markers = dict(zip(names, ["|", "o", "s", "x"], strict=True))
    for discipline, style, of in _by_discipline(rows, result.disciplines):
        place = result.disciplines.index(discipline)
        x = of["value"] * scale.factor
        ax.hlines(place, x.min(), x.max(), color=style["color"], lw=0.8)
        for metric, value in zip(of["metric"], x, strict=True):
            ax.plot(value, place, markers[metric], markersize=5, color=style["color"])
    for metric, words in zip(names, ["median", "95%", "99%", "longest"], strict=True):
        ax.plot([], [], markers[metric], markersize=5, color="#57606a", label=words)
    _down(ax, result.disciplines)
    _logarithmic(ax, "x")
    ax.set(xlabel=scale.label, title=name)
    return _legend(ax, beside=True)


@_styled
def distribution(
    result: Comparison | Study,
    *,
    column: str = "response_s",
    traffic: str | None = None,
    largest_bytes: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The part of flows that took longer, with logarithmic axes, which show the tail.

    Args:
        column: Of `flows`.
        traffic: Of this source alone.
        largest_bytes: Only flows of at most this size.
    """
    ax = _axes(ax)
    flows = _rows(result.flows, traffic=traffic).dropna(subset=column)
    if largest_bytes is not None:
        flows = flows[flows["size_bytes"] <= largest_bytes]
    scale = _scale(column, flows[column])
    positive = flows[column][flows[column] > 0]
    grid = np.geomspace(positive.min(), positive.max(), 200)
    least = 1.0
    for discipline, style, of in _by_discipline(flows, result.disciplines):
        above = np.array(
            [1 - np.searchsorted(np.sort(it), grid, side="right") / len(it)
             for _, it in of.groupby("seed")[column]]
        )  # fmt: skip
        middle, low, high = _interval(above)
        # Of fewer flows than ten, the tail says little.
        known = middle >= 10 / len(of)
        least = min(least, middle[known].min(initial=1))
        ax.plot(grid[known] * scale.factor, middle[known], label=discipline, **style)
        low, high = np.maximum(low[known], 1e-9), high[known]
        ax.fill_between(grid[known] * scale.factor, low, high, color=style["color"], alpha=0.15, lw=0)
    _logarithmic(ax, "x")
    ax.set_yscale("log")
    ax.set_ylim(bottom=least / 1.5, top=1.1)
    ax.set(xlabel=scale.label, ylabel="Part that takes longer")
    return _legend(ax)


@_styled
def over_time(
    result: Comparison,
    *,
    column: str = "queue_packets",
    link: str | None = None,
    seed: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A queue over time, in one run: that of the first seed unless another is named.

    Args:
        column: Of `links`, for example "queue_packets", "queue_bytes" or "flows_tracked".
    """
    ax = _axes(ax)
    rows, link = _of_link(result, link, seed)
    scale = _scale(column, rows[column])
    for discipline, style, of in _by_discipline(rows, result.disciplines):
        ax.plot(of["time_s"], of[column] * scale.factor, label=discipline, **style)
    ax.set(xlabel="Time (s)", ylabel=scale.label, title=link)
    ax.set_ylim(bottom=0)
    return _legend(ax, beside=True)


@_styled
def throughput(
    result: Comparison,
    *,
    window_s: float = 1.0,
    link: str | None = None,
    seed: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """What a link carries over time, as the mean over each window, in one run."""
    ax = _axes(ax)
    rows, link = _of_link(result, link, seed)
    windows = []
    for discipline, style, of in _by_discipline(rows, result.disciplines):
        of = of.groupby(of["time_s"] // window_s).last()
        bits = of["delivered_bytes"].diff() * 8 / of["time_s"].diff()
        windows.append((discipline, style, of["time_s"], bits))
    scale = _scale("throughput_bps", pd.concat([bits for *_, bits in windows]))
    for discipline, style, ends, bits in windows:
        ax.step(ends, bits * scale.factor, where="pre", label=discipline, **style)
    ax.set(xlabel="Time (s)", ylabel=scale.label, title=link)
    ax.set_ylim(bottom=0)
    return _legend(ax, beside=True)


@_styled
def losses(result: Comparison, *, link: str | None = None, ax: Axes | None = None) -> Axes:
    """What part of the packets a link loses, by reason, over all seeds."""
    ax = _axes(ax)
    rows, link = _of_link(result, link, None, all_seeds=True)
    last = rows.groupby(["discipline", "seed"]).last().groupby("discipline").sum(numeric_only=True)
    last = last.reindex(result.disciplines)
    others = {"queue_packets", "offered_packets", "delivered_packets", "marked_packets"}
    reasons = [it for it in last if it.endswith("_packets") and it not in others]
    left = np.zeros(len(last))
    for colour, reason in zip(COLOURS, reasons, strict=False):
        part = 100 * (last[reason] / last["offered_packets"]).to_numpy()
        if part.any():
            words = reason.removesuffix("_packets").replace("_", " ")
            ax.barh(range(len(last)), part, left=left, height=0.6, color=colour, label=words)
            left = left + part
    _down(ax, result.disciplines)
    ax.set(xlabel="Lost packets (%)", title=link)
    ax.grid(axis="y", visible=False)
    return _legend(ax, beside=True)


@_styled
def shares(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """What each source of traffic carries."""
    ax = _axes(ax)
    rows = _rows(result.summary, kind="traffic", metric="throughput_bps")
    table = rows.pivot(index="discipline", columns="name", values="value")
    table = table.reindex(index=result.disciplines, columns=dict.fromkeys(rows["name"])).fillna(0)
    scale = _scale("throughput_bps", table.sum(axis=1))
    left = np.zeros(len(table))
    for colour, name in zip(COLOURS, table, strict=False):
        part = table[name].to_numpy() * scale.factor
        ax.barh(range(len(table)), part, left=left, height=0.6, color=colour, label=name)
        left = left + part
    _down(ax, result.disciplines)
    ax.set(xlabel=scale.label)
    ax.grid(axis="y", visible=False)
    return _legend(ax, beside=True)


@_styled
def over_key(
    study: Study,
    metric: str,
    *,
    kind: str | None = None,
    name: str | None = None,
    key: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A measure over the values of a key of a study, with its interval.

    Args:
        metric: Its name in `runs`, for example "response_mean_s".
        kind: As in `estimates`.
        name: As in `estimates`.
        key: The only one that varies unless it is named; others are averaged over.
    """
    axis = _key(study, key)
    rows = _subject(_rows(study.runs, metric=metric, kind=kind, name=name), metric)
    ax = _axes(ax)
    scale = _scale(metric, rows["value"])
    x_scale = _scale(axis.unit.replace("bit/s", "bps").replace("B", "bytes"), axis.numbers or [])
    x = [it * x_scale.factor for it in axis.numbers or range(len(axis.values))]
    for discipline, style, of in _by_discipline(rows, study.disciplines):
        groups = {value: group["value"].to_numpy() for value, group in of.groupby(axis.key)}
        at = [place for place, value in enumerate(axis.values) if value in groups]
        found = [_interval(groups[axis.values[place]][:, None]) for place in at]
        middle, low, high = (np.ravel(it) * scale.factor for it in zip(*found, strict=True))
        places = [x[place] for place in at]
        ax.plot(places, middle, marker="o", markersize=3, label=discipline, **style)
        ax.fill_between(places, low, high, color=style["color"], alpha=0.15, lw=0)
    if axis.numbers is None:
        ax.set_xticks(x, axis.values)
    elif min(axis.numbers) > 0 and max(axis.numbers) >= 10 * min(axis.numbers):
        _logarithmic(ax, "x")
    unit = f" ({x_scale.unit})" if x_scale.unit else ""
    ax.set(xlabel=f"{axis.key}{unit}", ylabel=scale.label)
    return _legend(ax)


@_styled
def heat_map(
    study: Study,
    metric: str,
    *,
    discipline: str,
    against: str | None = None,
    kind: str | None = None,
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A measure over the two keys of a study, or how many times as large it is as `against`."""
    if len(study.over) != 2:
        raise ValueError(f"found {len(study.over)} keys, expected a study over two")
    down, across = study.over
    rows = _subject(_rows(study.runs, metric=metric, kind=kind, name=name), metric)

    def means(of: str) -> pd.DataFrame:
        chosen = rows[rows["discipline"] == of]
        if chosen.empty:
            raise ValueError(f"found no '{of}', expected one of {', '.join(study.disciplines)}")
        table = chosen.pivot_table(index=down.key, columns=across.key, values="value")
        return table.reindex(index=down.values, columns=across.values)

    ax = _axes(ax)
    values = means(discipline)
    if against is None:
        scale = _scale(metric, values.stack())
        values, label, norm = values * scale.factor, scale.label, None
        image = ax.imshow(values, aspect="auto", origin="lower", cmap="cividis", norm=norm)
    else:
        values = values / means(against)
        label = f"{_words(metric)}: {discipline} / {against}"
        most = max(float(np.nanmax(np.abs(np.log2(values.to_numpy())))), 0.1)
        ratio = mpl.colors.LogNorm(2**-most, 2**most)
        image = ax.imshow(values, aspect="auto", origin="lower", cmap="PuOr_r", norm=ratio)
    for (row, column), value in np.ndenumerate(values.to_numpy()):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        ink = "white" if dark else "black"
        ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=6, color=ink)
    ax.set_xticks(range(len(across.values)), across.values, rotation=30, ha="right")
    ax.set_yticks(range(len(down.values)), down.values)
    ax.grid(visible=False)
    ax.set(xlabel=across.key, ylabel=down.key, title=label)
    return ax


@_styled
def differences(table: Table, *, ax: Axes | None = None) -> Axes:
    """What `tidegate.differences` found, in percent of what was compared against.

    Filled dots are differences that count as real.
    """
    rows = pa.table(table).to_pandas()
    rows = rows[rows["against_value"] != 0]
    labels = [name for name in rows.columns[: list(rows.columns).index("better")]]
    told_apart = [it for it in labels if rows[it].nunique() > 1]
    ax = _axes(ax)
    disciplines = list(dict.fromkeys([*rows["against"], *rows["discipline"]]))
    subjects = rows[told_apart].agg(", ".join, axis=1) if told_apart else pd.Series("", rows.index)
    places = {it: place for place, it in enumerate(dict.fromkeys(subjects))}
    for number, (discipline, style, of) in enumerate(_by_discipline(rows, disciplines)):
        percent = 100 / of["against_value"].abs()
        y = subjects[of.index].map(places) + (number - (len(disciplines) - 2) / 2) * 0.15
        ax.hlines(y, of["low_95"] * percent, of["high_95"] * percent, color=style["color"], lw=1)
        fill = np.where(of["significant"], style["color"], "white")
        x = of["difference"] * percent
        ax.scatter(x, y, s=16, c=fill, edgecolors=style["color"], zorder=3)
        ax.plot([], [], "o", markersize=4, color=style["color"], label=discipline)
    ax.axvline(0, color="#8b949e", lw=0.8)
    _down(ax, list(places))
    against = ", ".join(rows["against"].unique())
    ax.set(xlabel=f"Difference from {against} (%)")
    return _legend(ax, beside=True)


class _scale:
    """The unit in which values are shown, the factor that leads there, and an axis's label."""

    def __init__(self, metric: str, values: Any) -> None:
        last = metric.rsplit("_", 1)[-1]
        units = UNITS.get(last, [(1.0, "")])
        largest = max((abs(it) for it in values if it == it), default=1.0)
        fits = [unit for unit in units if largest >= unit[0]]
        size, self.unit = fits[0] if fits else units[-1]
        self.factor = 1 / size
        self.label = f"{_words(metric)} ({self.unit})" if self.unit else _words(metric)


def _words(metric: str) -> str:
    """The name of a measure without its unit: `delay_p95_s` is "Delay, 95%"."""
    stem, _, last = metric.rpartition("_")
    words = (stem if last in UNITS and stem else metric).split("_")
    statistics = {"mean": "mean", "median": "median", "p95": "95%", "p99": "99%", "max": "longest"}
    statistic = f", {statistics[words.pop()]}" if words[-1] in statistics else ""
    name = " ".join("response time" if word == "response" else word for word in words)
    return name[:1].upper() + name[1:] + statistic


def _axes(ax: Axes | None) -> Axes:
    return plt.subplots()[1] if ax is None else ax


def _legend(ax: Axes, *, beside: bool = False) -> Axes:
    """Within the axes, or beside them where it would hide something."""
    if ax.get_legend_handles_labels()[1]:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {}
        ax.legend(**place)
    return ax


def _logarithmic(ax: Axes, which: str) -> None:
    """With plain numbers at 1, 2 and 5."""
    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _down(ax: Axes, labels: list[str]) -> None:
    """The first one on top."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)


def _rows(table: Table | StoredTable, **where: str | None) -> pd.DataFrame:
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


def _subject(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one subject: all flows, where nothing else was said."""
    subjects = list(dict.fromkeys(zip(rows["kind"], rows["name"], strict=True)))
    if ("size class", "all") in subjects:
        return rows[(rows["kind"] == "size class") & (rows["name"] == "all")]
    if len(subjects) > 1:
        expected = ", ".join(f"{kind} '{name}'" for kind, name in subjects)
        raise ValueError(f"'{metric}': found {len(subjects)} subjects, expected one of {expected}")
    return rows


def _key(study: Study, key: str | None) -> Any:
    if key is None and len(study.over) == 1:
        return study.over[0]
    for axis in study.over:
        if axis.key == key:
            return axis
    names = ", ".join(axis.key for axis in study.over)
    raise ValueError(f"key: found {key!r}, expected one of {names}")


def _of_link(
    result: Comparison, link: str | None, seed: int | None, *, all_seeds: bool = False
) -> tuple[pd.DataFrame, str]:
    rows = _rows(result.links)
    link = rows["link"].iloc[0] if link is None else link
    rows = _rows(result.links, link=link)
    if all_seeds:
        return rows, link
    seed = result.seeds[0] if seed is None else seed
    return rows[rows["seed"] == seed], link


def _by_discipline(
    rows: pd.DataFrame, disciplines: list[str]
) -> Iterator[tuple[str, dict[str, Any], pd.DataFrame]]:
    """The rows of each discipline that has some, and how its lines look."""
    for place, discipline in enumerate(disciplines):
        of = rows[rows["discipline"] == discipline]
        if not of.empty:
            colour, dashes = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
            yield discipline, {"color": colour, "linestyle": dashes}, of


def _interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of each column with the ends of Student's 95% interval."""
    count = len(values)
    mean = values.mean(axis=0)
    if count < 2:
        return mean, mean, mean
    half = stats.t.ppf(0.975, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean, mean - half, mean + half
