#!/usr/bin/env bash
# A planned sweep on two hosts, of which one is lost in the middle: two Dask workers, each in
# namespaces of its own (processes, mounts, host name, /dev/shm). The sweep completes, nothing
# counts twice, and what was lost is made by the other. The script for Dask, the one for Slurm and
# the Job for Kubernetes are those of contrib/packaging/sweep; the latter two are only read. Less than a
# minute, beside the installation of Dask, which is made once, below target/. Reports loudly what it
# skips: all of it without Python, a network or namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-$PWD/target/release/launcher}
venv=$PWD/target/cluster-venv
skip() { echo "SKIPPED, NO SWEEP WAS MADE ON TWO HOSTS: $1"; exit 0; }
scripts=contrib/packaging/sweep

# Options of sbatch that its manual documents and a job array has use for
# (slurm.schedmd.com/sbatch.html).
documented=' array job-name nodes ntasks exclusive mem requeue no-requeue output error time partition account constraint cpus-per-task chdir '
unknown() { sed -n 's/^#SBATCH --\([a-z-]*\).*/\1/p' | while read -r option; do [[ $documented == *" $option "* ]] || echo "$option"; done; }
bash -n $scripts/slurm.sh
[ "$(grep -c '^#SBATCH' $scripts/slurm.sh)" -ge 5 ] && [ -z "$(unknown <$scripts/slurm.sh)" ] || { echo "sbatch has no such option: $(unknown <$scripts/slurm.sh)"; exit 1; }
[ "$(sed 's/--exclusive/--exclusively/' $scripts/slurm.sh | unknown)" = exclusively ] || { echo "broken: an option that sbatch has not was taken"; exit 1; }
echo "the script for Slurm is read by bash, and sbatch documents its options; a broken one is found"

if ! "$venv/bin/python" -c 'import distributed, kubernetes_validate, yaml' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 'distributed>=2024.1' 'kubernetes-validate>=1.30' pyyaml \
    >"$venv.log" 2>&1 || skip "Dask cannot be installed: $(tail -n 1 "$venv.log")"
fi

own=(--pid --fork --kill-child --mount --mount-proc --uts --ipc)
[ "$(id -u)" = 0 ] || own+=(--user --map-root-user)
mine='mount -t tmpfs -o size=512m tmpfs /dev/shm && hostname "$0"'
unshare "${own[@]}" sh -c "$mine" probe 2>/dev/null || skip "namespaces of one's own are not allowed here"

work=$(mktemp -d)
folder=$work/sweep
started=()
finish() {
  for process in "${started[@]}"; do kill -9 "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

until_there() { # WHAT COMMAND…: waits until the command succeeds
  local what=$1; shift
  for _ in $(seq 600); do "$@" && return; sleep 0.1; done
  echo "never: $what"; tail -n 20 "$work"/*.log; exit 1
}

"$launcher" sweep --plan "$folder" --isolation thread,process --repeats 6 --strategies 1 --venues 1 \
  --orders 2k --window 300ms --delay fixed:1ms --idle yield >"$work/commands.txt"

dask=("$venv/bin/python" -m dask)
export DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE=False
"${dask[@]}" scheduler --host 127.0.0.1 --port 0 --no-dashboard --scheduler-file "$work/scheduler.json" >"$work/scheduler.log" 2>&1 &
started+=($!)
until_there "the scheduler" test -s "$work/scheduler.json"
address=$("$venv/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$work/scheduler.json")

worker() { # NAME: a host of that name, until it is killed
  unshare "${own[@]}" sh -c "$mine"' && exec "$@"' "$1" "${dask[@]}" worker "$address" --name "$1" --nworkers 1 --nthreads 1 \
    --no-nanny --no-dashboard --local-directory "$work/$1" >"$work/$1.log" 2>&1 &
}
worker host-a
lost=$!
worker host-b
started+=("$lost" $!)

"$venv/bin/python" $scripts/dask_sweep.py "$address" "$work/commands.txt" >"$work/sweep.log" 2>&1 &
sweep=$!
started+=("$sweep")

# In the middle: it has made a run, and makes another.
in_the_middle() {
  grep -qs '"hostname": "host-a"' "$folder"/runs/*/summary.json && ls "$folder/making" | grep -q '^host-a-'
}
until_there "host-a is in the middle of a run" in_the_middle
kill -9 "$lost"
echo "host-a is lost after $(ls "$folder/runs" | wc -l) of 12 runs"

code=0
wait "$sweep" || code=$?
cat "$work/sweep.log"
[ "$code" != 0 ] || "$launcher" sweep --join "$folder" || code=$?
[ "$code" = 0 ] || { echo "exit code $code: the sweep did not survive"; tail -n 20 "$work"/host-b.log; exit 1; }

"$venv/bin/python" - "$folder" "$work/sweep.log" <<'PYTHON'
import json, pathlib, sys

folder, log = pathlib.Path(sys.argv[1]), open(sys.argv[2]).read()
runs = [row for row in json.load(open(folder / "experiment.json"))["rows"] if "figures" in row]
hosts = [run["figures"]["machine.hostname"] for run in runs]
ids = {(run["figures"]["machine.hostname"], run["figures"]["run"]) for run in runs}
assert len(runs) == 12 and len(ids) == 12, "every run is there, and counts once"
assert {run["folder"] for run in runs} == {f"runs/{index:04}" for index in range(12)}
assert set(hosts) == {"host-a", "host-b"}, hosts
made = [line for line in log.splitlines() if ": made on " in line]
assert any(line.endswith(" on host-b") for line in made), "the other host went on"
assert not (folder / "making").exists(), "what the lost one left is gone"
print(f"12 runs, each once: {hosts.count('host-a')} on host-a before it was lost, {hosts.count('host-b')} on host-b")
PYTHON

# The broken variants: a run in another's place is refused, and one that is missing is named.
refused() { # WHY
  code=0
  "$launcher" sweep --join "$folder" >"$work/refused.log" 2>&1 || code=$?
  [ "$code" != 0 ] && grep -q "$1" "$work/refused.log" || { cat "$work/refused.log"; echo "not refused: $1"; exit 1; }
}
mv "$folder/runs/0003" "$work/kept"
cp -r "$folder/runs/0002" "$folder/runs/0003"
refused "is not what the plan says of run 3"
rm -r "$folder/runs/0003"
refused "run 3 ("
mv "$work/kept" "$folder/runs/0003"
"$launcher" sweep --join "$folder" >/dev/null
echo "a run in another's place and one that is missing were found"

"$venv/bin/python" - $scripts/kubernetes.yaml <<'PYTHON'
import sys
import kubernetes_validate, yaml

job = yaml.safe_load(open(sys.argv[1]))


def holds(job):
    try:
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
        return True
    except kubernetes_validate.ValidationError as error:
        print(f"  refused: {error.message}")
        return False


assert holds(job), "the manifest"
for place, key, value in [((), "completionMod", "Indexed"), ((), "completions", "three"), (("template", "spec"), "restartPolicy", 1)]:
    broken = yaml.safe_load(open(sys.argv[1]))
    spec = broken["spec"]
    for name in place:
        spec = spec[name]
    spec[key] = value
    assert not holds(broken), f"broken: {key}"
print(f"the manifest is a Job by the schemas of Kubernetes {kubernetes_validate.latest_version()}; three broken ones are found")
PYTHON
