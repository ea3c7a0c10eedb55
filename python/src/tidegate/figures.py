"""Figures for papers and notebooks, with matplotlib.

Each function draws into the axes that it gets, or into new ones, and returns them. A
discipline, or a way of sharing a link, has the same colour and dashes in all figures of a
result: the colours are those of Tidegate's reports, which also the colour-blind tell apart, and
the dashes are for print without colour. Bands and bars are 95% intervals over the seeds.

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

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.axes import Axes

from tidegate._compare import contenders
from tidegate._drawing import (
    COLOURS,
    STYLE,
    Result,
    Scale,
    axes_or_new,
    by_contender,
    contender_column,
    first_shown,
    in_words,
    intervals,
    key_of,
    labels_down,
    logarithmic,
    middle_of,
    of_link,
    of_one_subject,
    of_source,
    rows_where,
    styled,
    styles,
    summary,
    with_legend,
)
from tidegate._file_figures import curves, paper
from tidegate._gateway_figures import class_responses, class_shares, small_responses
from tidegate._native import Comparison, Table
from tidegate._sweep import Study

__all__ = [
    "STYLE",
    "class_responses",
    "class_shares",
    "curves",
    "delays",
    "differences",
    "distribution",
    "estimates",
    "heat_map",
    "losses",
    "over_key",
    "over_time",
    "page_loads",
    "paper",
    "percentiles",
    "progress",
    "response_by_size",
    "shares",
    "small_responses",
    "throughput",
]


@styled
def response_by_size(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """How long transfers take on average, by their size."""
    ax = axes_or_new(ax)
    bins = {it["label"]: it["response_by_size"] for it in summary(result)["disciplines"]}
    means = [it["mean_s"] for of in bins.values() for it in of if it["mean_s"]]
    values = [it["value"] for it in means]
    scale = Scale("response_mean_s", values)
    bounds = [it["to_bytes"] for of in bins.values() for it in of]
    sizes = Scale("size_bytes", middle_of(bounds))
    for discipline, style in styles(result.disciplines):
        known = [it for it in bins[discipline] if it["mean_s"]]
        x = [np.sqrt(it["from_bytes"] * it["to_bytes"]) * sizes.factor for it in known]
        y = np.array([it["mean_s"]["value"] for it in known]) * scale.factor
        ax.plot(x, y, marker="o", markersize=3, label=discipline, **style)
        ends = [it["mean_s"]["interval"] or (np.nan, np.nan) for it in known]
        low, high = np.array(ends).reshape(-1, 2).T * scale.factor
        ax.fill_between(x, low, high, color=style["color"], alpha=0.15, lw=0)
    logarithmic(ax, "x")
    lows = [it["interval"][0] for it in means if it["interval"]]
    logarithmic(ax, "y", first=first_shown(values, lows, scale))
    ax.set(xlabel=sizes.label, ylabel=scale.label)
    return with_legend(ax)


@styled
def estimates(
    result: Result,
    metric: str,
    *,
    kind: str | None = None,
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The value of one measure for each contender, with its interval.

    Args:
        metric: Its name in `summary`, for example "utilisation_ratio".
        kind: "size class", "traffic", "traffic ratio", "link" or, of gateways, "class", where
            several have it.
        name: Of the subject, where several have it.
    """
    rows = rows_where(result.summary, metric=metric, kind=kind, name=name)
    subjects = list(dict.fromkeys(zip(rows["kind"], rows["name"], strict=True)))
    if len(subjects) != 1:
        expected = "one of " + ", ".join(f"{of} '{it}'" for of, it in subjects)
        raise ValueError(f"'{metric}': found {len(subjects)} subjects, expected {expected}")
    ax = axes_or_new(ax)
    scale = Scale(metric, rows["value"])
    for contender, style, of in by_contender(rows, contenders(result)):
        place = contenders(result).index(contender)
        ax.hlines(
            place, of["low_95"] * scale.factor, of["high_95"] * scale.factor, color=style["color"]
        )
        ax.plot(of["value"] * scale.factor, [place], "o", markersize=4, color=style["color"])
    labels_down(ax, contenders(result))
    ax.set(xlabel=scale.label, title=f"{subjects[0][1]}")
    return ax


@styled
def percentiles(result: Comparison, name: str, *, ax: Axes | None = None) -> Axes:
    """Median, 95th and 99th percentile and the longest delay of a source or a link."""
    names = ["delay_median_s", "delay_p95_s", "delay_p99_s", "delay_max_s"]
    rows = rows_where(result.summary, name=name)
    rows = rows[rows["metric"].isin(names)]
    if rows.empty:
        known = rows_where(result.summary, metric=names[1])["name"].unique()
        raise ValueError(f"found no delays of '{name}', expected one of {', '.join(known)}")
    ax = axes_or_new(ax)
    scale = Scale("delay_s", rows["value"])
    markers = dict(zip(names, ["|", "o", "s", "x"], strict=True))
    for discipline, style, of in by_contender(rows, result.disciplines):
        place = result.disciplines.index(discipline)
        x = of["value"] * scale.factor
        ax.hlines(place, x.min(), x.max(), color=style["color"], lw=0.8)
        for metric, value in zip(of["metric"], x, strict=True):
            ax.plot(value, place, markers[metric], markersize=5, color=style["color"])
    for metric, words in zip(names, ["median", "95%", "99%", "longest"], strict=True):
        ax.plot([], [], markers[metric], markersize=5, color="#57606a", label=words)
    labels_down(ax, result.disciplines)
    logarithmic(ax, "x")
    ax.set(xlabel=scale.label, title=name)
    return with_legend(ax, beside=True)


@styled
def distribution(
    result: Result,
    *,
    column: str = "response_s",
    traffic: str | None = None,
    largest_bytes: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The part of flows that took longer, with logarithmic axes, which show the tail.

    Args:
        column: Of `flows`.
        traffic: Of this source alone; of gateways, a class.
        largest_bytes: Only flows of at most this size.
    """
    ax = axes_or_new(ax)
    flows = rows_where(result.flows, traffic=traffic).dropna(subset=column)
    if largest_bytes is not None:
        flows = flows[flows["size_bytes"] <= largest_bytes]
    scale = Scale(column, flows[column])
    positive = flows[column][flows[column] > 0]
    if positive.empty:
        raise ValueError(f"found no flow with '{column}', expected other flows or a longer run")
    grid = np.geomspace(positive.min(), positive.max(), 200)
    least = 1.0
    for contender, style, of in by_contender(flows, contenders(result)):
        above = np.array(
            [1 - np.searchsorted(np.sort(it), grid, side="right") / len(it)
             for _, it in of.groupby("seed")[column]]
        )  # fmt: skip
        middle, low, high = intervals(above)
        # Of fewer flows than ten, the tail says little.
        known = middle >= 10 / len(of)
        least = min(least, middle[known].min(initial=1))
        ax.plot(grid[known] * scale.factor, middle[known], label=contender, **style)
        low, high = np.maximum(low[known], 1e-9), high[known]
        ax.fill_between(grid[known] * scale.factor, low, high, color=style["color"], alpha=0.15, lw=0)
    logarithmic(ax, "x")
    ax.set_yscale("log")
    ax.set_ylim(bottom=least / 1.5, top=1.1)
    ax.set(xlabel=scale.label, ylabel="Part that takes longer")
    return with_legend(ax)


@styled
def delays(result: Comparison, source: str, *, ax: Axes | None = None) -> Axes:
    """The part of the packets of a source of datagrams that took longer."""
    found = {label: it["delay_distribution"] for label, it in of_source(result, source).items()}
    return _tails(result, found, "delay_s", f"Packets of {source} that take longer", ax)


@styled
def page_loads(result: Comparison, source: str, *, ax: Axes | None = None) -> Axes:
    """The part of the pages of a source that took longer."""
    pages = {label: it.get("pages") for label, it in of_source(result, source).items()}
    found = {label: it["load_distribution"] if it else [] for label, it in pages.items()}
    return _tails(result, found, "page_load_s", f"Pages of {source} that take longer", ax)


@styled
def progress(result: Comparison, source: str, *, ax: Axes | None = None) -> Axes:
    """What has arrived of each flow of a source, over time, in the first run.

    The source has `follow = true`.
    """
    found = {label: it["progress"] for label, it in of_source(result, source).items()}
    if not any(found.values()):
        raise ValueError(f"found no flow of '{source}' that is followed, expected follow = true")
    ax = axes_or_new(ax)
    arrived = [point["arrived_bytes"] for points in found.values() for point in points]
    scale = Scale("arrived_bytes", arrived)
    for discipline, style in styles(result.disciplines):
        rows = pd.DataFrame(found[discipline], columns=["number", "at_s", "arrived_bytes"])
        for place, (_, flow) in enumerate(rows.groupby("number")):
            label = discipline if place == 0 else None
            ax.plot(flow["at_s"], flow["arrived_bytes"] * scale.factor, label=label, **style)
    ax.set(xlabel="Time (s)", ylabel=scale.label, title=source)
    ax.set_ylim(bottom=0)
    return with_legend(ax, beside=True)


@styled
def over_time(
    result: Result,
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
    ax = axes_or_new(ax)
    rows, link = of_link(result, link, seed)
    scale = Scale(column, rows[column])
    for contender, style, of in by_contender(rows, contenders(result)):
        ax.plot(of["time_s"], of[column] * scale.factor, label=contender, **style)
    ax.set(xlabel="Time (s)", ylabel=scale.label, title=link)
    ax.set_ylim(bottom=0)
    return with_legend(ax, beside=True)


@styled
def throughput(
    result: Result,
    *,
    window_s: float = 1.0,
    link: str | None = None,
    seed: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """What a link carries over time, as the mean over each window, in one run."""
    ax = axes_or_new(ax)
    rows, link = of_link(result, link, seed)
    windows = []
    for contender, style, of in by_contender(rows, contenders(result)):
        of = of.groupby(of["time_s"] // window_s).last()
        bits = of["delivered_bytes"].diff() * 8 / of["time_s"].diff()
        windows.append((contender, style, of["time_s"], bits))
    scale = Scale("throughput_bps", pd.concat([bits for *_, bits in windows]))
    for contender, style, ends, bits in windows:
        ax.step(ends, bits * scale.factor, where="pre", label=contender, **style)
    ax.set(xlabel="Time (s)", ylabel=scale.label, title=link)
    ax.set_ylim(bottom=0)
    return with_legend(ax, beside=True)


@styled
def losses(result: Result, *, link: str | None = None, ax: Axes | None = None) -> Axes:
    """What part of the packets a link loses, by reason, over all seeds."""
    ax = axes_or_new(ax)
    rows, link = of_link(result, link, None, all_seeds=True)
    column = contender_column(rows)
    last = rows.groupby([column, "seed"]).last().groupby(column).sum(numeric_only=True)
    last = last.reindex(contenders(result))
    others = {"queue_packets", "offered_packets", "delivered_packets", "marked_packets"}
    reasons = [it for it in last if it.endswith("_packets") and it not in others]
    left = np.zeros(len(last))
    for colour, reason in zip(COLOURS, reasons, strict=False):
        part = 100 * (last[reason] / last["offered_packets"]).to_numpy()
        if part.any():
            words = reason.removesuffix("_packets").replace("_", " ")
            ax.barh(range(len(last)), part, left=left, height=0.6, color=colour, label=words)
            left = left + part
    labels_down(ax, contenders(result))
    ax.set(xlabel="Lost packets (%)", title=link)
    ax.grid(axis="y", visible=False)
    return with_legend(ax, beside=True)


@styled
def shares(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """What each source of traffic carries."""
    ax = axes_or_new(ax)
    rows = rows_where(result.summary, kind="traffic", metric="throughput_bps")
    table = rows.pivot(index="discipline", columns="name", values="value")
    table = table.reindex(index=result.disciplines, columns=dict.fromkeys(rows["name"])).fillna(0)
    scale = Scale("throughput_bps", table.sum(axis=1))
    left = np.zeros(len(table))
    for colour, name in zip(COLOURS, table, strict=False):
        part = table[name].to_numpy() * scale.factor
        ax.barh(range(len(table)), part, left=left, height=0.6, color=colour, label=name)
        left = left + part
    labels_down(ax, result.disciplines)
    ax.set(xlabel=scale.label)
    ax.grid(axis="y", visible=False)
    return with_legend(ax, beside=True)


@styled
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
        key: The only one that varies unless it is named; the mean over the others is shown.
    """
    axis = key_of(study, key)
    rows = of_one_subject(rows_where(study.runs, metric=metric, kind=kind, name=name), metric)
    ax = axes_or_new(ax)
    scale = Scale(metric, rows["value"])
    x_scale = Scale(axis.unit, axis.numbers or [])
    x = [it * x_scale.factor for it in axis.numbers or range(len(axis.values))]
    for discipline, style, of in by_contender(rows, study.disciplines):
        # The interval is over seeds: other keys scatter too, which is no uncertainty.
        by_seed = of.groupby([axis.key, "seed"], as_index=False)["value"].mean()
        groups = {value: group["value"].to_numpy() for value, group in by_seed.groupby(axis.key)}
        at = [place for place, value in enumerate(axis.values) if value in groups]
        found = [intervals(groups[axis.values[place]][:, None]) for place in at]
        middle, low, high = (np.ravel(it) * scale.factor for it in zip(*found, strict=True))
        places = [x[place] for place in at]
        ax.plot(places, middle, marker="o", markersize=3, label=discipline, **style)
        ax.fill_between(places, low, high, color=style["color"], alpha=0.15, lw=0)
    if axis.numbers is None:
        ax.set_xticks(x, axis.values)
    elif min(axis.numbers) > 0 and max(axis.numbers) >= 10 * min(axis.numbers):
        logarithmic(ax, "x")
    unit = f" ({x_scale.unit})" if x_scale.unit else ""
    ax.set(xlabel=f"{axis.key}{unit}", ylabel=scale.label)
    return with_legend(ax)


@styled
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
    rows = of_one_subject(rows_where(study.runs, metric=metric, kind=kind, name=name), metric)

    def means(of: str) -> pd.DataFrame:
        chosen = rows[rows["discipline"] == of]
        if chosen.empty:
            raise ValueError(f"found no '{of}', expected one of {', '.join(study.disciplines)}")
        table = chosen.pivot_table(index=down.key, columns=across.key, values="value")
        return table.reindex(index=down.values, columns=across.values)

    ax = axes_or_new(ax)
    values = means(discipline)
    if against is None:
        scale = Scale(metric, values.stack())
        values, label, norm = values * scale.factor, scale.label, None
        image = ax.imshow(values, aspect="auto", origin="lower", cmap="cividis", norm=norm)
    else:
        values = values / means(against)
        label = f"{in_words(metric)}: {discipline} / {against}"
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


@styled
def differences(table: Table, *, ax: Axes | None = None) -> Axes:
    """What `tidegate.differences` found, in percent of what was compared against.

    Filled dots are differences that count as real.
    """
    rows = pa.table(table).to_pandas()
    rows = rows[rows["against_value"] != 0]
    labels = [name for name in rows.columns[: list(rows.columns).index("better")]]
    told_apart = [it for it in labels if rows[it].nunique() > 1]
    ax = axes_or_new(ax)
    compared = list(dict.fromkeys([*rows["against"], *rows[contender_column(rows)]]))
    subjects = rows[told_apart].agg(", ".join, axis=1) if told_apart else pd.Series("", rows.index)
    places = {it: place for place, it in enumerate(dict.fromkeys(subjects))}
    for number, (contender, style, of) in enumerate(by_contender(rows, compared)):
        percent = 100 / of["against_value"].abs()
        y = subjects[of.index].map(places) + (number - (len(compared) - 2) / 2) * 0.15
        ax.hlines(y, of["low_95"] * percent, of["high_95"] * percent, color=style["color"], lw=1)
        fill = np.where(of["significant"], style["color"], "white")
        x = of["difference"] * percent
        ax.scatter(x, y, s=16, c=fill, edgecolors=style["color"], zorder=3)
        ax.plot([], [], "o", markersize=4, color=style["color"], label=contender)
    ax.axvline(0, color="#8b949e", lw=0.8)
    labels_down(ax, list(places))
    against = ", ".join(rows["against"].unique())
    ax.set(xlabel=f"Difference from {against} (%)")
    return with_legend(ax, beside=True)


def _tails(
    result: Comparison,
    found: dict[str, list[dict[str, float]]],
    metric: str,
    label: str,
    ax: Axes | None,
) -> Axes:
    """The parts above each time, from the parts up to it, on logarithmic axes."""
    ax = axes_or_new(ax)
    scale = Scale(metric, [point["at_s"] for points in found.values() for point in points])
    for discipline, style in styles(result.disciplines):
        points = [it for it in found[discipline] if it["fraction"] < 1 and it["at_s"] > 0]
        x = [it["at_s"] * scale.factor for it in points]
        ax.plot(x, [1 - it["fraction"] for it in points], label=discipline, **style)
    logarithmic(ax, "x")
    ax.set_yscale("log")
    ax.set(xlabel=scale.label, ylabel=label)
    return with_legend(ax)
