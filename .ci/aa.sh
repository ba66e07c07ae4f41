#!/usr/bin/env bash
# What `compare` makes of nothing at the tail: pairs of real runs of one setting, made in
# alternation by `compare` itself; then 200 comparisons of 12 of the pairs, drawn with a seed, as
# two folders of runs. How many claim a difference of rt_venue at p50, p99 and p99.9, with the
# machine's stalls and without them, and how wide the 95 % intervals are. The runs are made once;
# comparisons share runs. Wanted on a quiet machine with 2 cores, at p99 and p99.9: claims in at
# most 5 %, intervals within ±15 %. Exit code 1 if the stall-free figures do not reach it.
#
#   bash .ci/aa.sh                     48 pairs of runs of a second, then the comparisons: about
#                                      three minutes
#   RUNS=24 bash .ci/aa.sh             fewer runs
#   bash .ci/aa.sh --quick             the same way with a few short runs, too few to judge by: exit
#                                      code 1 only if it does not work
#   bash .ci/aa.sh FOLDER              the comparisons over the runs that were made before
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-$PWD/target/release/launcher}
[ -x "$launcher" ] || cargo build --quiet --release -p launcher -p experiments
quick=
if [ "${1:-}" = --quick ]; then
  # Of so many short ones on a busy machine five pairs are sound.
  quick=1 RUNS=40 WINDOW=100ms COMPARISONS=5 PAIRS=5
  shift
fi
folder=${1:-}
if [ -z "$folder" ]; then
  out=target/aa
  rm -rf "$out"
  side=technique=spsc-mux,rate=${RATE:-50k}
  "$launcher" compare --a "$side" --b "$side" --window "${WINDOW:-1s}" --strategies 1 --venues 1 \
    --delay fixed:20us --idle spin --repeats "$((${RUNS:-96} / 2))" --out "$out" >/dev/null </dev/null || true
  folder=$(find "$out" -mindepth 1 -maxdepth 1 -type d)
  echo "the runs: $folder (${SECONDS} s)"
fi
work=$(mktemp -d -p target)
trap 'rm -rf "$work"' EXIT
QUICK=$quick perl -MJSON::PP -MList::Util=shuffle,max -e '
  use strict;
  my ($launcher, $folder, $work, $comparisons, $pairs, $seed) = @ARGV;
  srand $seed;
  my $read = sub { local (@ARGV, $/) = shift; decode_json(<>) };
  my (@names, %runs);
  for my $row (@{$read->("$folder/experiment.json")->{rows}}) {
    push @names, $row->{name} unless $runs{$row->{name}};
    push @{$runs{$row->{name}}}, $row if $row->{figures};
  }
  my @sides = map { [sort { $a->{repeat} <=> $b->{repeat} } @{$runs{$_}}] } @names;
  my @repeats = 0 .. $#{$sides[0]};
  die "two sides are due\n" unless @sides == 2;
  my (%judged, %claimed, %reach, %why);
  for my $number (1 .. $comparisons) {
    my $at = 0;
    for my $repeat ((shuffle @repeats)[0 .. $pairs - 1]) {
      my $first = int rand 2;
      for my $side (0, 1) {
        my $place = sprintf "%s/%s-%d/%04d", $work, (qw(a b))[$side], $number, $at;
        system("mkdir", "-p", $place) == 0 or die;
        link "$folder/$sides[$side ^ $first][$repeat]{folder}/summary.json", "$place/summary.json" or die "$place: $!\n";
      }
      $at++;
    }
    my $said = qx("$launcher" compare "$work/a-$number" "$work/b-$number" --json 2>"$work/errors") || next;
    for my $line (@{decode_json($said)->{comparisons}[0]{lines}}) {
      next unless $line->{measure} =~ /^rt_venue(_stall_free)?$/ && $line->{percentile} =~ /^p(50|99|99\.9)$/;
      my $name = "$line->{measure} $line->{percentile}";
      if ($line->{verdict} eq "not-comparable") { $why{$name} //= $line->{why}[0]; next }
      my $ratio = $line->{difference}{ratio};
      $judged{$name}++;
      $claimed{$name} += $line->{verdict} =~ /slower|faster/ ? 1 : 0;
      push @{$reach{$name}}, max(1 - $ratio->{low}, $ratio->{high} - 1);
    }
  }
  my ($short, $figures) = (0, 0);
  printf "%-26s %7s %7s %9s %9s\n", "figure", "judged", "claims", "reach", "95 %";
  for my $measure ("rt_venue", "rt_venue_stall_free") {
    for my $percentile ("p50", "p99", "p99.9") {
      my $name = "$measure $percentile";
      $figures++ if $judged{$name} || $why{$name};
      my @all = sort { $a <=> $b } @{$reach{$name} // []};
      my ($half, $most) = map { @all ? 100 * $all[int($_ * $#all + 0.5)] : 0 } 0.5, 0.95;
      printf "%-26s %7d %7d %8.1f%% %8.1f%%  %s\n", $name, $judged{$name} // 0, $claimed{$name} // 0, $half, $most, $why{$name} // "";
      next if $measure eq "rt_venue" || $percentile eq "p50";
      $short++ if !@all || $claimed{$name} > 0.05 * $judged{$name} || $half > 15;
    }
  }
  die "no comparison could be read\n" unless $figures;
  exit 0 if $ENV{QUICK};
  print "the stall-free figures do not reach it\n" if $short;
  exit($short ? 1 : 0);' "$launcher" "$folder" "$work" "${COMPARISONS:-200}" "${PAIRS:-12}" "${SEED:-1}"
