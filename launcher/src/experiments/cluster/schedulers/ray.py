#!/usr/bin/env python3
"""Makes the runs of a planned sweep with Ray and gathers them: python3 sweep_ray.py [ADDRESS]

A task is a turn: the runs that are compared with each other in pairs. A host makes one at a time, however many it is given.
A node that is lost is no matter: another makes its turn, and what is made is not made again.
"""

import subprocess
import sys

LAUNCHER = "@LAUNCHER@"
FOLDER = "@FOLDER@"
TURNS = @TURNS@


def turn(number):
    command = [LAUNCHER, "sweep", "--run", f"turn:{number}", FOLDER]
    made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if made.returncode != 0:
        raise RuntimeError(f"turn {number}: exit code {made.returncode}: {made.stderr}")
    return made.stdout + made.stderr


def main():
    import ray

    ray.init(address=sys.argv[1] if len(sys.argv) > 1 else "auto")
    task = ray.remote(num_cpus=1, max_retries=3, retry_exceptions=True, scheduling_strategy="SPREAD")(turn)
    waiting = [task.remote(number) for number in range(TURNS)]
    while waiting:
        done, waiting = ray.wait(waiting)
        print(ray.get(done[0]), end="", flush=True)
    sys.exit(subprocess.run([LAUNCHER, "sweep", "--join", FOLDER]).returncode)


if __name__ == "__main__":
    main()
