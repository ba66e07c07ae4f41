#!/usr/bin/env bash
# A planted disturbance of the engine that `launcher disturb` must find at every level, and faults
# that sleep, which it must not call disturbing. A neighbor (proofs/planted/src/bin/neighbor.rs)
# works for 20 µs on the engine's core every 10 ms, in those runs only whose strategy has a certain
# fault; the fault itself does next to nothing. Without the neighbor the same fault is one that
# sleeps, and so is each A/A row. Prints how many of each are called what.
#
#   bash .ci/planted-engine.sh       three experiments of each kind, on cores that do nothing else
#   TIMES=1 LEVELS=thread,process REPEATS=8 bash .ci/planted-engine.sh
set -euo pipefail
planted=${PROGRAM:-target/release/planted} neighbor=${NEIGHBOR:-target/release/neighbor} times=${TIMES:-3}
levels=${LEVELS:-thread,process,container,sandbox} repeats=${REPEATS:-10} out=${OUT:-target/planted-engine}
[ -x "$planted" ] && [ -x "$neighbor" ] || cargo build --quiet --release -p planted -p experiments
rm -rf "$out"
mkdir -p "$out"
for number in $(seq "$times"); do
  for kind in stalled asleep; do
    pid=
    mkdir -p "$out/runs"
    if [ "$kind" = stalled ]; then
      "$neighbor" "$out/runs" map-storm 20us 10ms &
      pid=$!
    fi
    "$planted" disturb --json --technique spsc-mux --isolation "$levels" --idle spin --fault 'map-storm every 100ms' \
      --repeats "$repeats" --out "$out/runs" >"$out/$kind-$number.json" 2>"$out/err" </dev/null || { cat "$out/err"; exit 1; }
    [ -z "$pid" ] || kill "$pid"
    rm -rf "$out/runs"
  done
done
perl -MJSON::PP -e '
  use strict;
  my %count;
  for my $file (@ARGV) {
    my ($kind) = $file =~ m{(stalled|asleep)-[0-9]+\.json$};
    local (@ARGV, $/) = $file;
    for my $row (@{decode_json(<>)->{rows}}) {
      my $name = $row->{kind} eq "calm" ? "asleep" : $kind;
      $count{"$name, $row->{isolation}"}{$row->{effect}}++;
    }
  }
  printf "%-20s %10s %12s %12s\n", "the engine is", "disturbed", "undisturbed", "cannot tell";
  for my $name (sort keys %count) {
    my $of = $count{$name};
    printf "%-20s %10d %12d %12d\n", $name, map { $of->{$_} || 0 } qw(disturbed undisturbed cannot-tell);
  }
' "$out"/*-*.json
