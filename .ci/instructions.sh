#!/usr/bin/env bash
# Instructions of a push and a pop of one message on one thread: `.ci/instructions.sh [--protection]
# [NAME…]`, for these techniques or all. --protection: without what a death needs to be repaired,
# with it, and the ratio. --engine: between the engine's stamps, of an order that is alone in it.
# --pipeline [BATCH]: of an order in each loop of a run without an exchange, in batches of 16.
# Needs valgrind. Pushes and pops are counted inside their loop only, as the difference of two runs
# of 2 and 12 samples.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "SKIPPED, NOTHING WAS COUNTED: no valgrind here"; exit 0; }
if [ "${1:-}" = --engine ]; then
  bench=$(cargo bench -q -p benches --bench instructions --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*instructions-[^"]*\)".*/\1/p' | tail -n 1)
  folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
  # At each read of the clock the counters since the one before are written: of each order at t2,
  # t3, t6 and t7. The last order's.
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" --dump-before='*Counted*::now*' "$bench" 32 >"$folder/log" 2>&1
  count() { sed -n 's/^summary: //p' "$folder/out.$1"; }
  echo "t2 to t3: $(count 126) instructions; t6 to t7: $(count 128)"
  exit
fi
if [ "${1:-}" = --pipeline ]; then
  bench=$(cargo bench -q -p benches --bench pipeline --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*pipeline-[^"]*\)".*/\1/p' | tail -n 1)
  out=$(mktemp) && trap 'rm -f "$out"' EXIT
  batch=${2:-16} rounds=2000 warm_up=1000
  valgrind --tool=callgrind --callgrind-out-file="$out" "$bench" $((batch * rounds)) "$batch" >/dev/null 2>&1
  callgrind_annotate --inclusive=yes --auto=no "$out" | sed -n 's/^ *\([0-9,]*\) .*pipeline::step_\([a-z_]*\) .*/\1 \2/p' | tr -d , |
    awk -v orders=$((batch * (rounds + warm_up))) '{ sum += $1; printf "%-12s %6.0f instructions an order\n", $2, $1 / orders } END { printf "%-12s %6.0f\n", "all", sum / orders }'
  exit
fi
section=one-thread loops=(one_thread::push_and_pop) messages=96000 names=()
for word in "$@"; do
  case $word in
  --protection) section=protection loops=(protection::without_it protection::with_it) messages=500000 ;;
  -*) echo "$word: no such option; see the head of $0" >&2 && exit 2 ;;
  *) names+=("$word") ;;
  esac
done
# With the launcher's features, as whoever has built it has built the rest.
bench=$(cargo bench -q -p launcher -p benches --bench handoffs --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*handoffs-[^"]*\)".*/\1/p' | tail -n 1)
if [ ${#names[@]} = 0 ] && [ "$section" = protection ]; then
  names=(array-queue linked)
elif [ ${#names[@]} = 0 ]; then
  mapfile -t names < <("$bench" --bench one-thread --quick --json | grep -o '"what":"[^"]*"' | cut -d '"' -f 4)
fi
count() { # LOOP NAME SAMPLES
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="handoffs::$1*" "$bench" --bench "$section" --technique "$2" --samples "$3" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for name in "${names[@]}"; do
  line=
  for loop in "${loops[@]}"; do
    few=$(count "$loop" "$name" 2)
    many=$(count "$loop" "$name" 12)
    [ "${many:-0}" -gt "${few:-0}" ] || { echo "$name: nothing was counted in handoffs::$loop" >&2; exit 1; }
    line+=$(printf '%6s' "$(((many - few + messages / 2) / messages))")
  done
  printf '%-26s %s instructions%s\n' "$name" "$line" "$(awk '$2 { printf "   × %.3f", $2 / $1 }' <<<"$line")"
done
