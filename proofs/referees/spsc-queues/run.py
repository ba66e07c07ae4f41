#!/usr/bin/env python3
"""Runs the benchmarks of rigtorp/SPSCQueue and drogalis/SPSC-Queue in turn, with our queue in both.

    spsc-queues/run.py PROGRAM... [--cores 0 1] [--rounds 5] [--budget 1800] [--out FOLDER]

Each PROGRAM is a build of their benchmark. Its name says which: `rigtorp`, or `drogalis-BYTES` with
the size of a message, as `drogalis-4` and `drogalis-64`. One run of a program measures all of its
queues, one after the other: messages per millisecond of a stream, and nanoseconds of a round trip.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import referee  # noqa: E402


def read_figures(text):
    """Returns `{(contender, kind): value}`: of drogalis the medians, of rigtorp the only figures."""
    figures, contender = {}, None
    for line in text.splitlines():
        name = re.fullmatch(r"([A-Za-z]\S*):\s*", line)
        value = re.search(r"(?:^|Median: )(\d+) (ops/ms|ns RTT)", line)
        if name:
            contender = name.group(1)
        elif value and contender:
            kind = "stream" if value.group(2) == "ops/ms" else "round trip"
            figures[contender, kind] = float(value.group(1))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs="+")
    parser.add_argument("--cores", type=int, nargs=2, default=[0, 1])
    parser.add_argument("--commits", default="rigtorp 1053918, drogalis c959bd4", help="the commits of the programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=1800.0, help="seconds in all")
    parser.add_argument("--out", type=Path, default=referee.ROOT / "target/referees/spsc-queues")
    options = parser.parse_args()
    machine = referee.describe_machine(options.cores)

    def run_program(_, name):
        program = next(program for program in options.programs if program.name == name)
        command = [program.resolve(), *map(str, options.cores)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        except subprocess.SubprocessError as why:
            print(f"{name}: {why!r}", file=sys.stderr)
            return None
        return read_figures(done.stdout)

    # A run is one figure for the harness, and all figures of its queues for the table.
    programs = {"programs": [program.name for program in options.programs]}
    runs = referee.measure_in_turn(programs, run_program, options.rounds, options.budget)
    rows = [
        (number, f"{program}, {kind}", contender, value)
        for number, _, program, figures in runs
        for (contender, kind), value in figures.items()
    ]
    streams = [row for _, row, _, _ in rows if row.endswith("stream")]
    program = {"name": "rigtorp/SPSCQueue and drogalis/SPSC-Queue", "commit": options.commits}
    referee.report(options.out, program, machine, rows, lambda row: "messages/ms" if row in streams else "ns", streams)


if __name__ == "__main__":
    main()
