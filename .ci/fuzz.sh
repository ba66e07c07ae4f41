#!/usr/bin/env bash
# Every fuzz target for N seconds, one after the other: `.ci/fuzz.sh [SECONDS] [TARGET…]`, 60 unless
# told. Needs nightly and cargo-fuzz; says loudly that it skips where one of them is missing. Fails
# with the first crash, whose input it names.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD seconds=${1:-60}
shift || true

skip() { echo "SKIPPED, NOTHING WAS FUZZED: $1"; exit 0; }
cargo +nightly --version >/dev/null 2>&1 || skip "no nightly toolchain (rustup toolchain install nightly)"
cargo +nightly fuzz --version >/dev/null 2>&1 || skip "no cargo-fuzz (cargo install cargo-fuzz)"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for crate in techniques exchange journal; do
  cd "$root/proofs/fuzz/$crate"
  mapfile -t all < <(cargo +nightly fuzz list --fuzz-dir .)
  targets=()
  for target in "${all[@]}"; do
    [ $# -gt 0 ] && [[ " $* " != *" $target "* ]] && continue
    targets+=("$target")
  done
  [ ${#targets[@]} -eq 0 ] || cargo +nightly fuzz build --fuzz-dir .
  for target in "${targets[@]}"; do
    if ! cargo +nightly fuzz run --fuzz-dir . "$target" -- -max_total_time="$seconds" -max_len=4096 -len_control=0 -timeout=10 -print_final_stats=1 >"$log" 2>&1; then
      tail -n 60 "$log"
      echo "$target: CRASHED"
      exit 1
    fi
    printf '%-18s %12s executions, no crash\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  done
done
