"""Prints open-loop.csv as a table: for each engine and rate, the runs that kept up and their quantiles.

    open_loop.py open-loop.csv [MACHINE]

A run kept up if the p50 of its window in the middle is at most a millisecond; else its queue grew until the end.
"""

import csv
import statistics
import sys
from collections import defaultdict

BEHIND_NS = 1e6
TABLES = (
    ("The window in the middle, of windows of 10,000 messages", ("window_p50_ns", "window_p99_ns", "window_p999_ns")),
    ("All messages, with every stop of the machine", ("p50_ns", "p99_ns", "p999_ns")),
)


def main(path, machine=""):
    runs = defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            runs[row["engine"], float(row["million_per_s"])].append(row)
    engines = list(dict.fromkeys(engine for engine, _ in runs))
    rates = sorted({rate for _, rate in runs})
    if machine:
        print(machine)
        print()
    print("Nanoseconds from when a message was due until its reports were drained: p50 / p99 / p99.9, medians over the runs (all scenarios")
    print("and rounds) that kept up, and their number; million messages a second.")
    for title, names in TABLES:
        print(f"\n{title}:\n")
        print("| engine | " + " | ".join(f"{rate:g} M/s" for rate in rates) + " |")
        print("|---|" + "---:|" * len(rates))
        for engine in engines:
            print(f"| {engine} | " + " | ".join(cell(runs[engine, rate], names) for rate in rates) + " |")


def cell(runs, names):
    kept = [run for run in runs if run["p50_ns"] and float(run["window_p50_ns"]) <= BEHIND_NS]
    if not kept:
        return f"0 of {len(runs)}"
    figures = [statistics.median(float(run[name]) for run in kept) for name in names]
    return " / ".join(f"{figure:,.0f}" for figure in figures) + f" ({len(kept)} of {len(runs)})"


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
