#!/usr/bin/env python3
"""Counts how often the verdict on a recording tells two disciplines apart.

    python3 equals.py TIDEGATE ONE OTHER LOGS RATE

Writes random logs of two minutes (12 transfers a second on average, Pareto sizes of shape
1.3) into a folder of its own, replays each, and prints what was found.
"""

import collections
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

PER_SECOND, SECONDS, SHAPE, LEAST, MOST = 12, 120, 1.3, 6_923, 3_000_000


def log(seed):
    draw, at, rows = random.Random(seed), 0.0, ["start_s,size_bytes"]
    while at < SECONDS:
        at += draw.expovariate(PER_SECOND)
        rows.append(f"{at:.6f},{int(min(draw.paretovariate(SHAPE) * LEAST, MOST))}")
    return "\n".join(rows) + "\n"


def main():
    tidegate, one, other, logs, rate = sys.argv[1:]
    answers, effects, used = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int(logs)):
            file = Path(folder) / f"{seed}.csv"
            file.write_text(log(seed))
            command = [tidegate, "replay", file, "--rate", rate, "--json",
                       "--disciplines", f"{one},{other}", "--out", Path(folder) / str(seed)]
            verdict = json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))["verdict"]
            answers[verdict["answer"]] += 1
            used.append(verdict["utilisation"])
            for contest in verdict["contests"]:
                effects[contest["need"], contest["results"][1]["effect"]] += 1
    used.sort()
    print(f"{one}, {other}, {rate}: link used {used[0]:.2f} to {used[-1]:.2f}, "
          f"median {used[len(used) // 2]:.2f}")
    for what, count in sorted(answers.items()):
        print(f"  verdict {what}: {count}")
    for (need, effect), count in sorted(effects.items()):
        print(f"  {need}, {effect}: {count}")


if __name__ == "__main__":
    main()
