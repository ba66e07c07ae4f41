#!/usr/bin/env bash
# Checks that both adapters are correct: the published hashes and the audits of the five scenarios,
# the benchmark's conformance cases, and further seeds against its liquibook adapter.
# check.sh BENCHMARK [SEEDS]: the folder of a built clone with liquibook_adapter.so; 20 seeds of
# COUNT (50,000) new orders. The audit of the static scenario takes liquibook minutes.
set -u
clone=$(cd "${1:?check.sh BENCHMARK [SEEDS]}" && pwd)
seeds=${2:-20}
here=$(cd "$(dirname "$0")" && pwd)
cores="--matcher-core ${CORE_A:-0} --drainer-core ${CORE_B:-1}"
scenarios="static normal swing-25 swing-40 flash-crash"
failures=0

"$here/build.sh" "$clone" || exit 1
cd "$clone" || exit 1

# The computed hash of a run.
hash_of() { ./harness "$@" $cores | sed -n 's/^ *Computed hash: //p'; }
count() { # count NAME COMMAND...: counts a failure of the command
  local name=$1; shift
  if "$@"; then echo "ok     $name"; else echo "FAILED $name"; failures=$((failures + 1)); fi
}
is_valid() { ./harness "$@" $cores | grep -q '^Verdict: VALID'; }

for engine in bulkhead bulkhead_ring; do
  for scenario in $scenarios; do
    for mode in perf audit; do
      count "$engine $scenario $mode" is_valid --engine "./${engine}_adapter.so" --scenario "$scenario" --mode $mode
    done
  done
  count "$engine conformance cases" python3 scripts/conformance_check.py "./${engine}_adapter.so"
done
for seed in $(seq 101 $((100 + seeds))); do
  # One scenario a seed, in turn.
  scenario=$(echo $scenarios | cut -d' ' -f$((seed % 5 + 1)))
  run="--scenario $scenario --seed $seed --count ${COUNT:-50000}"
  expected=$(hash_of --baseline liquibook $run)
  for engine in bulkhead bulkhead_ring; do
    count "$engine $scenario seed $seed" test -n "$expected" -a "$(hash_of --engine "./${engine}_adapter.so" $run)" = "$expected"
  done
  rm -f "orders_${scenario}_s${seed}_n${COUNT:-50000}.bin"
done
echo "$failures failures"
[ "$failures" = 0 ]
