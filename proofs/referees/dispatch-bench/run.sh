#!/usr/bin/env bash
# Runs the seed's own program, junhjang/nonblocking-dispatch-bench, unchanged; then with our ring as
# its fifth technique; then ours: the same techniques, rate, window, venue delay and work, pinned,
# in turn. Prints a table for each amount of work and writes dispatch-bench.json. At most six
# minutes.
#
#   THEIRS=./theirs FIFTH=./fifth [LAUNCHER=./launcher] bash proofs/referees/dispatch-bench/run.sh
#
# THEIRS is their program at fa12728, FIFTH the same with what insert.sh adds (may be missing);
# LAUNCHER is target/release/launcher unless named. OUT (target/dispatch-bench), ROUNDS (3), WORKS
# (ns), STRATEGIES, VENUES, RATE (orders/s of a strategy), WINDOW_MS and BUDGET (s) change the
# set-up. With 14 cores and more the set-up is the seed's, 8 strategies and 4 venues; with fewer one
# of each. Their program needs N + M + 2 cores: with fewer its threads share them, as ours do.
# OURS is the list of our arms, TECHNIQUE:ISOLATION; with an empty one only their program is run,
# with and without our ring.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
commit=fa12728 cores=$(nproc)
out=${OUT:-$root/target/dispatch-bench} rounds=${ROUNDS:-3} budget=${BUDGET:-345}
if [ "$cores" -ge 14 ]; then
  strategies=${STRATEGIES:-8} venues=${VENUES:-4} works=${WORKS:-0 1500 1000}
else
  strategies=${STRATEGIES:-1} venues=${VENUES:-1} works=${WORKS:-0 1500}
fi
rate=${RATE:-50000} window=${WINDOW_MS:-1000}
each=$((rate * window / 1000)) orders=$((rate * window / 1000 * strategies))
mkdir -p "$out"
out=$(cd "$out" && pwd)

LAUNCHER=${LAUNCHER:-$root/target/release/launcher}
for program in "${THEIRS:-}" "$LAUNCHER"; do
  [ -x "$program" ] || { echo "${program:-THEIRS}: no program there; give THEIRS=…, their program at $commit, and LAUNCHER=… or cargo build --release" >&2; exit 2; }
done
theirs=$(realpath "$THEIRS") launcher=$(realpath "$LAUNCHER") fifth=${FIFTH:+$(realpath "$FIFTH")}
threading=shared
[ "$cores" -ge $((strategies + venues + 2)) ] && threading=dedicated
runs=$out/runs.tsv
: >"$runs"

# Runs their program once a technique and adds a line for each: work, program, technique, p50, p99,
# p99.9, full.
run_theirs() { # PROGRAM NAME WORK
  rm -rf "$out/config" && mkdir "$out/config"
  cat >"$out/config/config.yaml" <<CONFIG
n_strategies: $strategies
m_venues: $venues
orders_per_strategy: $each
window_ms: $window
d_min_us: 5000
d_max_us: 500000
repeats: 1
shared_cap: 8192
spsc_cap: 8192
sample_us: 50
orch_work_sweep: $3
CONFIG
  (cd "$out/config" && "$1") >"$out/$2-$3.txt"
  awk -v work="$3" -v program="$2" '
    function ns(text) {
      if (text ~ /ns$/) return sprintf("%d", text)
      if (text ~ /us$/) return sprintf("%d", text * 1000)
      if (text ~ /ms$/) return sprintf("%d", text * 1000000)
      return sprintf("%d", text * 1000000000)
    }
    /^═ / {
      name = "?"
      if (/std::sync::mpsc/) name = "std-mpsc"
      if (/crossbeam-channel/) name = "crossbeam-channel"
      if (/ArrayQueue/) name = "crossbeam-array-queue"
      if (/SPSC/) name = "array-queue-mux"
      if (/bulkhead/) name = "spsc-mux"
    }
    $1 == "rt-venue" && NF == 4 { figures = ns($2) "\t" ns($3) "\t" ns($4) }
    /Full events:/ { print work "\t" program "\t" name "\t" figures "\t" $NF }
  ' "$out/$2-$3.txt" >>"$runs"
}

# Runs ours once and adds its line.
run_ours() { # TECHNIQUE ISOLATION WORK SEED
  rm -rf "$out/ours-runs"
  "$launcher" run --technique "$1" --isolation "$2" --work "${3}ns" --seed "$4" --strategies "$strategies" --venues "$venues" \
    --orders "$orders" --window "${window}ms" --delay uniform:5ms..500ms --capacity 8192 --threading "$threading" --idle spin \
    --json --out "$out/ours-runs" >"$out/ours.json" 2>"$out/ours.err" </dev/null || { cat "$out/ours.err" >&2; return 0; }
  awk -v work="$3" -v program="ours-$2" -v technique="$1" '
    function number(line) { sub(/.*: */, "", line); sub(/,$/, "", line); return line == "null" ? "-" : line }
    /^  "rt_venue": \{/ { inside = 1 }
    /^  \}/ { inside = 0 }
    inside && /"p50_ns"/ { p50 = number($0) }
    inside && /"p99_ns"/ { p99 = number($0) }
    inside && /"p999_ns"/ { p999 = number($0) }
    /^    "full":/ { full = number($0) }
    END { print work "\t" program "\t" technique "\t" p50 "\t" p99 "\t" p999 "\t" full }
  ' "$out/ours.json" >>"$runs"
}

ours=${OURS-std-mpsc:thread crossbeam-channel:thread crossbeam-array-queue:thread array-queue-mux:thread spsc-mux:thread spsc-mux:process}
slowest=0 done_rounds=0
for round in $(seq "$rounds"); do
  for work in $works; do
    began=$SECONDS
    if [ $((SECONDS + slowest)) -gt "$budget" ]; then
      echo "round $round, work $work ns: SKIPPED, $slowest s do not fit into the $((budget - SECONDS)) s that are left"
      continue
    fi
    # Who begins changes from round to round.
    [ $((round % 2)) -eq 0 ] || run_theirs "$theirs" theirs "$work"
    [ -z "$fifth" ] || run_theirs "$fifth" fifth "$work"
    for arm in $ours; do run_ours "${arm%:*}" "${arm#*:}" "$work" "$round"; done
    [ $((round % 2)) -eq 1 ] || run_theirs "$theirs" theirs "$work"
    took=$((SECONDS - began))
    [ "$took" -le "$slowest" ] || slowest=$took
  done
  done_rounds=$round
done

echo "nonblocking-dispatch-bench ($commit) and $("$launcher" --version): $strategies strategies, $venues venues, $orders orders in $window ms,"
echo "D uniform 5 to 500 ms, $cores cores, threads of ours $threading, $done_rounds rounds. rt_venue in µs: median of the rounds."
echo "theirs: their program unchanged; fifth: with our ring as its fifth technique; ours: launcher run, after its warm-up."
sort -s -t "$(printf '\t')" -k1,1n "$runs" | awk -F '\t' -v json="$out/dispatch-bench.json" -v head="{\"schema\": \"bulkhead.dispatch-bench/1\", \"commit\": \"$commit\", \"launcher\": \"$("$launcher" --version)\", \"cores\": $cores, \"strategies\": $strategies, \"venues\": $venues, \"orders\": $orders, \"window_ms\": $window, \"threading\": \"$threading\", \"rows\": [" '
  function known(text) { return text ~ /^[0-9.]+$/ }
  # The median of the numbers in a list; "-" unless all are known.
  function median(list, count, parts, i, j, swap) {
    count = split(list, parts, " ")
    for (i = 1; i <= count; i++) if (!known(parts[i])) return "-"
    for (i = 1; i <= count; i++) for (j = i + 1; j <= count; j++) if (parts[j] + 0 < parts[i] + 0) { swap = parts[i]; parts[i] = parts[j]; parts[j] = swap }
    return sprintf("%d", (parts[int((count + 1) / 2)] + parts[int(count / 2) + 1]) / 2)
  }
  function us(ns) { return ns == "-" ? "–" : sprintf("%.2f", ns / 1000) }
  function value(ns) { return ns == "-" ? "null" : ns }
  function values(list, count, parts, i, text) {
    count = split(list, parts, " ")
    for (i = 1; i <= count; i++) text = text (i > 1 ? ", " : "") value(parts[i])
    return "[" text "]"
  }
  {
    key = $1 SUBSEP $2 SUBSEP $3
    if (!(key in count)) { order[++keys] = key; if (!($1 in seen)) { seen[$1] = 1; works[++amounts] = $1 } }
    count[key]++
    p50[key] = p50[key] " " $4; p99[key] = p99[key] " " $5; p999[key] = p999[key] " " $6; full[key] += $7
  }
  END {
    print head >json
    for (w = 1; w <= amounts; w++) {
      printf "\nW = %s ns\n%-24s%-16s%5s%10s%10s%10s%8s\n", works[w], "technique", "program", "runs", "p50", "p99", "p99.9", "full"
      techniques = split("std-mpsc crossbeam-channel crossbeam-array-queue array-queue-mux spsc-mux", technique, " ")
      programs = split("theirs fifth ours-thread ours-process", program, " ")
      for (t = 1; t <= techniques; t++) for (p = 1; p <= programs; p++) {
        key = works[w] SUBSEP program[p] SUBSEP technique[t]
        if (!(key in count)) continue
        printf "%-24s%-16s%5d%10s%10s%10s%8d\n", technique[t], program[p], count[key], us(median(p50[key])), us(median(p99[key])), us(median(p999[key])), full[key]
        printf "%s  {\"work_ns\": %s, \"program\": \"%s\", \"technique\": \"%s\", \"runs\": %d, \"p50_ns\": %s, \"p99_ns\": %s, \"p999_ns\": %s, \"full\": %d, \"each_p50_ns\": %s, \"each_p99_ns\": %s, \"each_p999_ns\": %s}", \
          comma, works[w], program[p], technique[t], count[key], value(median(p50[key])), value(median(p99[key])), value(median(p999[key])), full[key], values(p50[key]), values(p99[key]), values(p999[key]) >json
        comma = ",\n"
      }
    }
    print "\n]}" >json
  }'
echo
echo "written to $out/dispatch-bench.json in $SECONDS s"
