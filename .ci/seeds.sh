#!/usr/bin/env bash
# The commands whose figures are in docs/src/seeds.md, next to those of the five documents that
# bulkhead started from. Each result is saved as JSON in FOLDER; commands.tsv there has the machine,
# and the seconds, the build and the words of each command.
#
#   bash .ci/seeds.sh data/results/DAY-MACHINE-seeds             all, on a machine that does nothing
#                                                                else
#   bash .ci/seeds.sh FOLDER board sweep                         only these
#   LAUNCHER=./launcher bash .ci/seeds.sh FOLDER board           with a program that was built
#                                                                elsewhere
#
# Then: BULKHEAD_GOLDEN=1 cargo test -p checks seeds
set -euo pipefail
out=${1:?the folder of the results}
shift
launcher=${LAUNCHER:-target/release/launcher}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
mkdir -p "$out"
out=$(realpath "$out")
list=$out/commands.tsv
touch "$list"
commit=${COMMIT:-$(git rev-parse --short=8 HEAD)}
model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
machine="$model, $(nproc) virtual cores, Linux $(uname -r | cut -d. -f1,2), $(date +%F)"

# Runs a command that prints JSON; `RESULT` among its words is the file that it writes instead.
result() {
  local name=$1 began=$SECONDS words
  shift
  case " $wanted " in *" $name "* | *" all "*) ;; *) return 0 ;; esac
  words="$*"
  words=${words//$launcher/launcher}
  words=${words// --out $runs/}
  words=${words//$out\/$name.json/FILE}
  printf '== %s: %s\n' "$name" "$words" >&2
  if ! "${@//RESULT/$out/$name.json}" >"$runs/$name.out" </dev/null; then
    echo "== $name: FAILED" >&2
    failed=1
    return 0
  fi
  case "$*" in *RESULT*) ;; *) cp "$runs/$name.out" "$out/$name.json" ;; esac
  words=${words//RESULT/FILE}
  case $words in *dispatch-bench*) words="THEIRS=… FIFTH=… bash proofs/referees/dispatch-bench/run.sh" ;; esac
  { echo "$machine"; tail -n +2 "$list" | grep -v "^$name	" || true; printf '%s\t%s\t%s\t%s\n' "$name" $((SECONDS - began)) "$commit" "$words"; } >"$list.new"
  mv "$list.new" "$list"
}

wanted=${*:-all} failed=0
techniques=std-mpsc,crossbeam-channel,crossbeam-array-queue,array-queue-mux,spsc-mux
# Where each of the 14 roles has a core, the documents' set-up, shortened; elsewhere one strategy
# and one venue.
if [ "$(nproc)" -ge 14 ]; then
  dispatch=dispatch-16 load="--threading dedicated --orders 400k --window 1s"
else
  dispatch=dispatch-2 load="--strategies 1 --venues 1 --orders 50k --window 1s"
fi
# shellcheck disable=SC2086
{
  result sweep "$launcher" sweep --preset seed $load --technique $techniques --isolation thread --repeats 3 --json --out "$runs"
  # Their own program; needs the programs of proofs/referees/dispatch-bench/run.sh.
  if [ -n "${THEIRS:-}" ]; then
    OUT=$runs/dispatch LAUNCHER=$launcher result $dispatch bash -c "bash proofs/referees/dispatch-bench/run.sh >&2 && cat $runs/dispatch/dispatch-bench.json"
  fi
  result board "$launcher" board --preset seed --json --out "$runs"
  result pin "$launcher" sweep --preset seed $load --technique spsc-mux --isolation thread --work 0ns --pin on,off --repeats 4 --json --out "$runs"
  result run "$launcher" run --technique spsc-mux --strategies 2 --venues 2 --orders 20k --window 1s --json --out "$runs"
  result credentials "$launcher" run --technique spsc-mux --credentials 2 --strategies 2 --venues 2 --orders 20k --window 1s --json --out "$runs"
  result board-disk "$launcher" board --mode stress --readers 4 --duration 2s --board-folder /dev/shm,/var/tmp --json --out "$runs"
  result spacing "$launcher" inspect data/coinbase-2016-03-12/flow.csv --spacing --json
  if command -v cargo >/dev/null; then
    result published-exchange cargo bench -q -p benches --bench published-exchange -- --json RESULT
    result published-journal cargo bench -q -p benches --bench published-journal -- --json RESULT
    result back-test cargo run -q --release -p bulkhead-exchange --example back_test -- --json
  fi
  # A quarter of an hour; LAB="--events 2k" makes less of it.
  result lab "$launcher" lab --seed-table ${LAB:-} --json --out "$runs"
}
exit $failed
