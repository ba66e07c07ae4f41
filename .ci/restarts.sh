#!/usr/bin/env bash
# Kills processes of runs again and again, and prints p50, p90, p99 and the longest of each step
# from the kill on: the engine and an exchange with a standby each and the engine without one, until
# the first order after; a strategy at each level, until the engine has repaired what it left. A
# second line splits the time until the death was proven: early (all threads were exiting) or late
# (the kernel had dismantled the process). 50 kills of each, about four minutes.
#
# The case `bursts` kills two or three of engine, exchange and strategy 0 to 30 ms apart, the same
# one again as well, next to two busy loops; every second run has no standbys. It prints counts.
#
# Fails if a run fails: an order is doubled, or lost without the death of its strategy, or an engine
# is given up. The folders of such runs are kept.
#
# `RUNS=2 bash .ci/restarts.sh`: fewer than 5 runs, of 10 kills or 9 bursts each. `SEED=7`: other
# bursts. `CASES="engine strategy-sandbox"`: only these of engine, exchange, engine-without-standby,
# strategy-process, strategy-sandbox, strategy-container, bursts. `LAUNCHER=PATH`: another build.
# 504 bursts, about ten minutes: `CASES=bursts RUNS=56 bash .ci/restarts.sh`.
set -euo pipefail
launcher=${LAUNCHER:-target/release/launcher} runs=${RUNS:-5} out=$(mktemp -d) failed="" busy=""
cases=${CASES:-engine exchange engine-without-standby strategy-process strategy-sandbox strategy-container bursts}
RANDOM=${SEED:-1}
trap 'kill $busy 2>/dev/null || true; [ -n "$failed" ] || rm -rf "$out"' EXIT
[ -x "$launcher" ] || cargo build --quiet --release -p launcher

# Prints the faults of a run of ten kills. They are finitely many: a role that is killed in each of
# 16 recoveries is given up, which `every` can do on a loaded machine.
kills_of() {
  for at in $(seq 200 400 3800); do printf 'kill:%s@%sms;' "$1" "$at"; done
}

# Sets `faults` to those of a run of nine bursts.
draw_bursts() {
  local victims=(engine exchange strategy-0) at burst
  faults=""
  for burst in $(seq 200 400 3400); do
    at=$burst
    for _ in $(seq $((2 + RANDOM % 2))); do
      faults+="kill:${victims[RANDOM % 3]}@${at}ms;"
      at=$((at + RANDOM % 31))
    done
  done
}

# Kills the standbys of a run's engine as soon as they exist: they are children of the launcher.
without_standbys() {
  while kill -0 "$1" 2>/dev/null; do
    for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
      # A standby that was promoted by then is killed as well; only kills by a fault are counted.
      if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q 'role spare:'; then
        kill -KILL "$pid" 2>/dev/null || true
      fi
    done
    sleep 0.02
  done
}

for case in $cases; do
  : >"$out/$case.json"
  victim=${case%%-*} level=process journal="--venue book --venues 1 --exchange process --idle park --journal process"
  case $case in
    strategy-*) level=${case#strategy-} victim=strategy-0 journal="--venues 1 --idle park" ;;
    bursts) for _ in 1 2; do sh -c 'while :; do :; done' & busy+=" $!"; done ;;
  esac
  for number in $(seq "$runs"); do
    case $case in bursts) draw_bursts ;; *) faults=$(kills_of "$victim") ;; esac
    # A kill that finds its victim dead strikes nobody.
    # shellcheck disable=SC2086
    "$launcher" run $journal --isolation "$level" --on-death restart --orders 40k --window 4s --allow-unfired \
      --fault "${faults%;}" --out "$out/$case-$number" --json >>"$out/$case.json" 2>"$out/err" </dev/null &
    run=$!
    case $case-$((number % 2)) in engine-without-standby-* | bursts-0) without_standbys "$run" ;; esac
    if wait "$run"; then
      rm -rf "$out/$case-$number"
    else
      failed+=" $out/$case-$number"
      cat "$out/err" >&2
    fi
  done
  # shellcheck disable=SC2086
  [ -z "$busy" ] || { kill $busy; wait $busy 2>/dev/null || true; busy=""; }
  CASE=$case perl -MJSON::PP -e '
    use strict;
    my ($text) = map { local (@ARGV, $/) = $_; scalar <> } @ARGV;
    my (%steps, %proofs, $runs, $valid, $lost, $of_survivors, $doubled, $kills);
    my @names = qw(detected proven woken replayed running first-order);
    my $is_strategy = $ENV{CASE} =~ /^strategy/;
    @names = qw(detected repaired) if $is_strategy;
    for my $run (JSON::PP->new->incr_parse($text)) {
      $runs++, $valid += $run->{valid} && $run->{outcome}{ended} eq "complete" ? 1 : 0;
      $lost += $run->{orders}{lost}, $doubled += $run->{orders}{duplicated};
      $of_survivors += $run->{containment} ? $run->{containment}{lost_of_survivors} : $run->{orders}{lost};
      $kills += @{$run->{plan}{faults}} - @{$run->{unstruck}};
      for my $death (@{$run->{$is_strategy ? "incidents" : "comebacks"}}) {
        my ($killed, $detected) = @{$death}{qw(fault_ns detected_ns)};
        next unless defined $killed;
        my (@times, $is_early);
        if ($is_strategy) {
          next unless defined $death->{detect_to_repair_ns};
          @times = ($killed, $detected, $detected + $death->{detect_to_repair_ns});
          $is_early = $death->{proven_early};
        } else {
          my ($served, %at) = ($death->{first_served_ns}, %{$death->{steps}});
          next unless defined $served && defined $at{running_ns};
          @times = ($killed, $detected, @at{qw(restarted_ns begun_ns replayed_ns running_ns)}, $killed + $served);
          $is_early = $at{proven_early};
        }
        push @{$steps{$names[$_ - 1]}}, $times[$_] - $times[$_ - 1] for 1 .. $#times;
        push @{$steps{sum}}, $times[-1] - $killed;
        push @{$proofs{$is_early ? "early" : "late"}}, $detected - $killed;
      }
    }
    printf "%s: %d kills, %d of %d runs complete and valid, %d orders lost, %d of them with no dead strategy, %d doubled\n",
      $ENV{CASE}, $kills, $valid, $runs, $lost, $of_survivors, $doubled;
    exit if $ENV{CASE} eq "bursts";
    my $row = sub {
      my ($name, @sorted) = ($_[0], sort { $a <=> $b } @{$_[1]});
      my @quantiles = map { $sorted[$_ * $#sorted] / 1e6 } 0.5, 0.9, 0.99, 1;
      printf "  %-12s p50 %7.2f ms   p90 %7.2f ms   p99 %7.2f ms   max %7.2f ms%s\n", $name, @quantiles, $_[2];
    };
    $row->($_, $steps{$_}, "") for grep { $steps{$_} } @names, "sum";
    $row->("proof $_", $proofs{$_}, sprintf "   (%d)", scalar @{$proofs{$_}}) for grep { $proofs{$_} } qw(early late);
  ' "$out/$case.json"
done
[ -z "$failed" ] || { echo "FAILED, kept:$failed" >&2; exit 1; }
