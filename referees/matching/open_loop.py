"""Prints open-loop.csv as a table: for each engine and rate, the scenario with the largest p99.

    open_loop.py open-loop.csv [MACHINE]

Each figure is the median over the rounds; an engine that reached less than 97 % of a rate has no figure there.
"""

import csv
import statistics
import sys
from collections import defaultdict

KEPT = 0.97


def main(path, machine=""):
    cells = defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["p50_ns"]:
                cells[row["engine"], float(row["million_per_s"]), row["scenario"]].append(row)
            else:
                cells[row["engine"], float(row["million_per_s"]), row["scenario"]].append(None)
    engines = list(dict.fromkeys(engine for engine, _, _ in cells))
    rates = sorted({rate for _, rate, _ in cells})
    scenarios = list(dict.fromkeys(scenario for _, _, scenario in cells))
    if machine:
        print(machine)
        print()
    print("Nanoseconds from when a message was due until its reports were drained: p50 / p99 / p99.9 of the scenario with the largest")
    print("p99, medians of the rounds; million messages a second.\n")
    print("| engine | " + " | ".join(f"{rate:g} M/s" for rate in rates) + " | rounds |")
    print("|---|" + "---:|" * (len(rates) + 1))
    for engine in engines:
        words, rounds = [], set()
        for rate in rates:
            worst = None
            for scenario in scenarios:
                runs = cells.get((engine, rate, scenario), [])
                rounds.add(len(runs))
                kept = [run for run in runs if run and float(run["reached_per_s"]) >= KEPT * rate * 1e6]
                if not runs or len(kept) * 2 <= len(runs):
                    worst = None
                    break
                figures = [statistics.median(float(run[name]) for run in kept) for name in ("p50_ns", "p99_ns", "p999_ns")]
                worst = max(worst or figures, figures, key=lambda figure: figure[1])
            words.append(" / ".join(f"{figure:,.0f}" for figure in worst) if worst else "not reached")
        print(f"| {engine} | " + " | ".join(words) + f" | {min(rounds)}–{max(rounds)} |")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
