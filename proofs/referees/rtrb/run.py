#!/usr/bin/env python3
"""Runs the benches of mgeier/rtrb's `performance-comparison`, with our contenders, in turn.

    rtrb/run.py PROGRAMS [CORE CORE] [--rounds 5] [--rows REGEX] [--seconds 1] [--budget 3000] [--out FOLDER]

PROGRAMS is a folder with their three bench programs (push_pop, const_push_pop, chunks), built with
the contenders of this folder. CORE CORE are the two cores that the program's threads run on.
Every round measures each contender of each row in a process of its own.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import referee  # noqa: E402

BENCHES = ("push_pop", "const_push_pop", "chunks")
# The queue of these has room for all items: memory for a measurement of a tenth is enough.
ALL_IN_MEMORY = ("large", "chunks-large")


def list_rows(programs):
    """Returns `{row: {contender: (program, id)}}`; an id is GROUP/CONTENDER, with /SIZE if any."""
    rows = {}
    for bench in BENCHES:
        listed = subprocess.run([programs / bench, "--bench", "--list"], capture_output=True, text=True, check=True)
        for full in re.findall(r"^(\S+): benchmark$", listed.stdout, re.MULTILINE):
            group, contender, *size = full.split("/")
            rows.setdefault("/".join([group, *size]), {})[contender] = (programs / bench, full)
    return rows


def measure(program, full, cores, seconds):
    """Returns the median time of an item (ns) of one process, or `None` if it failed."""
    if full.split("/")[0] in ALL_IN_MEMORY:
        seconds /= 10
    home = Path(tempfile.mkdtemp(prefix="referee-rtrb-"))
    command = ["taskset", "-c", ",".join(map(str, cores)), program, "--bench", "--exact", full, "--noplot"]
    command += ["--warm-up-time", str(seconds / 4), "--measurement-time", str(seconds), "--sample-size", "20"]
    try:
        subprocess.run(command, env={"CRITERION_HOME": str(home)}, capture_output=True, check=True, timeout=120)
        estimates = next(home.glob("**/new/estimates.json"))
        return json.loads(estimates.read_text(encoding="utf-8"))["median"]["point_estimate"]
    except (subprocess.SubprocessError, StopIteration) as why:
        print(f"{full}: {why!r}", file=sys.stderr)
        return None
    finally:
        shutil.rmtree(home)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path)
    parser.add_argument("cores", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--commit", default="9dfc2b8", help="the commit of the programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="", help="only rows that match")
    parser.add_argument("--contenders", default="", help="only contenders that match")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a measurement")
    parser.add_argument("--budget", type=float, default=3000.0, help="seconds in all")
    parser.add_argument("--out", type=Path, default=referee.ROOT / "target/referees/rtrb")
    options = parser.parse_args()
    if len(options.cores) != 2:
        parser.error("name two cores, or none for 0 and 1")
    machine = referee.describe_machine(options.cores)
    rows = {row: contenders for row, contenders in list_rows(options.programs).items() if re.search(options.rows, row)}
    names = {row: [name for name in contenders if re.search(options.contenders, name)] for row, contenders in rows.items()}
    runs = referee.measure_in_turn(
        names,
        lambda row, name: measure(*rows[row][name], options.cores, options.seconds),
        options.rounds,
        options.budget,
    )
    program = {"name": "mgeier/rtrb performance-comparison", "commit": options.commit}
    referee.report(options.out, program, machine, runs, lambda row: "ns an item")


if __name__ == "__main__":
    main()
