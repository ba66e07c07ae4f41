#!/usr/bin/env bash
# Whether a role allocates after the barrier: the launcher built with counters, runs of several kinds, every control on. That the
# counters count is `alloc::tests` of shm's matter.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet -p launcher --features count-alloc --target-dir target/count-alloc
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
printf 'name,reference_price\nBTC-USD,41300\n' >"$out/instruments.csv"
limits=max-order-volume=1000000000000,message-rate=1000000,max-gross-exposure=100000000000000,duplicate-window=1us,max-loss=100000000000
while read -r flags; do
  # shellcheck disable=SC2086 — several flags
  target/count-alloc/debug/launcher run $flags --instruments "$out/instruments.csv" --limits "$limits" --orders 40k --window 2s \
    --idle yield --out "$out" --json >"$out/summary.json" 2>"$out/errors" || { cat "$out/errors"; exit 1; }
  counts=$(grep -o '"allocations": *[0-9]*' "$out/summary.json" | grep -o '[0-9]*$')
  [ -n "$counts" ] || { echo "nothing was counted: $flags"; exit 1; }
  echo "$(wc -w <<<"$counts") threads, $(awk "{ sum += \$1 } END { print sum }" <<<"$counts") allocations: $flags"
  ! grep -qv '^0$' <<<"$counts"
done <<'RUNS'
--venue book --strategies 3 --strategy player,maker,taker
--venue book --exchange process --credentials 2 --strategies 2
--technique linked --strategies 2 --delay uniform:5us..50ms
--technique array-queue --venue-limit 5000/s --delay uniform:5us..5ms
RUNS
