#!/bin/sh
# Model-checks everything of shm, techniques and protocol that is shared between threads: every
# order of steps, and every value that the orderings allow a load to see. A target directory of its
# own, because the flag rebuilds everything.
set -eu
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0
exec cargo test -p bulkhead-shm -p techniques -p protocol --release --target-dir target/loom \
    --test loom "$@"
