"""Figures of files that the program wrote: what they show is what the files say."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import subprocess
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from test_figures import close, heights, saved
from tidegate import figures

__all__ = ["close"]

PROGRAM = os.environ.get("TIDEGATE")
KEPT = pathlib.Path(__file__).parents[2] / "docs" / "reproduction" / "results.json"
MEASURED = {figure["id"]: figure for of in json.loads(KEPT.read_text()) for figure in of["figures"]}

# How many of a unit the file's own is.
FACTORS = {
    "time": {"s": 1.0, "ms": 1e3, "µs": 1e6},
    "rate": {"bit/s": 1.0, "kbit/s": 1e-3, "Mbit/s": 1e-6},
    "size": {"B": 1.0, "kB": 1e-3, "MB": 1e-6},
    "share": {"%": 100.0},
}

# A jump by 500 B at 10 ms, and after 30 ms 1 kB more every 20 ms: half of it at once.
JUMPS = {
    "corners": [
        {"from_s": 0.0, "bytes": 0.0, "slope_bps": 0.0},
        {"from_s": 0.01, "bytes": 500.0, "slope_bps": 80_000.0},
        {"from_s": 0.03, "bytes": 1_000.0, "slope_bps": 200_000.0},
    ],
    "repeats": {"from_s": 0.03, "period_s": 0.02, "rise_bytes": 1_000.0},
}
LINE = {"corners": [{"from_s": 0.0, "bytes": 0.0, "slope_bps": 80_000.0}]}
CURVES = {
    "file": "folder/jumps.toml",
    "largest_packet_bytes": 1500,
    "flows": [
        {"name": "call", "service": "real-time", "deadline_s": 0.005},
        {"name": "Web", "service": "best-effort", "weight": 1},
    ],
    "effective": JUMPS,
    "best_effort_deadlines": [
        {"packet_bytes": 40, "exact_s": 0.001},
        {"packet_bytes": 1500, "exact_s": 0.002},
    ],
    "approximations": [{"scheme": "line", "parameters": "80 kbit/s", "curve": LINE}],
}


def factor(axis: dict[str, Any], label: str) -> float:
    """From the unit of the file to that of the axis."""
    if axis["measure"] == "count":
        assert label == axis["name"]
        return 1.0
    name, unit = label.removesuffix(")").rsplit(" (", 1)
    assert name == axis["name"]
    return FACTORS[axis["measure"]][unit]


def places(line: Line2D) -> list[float]:
    return [float(it) for it in cast(Any, line.get_xdata())]


def at(line: Line2D, x: float) -> float:
    return float(np.interp(x, places(line), heights(line)))


def test_every_figure_of_the_papers_is_drawn() -> None:
    assert len(MEASURED) > 80
    for name, figure in MEASURED.items():
        axes = figures.paper(KEPT, name)
        across, up = factor(figure["x"], axes.get_xlabel()), factor(figure["y"], axes.get_ylabel())
        scales = [axes.get_xscale(), axes.get_yscale()]
        assert scales == ["log" if figure[it]["logarithmic"] else "linear" for it in "xy"], name
        assert axes.get_title().replace("\n", " ") == figure["title"]
        legend = axes.get_legend()
        assert legend is not None
        assert len(legend.get_texts()) == len(figure["lines"]), name
        for drawn, line in zip(axes.lines, figure["lines"], strict=True):
            assert drawn.get_label() == line["label"]
            points = np.array(line["points"], float).reshape(-1, 2)
            assert np.allclose(places(drawn), points[:, 0] * across), name
            assert np.allclose(heights(drawn), points[:, 1] * up, equal_nan=True), name
            steps = "steps-post" if figure["stepped"] else "default"
            assert drawn.get_drawstyle() == steps, name
        for area, line in zip(axes.collections, figure["lines"], strict=True):
            corners = np.concatenate([it.vertices for it in area.get_paths()] or [np.empty((0, 2))])
            for x, *both in line["band"]:
                for y in both:
                    assert np.isclose(corners, (x * across, y * up)).all(axis=1).any(), name
        plt.close("all")


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("EFD-5-underload", ("Size in segments", "Mean response time (ms)")),
        ("EFD-7-64k-call", ("Background load (Mbit/s)", "Packets lost (%)")),
        ("LAS-1", ("Time since the client's SYN (ms)", "Packets received")),
        ("MSF-14-msf-today", ("Time (s)", "Responses")),
        ("WLAN-8-wait", ("Time in the queue (ms)", "Packets (%)")),
    ],
)
def test_units_fit(name: str, labels: tuple[str, str], tmp_path: pathlib.Path) -> None:
    axes = saved(figures.paper(KEPT.parent, name), tmp_path)
    assert (axes.get_xlabel(), axes.get_ylabel()) == labels


def test_ten_lines_are_told_apart(tmp_path: pathlib.Path) -> None:
    axes = saved(figures.paper(KEPT, "WLAN-2-ratio"), tmp_path)
    looks = [
        (to_hex(it.get_color()), to_hex(cast(Any, it.get_markerfacecolor()))) for it in axes.lines
    ]
    assert len(set(looks)) == len(axes.lines) == 10


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
def test_the_example_of_the_page_draws_what_the_program_wrote(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (KEPT.parents[1] / "python.md").read_text()
    [example] = [it for it in re.findall(r"```py\n(.*?)```", page, re.S) if "figures." in it]
    monkeypatch.chdir(tmp_path)
    drawn = []
    for line in example.splitlines():
        if line.startswith("# tidegate "):
            command = [PROGRAM or "", *shlex.split(line)[2:]]
            subprocess.run(command, check=True, capture_output=True)
        else:
            drawn.append(saved(eval(line), tmp_path))
    of_paper, of_curves = drawn
    assert [it.get_label() for it in of_paper.lines] == [
        it["label"] for it in MEASURED["BE-8-corners"]["lines"]
    ]
    assert of_curves.get_xlim() == (0, 100) and len(of_curves.lines) == 4


def test_figures_that_there_are_not_are_told(tmp_path: pathlib.Path) -> None:
    near = "name: found no 'EFD-5-underlaod', expected one of EFD-5-underload"
    with pytest.raises(ValueError, match=near):
        figures.paper(KEPT, "EFD-5-underlaod")
    with pytest.raises(ValueError, match="found no 'zzz', expected one of EFD-1b, EFD-2-underload"):
        figures.paper(KEPT, "zzz")
    (tmp_path / "results.json").write_text('{"disciplines": []}')
    with pytest.raises(ValueError, match="found no claims, expected what `tidegate reproduce`"):
        figures.paper(tmp_path, "LAS-1")


def written(folder: pathlib.Path, **changes: Any) -> pathlib.Path:
    (folder / "curves.json").write_text(json.dumps(CURVES | changes))
    return folder


def test_curves_jump_and_repeat(tmp_path: pathlib.Path) -> None:
    axes = saved(figures.curves(written(tmp_path), until_s=0.1), tmp_path)
    exact, line = axes.lines
    assert (exact.get_label(), line.get_label()) == ("E, exact", "line")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "Length of time (ms)",
        "Best-effort traffic (kB)",
    )
    assert axes.get_title() == "jumps" and axes.get_xlim() == (0, 100)
    corners = list(zip(places(exact), heights(exact), strict=True))
    # Up at once by half a kilobyte, then along, then up once in each period.
    points = [(0, 0), (10, 0), (10, 0.5), (30, 0.7), (30, 1), (50, 1.5), (50, 2), (70, 2.5)]
    points += [(70, 3), (90, 3.5), (90, 4), (100, 4.25)]
    assert corners == [pytest.approx(it) for it in points]
    assert at(line, 100) == pytest.approx(1)


def test_periods_that_are_too_many_are_a_line(tmp_path: pathlib.Path) -> None:
    axes = figures.curves(written(tmp_path), until_s=200.03)
    exact = axes.lines[0]
    assert len(places(exact)) < 10
    # Ten thousand periods, each a kilobyte higher: megabytes, and seconds.
    assert heights(exact)[-1] == pytest.approx(10.001)
    assert at(exact, 100.03) == pytest.approx(5.001)


def test_curves_go_as_far_as_the_report(tmp_path: pathlib.Path) -> None:
    # Not beyond four times the longest deadline, ...
    assert figures.curves(written(tmp_path)).get_xlim()[1] == pytest.approx(20)
    # not far beyond the last corner, ...
    flows = [{"name": "call", "service": "real-time", "deadline_s": 1}]
    assert figures.curves(written(tmp_path, flows=flows)).get_xlim()[1] == pytest.approx(37.5)
    # and at least twice as far as the first packets.
    slow = [{"packet_bytes": 1500, "exact_s": 0.01}]
    folder = written(tmp_path, best_effort_deadlines=slow)
    assert figures.curves(folder).get_xlim()[1] == pytest.approx(80)


def test_promises_that_cannot_be_kept_are_told(tmp_path: pathlib.Path) -> None:
    fault = "'call' needs more than the link has"
    (tmp_path / "curves.json").write_text(json.dumps({"schedulable": False, "fault": fault}))
    with pytest.raises(ValueError, match=f"found {fault}, expected promises that the link can"):
        figures.curves(tmp_path)
    with pytest.raises(ValueError, match="until_s: found 0, expected a time above zero"):
        figures.curves(written(tmp_path), until_s=0)
    with pytest.raises(ValueError, match="found no curves"):
        figures.curves(KEPT)


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
@pytest.mark.parametrize("stairs", [False, True])
def test_curves_have_the_values_of_the_program(stairs: bool, tmp_path: pathlib.Path) -> None:
    mine = tmp_path / "stairs.toml"
    mine.write_text(
        """
        link = "10 Mbit/s"
        [[real_time]]
        name = "video"
        protocol = "udp"
        port = 3478
        curve = "10 kB every 33 ms"
        deadline = "20 ms"
        """
    )
    flows = str(mine) if stairs else "home-10mbit"
    command = [PROGRAM or "", "curves", flows, "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads((tmp_path / "out" / "curves.json").read_text())
    assert ("repeats" in found["effective"]) == stairs
    exact, *others = figures.curves(tmp_path / "out", until_s=1).lines
    assert [it.get_label() for it in others] == [it["scheme"] for it in found["approximations"]]
    for place in found["residual"]:
        shown = at(exact, place["within_s"])
        assert shown == pytest.approx(place["effective_bytes"] * 1e-3, abs=1e-3)
    assert len(found["residual"]) >= 5
    # An approximation is never above E.
    for line in others:
        known = zip(places(line), heights(line), strict=True)
        assert all(y <= at(exact, x) + 0.1 for x, y in known)
    page = (tmp_path / "out" / "curves.html").read_text()
    default = figures.curves(tmp_path / "out" / "curves.json").get_xlim()[1]
    assert f"While deadlines of real-time flows pass, up to {default:g} ms" in page


def test_a_logarithmic_axis_cuts_off_what_reaches_zero(tmp_path: pathlib.Path) -> None:
    def begins(low: float) -> float:
        band = [[1, low, 0.3], [2, 0.3, 0.5]]
        line = {"label": "fifo", "points": [[1, 0.2], [2, 0.4]], "band": band}
        axis = {"name": "Time", "measure": "time", "logarithmic": True}
        figure = {"id": "mine", "title": "Mine", "x": axis | {"logarithmic": False}, "y": axis}
        claims = [{"figures": [figure | {"lines": [line], "stepped": False}]}]
        (tmp_path / "results.json").write_text(json.dumps(claims))
        return saved(figures.paper(tmp_path, "mine"), tmp_path).get_ylim()[0]

    # Below the interval, or somewhat below all values.
    assert begins(0.15) == pytest.approx(150 / 1.1)
    assert begins(0.001) == begins(0.0) == begins(-0.1) == pytest.approx(100 / 1.1)
