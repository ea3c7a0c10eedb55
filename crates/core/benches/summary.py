"""Prints what `cargo bench --bench disciplines` measured, as CSV with ratios to FIFO.

    python3 crates/core/benches/summary.py target/criterion

Reads the estimates that Criterion leaves behind: the slope of time over
iterations, with its 95 % confidence interval.
"""

import json
import pathlib
import re
import sys


def estimates(folder):
    for path in pathlib.Path(folder).glob("*-queued-*-flows/*/new/estimates.json"):
        queued, flows = re.findall(r"\d+", path.parts[-4])
        slope = json.loads(path.read_text())["slope"]
        interval = slope["confidence_interval"]
        yield (
            (int(flows) != 1000, int(flows), int(queued)),
            path.parts[-3],
            (slope["point_estimate"], interval["lower_bound"], interval["upper_bound"]),
        )


def main(folder):
    by_point = {}
    for point, discipline, nanoseconds in estimates(folder):
        by_point.setdefault(point, {})[discipline] = nanoseconds
    print("discipline,queued,flows,nanoseconds,low,high,ratio_to_fifo")
    for (_, flows, queued), disciplines in sorted(by_point.items()):
        fifo = disciplines["fifo"][0]
        for name, (middle, low, high) in sorted(disciplines.items(), key=lambda item: item[1]):
            numbers = f"{middle:.1f},{low:.1f},{high:.1f},{middle / fifo:.2f}"
            print(f"{name},{queued},{flows},{numbers}")


if __name__ == "__main__":
    main(*sys.argv[1:])
