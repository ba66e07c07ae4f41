#!/usr/bin/env python3
"""Runs the program `benchmarks` of max0x7ba/atomic_queue with our queue in it, in turn with itself.

    atomic-queue/run.py PROGRAM [--cores 0 1] [--rounds 5] [--messages 1000000] [--out FOLDER]

PROGRAM is their program, built with the contender of this folder. One run measures all queues: the
round trip of a message between two cores, and the throughput with up to as many threads as cores.
Each figure is the best of the program's three runs; the table has medians over the rounds.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import referee  # noqa: E402

# Bits of their variable AQB, which leave a part out.
NO_PING_PONG, NO_THROUGHPUT = 2, 4


def read_figures(text):
    """Returns `{(row, contender): value}`: round trips in nanoseconds, rates in messages a second."""
    figures = {}
    for name, seconds in re.findall(r"^ *(\S+): ([0-9.]+) sec/round-trip$", text, re.MULTILINE):
        figures["ping-pong", name] = float(seconds) * 1e9
    rate = r"^ *(\S+), *(\d+),([is]): *([0-9,.']+) msg/sec$"
    for name, threads, placement, value in re.findall(rate, text, re.MULTILINE):
        row = f"throughput, {threads} and {threads} threads, {'in turn' if placement == 'i' else 'in sequence'}"
        figures[row, name] = float(re.sub(r"[,.']", "", value))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--cores", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--commit", default="1377723", help="the commit of the program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of a run")
    parser.add_argument("--no-throughput", action="store_true", help="only round trips")
    parser.add_argument("--budget", type=float, default=1800.0, help="seconds in all")
    parser.add_argument("--out", type=Path, default=referee.ROOT / "target/referees/atomic-queue")
    options = parser.parse_args()
    machine = referee.describe_machine(options.cores)

    def run_part(_, part):
        left_out = NO_THROUGHPUT if part == "ping-pong" else NO_PING_PONG
        environment = {**os.environ, "AQN": str(options.messages), "AQB": str(left_out), "LC_ALL": "C"}
        command = ["taskset", "-c", ",".join(map(str, options.cores)), options.program.resolve()]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
        except subprocess.SubprocessError as why:
            print(f"{part}: {why!r}", file=sys.stderr)
            return None
        # Their own check of every message: a queue that loses one is no contender.
        if done.stderr.strip():
            print(done.stderr, file=sys.stderr)
        return read_figures(done.stdout)

    parts = {"parts": ["ping-pong"] + ([] if options.no_throughput else ["throughput"])}
    runs = referee.measure_in_turn(parts, run_part, options.rounds, options.budget)
    rows = [
        (number, row, contender, value)
        for number, _, _, figures in runs
        for (row, contender), value in figures.items()
    ]
    rates = {row for _, row, _, _ in rows if row.startswith("throughput")}
    program = {"name": "max0x7ba/atomic_queue benchmarks", "commit": options.commit}
    referee.report(options.out, program, machine, rows, lambda row: "messages/s" if row in rates else "ns", rates)


if __name__ == "__main__":
    main()
