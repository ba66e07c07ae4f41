#!/usr/bin/env bash
# Judges histories of queue and board, made by threads and by processes that are killed in the
# middle of a call, with stateright's LinearizabilityTester (proofs/referees/linearizability); its
# broken variants must be found. A few minutes of two cores.
#
#   .ci/histories.sh [HISTORIES [SEED]]     of each kind; 10,000 by default
#
# Reports loudly that it skips them where the crates cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../proofs/referees"
cargo fetch --quiet --locked || { echo "SKIPPED, NO HISTORY WAS JUDGED: the crates cannot be fetched"; exit 0; }
cargo test --quiet --locked -p linearizability
cargo build --quiet --locked --release -p linearizability
timeout 1800 "${CARGO_TARGET_DIR:-target}"/release/linearizability "$@"
