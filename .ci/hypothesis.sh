#!/usr/bin/env bash
# Calls the queue's C library in orders that hypothesis invents, and compares it with a model
# (proofs/referees/hypothesis): several handles, wrong orders and sizes, closes and resumes. 10,000
# examples of up to 40 calls; two broken variants must be found. Minutes.
#
#   EXAMPLES=N .ci/hypothesis.sh
#
# hypothesis comes from PyPI, below target/. Reports loudly that it skips them without Python or a
# network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/hypothesis-venv
skip() { echo "SKIPPED, NO ORDER OF CALLS WAS TRIED: $1"; exit 0; }
if ! "$venv/bin/python" -c 'import hypothesis' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 hypothesis==6.170.17 >"$venv.log" 2>&1 \
    || skip "hypothesis cannot be installed: $(tail -n 1 "$venv.log")"
fi
if [ -z "${BULKHEAD_QUEUE_LIBRARY:-}" ]; then
  cargo build --release --quiet -p bulkhead-queue
  BULKHEAD_QUEUE_LIBRARY=$PWD/target/release/libbulkhead_queue.so
fi
export BULKHEAD_QUEUE_LIBRARY PYTHONPATH=$PWD/contrib/bindings/queue/python PYTHONDONTWRITEBYTECODE=1
run() { timeout 1800 "$venv/bin/python" - <<TEXT
import sys, unittest
sys.path.insert(0, "proofs/referees/hypothesis")
import test_queue
result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(test_queue))
sys.exit(not result.wasSuccessful() or result.testsRun != 1)
TEXT
}
examples=${EXAMPLES:-10000}
EXAMPLES=$examples run
echo "$examples examples: the library does what the model does"
for broken in changes keeps; do
  if BROKEN=$broken EXAMPLES=5000 run >"$venv.log" 2>&1; then echo "A LIBRARY THAT $broken WAS NOT FOUND"; exit 1; fi
  grep -q AssertionError "$venv.log" || { cat "$venv.log"; exit 1; }
  echo "a library that $broken is found"
done
