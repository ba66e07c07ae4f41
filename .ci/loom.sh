#!/bin/sh
# Model-checks everything of shm that is shared between threads: every order of steps, and every value that the
# orderings allow a load to see. A target directory of its own, because the flag rebuilds everything.
set -eu
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0
exec cargo test -p shm --release --target-dir target/loom \
    --test loom "$@"
