#!/usr/bin/env python3
"""What the receiver of aiortc (1.16.0) asks for, on paths that any program can compute.

    pip install aiortc==1.16.0
    python3 reference.py > aiortc.json

Packets of a call come through a queue of a path whose rate changes, with noise and losses
from a generator of numbers that `beside_aiortc.rs` has, too. All is in whole microseconds.
"""

import json

from aiortc.rate import RemoteBitrateEstimator

# For each path: seconds and kbit/s of its parts, what is sent in kbit/s, the most noise of an
# arrival in microseconds, and how many of a thousand packets are lost.
PATHS = [
    ("room", [(60, 4000)], [(60, 800)], 0, 0),
    ("too fast", [(60, 1000)], [(10, 500), (20, 1100), (30, 900)], 0, 0),
    ("noise", [(60, 1500)], [(30, 700), (30, 1600)], 9000, 0),
    ("steps", [(20, 2500), (20, 600), (20, 1000)], [(25, 900), (35, 650)], 2000, 0),
    ("losses", [(60, 1000)], [(60, 950)], 4000, 50),
    ("fits and starts", [(60, 1200)], [(5, 300), (5, 1500)] * 6, 1000, 10),
]


def part(parts, at_us):
    for seconds, rate in parts:
        at_us -= seconds * 1_000_000
        if at_us < 0:
            return rate
    return None


def main():
    found = []
    for name, rates, sends, noise_us, lost in PATHS:
        receiver, asked = RemoteBitrateEstimator(), []
        number, free_us, last_us = 1, 0, 0
        frame = 0
        while (kbits := part(sends, frame * 1_000_000 // 30)) is not None:
            at_us = frame * 1_000_000 // 30
            left = kbits * 1000 // 8 // 30
            while left > 0:
                size = min(left, 1200)
                left -= size
                number = (number * 1664525 + 1013904223) % 2**32
                takes_us = size * 8 * 1000 // part(rates, at_us)
                free_us = max(free_us, at_us) + takes_us
                arrives_us = free_us + 20_000
                if noise_us:
                    arrives_us += (number >> 8) % noise_us
                # Nothing overtakes on the path.
                last_us = max(last_us, arrives_us)
                if (number >> 4) % 1000 >= lost:
                    stamp = (((at_us << 18) + 500_000) // 1_000_000) & 0xFFFFFF
                    ask = receiver.add(last_us // 1000, stamp, size, 1)
                    if ask is not None:
                        asked.append([last_us, ask[0]])
                # As a pacer spaces them.
                at_us += size * 8 * 1000 // (kbits * 5 // 2)
            frame += 1
        # Some of them tell of all: each depends on those before it.
        step = 1 + len(asked) // 200
        found.append({"path": name, "rates": rates, "sends": sends, "noise_us": noise_us,
                      "lost": lost, "count": len(asked), "step": step, "asked": asked[::step]})
    print("[" + ",\n".join(json.dumps(it, separators=(",", ":")) for it in found) + "]")


main()
