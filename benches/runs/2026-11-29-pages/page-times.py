"""Page-load times from flows.csv: one page after the other, of so many objects."""

import collections
import csv
import statistics
import sys

OBJECTS = 31

objects = collections.defaultdict(list)
with open(sys.argv[1], encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["traffic"] == "reader":
            end = float(row["end_s"]) if row["end_s"] else float("inf")
            objects[row["way"], row["seed"]].append((float(row["start_s"]), end))

pages = collections.defaultdict(list)
for (way, _), found in objects.items():
    found.sort()
    for first in range(0, len(found) - OBJECTS + 1, OBJECTS):
        page = found[first : first + OBJECTS]
        pages[way].append(max(end for _, end in page) - page[0][0])

for way, times in pages.items():
    low, median, high = statistics.quantiles(times, n=4)
    print(f"{way}: {len(times)} pages, median {median:.2f} s, quartiles {low:.2f} and {high:.2f} s")
