"""Simulates strategies that park on one core, and compares `launcher predict` with it.

    python simulate.py EXPERIMENT.json.xz [PREDICTIONS.jsonl]

The core is the one server of a queue in Ciw. An order visits it twice: when it is due and when its report comes.
A wake-up takes the time that the model of the saved prediction has for it, and serves all that has arrived for its
strategy. Nothing of a latency is fitted here: p50 follows from who waits for whom.
"""

import dataclasses
import json
import os
import random
import sys
from pathlib import Path

import ciw
import numpy

import cells

VISITS = 16_000
WARM_UP = 1_000
IDLE = "idle"

# The largest median error of the formula's share of the core, against the simulation.
MAX_ERROR = 0.1


class Core:
    """The state of the core: which strategy it served last, and until when."""

    def __init__(self, model, level, strategies):
        self.model, self.level, self.strategies = model, level, strategies
        self.last, self.until, self.busy_ns, self.wakes = None, -1.0, 0.0, 0

    def strategy_of(self, visit):
        """The strategy of a visit, drawn at its first use. A strategy of another group only wakes up."""
        if not hasattr(visit, "strategy"):
            visit.strategy = IDLE if visit.customer_class == IDLE else random.randrange(self.strategies)
        return visit.strategy

    def service_ns(self, visit, now):
        strategy, is_idle = self.strategy_of(visit), now > self.until + 1e-3
        took = 0.0 if strategy == IDLE else self.model.body_ns / cells.WAKES
        if is_idle or strategy != self.last or strategy == IDLE:
            self.wakes += strategy != IDLE
            took += self.model.wake_ns
            took += self.model.idle_ns / cells.WAKES if is_idle else 0.0
            took += self.model.switch_ns if self.level and strategy != self.last else 0.0
        self.last, self.until = strategy, now + took
        self.busy_ns += took
        return took

    def next_of(self, waiting, _):
        """The next visit of the strategy that runs, or else the one that has waited for longest."""
        own = (one for one in waiting if self.last != IDLE and self.strategy_of(one) == self.last)
        return next(own, waiting[0])


class Service(ciw.dists.Distribution):
    """The time that the core takes for a visit."""

    def __init__(self, core):
        self.core = core

    def __deepcopy__(self, _):
        return self

    def sample(self, t=None, ind=None):
        return self.core.service_ns(ind, t)


def simulate(model, cell, level, seed):
    """Returns median latency in nanoseconds, utilization and wake-ups an order. All times are nanoseconds.

    Visits arrive at random: venues answer after one to twenty milliseconds, far longer than a queue lasts. So the
    two visits of an order are two visits drawn at random.
    """
    ciw.seed(seed)
    core = Core(model, level, cell.strategies)
    # Other groups of the run wake up and find nothing to do.
    per_ns = {"order": cells.WAKES * cell.rate / 1e9, IDLE: cell.idle_wakes * cell.rate / 1e9}
    per_ns = {name: rate for name, rate in per_ns.items() if rate > 0}
    network = ciw.create_network(
        arrival_distributions={name: [ciw.dists.Exponential(rate)] for name, rate in per_ns.items()},
        service_distributions={name: [Service(core)] for name in per_ns},
        number_of_servers=[1],
        service_disciplines=[core.next_of],
    )
    queue = ciw.Simulation(network)
    until = VISITS / per_ns["order"]
    queue.simulate_until_max_time(until)
    served = [one for one in queue.get_all_records() if one.customer_class != IDLE]
    served.sort(key=lambda one: one.arrival_date)
    visits = numpy.array([one.exit_date - one.arrival_date for one in served][WARM_UP:])
    drawn = numpy.random.default_rng(seed)
    latency = drawn.permutation(visits) + drawn.permutation(visits)
    return float(numpy.median(latency)), core.busy_ns / until, core.wakes / (cell.rate * until / 1e9)


def errors(pairs):
    return [abs(mine / its - 1) for mine, its in pairs if mine and its]


def percent(pairs):
    found = errors(pairs)
    return f"{100 * numpy.median(found):.0f} % in {len(found)} cells"


def asked_later(path, model, delay_ns):
    """The cells that were measured after they were predicted from this calibration."""
    for line in Path(path).read_text().splitlines():
        record = json.loads(line)["held_out"][0]
        cell = record["measured"]["cell"]
        own = cells.Cell(
            part="asked",
            strategies=int(cell["strategies"]),
            rate=cell["rate_per_s"],
            idle_wakes=cell["idle_wakes"],
            switches=cell["switches"],
            cpu_ns=cell["cpu_ns"],
            p50_ns=cell["p50_ns"],
            delay_ns=delay_ns,
        )
        check(model, own, record["predicted"])
        yield own


def check(model, cell, predicted):
    """Fails if the program predicted something else from the same calibration."""
    for level, own in enumerate(predicted):
        for mine, its in ((model.cpu_ns(cell, level), own["cpu_ns"]), (model.p50_ns(cell, level), own["p50_ns"])):
            if (mine is None) != (its is None) or (mine and abs(mine / its - 1) > 0.02):
                sys.exit(f"{cell.strategies} at {cell.rate}/s: fitted anew {mine}, the program has {its}")


def show(cell, model, found):
    """Prints a cell: pairs are of threads and of processes."""
    us = lambda pair: " → ".join("–" if one is None else f"{one / 1e3:.1f}" for one in pair)
    share = lambda pair: " → ".join(f"{100 * one:.0f}" for one in pair)
    p50 = [[model.p50_ns(cell, level) for level in (0, 1)], [one[0] for one in found], cell.p50_ns]
    load = [model.utilization(cell, level) for level in (0, 1)], [one[1] for one in found], [cell.rate * ns / 1e9 for ns in cell.cpu_ns]
    wakes = model.wakes(cell) - cell.idle_wakes, found[0][2], cell.switches[0]
    columns = [f"{us(one):>15}" for one in p50] + [f"{share(one):>10}" for one in load] + [f"{one:5.2f}" for one in wakes]
    print(f"{cell.strategies:2} at {cell.rate:6,.0f}/s {cell.part:9}" + " ".join(columns), flush=True)


def main():
    saved = cells.read(sys.argv[1])
    fitted = [cell for cell in saved if cell.part in ("pilot", "fitted")]
    model = cells.fit(fitted)
    print(
        f"fitted to {len(fitted)} cells: {model.body_ns:.0f} ns + s × {model.wake_ns:.0f} ns + {model.idle_ns / 1e3:.1f} µs × idle share; "
        f"a process: + s × {model.switch_ns:.0f} ns × (1 − 1/N); s = 2 / (1 + {model.batching_ns / 1e3:.1f} µs × R/N)"
    )
    shown = [cell for cell in saved if cell.part == "asked"] or saved[1:]
    shown += asked_later(sys.argv[2], model, saved[0].delay_ns) if len(sys.argv) > 2 else []
    formula = model
    if os.environ.get("BROKEN") == "wakes":
        formula = dataclasses.replace(model, wake_ns=model.wake_ns * 2 / 3)
    print(
        f"thread → process      {'p50, µs: predict':>17} {'Ciw':>15} {'measured':>15} {'core, %':>10} {'Ciw':>10} {'measured':>10} "
        f"{'wakes':>5} {'Ciw':>5} {'measured':>5}"
    )
    rows = []
    for cell in sorted(shown, key=lambda cell: (cell.strategies, cell.rate)):
        found = [simulate(model, cell, level, 1) for level in (0, 1)]
        rows.append((cell, found))
        show(cell, formula, found)
    shares = []
    for name, level in (("threads", 0), ("processes", 1)):
        p50 = [(found[level][0], formula.p50_ns(cell, level), cell.p50_ns[level]) for cell, found in rows]
        load = [(found[level][1], formula.utilization(cell, level), cell.rate * cell.cpu_ns[level] / 1e9) for cell, found in rows]
        shares += [(ours, theirs) for theirs, ours, _ in load]
        for what, values in (("p50", p50), ("share of the core", load)):
            print(
                f"{name}, {what}: Ciw differs from predict by {percent([(a, b) for a, b, _ in values])}, "
                f"from what was measured by {percent([(a, c) for a, _, c in values])}"
            )
    added = lambda pair: None if None in pair else pair[1] - pair[0]
    print(
        "added to p50 by processes: Ciw differs from predict by "
        f"{percent([(added([one[0] for one in f]), added([formula.p50_ns(c, level) for level in (0, 1)])) for c, f in rows])}, from what was "
        f"measured by {percent([(added([one[0] for one in f]), added(c.p50_ns)) for c, f in rows])}"
    )
    if numpy.median(errors(shares)) > MAX_ERROR:
        sys.exit(f"the formula's share of the core differs from the simulation by {percent(shares)}")


if __name__ == "__main__":
    main()
