"""Writes the figures of runs for programs that follow them over commits.

    python3 figures.py RUNS OUT

RUNS has a folder a run. OUT/benchmark.json is for github-action-benchmark (customSmallerIsBetter):
medians over the runs. OUT/otava.csv has a line a run, for Apache Otava (otava.yaml is next to it).
"""

import csv
import json
import sys
from pathlib import Path
from statistics import median

FIGURES = [("rt_venue_from_due", "p50_ns"), ("rt_venue_from_due", "p99_ns"), ("rt_venue", "p50_ns")]


def name_of(measure, percentile):
    return f"{measure} {percentile.removesuffix('_ns')}"


def benchmark(runs):
    """A result for each figure: the median, with its lowest and highest run."""
    found = []
    for measure, percentile in FIGURES:
        values = [run[measure][percentile] for run in runs if run[measure].get(percentile) is not None]
        if values:
            spread = f"{min(values)} to {max(values)}"
            extra = f"{len(values)} runs, {sum(run['fit_for_latency'] for run in runs)} fit for latency claims"
            name = name_of(measure, percentile)
            found.append({"name": name, "unit": "ns", "value": median(values), "range": spread, "extra": extra})
    return found


def otava_rows(runs):
    """A line a run: time, commit, technique, level, then the figures. Otava reads no empty ones."""
    for run in runs:
        facts = {"time": run["started"], "commit": run["build"]["commit"], "technique": run["technique"]}
        values = {f"{measure}_{percentile}": run[measure].get(percentile) for measure, percentile in FIGURES}
        if None not in values.values():
            yield facts | {"isolation": run["isolation"]} | values


def main():
    runs_folder, out = map(Path, sys.argv[1:3])
    files = sorted(runs_folder.glob("*/summary.json"))
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    runs = [run for run in runs if run["valid"]]
    if not runs:
        sys.exit(f"no valid run below {runs_folder}")
    (out / "benchmark.json").write_text(json.dumps(benchmark(runs), indent=1) + "\n", encoding="utf-8")
    rows = list(otava_rows(runs))
    if len(rows) < len(runs):
        print(f"otava.csv: {len(runs) - len(rows)} of {len(runs)} runs have too few orders for a p99", file=sys.stderr)
    if not rows:
        return
    file = out / "otava.csv"
    is_new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
