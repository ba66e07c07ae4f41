#!/usr/bin/env bash
# Kills the engine of a run again and again, then an exchange, with a standby each, and prints the
# medians and the longest of each step from the death to the first order. About two minutes.
# `RUNS=2 bash .ci/restarts.sh`: fewer than 5 runs of 10 kills each.
set -euo pipefail
launcher=${LAUNCHER:-target/release/launcher} runs=${RUNS:-5} out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ -x "$launcher" ] || cargo build --quiet --release -p launcher

for role in engine exchange; do
  : >"$out/$role.json"
  for _ in $(seq "$runs"); do
    "$launcher" run --venue book --venues 1 --exchange process --idle park --journal process --on-death restart --orders 40k --window 4s \
      --fault "kill:$role@200ms every 400ms" --out "$out/runs" --json >>"$out/$role.json" 2>"$out/err" </dev/null || cat "$out/err" >&2
    rm -rf "$out/runs"
  done
  ROLE=$role perl -MJSON::PP -e '
    use strict;
    my ($text) = map { local (@ARGV, $/) = $_; scalar <> } @ARGV;
    my (%steps, $valid, $lost);
    my @names = qw(detected proven woken replayed running first-order sum);
    for my $run (JSON::PP->new->incr_parse($text)) {
      $valid += $run->{valid} ? 1 : 0, $lost += $run->{orders}{lost};
      for my $restart (@{$run->{comebacks}}) {
        my ($died, $served, %at) = (@{$restart}{qw(fault_ns first_served_ns)}, %{$restart->{steps}});
        next unless defined $served && defined $at{running_ns};
        my @times = ($died, $restart->{detected_ns}, @at{qw(restarted_ns begun_ns replayed_ns running_ns)}, $died + $served);
        push @{$steps{$names[$_ - 1]}}, $times[$_] - $times[$_ - 1] for 1 .. 6;
        push @{$steps{sum}}, $served;
      }
    }
    printf "%s: %d kills, %d runs valid, %d orders lost\n", $ENV{ROLE}, scalar @{$steps{sum}}, $valid, $lost;
    for my $name (@names) {
      my @sorted = sort { $a <=> $b } @{$steps{$name}};
      printf "  %-12s p50 %7.2f ms   p90 %7.2f ms   max %7.2f ms\n", $name, map { $sorted[$_ * $#sorted] / 1e6 } 0.5, 0.9, 1;
    }
  ' "$out/$role.json"
done
