"""Turns a record of throughput into opportunities to deliver, for Mahimahi.

The record has two columns: seconds, and the mean Mbit/s of the interval that
ends there. Each interval's bits are spread evenly over it; whenever 1 504 bytes
have come together, the millisecond is printed. What is left at the end of an
interval counts for the next. The first line only says where the record starts.

    python3 opportunities.py RECORD > TRACE
"""

import math
import sys
from fractions import Fraction

OPPORTUNITY_BITS = 1504 * 8


def opportunities(lines):
    """The millisecond of each opportunity, exactly and then rounded up."""
    rows = [tuple(map(Fraction, line.split())) for line in lines if line.strip()]
    start = before = rows[0][0]
    missing = Fraction(OPPORTUNITY_BITS)
    for end, megabits in rows[1:]:
        rate, at = megabits * 10**6, before
        while rate and missing <= rate * (end - at):
            at += missing / rate
            missing = Fraction(OPPORTUNITY_BITS)
            yield math.ceil((at - start) * 1000)
        missing -= rate * (end - at)
        before = end


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as record:
        for millis in opportunities(record):
            print(millis)
