#!/usr/bin/env bash
# The launcher's live tests next to two busy loops, several times: `.ci/steady.sh [RUNS] [FILTER…]`,
# 5 runs of `live::` without arguments. Fails if a test was red once, and names each.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-5}
filters=("${@:2}")
[ ${#filters[@]} -gt 0 ] || filters=(live::)
test=$(cargo test --workspace --no-run --message-format=json 2>/dev/null |
  sed -n '/"package_id":"[^"]*\/launcher#/s/.*"executable":"\([^"]*\/all-[^"]*\)".*/\1/p' | tail -n 1)
[ -x "$test" ] || { echo "the launcher's tests were not built" >&2 && exit 1; }
folder=$(mktemp -d)
busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -rf "$folder"' EXIT
for _ in 1 2; do
  while :; do :; done &
  busy+=($!)
done
red=0
for run in $(seq "$runs"); do
  began=$SECONDS
  (cd launcher && "$test" "${filters[@]}") >"$folder/$run.log" 2>&1 || red=$((red + 1))
  echo "run $run: $(grep -m 1 '^test result' "$folder/$run.log" || echo "the tests did not end"), $(((SECONDS - began) / 60)) minutes"
  grep '^test .* FAILED$' "$folder/$run.log" || true
  grep -A 4 'panicked at' "$folder/$run.log" || true
done
echo "$red of $runs red, $((SECONDS / 60)) minutes"
[ "$red" = 0 ]
