#!/usr/bin/env bash
# Makes docs/src/sample/report.html: the page of a run in which one of five strategies is killed and
# restarted, and four go on.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${1:-target/release/launcher}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$launcher" run --technique spsc-mux --strategies 5 --venues 2 --orders 10k --window 1s --delay uniform:1ms..20ms \
  --on-death restart --fault kill:strategy-1@400ms --out "$out" --quiet
mkdir -p docs/src/sample
"$launcher" report "$out"/* --html docs/src/sample/report.html
