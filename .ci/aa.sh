#!/usr/bin/env bash
# What `compare` makes of nothing at the tail: a pool of real runs of one setting, then 200 comparisons of 12 pairs of them with each
# other, drawn with a seed: how many claim a difference of rt_venue at p50, p99 and p99.9, with the machine's stalls and without
# them, and how wide the 95 % intervals are. The runs are made once; the comparisons take seconds and can be had again over the folder.
# Wanted on a quiet machine with 2 cores, at p99 and p99.9: claims in at most 5 %, intervals within ±15 %. Exit code 1 if the
# stall-free figures do not reach it.
#
#   bash .ci/aa.sh                     96 runs of a second, then the comparisons: about three minutes
#   RUNS=24 bash .ci/aa.sh             fewer runs
#   bash .ci/aa.sh --quick             the same way with a few short runs, too few to judge by: exit code 1 only if it does not work
#   bash .ci/aa.sh FOLDER              the comparisons over the runs of a sweep that was made before
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-target/release/launcher}
[ -x "$launcher" ] || cargo build --quiet --release -p launcher
quick=
if [ "${1:-}" = --quick ]; then
  # Of so many short ones on a busy machine ten are sound.
  quick=1 RUNS=40 WINDOW=100ms COMPARISONS=5 PAIRS=5
  shift
fi
folder=${1:-}
if [ -z "$folder" ]; then
  out=target/aa
  rm -rf "$out"
  "$launcher" sweep --technique spsc-mux --rate "${RATE:-50k}" --window "${WINDOW:-1s}" --strategies 1 --venues 1 --delay fixed:20us --idle spin \
    --repeats "${RUNS:-96}" --out "$out" >/dev/null </dev/null
  folder=$(find "$out" -mindepth 1 -maxdepth 1 -type d)
  echo "the pool: $folder (${SECONDS} s)"
fi
compare() { "$launcher" compare "$folder" --with-itself "${COMPARISONS:-200}" --pairs "${PAIRS:-12}" --seed "${SEED:-1}" "$@"; }
compare
compare --json | QUICK=$quick perl -MJSON::PP -0777 -ne '
  my @figures = @{decode_json($_)->{figures}};
  die "six figures were due\n" unless @figures == 6;
  exit 0 if $ENV{QUICK};
  my @tail = grep { $_->{measure} eq "rt_venue_stall_free" && $_->{percentile} ne "p50" } @figures;
  my @short = grep { !$_->{judged} || $_->{claimed} > 0.05 * $_->{judged} || $_->{reach} > 0.15 } @tail;
  printf "%s %s: not reached\n", $_->{measure}, $_->{percentile} for @short;
  exit(@short ? 1 : 0);'
