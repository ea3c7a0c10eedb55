"""Gateways: ways of sharing a link, as the command line compares them."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import subprocess

import polars as pl
import pytest
import tidegate

PROGRAM = os.environ.get("TIDEGATE")


@pytest.fixture(scope="module")
def result() -> tidegate.WaysComparison:
    return tidegate.compare_ways("unfilled", seeds=2)


def test_a_gateway_is_its_text(tmp_path: pathlib.Path) -> None:
    gateway = tidegate.Gateway.builtin("school")
    assert gateway == tidegate.Gateway.parse(gateway.text) == pickle.loads(pickle.dumps(gateway))
    assert "msf" in gateway.ways and "school" in tidegate.builtin_gateways()
    path = tmp_path / "mine.toml"
    path.write_text(gateway.text.replace("title =", "titel ="))
    with pytest.raises(tidegate.ScenarioError, match="unknown 'titel', expected 'title'") as caught:
        tidegate.Gateway.read(path)
    assert caught.value.file == str(path) and caught.value.line is not None
    with pytest.raises(tidegate.ScenarioError, match="unknown gateway 'scool', expected 'school'"):
        tidegate.compare_ways("scool")
    with pytest.raises(tidegate.ScenarioError, match="seeds: found none"):
        tidegate.compare_ways(gateway, seeds=[])


def test_tables_have_each_way_and_class(result: tidegate.WaysComparison) -> None:
    summary, runs = pl.DataFrame(result.summary), pl.DataFrame(result.runs)
    assert summary["way"].unique(maintain_order=True).to_list() == result.ways
    assert set(summary["kind"]) == {"all classes", "class"}
    means = summary.filter(metric="throughput_bps")
    assert means.height >= len(result.ways) and means["value"].min() > 0  # type: ignore[operator]
    of_runs = runs.filter(metric="throughput_bps").group_by("way", "name").agg(pl.mean("value"))
    both = means.join(of_runs, on=["way", "name"], suffix="_runs")
    assert both.height == means.height
    assert (both["value"] - both["value_runs"]).abs().max() < 1e-6  # type: ignore[operator]
    flows = pl.DataFrame(result.flows)
    assert flows.columns[:2] == ["way", "seed"] and flows.height > 10
    assert len(tidegate.compare_ways("unfilled", seeds=1, flows=False, links=False).flows) == 0


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
def test_the_same_from_the_shell(
    result: tidegate.WaysComparison, tmp_path: pathlib.Path
) -> None:
    command = [PROGRAM or "", "requests", "compare", "unfilled", "--seeds", "2", "--json"]
    command += ["--out", str(tmp_path / "out")]
    shell = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    said = json.loads(result.json())
    assert said == {key: shell[key] for key in said}
    lines = (tmp_path / "out" / "flows.csv").read_text().splitlines()
    assert len(lines) - 1 == len(result.flows) and lines[0].split(",") == result.flows.column_names
