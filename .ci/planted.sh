#!/usr/bin/env bash
# Planted costs that bills must find: bills of the planted launcher (proofs/planted), whose
# strategies spend some nanoseconds more at the level `process`. Prints how many bills find each,
# and how many A/A rows claim a difference. Exit code 1 if 50 ns are found in fewer than 9 of 10,
# 200 ns not always, or more than 5 of 100 A/A rows claim one.
#
#   bash .ci/planted.sh                10 bills of each, for two cores that do nothing else: hours
#   BILLS=3 bash .ci/planted.sh        fewer
#   bash .ci/planted.sh --quick        two short bills of each, too few to judge by: exit code 1
#                                      only if it does not work
#   PROGRAM=./planted FLAGS="--isolation thread+process --strategies 2" bash .ci/planted.sh
set -euo pipefail
program=${PROGRAM:-target/release/planted} bills=${BILLS:-10} out=${OUT:-target/planted} quick=
flags=${FLAGS:---isolation thread,process --strategies 1}
if [ "${1:-}" = --quick ]; then
  quick=1 bills=2 flags="$flags --repeats 5 --orders 2000 --window 100ms"
fi
[ -x "$program" ] || cargo build --quiet --release -p planted -p experiments
rm -rf "$out"
mkdir -p "$out"
for planted in 0 20 50 200; do
  for number in $(seq "$bills"); do
    cost=
    [ "$planted" = 0 ] || cost=spend-$planted-at-process
    # shellcheck disable=SC2086
    PLANTED=$cost "$program" bill $flags --json --out "$out/runs" >"$out/$planted-$number.json" 2>"$out/err" </dev/null ||
      { cat "$out/err"; exit 1; }
    rm -rf "$out/runs"
  done
done
QUICK=$quick perl -MJSON::PP -e '
  use strict;
  my (%found, %wrong, %bills, $claims, $aa);
  for my $file (@ARGV) {
    my ($planted) = $file =~ m{([0-9]+)-[0-9]+\.json$};
    local (@ARGV, $/) = $file;
    $bills{$planted}++;
    for my $row (@{decode_json(<>)->{rows}}) {
      my $line = ($row->{adds} || [])->[0] or next;
      my $verdict = $line->{line}{verdict};
      my $is_aa = ($row->{variant} || "") eq "A/A";
      if ($is_aa) { $aa++; $claims++ if $verdict =~ /slower|faster/ }
      elsif ($row->{isolation} eq "process") {
        $found{$planted}++ if $verdict eq "slower";
        $wrong{$planted}++ if $verdict eq "faster";
      }
    }
  }
  printf "%-10s %6s %7s %7s\n", "planted", "bills", "slower", "faster";
  printf "%-10s %6d %7d %7d\n", "$_ ns", $bills{$_}, $found{$_} || 0, $wrong{$_} || 0 for sort { $a <=> $b } keys %bills;
  # Nothing planted is a test of the same kind.
  $aa += $bills{0}; $claims += ($found{0} || 0) + ($wrong{0} || 0);
  printf "A/A: %d of %d claim a difference\n", $claims || 0, $aa;
  exit 0 if $ENV{QUICK};
  exit((($found{50} || 0) < 0.9 * $bills{50} || ($found{200} || 0) < $bills{200} || $claims > 0.05 * $aa) ? 1 : 0);
' "$out"/*-*.json
