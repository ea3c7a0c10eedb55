"""Page-load times from flows.csv: a page begins when nothing of the one before is missing."""

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
    begun, ended, count = None, 0.0, 0
    for start, end in [*sorted(found), (float("inf"), 0.0)]:
        if begun is None or start > ended:
            if count == OBJECTS and ended < float("inf"):
                pages[way].append(ended - begun)
            begun, ended, count = start, 0.0, 0
        ended, count = max(ended, end), count + 1

for way, times in pages.items():
    low, median, high = statistics.quantiles(times, n=4)
    print(f"{way}: {len(times)} pages, median {median:.2f} s, quartiles {low:.2f} and {high:.2f} s")
