"""Reads saved runs and computes figures of them. A figure is a list of numbers: a value, or a value
and the ends of its interval; times are in nanoseconds, memory in bytes, ratios as they are."""

import csv
import json
import lzma
import re
from functools import cache
from statistics import median

from statistics_of_pairs import mean_interval, mean_ratio, placements, pooled_ratio, ratio_of, shift_of

MEASURE = "rt_venue_from_due"
UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "KiB": 1024.0, "MiB": 1024.0**2}
NUMBER = re.compile(r"(?<![\w.])[+\-−]?\d+(?:,\d{3})*(?:\.\d+)?[kM]?(?![\d])")


def number_of(text):
    """A printed number, and half of its last digit's unit."""
    scale = {"k": 1e3, "M": 1e6}.get(text[-1], 1.0)
    digits = text.rstrip("kM").replace(",", "").replace("−", "-")
    decimals = len(digits.partition(".")[2])
    return float(digits) * scale, 0.5 * scale * 10.0**-decimals


@cache
def documents(path):
    """The JSON documents of a file, one after the other; of a CSV, rows as those of an experiment."""
    if path.suffix == ".csv":
        rows = csv.DictReader(path.open(encoding="utf-8", newline=""))
        return [{"rows": [experiment_row(row) for row in rows]}]
    opened = lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8")
    with opened as file:
        text, found, at = file.read(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = json.JSONDecoder().raw_decode(text, at)
        found.append(document)
    return found


def experiment_row(row):
    """A line of a CSV as a row of an experiment."""
    numbers = {key: float(value) for key, value in row.items() if key.endswith("_ns") and value}
    measures = {f"measures.{key[:-7]}.{key[-6:]}": value for key, value in numbers.items() if key[-7:-5] == "_p"}
    figures = {**numbers, **measures, "valid": row["valid"] == "true", "complete": row["complete"] == "true"}
    return {"name": row["point"], "repeat": int(row["repeat"]), "figures": figures}


class Runs:
    """The rows of the last experiment of a file, or its text."""

    def __init__(self, path):
        self.path = path

    def rows(self):
        document = documents(self.path)[-1]
        return [row for row in document["rows"] if row["figures"]]

    # Bills whose levels take turns in the same runs.

    def at_level(self, level, count, of):
        """By repeat: a value of a level's usage in the runs with `count` strategies of it."""
        name, again = re.fullmatch(r"(.*?)(?::(\d+))?", level).groups()
        found = {}
        for row in self.rows():
            for usage in row["figures"]["usage"]:
                is_wanted = usage["level"] == name and usage["again"] == int(again or 0)
                if is_wanted and len(usage["strategies"]) == int(count):
                    found[row["repeat"]] = of(usage)
        if len(found) < 2:
            raise ValueError(f"{len(found)} runs of {level} with {count}")
        return found

    def turns(self, level, count, percentile):
        """Ratio to the first threads of the same runs, over the repeats."""
        return mean_ratio([*self.at_level(level, count, lambda usage: usage["turns"][percentile]["value"]).values()])

    def pooled(self, level, percentile, *counts):
        """The same over the runs with several numbers of strategies: each number weighs the same."""
        value = lambda usage: usage["turns"][percentile]["value"]
        return pooled_ratio([[*self.at_level(level, count, value).values()] for count in counts])

    def usage(self, level, count, key):
        """CPU time of an order, or events of a strategy a second: mean over the repeats."""
        return mean_interval([*self.at_level(level, count, lambda usage: usage_of(usage, key)).values()])[:1]

    def added(self, level, count, key):
        """The same, more than the first threads of the same runs, with its interval."""
        own, threads = (self.at_level(name, count, lambda usage: usage_of(usage, key)) for name in (level, "thread"))
        return mean_interval([own[repeat] - threads[repeat] for repeat in own])

    def time(self, level, count, percentile):
        """Median over the repeats of a percentile from due."""
        found = []
        for row in self.rows():
            for part in row["figures"]["levels"]:
                if part["level"] == level and part["again"] == 0 and part["strategies"] == int(count):
                    found.append(part["measures"][MEASURE][f"{percentile}_ns"])
        return [median(found)]

    def cost(self, level, count, *keys):
        """Median over the repeats of what a process of a level takes: memory, its sum, or its start."""
        costs = [cost for row in self.rows() for cost in row["figures"]["costs"]]
        is_wanted = lambda cost: cost["isolation"] == level and cost["strategies"] == int(count)
        return [median([sum(cost[key] for key in keys) for cost in costs if is_wanted(cost)])]

    # Pairs: disturbances, and two settings.

    def pairs(self, *names):
        """Pairs of runs of one schedule under two names: all usable ones, and those whose cores stayed."""
        first, second = ({row["repeat"]: row["figures"] for row in self.rows() if row["name"] == name} for name in names)
        pairs = [(first[repeat], second[repeat]) for repeat in first if repeat in second]
        usable = [pair for pair in pairs if all(run["valid"] and run["complete"] for run in pair)]
        floors = lambda run: sorted([run["floor_ns"], run["floor_after_ns"]])
        return usable, [pair for pair in usable if all(floors(run)[1] <= 1.25 * floors(run)[0] for run in pair)]

    def samples(self, names, key, of="deciding"):
        """A figure of the pairs that decide, or of all, with the placements of their cores."""
        usable, kept = self.pairs(*names)
        decide = of == "deciding" and len(kept) >= 5 and 2 * len(kept) >= len(usable)
        runs = [run for side in zip(*(kept if decide else usable)) for run in side]
        floors = [(run["floor_ns"] + run["floor_after_ns"]) / 2 for run in runs]
        places = placements(floors) if decide else [0] * len(runs)
        samples = [(run[key], place) for run, place in zip(runs, places)]
        return samples[: len(samples) // 2], samples[len(samples) // 2 :]

    def storm(self, level, fault, percentile, measure=MEASURE):
        """Ratio to calm runs of the same level, within placements."""
        return ratio_of(*self.samples(storm_names(level, fault), f"measures.{measure}.{percentile}_ns"))

    def compared(self, a, b, percentile, measure=MEASURE, of="deciding"):
        """Ratio of B to A, and the number of pairs."""
        sides = self.samples((f"A: {a}", f"B: {b}"), f"measures.{measure}.{percentile}_ns", of)
        return [*ratio_of(*sides), len(sides[0])]

    def shifted(self, a, b, percentile, measure=MEASURE):
        """Difference of B and A, and the median of A."""
        sides = self.samples((f"A: {a}", f"B: {b}"), f"measures.{measure}.{percentile}_ns")
        return [*shift_of(*sides), median(value for value, _ in sides[0])]

    def storm_median(self, level, fault, percentile):
        """Ratio of the medians: of pairs that are too few for an interval."""
        calm, storm = zip(*self.pairs(*storm_names(level, fault))[1])
        middle = lambda runs: median([run[f"measures.{MEASURE}.{percentile}_ns"] for run in runs])
        return [middle(storm) / middle(calm)]

    # Searches of the highest rate, and faults.

    def searches(self, level, count):
        """By search: the highest rate that was held in most of its runs."""
        name, found = f"isolation={level} strategies={count}", []
        for document in documents(self.path):
            tried = [row["figures"] for row in document["rows"] if row["figures"] and row["name"] == name]
            found.append(max(rate["rate_per_s"] for rate in tried if rate["held"]))
        return found

    def held(self, level, count, search=None):
        """The median of these rates, or the rate of one search."""
        found = self.searches(level, count)
        return [median(found) if search is None else found[int(search)]]

    def held_ratio(self, level, count):
        """Their ratio to the rates of threads in the same searches, with its interval."""
        own, threads = self.searches(level, count), self.searches("thread", count)
        return mean_ratio([rate / of_threads for rate, of_threads in zip(own, threads)])

    def counted(self, level, technique="all"):
        """Number of cells contained, of all cells, and of those that were late."""
        found = self.contained(level, technique)
        return [found[0], sum(found), found[1]]

    def contained(self, level, technique="all"):
        """Number of cells contained, late and not contained; a repeated cell replaces the earlier one."""
        cells = {}
        for path in [self.path, *sorted(self.path.parent.glob(f"{self.path.stem}-rerun.json"))]:
            for row in documents(path)[0]["rows"]:
                cells[row["isolation"], row["technique"], row["fault"]] = row["contained"]
        found = [0, 0, 0]
        for (isolation, transport, fault), answer in cells.items():
            if isolation == level and technique in ("all", transport):
                # A run with a flood in a ring that several write is not valid any more.
                is_shared_flood = fault == "flood" and transport in ("array-queue", "linked", "channel", "pipe")
                found[["yes", "waited", "no"].index("no" if is_shared_flood else answer)] += 1
        return found

    def runs_contained(self, level, fault=None):
        """Number of runs that a level contained, of those in which the fault came."""
        rows = [row for row in documents(self.path)[0]["rows"] if row["isolation"] == level]
        came = [row["contained"] for row in rows if fault in (None, row["fault"]) and row["contained"] != "nothing"]
        return [came.count("yes"), len(came)]

    # Benchmarks of others, and of the seeds.

    def contender(self, row, name):
        """Median over the rounds of a contender of a referee, in ns."""
        lines = csv.DictReader(self.path.open(encoding="utf-8", newline=""))
        return [median(float(line["value"]) for line in lines if (line["row"], line["contender"]) == (row, name))]

    def faster(self, row, name, other):
        """How many times as long the other contender takes."""
        return [self.contender(row, other)[0] / self.contender(row, name)[0]]

    def published(self, name):
        """A row of a seed document, as measured here."""
        row = next(row for row in documents(self.path)[0]["rows"] if row["name"] == name)
        return [row["ours"] * UNITS[row["unit"]]]

    # What was kept as text only.

    def line(self, unit, *beginning):
        """The numbers of the line that begins so, in its unit; all such lines are equal."""
        lines = [" ".join(line.split()) for line in self.path.read_text(encoding="utf-8").splitlines()]
        found = {line for line in lines if line.startswith(" ".join(beginning))}
        if len(found) != 1:
            raise ValueError(f"{len(found)} lines of {self.path.name} begin with {' '.join(beginning)!r}")
        return [number_of(number)[0] * UNITS.get(unit, 1.0) for number in NUMBER.findall(found.pop())]


def storm_names(level, fault):
    """The names of calm and of disturbed runs."""
    return [f"{name} against spsc-mux under {level}" for name in ("calm", fault)]


def usage_of(usage, key):
    total = {name: sum(strategy[name] for strategy in usage["strategies"]) for name in usage["strategies"][0]}
    return total["cpu_ns"] / total["returned"] if key == "cpu" else total[key] * 1e9 / total["running_ns"]
