"""Comparisons: what comes out, whoever reads it, and that Python goes on meanwhile."""

from __future__ import annotations

import threading
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tidegate
from small import control_c

SHORT = tidegate.scenario(
    title="A short queue",
    duration="5 s",
    seeds=[7, 3],
    disciplines=["fifo", "tide"],
    dumbbell={},
    traffic={
        "transfers": [
            {
                "name": "files",
                "from": "senders",
                "to": "receivers",
                "load": "5 Mbit/s",
                "sizes": "20 kB",
            }
        ]
    },
)


@pytest.fixture(scope="module")
def result() -> tidegate.Comparison:
    return tidegate.compare(SHORT)


def test_a_table_has_a_row_for_each_flow_of_each_run(result: tidegate.Comparison) -> None:
    flows = pa.table(result.flows)
    runs = flows.group_by(["discipline", "seed"], use_threads=False).aggregate([("flow", "count")])
    assert [*zip(runs["discipline"].to_pylist(), runs["seed"].to_pylist())] == [
        ("fifo", 7),
        ("fifo", 3),
        ("tide", 7),
        ("tide", 3),
    ]
    counts = runs["flow_count"].to_pylist()
    # The same arrivals under both.
    assert counts[0] == counts[2] and counts[1] == counts[3] and min(counts) > 50
    assert flows["delivered_bytes"].to_pylist()[0] == 20_000


def test_every_library_reads_the_same(result: tidegate.Comparison) -> None:
    for table in (result.flows, result.links, result.runs, result.summary):
        arrow = pa.table(table)
        assert arrow.num_rows == len(table) > 0
        assert arrow.column_names == table.column_names
        assert pl.DataFrame(table).height == len(table)
        pd.testing.assert_frame_equal(pa.table(table).to_pandas(), arrow.to_pandas())
    flows = pa.table(result.flows)
    query = "select count(*), sum(delivered_bytes) from flows where discipline = 'tide'"
    answer = duckdb.sql(query)
    assert answer is not None
    [(count, delivered)] = answer.fetchall()
    tide = pl.DataFrame(result.flows).filter(pl.col("discipline") == "tide")
    assert (count, delivered) == (tide.height, tide["delivered_bytes"].sum())


def test_a_table_can_be_read_twice_and_outlives_its_comparison() -> None:
    flows = tidegate.compare(SHORT, seeds=1).flows
    first, second = pa.table(flows), pa.table(flows)
    del flows
    assert first.equals(second) and first.num_rows > 50


def test_the_mean_of_the_runs_is_that_of_the_summary(result: tidegate.Comparison) -> None:
    keys = ["discipline", "kind", "name", "metric"]
    summary = pa.table(result.summary).to_pandas()
    means = summary[summary["estimate"] == "mean"].set_index(keys)["value"]
    runs = pa.table(result.runs).to_pandas().groupby(keys, observed=True)["value"].mean()
    both = pd.DataFrame({"summary": means, "runs": runs}).dropna(subset="summary")
    assert len(both) > 20
    assert both["summary"].sub(both["runs"]).abs().max() <= 1e-9 * both["summary"].abs().max()


def test_results_do_not_depend_on_threads_nor_on_what_is_kept(result: tidegate.Comparison) -> None:
    alone = tidegate.compare(SHORT, threads=1, flows=False, links=False)
    assert alone.json() == result.json()
    assert len(alone.flows) == len(alone.links) == 0
    assert alone.flows.column_names == result.flows.column_names


def test_what_is_asked_for_stands_in_place_of_the_scenario() -> None:
    small = tidegate.Tide(credit="3 kB", label="small")
    other = tidegate.compare(SHORT, disciplines=[small, "fifo"], seeds=3, duration="1 s")
    assert (other.disciplines, other.seeds) == (["small", "fifo"], [1, 2, 3])
    assert max(pa.table(other.flows)["start_s"].to_pylist()) < 1


def test_what_nobody_could_tell_apart_is_refused() -> None:
    with pytest.raises(tidegate.ScenarioError, match="disciplines: found 'fifo' twice"):
        tidegate.compare(SHORT, disciplines=["fifo", "fifo"])
    with pytest.raises(tidegate.ScenarioError, match="seeds: found 3 twice"):
        tidegate.compare(SHORT, seeds=[3, 4, 3])
    with pytest.raises(tidegate.ScenarioError, match="seeds: found 3 twice"):
        tidegate.compare_ways("unfilled", seeds=[3, 3])


def test_progress_is_told_and_ends_near_one() -> None:
    parts: list[float] = []
    tidegate.compare(SHORT, seeds=8, duration="60 s", progress=parts.append)
    assert parts == sorted(parts) and parts[-1] > 0.9


def test_an_exception_of_progress_ends_the_comparison() -> None:
    def fail(part: float) -> None:
        raise RuntimeError(f"at {part}")

    with pytest.raises(RuntimeError, match="^at "):
        tidegate.compare(SHORT, seeds=1000, duration="1000 s", progress=fail)


def test_other_threads_go_on_meanwhile() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    tidegate.compare(SHORT, seeds=10, duration="100 s", threads=1)
    took = time.monotonic() - began
    done.set()
    thread.join()
    # A thread that waits for a lock counts nothing.
    assert counted > 50 * took


def test_control_c_ends_a_comparison_that_would_take_hours() -> None:
    with control_c(0.3):
        tidegate.compare(SHORT, seeds=1_000, duration="10000 s")
