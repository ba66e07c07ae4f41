#!/usr/bin/env bash
# Replaces a strategy of four again and again while the others trade, at `process` and `sandbox`,
# with and without a journal. Then retires it and adds another one in its place as often, without a
# journal. Prints how many were replaced or added, the gaps (of an addition: from its command until
# it runs), and the others' rt_venue before the first change and during all of them.
# `TIMES=20 bash .ci/replacements.sh`: fewer than 200 of each.
set -euo pipefail
launcher=${LAUNCHER:-target/release/launcher} times=${TIMES:-200} out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ -x "$launcher" ] || cargo build --quiet --release -p launcher

# Changes strategy 2 once: what is printed on the last line is the result.
replaced() { "$launcher" replace latest 2 --open-orders cancel --json; }
added() {
  "$launcher" retire latest 2 --open-orders cancel --json >/dev/null
  "$launcher" add latest 2 --strategy player --json
}

# Makes a run at a level with a journal, and changes its strategy 2 all the time.
measure() {
  local level=$1 journal=$2 change=$3 tried=0 flags run end
  flags=(--isolation "$level" --strategies 4 --venues 2 --orders 600k --window 60s --delay uniform:1ms..5ms --idle park
    --on-death continue --venue book --exchange process)
  [ "$journal" = none ] || flags+=(--journal "$journal")
  "$launcher" run "${flags[@]}" --out "$out/runs" --json >"$out/run.json" 2>"$out/err" </dev/null &
  run=$!
  until "$launcher" limits latest >/dev/null 2>&1; do kill -0 "$run" && sleep 0.1; done
  sleep 2
  end=$((SECONDS + 50))
  : >"$out/changed"
  for _ in $(seq "$times"); do
    [ "$SECONDS" -lt "$end" ] || break
    tried=$((tried + 1))
    "$change" >>"$out/changed" || true
    sleep 0.05
  done
  kill -INT "$run"
  wait "$run" || true
  LEVEL=$level JOURNAL=$journal CHANGE=$change TRIED=$tried perl -MJSON::PP -e '
    use strict;
    my ($changed, $run) = map { local (@ARGV, $/) = $_; scalar <> } @ARGV;
    my @all = JSON::PP->new->incr_parse($changed);
    my @gaps = sort { $a <=> $b } map { $_->{took_ns} / 1e6 } grep { $_->{done} } @all;
    my $summary = decode_json($run);
    my $at = sub { sprintf "%.1f", ($summary->{containment}{$_[0]}{$_[1]} // 0) / 1e3 };
    printf "%s, journal %s: %d of %d %s, %s, lost %d; gap p50 %.1f ms, max %.1f ms; others p50 %s -> %s us, p99 %s -> %s us\n",
      $ENV{LEVEL}, $ENV{JOURNAL}, scalar @gaps, $ENV{TRIED}, $ENV{CHANGE}, $summary->{valid} ? "valid" : "NOT VALID", $summary->{orders}{lost},
      $gaps[@gaps / 2] // 0, $gaps[-1] // 0, $at->("survivors_before", "p50_ns"), $at->("survivors_during", "p50_ns"),
      $at->("survivors_before", "p99_ns"), $at->("survivors_during", "p99_ns");
  ' "$out/changed" "$out/run.json"
}

for level in process sandbox; do
  for journal in none group; do measure "$level" "$journal" replaced; done
done
for level in process sandbox; do measure "$level" none added; done
