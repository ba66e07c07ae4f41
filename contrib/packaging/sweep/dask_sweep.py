# Makes the turns of a planned sweep on the workers of a Dask cluster:
# python3 dask_sweep.py SCHEDULER commands.txt
import subprocess, sys
from distributed import Client, as_completed

def turn(command):
    made = subprocess.run(command, shell=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if made.returncode != 0:
        raise RuntimeError(f"{command}: exit code {made.returncode}: {made.stderr}")
    return made.stdout + made.stderr

if __name__ == "__main__":
    with Client(sys.argv[1]) as client, open(sys.argv[2]) as commands:
        turns = [client.submit(turn, command.strip(), retries=3) for command in commands]
        for made in as_completed(turns):
            print(made.result(), end="", flush=True)
