"""Sweeps in Python: what a run costs, how much two cores help, and what memory they take.

    python benches/sweeps.py            needs tidegate, distributed, polars and pyarrow

Rates are ratios within one process; all of it takes about three minutes on two cores.
"""

from __future__ import annotations

import collections
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

import polars
import pyarrow
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
    """The same runs by `compare` on one thread, without their rows."""
    names = {"disciplines": WHAT["disciplines"], "duration": WHAT["duration"]}
    text = tidegate.Scenario.builtin("dumbbell").text
    assert text.count('rate = "10 Mbit/s"') == 1
    text = text.replace('rate = "10 Mbit/s"', 'rate = "5 Mbit/s"')
    scenario = tidegate.Scenario.parse(text)
    return tidegate.compare(
        scenario, seeds=runs // 2, threads=1, flows=False, links=False, **names
    )


def processes(count: int) -> float:
    """How long 1000 runs of `compare` take in each of so many processes, all at once."""
    command = [sys.executable, __file__, "--alone"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]
    return max(float(child.communicate()[0]) for child in children)


def cores() -> dict[str, object]:
    """1000 runs on one thread and on two, beside each other in rounds.

    What two processes that share nothing do beside one is all that the machine can.
    """
    one, two, bare, apart = [], [], [], []
    for _ in range(ROUNDS):
        one.append(seconds(lambda: sweep(1000, threads=1)))
        two.append(seconds(lambda: sweep(1000, threads=2)))
        bare.append(seconds(lambda: alone(1000)))
        apart.append(2 * processes(1) / processes(2))
    ratio = statistics.median(a / b for a, b in zip(one, two, strict=True))
    extra = statistics.median(a - b for a, b in zip(one, bare, strict=True))
    return {
        "one_thread_s": one,
        "two_threads_s": two,
        "compare_one_thread_s": bare,
        "ratio_median": ratio,
        "two_processes_ratios": apart,
        "two_processes_ratio_median": statistics.median(apart),
        "beyond_compare_ms_per_run": extra,
    }


def dask() -> dict[str, object]:
    """4000 runs on two workers of Dask, beside two threads, in rounds."""
    here, there, own = [], [], []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        sweep(100, client=client)
        for _ in range(ROUNDS):
            here.append(seconds(lambda: sweep(4000, threads=2)))
            begun = time.process_time()
            there.append(seconds(lambda: sweep(4000, client=client)))
            own.append(time.process_time() - begun)
    ratio = statistics.median(a / b for a, b in zip(there, here, strict=True))
    return {"threads_s": here, "dask_s": there, "own_cpu_s": own, "ratio_median": ratio}


class Fifo(tidegate.CustomDiscipline):
    """The FIFO of Rust, in Python."""

    def __init__(self, place: tidegate.Place, seed: int) -> None:
        super().__init__(place, seed)
        self.queue: collections.deque[tidegate.Packet] = collections.deque()

    def enqueue(self, now_ns: int, packet: tidegate.Packet, losses: list[tidegate.Packet]) -> None:
        if self.place.holds(self.packets + 1, self.size_bytes + packet.size_bytes):
            self.queue.append(packet)
            self.took(packet)
        else:
            losses.append(packet)

    def dequeue(self, now_ns: int, losses: list[tidegate.Packet]) -> tidegate.Packet | None:
        return self.gave(self.queue.popleft())


def custom() -> dict[str, object]:
    """What a FIFO in Python costs for each packet of a run of 60 s, beside that of Rust."""

    def compare(discipline: object) -> tidegate.Comparison:
        return tidegate.compare(
            "dumbbell", disciplines=[discipline], seeds=1, duration="60 s", threads=1, flows=False
        )

    rust, python = [], []
    for _ in range(ROUNDS):
        rust.append(seconds(lambda: compare("fifo")))
        python.append(seconds(lambda: compare(Fifo)))
    packets = max(pyarrow.table(compare("fifo").links)["offered_packets"].to_pylist())
    extra = statistics.median(a - b for a, b in zip(python, rust, strict=True))
    ratio = statistics.median(a / b for a, b in zip(python, rust, strict=True))
    return {"packets": packets, "extra_us_per_packet": 1e6 * extra / packets, "ratio": ratio}


def reading() -> dict[str, object]:
    """How long it takes to read the measures of 10 000 runs, each a file of its own."""
    study = sweep(10_000)
    return {
        "study_runs_s": seconds(lambda: pyarrow.table(study.runs)),
        "polars_scan_s": seconds(
            lambda: polars.scan_parquet(study.folder / "runs", hive_partitioning=True).collect()
        ),
    }


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
    if sys.argv[1:] == ["--alone"]:
        print(seconds(lambda: alone(1000)))
        return
    machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    about = {"tidegate": tidegate.__version__, "python": platform.python_version(), **machine}
    found = {"about": about, "cores": cores(), "dask": dask(), "memory": memory()}
    print(json.dumps(found | {"custom": custom(), "reading": reading()}, indent=1))


if __name__ == "__main__":
    main()
