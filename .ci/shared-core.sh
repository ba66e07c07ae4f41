#!/usr/bin/env bash
# Simulates parked strategies on one core with Ciw (proofs/referees/shared-core), and compares the
# formula of `launcher predict` with it in saved cells: seven that were measured after their
# prediction, and with GRID=1 a grid of 39. A formula that has each wake-up a third too cheap must be
# found. Some minutes, the grid ten more.
#
# Ciw comes from PyPI, below target/. Reports loudly that it skips them without Python or a network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/shared-core-venv
skip() { echo "SKIPPED, NO CORE WAS SIMULATED: $1"; exit 0; }
if ! "$venv/bin/python" -c 'import ciw' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 ciw==3.2.7 >"$venv.log" 2>&1 \
    || skip "Ciw cannot be installed: $(tail -n 1 "$venv.log")"
fi
export PYTHONDONTWRITEBYTECODE=1
saved=data/results/2026-11-30-epyc-2core-turns
simulate() { timeout 1800 "$venv/bin/python" proofs/referees/shared-core/simulate.py "$@"; }
simulate "$saved/experiment-calibration.json.xz" "$saved/predictions.jsonl"
if [ "${GRID:-}" = 1 ]; then simulate "$saved/experiment-grid.json.xz"; fi
if BROKEN=wakes simulate "$saved/experiment-calibration.json.xz" >"$venv.log" 2>&1; then
  echo "A FORMULA WITH CHEAPER WAKE-UPS WAS NOT FOUND"
  exit 1
fi
grep -q 'differs from the simulation' "$venv.log" || { cat "$venv.log"; exit 1; }
echo "a formula with cheaper wake-ups is found"
