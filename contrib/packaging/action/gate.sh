#!/usr/bin/env bash
# Compares two launchers in alternated runs on this machine, and fails if orders became slower.
# Works without GitHub too:
#
#   BASELINE=old/launcher LAUNCHER=new/launcher bash gate.sh
#
# REPEATS=12, LIMIT=5%, ARGUMENTS="--technique spsc-mux", UNDECIDED=pass|fail, OUT=bulkhead-gate.
# OUT receives the runs, benchmark.json (github-action-benchmark) and otava.csv (Apache Otava, a
# line a run; lines of earlier calls stay).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${LAUNCHER:?the launcher of this commit}" "${BASELINE:?the launcher to compare with}"
repeats=${REPEATS:-12} limit=${LIMIT:-5%} out=${OUT:-bulkhead-gate}
read -ra arguments <<<"${ARGUMENTS:---technique spsc-mux}"
rm -rf "$out/baseline" "$out/now"
mkdir -p "$out/baseline" "$out/now"

# Both sides of a pair play the same schedule; every other pair begins with the other side.
one() { "$1" run "${arguments[@]}" --seed "$3" --out "$2" --quiet >/dev/null; }
for ((seed = 1; seed <= repeats; seed++)); do
  if ((seed % 2)); then
    one "$BASELINE" "$out/baseline" "$seed"
    one "$LAUNCHER" "$out/now" "$seed"
  else
    one "$LAUNCHER" "$out/now" "$seed"
    one "$BASELINE" "$out/baseline" "$seed"
  fi
done
python3 "$here/figures.py" "$out/now" "$out"

code=0
"$LAUNCHER" compare "$out/baseline" "$out/now" --fail-if-slower "$limit" || code=$?
case $code in
  0) ;;
  3) echo "::warning title=bulkhead::undecided: more repeats or a quieter machine would tell"
    [ "${UNDECIDED:-pass}" = fail ] || code=0 ;;
  *) echo "::error title=bulkhead::slower than the baseline by more than $limit, or a run is not valid (exit code $code)" ;;
esac
exit "$code"
