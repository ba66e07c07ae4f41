"""What the referees' `run.py` programs share: rounds in turn, the machine, the table and the files.

A referee is somebody else's program. A *row* is one of its tests, a *contender* one of the queues
in it. `measure_in_turn` runs every contender once a round; `report` prints the medians and writes
`runs.csv`, `result.json` and `table.md`.
"""

import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def git(*arguments, folder=ROOT):
    """Returns the output of a git command, or "unknown" without git or repository."""
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def describe_machine(cores):
    """Returns what identifies a measurement: CPU, kernel, the cores used, date, load, our commit."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    changed = " with changes" if git("status", "--porcelain", "-uno") else ""
    return {
        "cpu": names[0] if names else platform.machine(),
        "cpus": os.cpu_count(),
        "cores": list(cores),
        "kernel": platform.release(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load": os.getloadavg()[0],
        "bulkhead": git("rev-parse", "--short=8", "HEAD") + changed,
    }


def measure_in_turn(rows, measure, rounds, budget_s):
    """Measures every contender of every row once a round, until the rounds or the seconds are over.

    `rows` maps a row to its contenders; `measure(row, contender)` returns a number or `None`. The
    contender that begins changes from round to round. Returns `[(round, row, contender, value)]`.
    """
    began, slowest, runs = time.monotonic(), 0.0, []
    for number in range(rounds):
        round_began = time.monotonic()
        if round_began - began + slowest > budget_s:
            print(f"stopped after {number} of {rounds} rounds: {budget_s} s do not suffice", flush=True)
            break
        for row, contenders in rows.items():
            first = number % len(contenders)
            for contender in contenders[first:] + contenders[:first]:
                value = measure(row, contender)
                if value is None:
                    print(f"{row}, {contender}: no figure in round {number + 1}", flush=True)
                else:
                    runs.append((number + 1, row, contender, value))
        slowest = max(slowest, time.monotonic() - round_began)
    return runs


def quartiles(values):
    """Returns the lower quartile, the median and the upper quartile of some numbers."""
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def is_ours(contender):
    """Returns `True` if the contender is bulkhead's, by its name."""
    return "bulkhead" in contender


def summarize(runs, higher_is_better=()):
    """Returns for each row its contenders with quartiles, best first, and our ratio.

    The ratio compares our best median with the best median of the others: 1.0 and more means that
    ours is as fast or faster. `higher_is_better` names the rows that are rates.
    """
    values = {}
    for _, row, contender, value in runs:
        values.setdefault(row, {}).setdefault(contender, []).append(value)
    summary = {}
    for row, contenders in values.items():
        better = -1 if row in higher_is_better else 1
        spread = {name: quartiles(numbers) for name, numbers in contenders.items()}
        order = sorted(spread, key=lambda name: better * spread[name][1])
        best = {ours: next((name for name in order if is_ours(name) == ours), None) for ours in (True, False)}
        ratio = None
        if best[True] and best[False]:
            ratio = (spread[best[False]][1] / spread[best[True]][1]) ** better
        summary[row] = {
            "contenders": {name: {"quartiles": spread[name], "runs": len(contenders[name])} for name in order},
            "best_of_ours": best[True],
            "best_of_the_others": best[False],
            "ratio": ratio,
        }
    return summary


def text_table(summary, unit):
    """Returns a Markdown table for each row of a summary."""
    lines = []
    for row, result in summary.items():
        ratio = "" if result["ratio"] is None else f"; ours is {result['ratio']:.2f} × as good as the best other"
        lines += ["", f"**{row}**{ratio}", "", f"| contender | {unit(row)} | quartiles | runs |", "|---|---:|---:|---:|"]
        for name, entry in result["contenders"].items():
            low, middle, high = entry["quartiles"]
            shown = f"**{name}**" if is_ours(name) else name
            lines.append(f"| {shown} | {middle:.4g} | {low:.4g}–{high:.4g} | {entry['runs']} |")
    return "\n".join(lines) + "\n"


def report(out, referee, machine, runs, unit, higher_is_better=()):
    """Prints the table of some runs and writes `runs.csv`, `result.json` and `table.md` into `out`.

    `referee` is a dictionary with the program's name and commit; `unit(row)` the unit of a row.
    """
    out.mkdir(parents=True, exist_ok=True)
    summary = summarize(runs, higher_is_better)
    head = f"{referee['name']} {referee['commit']}, bulkhead {machine['bulkhead']}; {machine['cpu']}, "
    head += f"cores {', '.join(map(str, machine['cores']))} of {machine['cpus']}, Linux {machine['kernel']}; "
    head += f"{machine['date']}, load {machine['load']:.1f} at the start. Medians of the rounds."
    table = head + "\n" + text_table(summary, unit)
    print(table)
    (out / "table.md").write_text(table, encoding="utf-8")
    with open(out / "runs.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "row", "contender", "value", "unit"])
        writer.writerows([*run, unit(run[1])] for run in runs)
    document = {"schema": "bulkhead.referee/1", "referee": referee, "machine": machine, "rows": summary}
    (out / "result.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {out}")
