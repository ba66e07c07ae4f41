#!/usr/bin/env bash
# What disturbances do, checked from outside: the TLB shootdowns that /proc/interrupts counts on all
# cores while a run with each is made, and the page faults of the engine's thread from its fifth
# tenth of a second on, from /proc. A storm whose pages only its own process has must send none; as
# a thread of the engine it must. Nothing of bulkhead is trusted but the names of its threads. Other
# programs add to the counts.
#
#   LAUNCHER=./launcher bash .ci/shootdowns.sh                  three runs of each, medians
#   RUNS=5 LEVELS="thread process" KINDS="calm map-storm" bash .ci/shootdowns.sh
set -euo pipefail
launcher=$(realpath "${LAUNCHER:-target/release/launcher}") runs=${RUNS:-3}
levels=${LEVELS:-thread process} kinds=${KINDS:-calm map-storm alloc-storm fault-storm fork-storm}
load="--technique spsc-mux --strategies 3 --venues 2 --orders 17k --window 1s --delay uniform:1ms..20ms --idle park"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

shootdowns() { awk '/^ *TLB:/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum + 0 }' /proc/interrupts; }

# The minor faults so far of the thread that runs the engine, of the process with that pid.
engine_faults() {
  local task
  for task in /proc/"$1"/task/*; do
    if grep -qxE "(engine|orchestrator)" "$task/comm" 2>/dev/null; then
      awk '{ sub(/.*\) /, ""); print $8 }' "$task/stat" 2>/dev/null && return
    fi
  done
  return 0
}

# The process that has the engine's thread, below the launcher with this pid.
engine_process() {
  local pid
  for pid in $(pgrep -P "$1"); do
    grep -qxE "(engine|orchestrator)" /proc/"$pid"/task/*/comm 2>/dev/null && echo "$pid" && return
  done
  return 0
}

median() { sort -n | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : "-" }'; }

printf '%-10s %-14s %16s %22s\n' level "the strategy does" "TLB shootdowns" "page faults of engine"
for level in $levels; do
  for kind in $kinds; do
    : >"$out/tlb"
    : >"$out/faults"
    for _ in $(seq "$runs"); do
      before=$(shootdowns)
      # shellcheck disable=SC2086
      "$launcher" run $load --isolation "$level" --fault "$kind:strategy-1" --out "$out/runs" >/dev/null 2>&1 &
      pid=$! last='' first='' samples=0
      while kill -0 "$pid" 2>/dev/null; do
        engine=$(engine_process "$pid")
        now=$([ -z "$engine" ] || engine_faults "$engine")
        last=${now:-$last}
        samples=$((samples + 1))
        # The faults of the start are not the storm's.
        [ "$samples" -ne 5 ] || first=$last
        sleep 0.1
      done
      wait "$pid" || true
      echo $(($(shootdowns) - before)) >>"$out/tlb"
      [ -z "$first" ] || echo $((last - first)) >>"$out/faults"
      rm -rf "$out/runs"
    done
    printf '%-10s %-14s %16s %22s\n' "$level" "$kind" "$(median <"$out/tlb")" "$(median <"$out/faults")"
  done
done
