#!/usr/bin/env bash
# Builds both adapters and copies them into the folder of a clone of the benchmark.
# build.sh BENCHMARK: bulkhead_adapter.so (the harness's queue), bulkhead_ring_adapter.so (our
# ring).
set -eu
clone=${1:?build.sh BENCHMARK}
here=$(cd "$(dirname "$0")" && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/../target} RUSTFLAGS=${RUSTFLAGS:--C target-cpu=native}
build() { # build NAME FEATURES...
  cargo build --release --quiet --manifest-path "$here/Cargo.toml" "${@:2}"
  cp "$CARGO_TARGET_DIR/release/libbulkhead_adapter.so" "$clone/$1_adapter.so"
}
build bulkhead
build bulkhead_ring --features own-ring
