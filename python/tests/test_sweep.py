"""Sweeps: what lies in their folder, here and on workers of Dask, and what is done again."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import distributed
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import tidegate
from small import SMALL, control_c
from tidegate import _dask, _native

PROGRAM = os.environ.get("TIDEGATE")

RATES = {"rate": ["5 Mbit/s", "9 Mbit/s"]}


def parts(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file of the tables with its content."""
    files = folder.glob("*/**/*.parquet")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tidegate.Study:
    """A study that was done on this machine."""
    folder = tmp_path_factory.mktemp("here") / "study"
    return tidegate.sweep(SMALL, over=RATES, folder=folder, flows=True)


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    """Two workers of Dask, each a process of its own."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_study_is_a_folder_that_every_library_reads(here: tidegate.Study) -> None:
    assert (len(here), here.missing, here.failures) == (8, 0, [])
    assert (here.disciplines, here.seeds) == (["fifo", "tide"], [7, 3])
    [rate] = here.over
    assert (rate.key, rate.numbers, rate.unit) == ("rate", [5e6, 9e6], "bit/s")
    assert len(parts(here.folder)) == 16

    flows = pl.DataFrame(here.flows)
    assert flows.columns[:3] == ["rate", "discipline", "seed"]
    assert flows.equals(pl.DataFrame(pa.table(here.flows)))
    # The libraries find the same by themselves, from the names of folders.
    folder = here.folder / "flows"
    key = ["rate", "discipline", "seed", "flow"]
    scanned = pl.scan_parquet(folder, hive_partitioning=True).collect()
    assert scanned.select(flows.columns).sort(key).equals(flows.sort(key))
    dataset = pyarrow.dataset.dataset(folder, partitioning="hive")
    assert dataset.count_rows() == flows.height
    query = f"""select count(*) from read_parquet('{folder}/**/*.parquet', hive_partitioning = true)
        where rate = '9 Mbit/s' and discipline = 'tide' and seed = 3"""
    answer = duckdb.sql(query)
    assert answer is not None
    [(count,)] = answer.fetchall()
    chosen = flows.filter(rate="9 Mbit/s", discipline="tide", seed=3)
    assert count == chosen.height > 20


def test_runs_are_those_of_a_comparison(here: tidegate.Study) -> None:
    key = ["discipline", "seed", "kind", "name", "metric", "value"]
    compared = pl.DataFrame(tidegate.compare(SMALL).runs).select(key)
    swept = pl.DataFrame(here.runs).filter(rate="5 Mbit/s").select(key)
    # A sweep also has what comparisons count over all runs.
    both = compared.join(swept, on=key[:-1], suffix="_swept")
    assert both.height == compared.height > 80
    assert both.filter(pl.col("value") != pl.col("value_swept")).is_empty()


def test_what_is_there_is_not_done_again(tmp_path: pathlib.Path) -> None:
    first = tidegate.sweep(SMALL, over=RATES, folder=tmp_path / "study", seeds=1)
    before = parts(first.folder)
    times = {name: (first.folder / name).stat().st_mtime_ns for name in before}
    told: list[float] = []
    more = tidegate.sweep(
        SMALL, over={"rate": "9 Mbit/s,20 Mbit/s"}, folder=first.folder, seeds=2, progress=told.append
    )
    assert (len(more), len(parts(first.folder))) == (8, 4 + 6)
    assert all((first.folder / name).stat().st_mtime_ns == it for name, it in times.items())
    assert told == sorted(told)

    whole = tidegate.open_study(first.folder)
    assert (len(whole), whole.missing, whole.seeds) == (12, 2, [1, 2])
    assert pl.DataFrame(whole.runs).select("rate", "discipline", "seed").unique().height == 10
    assert repr(whole) == "<Study 'A short queue' over rate: 12 runs, 2 missing>"

    with pytest.raises(tidegate.TidegateError, match="found runs of another duration"):
        tidegate.sweep(SMALL, over=RATES, folder=first.folder, duration="1 s")
    with pytest.raises(tidegate.TidegateError, match="expected the folder of a study"):
        tidegate.open_study(tmp_path)


def test_without_a_folder_the_runs_go_with_the_study() -> None:
    study = tidegate.sweep(SMALL, over={}, seeds=1)
    folder = study.folder
    assert len(parts(folder)) == len(study) == 2
    with pytest.raises(tidegate.TidegateError, match="expected a study that keeps flows"):
        _ = study.flows
    del study
    assert not folder.exists()


def test_values_are_those_of_files() -> None:
    study = tidegate.sweep(
        SMALL,
        over={"dumbbell.pairs": [1, 2], "load": [0.5, 1], "tcp.sack": [True, False]},
        seeds=1,
        disciplines=[tidegate.Fifo()],
        duration="1 s",
    )
    assert [key.values for key in study.over] == [["1", "2"], ["0.5", "1"], ["true", "false"]]
    assert [key.numbers for key in study.over] == [[1, 2], [0.5, 1], None]
    assert len(study) == 8


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"over": {"rte": ["1 Mbit/s"]}}, "over: rte: found unknown 'rte', expected 'rate'"),
        ({"over": {"rate": ["1 Mbit/s", "1 Mbit/s"]}}, "expected each value once"),
        ({"over": {"rate": []}}, "over: found 'rate='"),
        ({"over": {}, "seeds": [1, 1]}, "seeds: found 1 twice"),
        ({"over": {}, "disciplines": ["fifo", "fifo"]}, "disciplines: found 'fifo' twice"),
        ({"over": {}, "seeds": 0}, "seeds: found none"),
        ({"over": {}, "client": object(), "threads": 2}, "threads: found it beside a client"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(tidegate.ScenarioError) as caught:
        tidegate.sweep(SMALL, **keywords)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_control_c_keeps_what_is_done(tmp_path: pathlib.Path) -> None:
    with control_c(0.5):
        tidegate.sweep(SMALL, over=RATES, seeds=2_000, folder=tmp_path / "study")
    study = tidegate.open_study(tmp_path / "study")
    assert 0 < len(parts(study.folder)) == len(study) - study.missing


def test_dask_writes_the_same_bytes(
    here: tidegate.Study, client: distributed.Client, tmp_path: pathlib.Path
) -> None:
    told: list[float] = []
    there = tidegate.sweep(
        SMALL,
        over=RATES,
        folder=tmp_path / "there",
        flows=True,
        client=client,
        progress=told.append,
    )
    assert (there.missing, there.failures) == (0, [])
    assert parts(there.folder) == parts(here.folder)
    assert told == sorted(told) and told[-1] == 1
    # Nothing is left of it on the cluster, once the news has got there.
    deadline = time.monotonic() + 10
    while any(client.has_what().values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
def test_the_shell_writes_the_same_bytes(here: tidegate.Study, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scenario.toml").write_text(SMALL.text)
    (tmp_path / "study.toml").write_text(
        "scenario = 'scenario.toml'\nover = ['rate=5 Mbit/s,9 Mbit/s']\nflows = true\n"
    )
    command = [PROGRAM or "", "sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    assert parts(tmp_path / "out") == parts(here.folder)
    assert tidegate.open_study(tmp_path / "out").missing == 0


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
def test_the_study_and_the_query_of_the_page_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "sweep.md").read_text()
    [study] = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    [query] = re.findall(r"^```sql\n(.*?)^```", page, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    pathlib.Path("my-study.toml").write_text(study)
    command = [PROGRAM or "", "sweep", "my-study.toml", "--out", "my-study"]
    command += ["--seeds", "1", "--duration", "20 s"]
    subprocess.run(command, check=True, capture_output=True)
    answer = duckdb.sql(query)
    assert answer is not None and len(answer.fetchall()) == 2 * 3


def test_a_worker_that_is_killed_loses_no_result(
    client: distributed.Client, tmp_path: pathlib.Path
) -> None:
    killed: list[int] = []

    def kill(part: float) -> None:
        if part > 0.3 and not killed:
            workers = client.run(os.getpid)
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    def sweep(folder: str, client: distributed.Client | None) -> tidegate.Study:
        return tidegate.sweep(
            SMALL,
            over=RATES,
            seeds=150,
            duration="10 s",
            folder=tmp_path / folder,
            client=client,
            progress=kill if client else None,
        )

    there = sweep("there", client)
    assert len(killed) == 1
    assert (there.missing, there.failures) == (0, [])
    assert parts(there.folder) == parts(sweep("here", None).folder)


def test_a_run_that_no_worker_survives_is_a_failure_of_its_own(
    client: distributed.Client, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dask, "perform", fails_at_five)
    study = tidegate.sweep(
        SMALL, over=RATES, seeds=20, duration="1 s", folder=tmp_path / "study", client=client
    )
    [failure] = study.failures
    assert (failure.at, failure.discipline, failure.seed) == ({"rate": "5 Mbit/s"}, "tide", 3)
    assert failure.message == "MemoryError: too much"
    assert study.missing == 1
    monkeypatch.undo()
    again = tidegate.sweep(
        SMALL, over=RATES, seeds=20, duration="1 s", folder=tmp_path / "study", client=client
    )
    assert (again.missing, again.failures) == (0, [])


def test_workers_of_another_version_end_a_sweep(
    client: distributed.Client, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dask, "perform", of_another_version)
    with pytest.raises(tidegate.ScenarioError, match="found a study of version 0.0.1"):
        tidegate.sweep(SMALL, over=RATES, folder=tmp_path / "study", client=client)
    monkeypatch.undo()
    # What is done is done, and nothing is left for workers to do.
    done = tidegate.sweep(SMALL, over=RATES, folder=tmp_path / "study", client=client)
    again = tidegate.sweep(SMALL, over=RATES, folder=tmp_path / "study", client=client)
    assert done.missing == again.missing == 0


def of_another_version(text: str, indices: list[int]) -> tuple[float, list[_dask.Outcome]]:
    """What a worker does that has another version of the package."""
    return _dask.perform(text.replace(tidegate.__version__, "0.0.1"), indices)


def fails_at_five(text: str, indices: list[int]) -> tuple[float, list[_dask.Outcome]]:
    """What a worker does on which the run at this place takes too much memory."""
    if 5 in indices:
        raise MemoryError("too much")
    return 0.01 * len(indices), _native.Work.parse(text).perform(indices)
