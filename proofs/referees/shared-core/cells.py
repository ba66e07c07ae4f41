"""Reads the cells of saved predictions, and fits the model of `launcher predict` to them a second time.

The formula is that of data/results/studies/predict.md and statistics/src/shared_core.rs, written here again with numpy.
"""

import json
import lzma
from dataclasses import dataclass

import numpy

WAKES = 2.0
MAX_UTILIZATION = 0.95
IDLE_WAKES_PER_S = 100.0


@dataclass
class Cell:
    """What was measured with a number of strategies on a core: pairs are of threads and of processes."""

    part: str
    strategies: int
    rate: float
    idle_wakes: float
    switches: tuple
    cpu_ns: tuple
    p50_ns: tuple
    delay_ns: tuple


@dataclass
class Model:
    """The parameters of the formula."""

    batching_ns: float
    body_ns: float
    wake_ns: float
    idle_ns: float
    switch_ns: float
    latency: tuple = (0.0, 0.0, 0.0, 0.0)

    def wakes(self, cell):
        return WAKES / (1 + self.batching_ns / 1e9 * cell.rate / cell.strategies) + cell.idle_wakes

    def cpu_ns(self, cell, level):
        wakes = self.wakes(cell)
        thread = (self.body_ns + self.idle_ns + wakes * self.wake_ns) / (1 + cell.rate * self.idle_ns / 1e9)
        return thread + level * wakes * self.switch_ns * (1 - 1 / cell.strategies)

    def utilization(self, cell, level):
        return cell.rate * self.cpu_ns(cell, level) / 1e9

    def factors(self, cell):
        utilization, others = self.utilization(cell, 0), cell.strategies - 1
        if utilization > MAX_UTILIZATION:
            return None
        return numpy.array([1.0, utilization * others**0.5, utilization**4 * others])

    def p50_ns(self, cell, level):
        """The median latency in nanoseconds; None near the ceiling."""
        factors = self.factors(cell)
        if factors is None:
            return None
        e, f, h, k = self.latency
        return factors @ [e, f, h] * (1 + level * k * factors[1])


def read(path):
    """Returns the usable cells of a saved prediction."""
    with lzma.open(path) as file:
        record = json.load(file)
    low, high = record["base"]["delay"].removeprefix("uniform:").split("..")
    delay_ns = tuple(int(text.removesuffix("ms")) * 1e6 for text in (low, high))
    found = (cell_of(row, delay_ns) for row in record["rows"] if row.get("figures"))
    return [cell for cell in found if cell is not None]


def cell_of(row, delay_ns):
    figures, values = row["figures"], row["values"]
    levels = figures["levels"]
    costs = {cost["isolation"]: cost for cost in figures["costs"]}
    p50 = lambda level: [
        one["measures"]["rt_venue_from_due"]["p50_ns"] for one in levels if (one["level"] == "thread") == (level == 0)
    ]
    strategies, rate = int(values["strategies"]), figures["offered_per_s"]
    orders_each = figures["returned"] / figures["strategies"]
    idle_wakes = IDLE_WAKES_PER_S * (len(levels) - 1) * strategies / rate
    pair = [costs["thread"], next(cost for name, cost in costs.items() if name != "thread")]
    switches = tuple(
        max(0.01, (cost["voluntary_switches"] + cost["involuntary_switches"]) / orders_each - idle_wakes) for cost in pair
    )
    return Cell(
        part=values["part"],
        strategies=strategies,
        rate=rate,
        idle_wakes=idle_wakes,
        switches=switches,
        cpu_ns=tuple(cost["cpu_s_per_million"] * 1e3 for cost in pair),
        p50_ns=(numpy.mean(p50(0)), p50(1)[0]),
        delay_ns=delay_ns,
    )


def least_squares(factors, values, weights):
    """Least squares with no parameter below 0: each parameter in turn."""
    rows, values = factors * weights[:, None], values * weights
    products, sums = rows.T @ rows, rows.T @ values
    found = numpy.zeros(factors.shape[1])
    for _ in range(1_500):
        for at in range(len(found)):
            if products[at, at] > 0:
                found[at] = max(0.0, found[at] + (sums[at] - products[at] @ found) / products[at, at])
    return found


def least_deviations(factors, sums, values):
    """Least relative errors, not squared: equations lose weight by their errors."""
    weights = 1 / values
    for _ in range(20):
        found = least_squares(factors, sums, weights)
        error = numpy.maximum(0.02, numpy.abs((factors @ found - sums) / values))
        weights = numpy.sqrt(0.02 / error) / values
    return least_squares(factors, sums, weights)


def fit(cells):
    """Fits the model to cells."""
    both = [(cell, level) for cell in cells for level in (0, 1)]
    batching_ns = float(
        numpy.median([max(0, WAKES / c.switches[l] - 1) * c.strategies / c.rate * 1e9 for c, l in both])
    )
    measured = numpy.array([cell.cpu_ns[level] for cell, level in both])

    def with_idle(idle_ns):
        model = Model(batching_ns, 0, 0, idle_ns, 0)
        share = numpy.array([1 + cell.rate * idle_ns / 1e9 for cell, _ in both])
        wakes = numpy.array([model.wakes(cell) for cell, _ in both])
        switched = numpy.array([level * (1 - 1 / cell.strategies) for cell, level in both])
        factors = numpy.stack([1 / share, wakes / share, wakes * switched], axis=1)
        sums = measured - idle_ns / share
        found = least_squares(factors, sums, 1 / measured)
        return numpy.sum(((factors @ found - sums) / measured) ** 2), Model(batching_ns, *found[:2], idle_ns, found[2])

    # Finer than the search of the program, which ends at about the same place.
    tried = [0.0, *numpy.geomspace(100, 180_000, 60)]
    at = min(range(len(tried)), key=lambda at: with_idle(tried[at])[0])
    near = numpy.linspace(tried[max(at - 1, 0)], tried[min(at + 1, len(tried) - 1)], 40)
    model = min((with_idle(idle_ns) for idle_ns in near), key=lambda found: found[0])[1]
    kept = [(factors, cell) for cell in cells if (factors := model.factors(cell)) is not None]
    factors = numpy.array([one for one, _ in kept])
    threads = numpy.array([cell.p50_ns[0] for _, cell in kept])
    ratios = numpy.array([cell.p50_ns[1] for _, cell in kept]) / threads
    (k,) = least_deviations(factors[:, 1:2], ratios - 1, ratios)
    model.latency = (*least_deviations(factors, threads, threads), k)
    return model
