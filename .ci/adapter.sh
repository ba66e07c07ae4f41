#!/usr/bin/env bash
# Compiles the C++ program that existed before it met bulkhead
# (contrib/bindings/examples/cpp/existing) with g++ and clang++. Each runs on paper, in a run of the
# launcher, and in one that kills it once: its own account must be that of the engine. Mistakes that
# are planted in its adapter must be found. A compiler that is missing is skipped loudly. LAUNCHER
# and LIBRARIES name a launcher and a folder with libbulkhead.so and libbulkhead.a, if not those of
# target/release. Half a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-target/release/launcher}
[ -n "${LIBRARIES:-}" ] || cargo build --quiet --release -p launcher -p bindings
libraries=$(realpath "${LIBRARIES:-target/release}")
source=contrib/bindings/examples/cpp/existing
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }
command -v python3 >/dev/null || { echo "SKIPPED, NO C++ PROGRAM IS TESTED: no python3 reads the summaries"; exit 0; }

is_short() { [ "$(wc -l <"$1")" -le 120 ]; }
is_short $source/adapter.hpp || fail "$source/adapter.hpp has more than 120 lines"
{ cat $source/adapter.hpp; seq 120; } >"$work/long.hpp"
! is_short "$work/long.hpp" || fail "broken: a long adapter is taken for a short one"

compile() { # COMPILER FOLDER PROGRAM LIBRARY…
  "$1" -std=c++17 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I contrib/bindings/include "$2/main.cpp" "${@:4}" -o "$3"
}
shared=(-L "$libraries" -lbulkhead "-Wl,-rpath,$libraries")
static=("$libraries/libbulkhead.a" -pthread -ldl -lm)

# A run of a player and the program; its summary and what it printed are in the folder's files.
trade() { # PROGRAM FLAGS…
  rm -rf "$work/out"
  timeout 60 "$launcher" run --strategy "player,exec:$1" --strategies 2 --venue book --venues 1 --orders 4k --window 300ms \
    --idle park --json --out "$work/out" "${@:2}" >"$work/summary.json" || return
  cat "$work"/out/*/strategy-1.stderr >"$work/printed"
}

judge() { # account|killed: fails with a reason
  python3 - "$1" "$work/summary.json" "$work/printed" <<'END'
import json, sys
what, summary, printed = sys.argv[1], json.load(open(sys.argv[2])), open(sys.argv[3]).read().split()
own = dict(zip(printed[::2], map(int, printed[1::2])))
def expect(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found}, not {wanted}; it printed {own}")
expect("valid", summary["valid"], True)
expect("rejected and odd", (own["rejected"], own["odd"]), (0, 0))
expect("ended", own["ended"], own["orders"])
if own["fills"] == 0 or own["orders"] == 0:
    sys.exit(f"it does not trade: {own}")
expect("allocations", sum(thread["allocations"] for thread in summary["processes"]), 0)
if what == "account":
    booked = [position for position in summary["trading"]["positions"] if position["strategy"] == 1]
    expect("fills", own["fills"], sum(position["fills"] for position in booked))
    expect("traded", own["traded"] * 100_000, sum(position["volume"] for position in booked))
    expect("net", own["net"] * 100_000, sum(position["net"] for position in booked))
    expect("incidents", summary["incidents"], [])
else:
    [incident] = summary["incidents"]
    expect("incident", (incident["strategy"], incident["cause"]), (1, "signal 9 (SIGKILL)"))
    expect("restarted", isinstance(incident["repair_to_restart_ns"], int), True)
    expect("lost of the others", summary["containment"]["lost_of_survivors"], 0)
END
}

tried=
for compiler in g++ clang++; do
  if ! command -v $compiler >/dev/null; then
    echo "SKIPPED, THE C++ PROGRAM IS NOT COMPILED WITH $compiler: there is none"
    continue
  fi
  tried=$compiler
  compile $compiler $source "$work/static" "${static[@]}"
  compile $compiler $source "$work/program" "${shared[@]}"
  for program in static program; do
    [ "$("$work/$program")" = "orders 1000 ended 1000 rejected 0 odd 0 fills 1000 traded 10000 net 0" ] || fail "$compiler: no trading on paper: $program"
  done
  trade "$work/program" && judge account || fail "$compiler: program and engine disagree"
  echo "$compiler: $(tail -n 1 "$work/printed"), as the engine has it"
  trade "$work/program" --on-death restart --fault kill:strategy-1@40ms && judge killed || fail "$compiler: the killed program"
  echo "$compiler: killed once, restarted, nothing of the other strategy lost"
done
[ -n "$tried" ] || exit 0

# NAME PATTERN REPLACEMENT: an adapter with a mistake. A wrong unit, a report taken for the last of
# its order, an answer to a cancel taken for one to the order.
planted() {
  mkdir -p "$work/$1"
  cp $source/*.hpp $source/main.cpp "$work/$1"
  sed -i "s/$2/$3/" "$work/$1/adapter.hpp"
  ! cmp --quiet $source/adapter.hpp "$work/$1/adapter.hpp" || fail "$1: there is nothing to break"
  compile "$tried" "$work/$1" "$work/$1/program" "${shared[@]}"
  trade "$work/$1/program" || fail "$1: the run failed"
  ! judge account 2>"$work/found" || fail "not found: $1"
  echo "found, $1: $(cat "$work/found")"
}
planted unit "parts_per_lot = 100'000" "parts_per_lot = 10'000"
planted last "report.is_last == 1" "true"
planted cancel "send(order, no_client_id)" "send(order, client_id)"
