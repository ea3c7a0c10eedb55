"""Sweeps in Python: what a run costs, how much two cores help, and what memory they take.

    python benches/sweeps.py            needs tidegate and distributed

Rates are ratios within one process; all of it takes about two minutes on two cores.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import tidegate
from distributed import Client, LocalCluster

ROUNDS = 5
WHAT = {"over": {"rate": ["5 Mbit/s"]}, "disciplines": ["fifo", "tide"], "duration": "5 s"}


def seconds(work: Callable[[], object]) -> float:
    """How long it takes; what it made is thrown away afterwards."""
    begun = time.perf_counter()
    made = work()
    took = time.perf_counter() - begun
    del made
    return took


def sweep(runs: int, **how: object) -> tidegate.Study:
    """So many short runs, in a new folder."""
    study = tidegate.sweep("dumbbell", seeds=runs // 2, **WHAT, **how)
    assert study.failures == []
    return study


def alone(runs: int) -> object:
    """The same runs on one thread, without keeping anything of them."""
    names = {"disciplines": WHAT["disciplines"], "duration": WHAT["duration"]}
    text = tidegate.Scenario.builtin("dumbbell").text.replace(
        'rate = "10 Mbit/s"', 'rate = "5 Mbit/s"'
    )
    scenario = tidegate.Scenario.parse(text)
    return tidegate.compare(
        scenario, seeds=runs // 2, threads=1, flows=False, links=False, **names
    )


def cores() -> dict[str, object]:
    """1000 runs on one thread and on two, beside each other in rounds."""
    one, two, bare = [], [], []
    for _ in range(ROUNDS):
        one.append(seconds(lambda: sweep(1000, threads=1)))
        two.append(seconds(lambda: sweep(1000, threads=2)))
        bare.append(seconds(lambda: alone(1000)))
    ratio = statistics.median(a / b for a, b in zip(one, two, strict=True))
    extra = statistics.median(a - b for a, b in zip(one, bare, strict=True))
    return {
        "one_thread_s": one,
        "two_threads_s": two,
        "compare_one_thread_s": bare,
        "ratio_median": ratio,
        "beyond_compare_ms_per_run": extra,
    }


def dask() -> dict[str, object]:
    """The same on two workers of Dask, beside two threads, in rounds; 10 s of each run."""
    here, there = [], []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        sweep(100, client=client)
        for _ in range(ROUNDS):
            here.append(seconds(lambda: sweep(4000, threads=2)))
            there.append(seconds(lambda: sweep(4000, client=client)))
    ratio = statistics.median(a / b for a, b in zip(there, here, strict=True))
    return {"threads_s": here, "dask_s": there, "ratio_median": ratio}


def memory() -> dict[str, object]:
    """The largest memory of a process that sweeps, by the number of its runs."""
    found = {}
    for runs in (200, 2000, 20000):
        child = subprocess.run(
            [sys.executable, __file__, "--child", str(runs)],
            check=True,
            capture_output=True,
            text=True,
        )
        found[runs] = int(child.stdout)
    return {"largest_kib_by_runs": found}


def main() -> None:
    """Prints all of it as JSON."""
    if sys.argv[1:2] == ["--child"]:
        with tempfile.TemporaryDirectory() as folder:
            sweep(int(sys.argv[2]), threads=2, flows=True, folder=f"{folder}/study")
        # Not that of `getrusage`, which counts the parent before it became this program.
        [line] = (it for it in pathlib.Path("/proc/self/status").open() if it[:6] == "VmHWM:")
        print(line.split()[1])
        return
    machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    about = {"tidegate": tidegate.__version__, "python": platform.python_version(), **machine}
    print(json.dumps({"about": about, "cores": cores(), "dask": dask(), "memory": memory()}, indent=1))


if __name__ == "__main__":
    main()
