#!/usr/bin/env python3
"""Times whole runs of the simulator, beside ns-3 when that is built.

    cargo build --release -p tidegate-sim --example speed
    benches/ns3/build.sh                       # optional: the peer
    python3 benches/whole_run.py RUNS > benches/runs/DATE-whole-run/raw.csv

Every configuration is run RUNS times in turn (A B C A B C ...), so that a
machine whose speed drifts treats all alike. The summary on standard error gives
medians, ratios to FIFO pair by pair, and the cost of an event in a run of
10 000 s relative to its cost in one of 100 s. Times are the processor's (user +
system), which a busy machine disturbs less than wall-clock time; those of an
event are wall-clock times without the start of the program. DISCIPLINES in the
environment selects some of the disciplines.
"""

import csv
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEED = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/examples/speed"
NS3 = ROOT / "target/ns3/dumbbell"
SCENARIO = ROOT / "benches/ns3/crosscheck.toml"
REGISTRY = ROOT / "crates/core/src/registry.rs"
LONG, SHORT = 10_000, 100


def scenario(folder: Path, load: int, seconds: int) -> Path:
    """A copy of the cross-check with this load and duration."""
    text = SCENARIO.read_text()
    text = text.replace('"8 Mbit/s"', f'"{load} Mbit/s"').replace('"1000 s"', f'"{seconds} s"')
    path = folder / f"dumbbell-{load}-{seconds}.toml"
    path.write_text(text)
    return path


def registered() -> list[str]:
    """The names of all disciplines."""
    found = re.findall(r"discipline::(\w+)::ENTRY", REGISTRY.read_text())
    return [name.replace("_", "-") for name in found]


def measure(command: list[str]) -> tuple[float, float, float, float]:
    """Processor seconds, wall-clock seconds, peak MiB and nanoseconds per event
    of one run."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    wall = time.monotonic() - start
    event = re.search(r"(\d+) ns each", output)
    return usage.ru_utime + usage.ru_stime, wall, peak_mib(output), float(event[1] if event else 0)


def peak_mib(output: str) -> float:
    """The program's own report of its memory: the system's figure for a child
    would include this script, from which it was forked."""
    if found := re.search(r"peak memory (\d+) kB", output):
        return int(found[1]) / 1024
    if found := re.search(r'"rss_mib":([\d.]+)', output):
        return float(found[1])
    sys.exit(f"no peak memory in: {output[:200]}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    folder = ROOT / "target/whole-run"
    folder.mkdir(parents=True, exist_ok=True)
    disciplines = os.environ.get("DISCIPLINES", " ".join(registered())).split()
    commands = {}
    for load in (8, 15):
        path = scenario(folder, load, 1_000)
        for name in disciplines:
            commands[f"{load} Mbit/s, 1000 s, {name}"] = [str(SPEED), str(path), name]
    for seconds in (SHORT, LONG):
        path = scenario(folder, 8, seconds)
        for name in disciplines:
            commands[f"8 Mbit/s, {seconds} s, {name}"] = [str(SPEED), str(path), name]
    if NS3.exists():
        for load in (8, 15):
            arguments = ["--load", str(load), "--duration", "1000", "--seed", "1", "--json"]
            commands[f"{load} Mbit/s, 1000 s, ns-3 FIFO"] = [str(NS3), *arguments]

    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["configuration", "run", "processor_s", "wall_s", "peak_mib", "event_ns"])
    measured: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in commands}
    for run in range(runs + 1):
        for name, command in commands.items():
            slow_peer = "ns-3" in name
            if slow_peer and run != 1:
                continue  # once is enough for something fifty times as long
            figures = measure(command)
            if run > 0:  # the first round warms up
                measured[name].append(figures)
                rows.writerow([name, run, *(f"{figure:.3f}" for figure in figures)])
                sys.stdout.flush()

    print("| configuration | processor s | peak MiB | ratio to FIFO |", file=sys.stderr)
    print("| --- | ---: | ---: | ---: |", file=sys.stderr)
    for name, figures in measured.items():
        if not figures:
            continue
        fifo = measured[name.rsplit(", ", 1)[0] + ", fifo"]
        ratio = statistics.median(a[0] / b[0] for a, b in zip(figures, fifo))
        seconds = statistics.median(figure[0] for figure in figures)
        memory = statistics.median(figure[2] for figure in figures)
        print(f"| {name} | {seconds:.2f} | {memory:.1f} | {ratio:.2f} |", file=sys.stderr)

    print(f"\n| discipline | ns an event in {SHORT} s | in {LONG} s | ratio |", file=sys.stderr)
    print("| --- | ---: | ---: | ---: |", file=sys.stderr)
    for name in disciplines:
        pair = [measured[f"8 Mbit/s, {seconds} s, {name}"] for seconds in (SHORT, LONG)]
        short, long = (statistics.median(figure[3] for figure in figures) for figures in pair)
        ratio = statistics.median(b[3] / a[3] for a, b in zip(*pair))
        print(f"| {name} | {short:.0f} | {long:.0f} | {ratio:.2f} |", file=sys.stderr)


if __name__ == "__main__":
    main()
