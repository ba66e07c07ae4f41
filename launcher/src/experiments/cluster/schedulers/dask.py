#!/usr/bin/env python3
"""Makes the runs of a planned sweep with Dask and gathers them: python3 sweep_dask.py SCHEDULER

A task is a turn: the runs that are compared with each other in pairs. Start one worker a host, with one thread:
dask worker SCHEDULER --nworkers 1 --nthreads 1
A worker that is lost is no matter: another makes its turn, and what is made is not made again.
"""

import subprocess
import sys

LAUNCHER = "@LAUNCHER@"
FOLDER = "@FOLDER@"
PLAN = "@PLAN@"
TURNS = @TURNS@


def turn(number):
    command = [LAUNCHER, "sweep", "--run", f"turn:{number}", FOLDER]
    made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if made.returncode != 0:
        raise RuntimeError(f"turn {number}: exit code {made.returncode}: {made.stderr}")
    return made.stdout + made.stderr


def main():
    from distributed import Client, as_completed

    with Client(sys.argv[1]) as client:
        turns = [client.submit(turn, number, key=f"bulkhead-{PLAN}-{number}", retries=3) for number in range(TURNS)]
        for made in as_completed(turns):
            print(made.result(), end="", flush=True)
    sys.exit(subprocess.run([LAUNCHER, "sweep", "--join", FOLDER]).returncode)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
