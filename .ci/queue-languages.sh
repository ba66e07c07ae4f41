#!/usr/bin/env bash
# Compiles the queue's examples in C, C++, Python and Java, runs them, and kills their senders.
# Errors that are planted in a sender must be found: a message lost, doubled or torn. What Python
# and Java need is made ready by .ci/languages.sh; what cannot be had is skipped loudly.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}

# C and C++: two processes, kills, planted errors, and what install.sh installs.
cargo test --quiet --package bulkhead-queue
cargo build --quiet --package bulkhead-queue
library=$PWD/target/debug/libbulkhead_queue.so

# Runs an example with killed senders, and with each planted error: LANGUAGE COMMAND…
crash() {
  local language=$1 planted found
  shift
  timeout 300 "$@" "$rounds" || { echo "$language: the example failed" >&2; exit 1; }
  for planted in lost doubled torn; do
    if found=$(timeout 300 "$@" "$rounds" "$planted" 2>&1) || [[ $found != *$planted:* ]]; then
      echo "$language: a message was $planted, and the example did not find it: $found" >&2 && exit 1
    fi
  done
  echo "$language: lost, doubled and torn messages are found"
}

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/contrib/bindings/queue/python BULKHEAD_QUEUE_LIBRARY=$library
python=target/languages/python/bin/python
[ -x "$python" ] || python=$(command -v python3 || true)
if [ -n "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  "$python" -m unittest discover --quiet -s contrib/bindings/queue/python
  crash Python "$python" contrib/bindings/queue/python/examples/crash_and_successor.py
else
  echo "SKIPPED, THE QUEUE IN PYTHON IS NOT TESTED: no Python of 3.11 or newer"
fi

[ -x target/languages/java/bin/javac ] || bash .ci/languages.sh java || true
if [ -x target/languages/java/bin/javac ]; then
  classes=target/languages/queue-java
  rm -rf "$classes"
  target/languages/java/bin/javac -d "$classes" contrib/bindings/queue/java/src/bulkhead/queue/*.java contrib/bindings/queue/java/examples/*.java
  crash Java target/languages/java/bin/java --enable-native-access=ALL-UNNAMED -Dbulkhead.queue.library="$library" -cp "$classes" \
    CrashAndSuccessor
else
  echo "SKIPPED, THE QUEUE IN JAVA IS NOT TESTED: no Java of 22 or newer"
fi
