#!/usr/bin/env bash
# What `compare` can see: comparisons of spsc-mux with slow-mux (contrib/examples/own-strategy),
# which is the same with 50 ns more in the push of an order, and of spsc-mux with itself, in turn;
# one line each, then how many claim a difference of rt_venue at p50. Wanted on a quiet machine with
# 2 cores: the 50 ns in at least 9 of 10, none out of nothing in more than 1 of 20. Exit code 1 if
# not. `--quick`: one of each with two pairs and the program that the tests have built. Two pairs
# are too few for a claim, and `compare` must say just that: not that a run was invalid, nor that
# anything is slower or faster. Exit code 1 if not.
#
#   bash .ci/power.sh                  10 rounds of one A/B and two A/A comparisons with 12 pairs
#                                      each
#   ROUNDS=1 bash .ci/power.sh         one round
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-10}
pairs=12
program=target/release/own-strategy
[ "${1:-}" = --quick ] && rounds=1 pairs=2 program=target/debug/own-strategy
load="--strategies 1 --venues 1 --orders ${ORDERS:-8000} --window ${WINDOW:-400ms} --delay fixed:20us --repeats $pairs"

# The program that the tests have built: another selection of packages would have other features,
# and be built anew.
if [ "$pairs" = 2 ]; then cargo test --quiet --workspace --no-run; else cargo build --quiet --release -p own-strategy -p experiments; fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# compare A B: one line of what it says of rt_venue at p50.
compare() {
  local code=0
  # shellcheck disable=SC2086
  "$program" compare --a "technique=$1" --b "technique=$2" $load --json --out "$out" \
    >"$out/report" 2>"$out/errors" </dev/null || code=$?
  if [ "$code" != 0 ]; then
    cat "$out/errors" >&2
    return "$code"
  fi
  perl -MJSON::PP -0777 -ne '
    my ($line) = grep { $_->{measure} eq "rt_venue" && $_->{percentile} eq "p50" } @{decode_json($_)->{comparisons}[0]{lines}};
    my $found = $line->{difference}{difference};
    my @interval = $found ? map { sprintf "%+.0f", $found->{$_} } qw(value low high) : ("-") x 3;
    printf "%8.0f %8.0f %8s %16s  %s  %s\n", $line->{a_ns}, $line->{b_ns}, $interval[0], "[$interval[1], $interval[2]]", $line->{verdict},
      $line->{why}[0] // "";
  ' "$out/report"
  find "$out" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
}

printf '%-24s %8s %8s %8s %16s  %s\n' "rt_venue p50, ns" A B B-A "95 %" verdict
seen=0 claimed=0 modest=0
for round in $(seq "$rounds"); do
  for b in slow-mux spsc-mux spsc-mux; do
    line=$(compare spsc-mux "$b")
    printf '%2s %-21s %s\n' "$round" "$b" "$line"
    case "$b $line" in
      slow-mux*" slower  ") seen=$((seen + 1)) ;;
      spsc-mux*" slower  " | spsc-mux*" faster  ") claimed=$((claimed + 1)) ;;
      *" not-comparable  too few repeats: "*) modest=$((modest + 1)) ;;
    esac
    [ "$pairs" = 2 ] && [ "$b" = spsc-mux ] && break
  done
done
if [ "$pairs" = 2 ]; then
  [ "$modest" = 2 ] || { echo "of two pairs compare must say that they are too few, in both comparisons"; exit 1; }
  exit 0
fi
printf '\n%s\n' "50 ns were seen in $seen of $rounds comparisons; $claimed of $((2 * rounds)) of spsc-mux with itself claim a difference (${SECONDS} s)"
[ $((10 * seen)) -ge $((9 * rounds)) ] && [ $((20 * claimed)) -le $((2 * rounds)) ]
