#!/usr/bin/env python3
"""The figures of Flent runs, as CSV: one row for each file and figure.

    tools/flent-figures.py FILE.flent.gz... > scenarios/measured/figures.csv

Throughput is payload in Mbit/s, as netperf counts it. The load lasts from the
start of the first TCP flow to the end of the last. *Idle* is the time before
it, and *settled* is the load without its first 20 s, because slow start and its
consequences do not belong to the queue that stands there afterwards. The file's
metadata says whether a router's queue is that of the uplink (EGRESS_INFO, away
from the host that ran Flent) or the downlink (INGRESS_INFO), and has the
counters that `tc` printed before and after the run: its packets have an Ethernet
header of 14 bytes.
"""

import csv
import gzip
import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

SETTLING_S = 20

Figure = tuple[str, float]
Sample = dict[str, float]


def quantile(values: list[float], fraction: float) -> float:
    """Interpolates linearly between the two nearest of the sorted values."""
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def distribution(name: str, values: list[float], unit: str) -> Iterator[Figure]:
    yield f"{name}_samples", len(values)
    for label, fraction in (("p5", 0.05), ("median", 0.5), ("p95", 0.95)):
        yield f"{name}_{label}_{unit}", quantile(values, fraction)


def between(samples: list[Sample], window: tuple[float, float]) -> list[Sample]:
    return [sample for sample in samples if window[0] <= sample["t"] < window[1]]


def throughput(samples: list[Sample], window: tuple[float, float]) -> float:
    """Mean over the window; a sample is the mean of the `dur` seconds before it."""
    volume = covered = 0.0
    for sample in samples:
        begin = max(sample["t"] - sample["dur"], window[0])
        overlap = max(min(sample["t"], window[1]) - begin, 0.0)
        volume += sample["val"] * overlap
        covered += overlap
    return volume / covered


def shapers(metadata: dict) -> Iterator[tuple[str, str, dict]]:
    """Direction, router, and description of each interface with a token bucket."""
    for router, about in sorted(metadata["REMOTE_METADATA"].items()):
        for direction, key in (("up", "EGRESS_INFO"), ("down", "INGRESS_INFO")):
            interface = about.get(key) or {}
            if any(qdisc["name"] == "tbf" for qdisc in interface.get("qdiscs") or []):
                yield direction, router, interface


def counters(statistics_of_tc: list[str]) -> dict[str, int]:
    """The counters of the innermost queue; `maxpacket` is the largest packet that it saw."""
    names = {"bytes": r"Sent (\d+) bytes", "packets": r"bytes (\d+) pkt",
             "dropped": r"dropped (\d+)", "maxpacket": r"maxpacket (\d+)"}
    return {name: int(re.search(pattern, statistics_of_tc[-1])[1])
            for name, pattern in names.items()}


def figures(run: dict) -> Iterator[Figure]:
    raw = run["raw_values"]
    flows = {name: [sample for sample in samples if "dur" in sample]
             for name, samples in raw.items() if re.match(r"TCP (up|down)load", name)}
    flows = {name: samples for name, samples in flows.items() if samples}
    start = min(samples[0]["t"] - samples[0]["dur"] for samples in flows.values())
    end = max(samples[-1]["t"] for samples in flows.values())
    idle, settled = (0.0, start), (start + SETTLING_S, end)

    for direction in ("up", "down"):
        names = [name for name in sorted(flows) if name.startswith(f"TCP {direction}load")]
        if not names:
            continue
        yield f"{direction}_flows", len(names)
        yield f"{direction}_throughput_mbps", sum(throughput(flows[name], settled) for name in names)
        yield f"{direction}_throughput_from_start_mbps", sum(
            throughput(flows[name], (start, end)) for name in names)
        for name in names:
            first = flows[name][0]
            yield f"{name.replace(' ', '_').lower()}_start_s", first["t"] - first["dur"] - start
    sender = [sample for name in flows for sample in between(raw[name], settled)
              if "tcp_rtt" in sample]
    if sender:
        yield from distribution("sender_round_trip", [s["tcp_rtt"] for s in sender], "ms")
        yield from distribution("sender_window", [s["tcp_cwnd"] for s in sender], "segments")

    for series, name, factor in (("Ping (ms) ICMP", "ping", 1), ("VoIP", "voip_delay", 1),
                                 ("HTTP latency", "http_latency", 1000)):
        samples = raw.get(series, [])
        for when, window in (("idle", idle), ("settled", settled)):
            inside = between(samples, window)
            if inside:
                values = [sample["val"] * factor for sample in inside]
                yield from distribution(f"{name}_{when}", values, "ms")
            if inside and "seq" in inside[0]:
                sent = inside[-1]["seq"] - inside[0]["seq"] + 1
                yield f"{name}_{when}_lost", sent - len(inside)

    for direction, router, interface in shapers(run["metadata"]):
        before, after = (counters(interface[f"tc_stats_{when}"]) for when in ("pre", "post"))
        for name in ("bytes", "packets", "dropped"):
            yield f"{direction}_queue_{name}", after[name] - before[name]
        yield f"{direction}_queue_largest_packet_bytes", after["maxpacket"]
        samples = between(raw.get(f"qdisc_stats_{router}", []), settled)
        if samples:
            first, last = samples[0], samples[-1]
            grown = {name: last[name] - first[name]
                     for name in ("sent_bytes", "sent_pkts", "dropped", "t")}
            yield f"{direction}_wire_mbps", grown["sent_bytes"] * 8 / grown["t"] / 1e6
            offered = grown["sent_pkts"] + grown["dropped"]
            yield f"{direction}_loss_ratio", grown["dropped"] / offered
            delays = [sample["delay"] for sample in samples if "delay" in sample]
            yield from distribution(f"{direction}_queue_delay", delays, "ms")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["file", "figure", "value"])
    for path in map(Path, sys.argv[1:]):
        with gzip.open(path) as file:
            run = json.load(file)
        name = path.name.removesuffix(".flent.gz")
        print(f"{name}: {run['metadata']['TITLE']}", file=sys.stderr)
        for figure, value in figures(run):
            rows.writerow([name, figure, f"{value:.6g}" if value % 1 else int(value)])


if __name__ == "__main__":
    main()
