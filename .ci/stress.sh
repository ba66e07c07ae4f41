#!/usr/bin/env bash
# Runs stress-ng next to a run, once with busy CPUs and once with memory traffic and switches: the
# report must say that the run is not fit for latency claims, because of what the others did. The
# doctor must see the load too. A run before them, without stress-ng, shows what the machine itself
# does: it is only printed. A minute.
#
#   LAUNCHER=PROGRAM .ci/stress.sh     PROGRAM is target/release/launcher by default
#
# Installs Debian's stress-ng where it may. Reports loudly that it skips them without it.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-$PWD/target/release/launcher}
command -v stress-ng >/dev/null || apt-get install -y -qq --no-install-recommends stress-ng >/dev/null 2>&1 || true
command -v stress-ng >/dev/null || { echo "SKIPPED, NO RUN WAS DISTURBED: no stress-ng"; exit 0; }
runs=$(mktemp -d)
stress=""
stop() { [ -z "$stress" ] || { kill "$stress" 2>/dev/null; wait "$stress" 2>/dev/null; stress=""; } || true; }
trap 'stop; rm -rf "$runs"' EXIT
# What another program does to a run, in the words of its verdict.
disturbed='was preempted|was away for|fell behind'

# reasons NAME: makes a run and prints the reasons why it is not fit, one a line; nothing if it is
# fit.
reasons() {
  "$launcher" run --orders 2k --window 200ms --quiet --out "$runs/$1" >/dev/null 2>&1 || true
  python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(*([] if s["fit_for_latency"] else s["reasons"]), sep="\n")' \
    "$runs/$1"/*/summary.json
}

echo "without stress-ng: $(reasons alone | grep -cE "$disturbed" || true) reasons of disturbance"
cores=$(nproc)
for stressor in "--cpu $((2 * cores))" "--vm $cores --vm-bytes 64M --switch $cores"; do
  # shellcheck disable=SC2086 # options
  stress-ng --quiet --timeout 60 $stressor >/dev/null 2>&1 &
  stress=$!
  sleep 2
  found=$(reasons "${stressor//[^a-z]/}")
  doctor=$("$launcher" doctor 2>&1 | tr -s ' \n' ' ' || true)
  stop
  grep -qE "$disturbed" <<<"$found" || { echo "stress-ng $stressor: THE RUN DOES NOT REPORT IT: $found"; exit 1; }
  echo "stress-ng $stressor: not fit: $(grep -E "$disturbed" <<<"$found" | head -n 1)"
  case $doctor in *"Not fit"* | *"not fit"*) ;; *) echo "stress-ng $stressor: THE DOCTOR CALLS THE MACHINE FIT"; exit 1 ;; esac
done
