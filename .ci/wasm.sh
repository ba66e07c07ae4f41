#!/usr/bin/env bash
# Strategies as WebAssembly modules (contrib/examples/wasm-strategy): formatting, lints, tests, the
# cost of an order, the module in C where clang has WebAssembly, and contain, disturb and compare
# with the program. Its release build has all of bulkhead once more, and wasmtime: 10 minutes of
# CPU time.
set -euo pipefail
cd "$(dirname "$0")/.."
# Its launcher calls the program of the experiments that is in PATH.
cargo build --quiet --release -p launcher -p experiments
export PATH="$PWD/target/release:$PATH"
cd contrib/examples/wasm-strategy
cargo fmt --check
cargo clippy --quiet --locked --release --all-targets -- -D warnings
cargo test --quiet --locked --release
cargo run --quiet --locked --release --example cost
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
own() { cargo run --quiet --locked --release -- "$@" --out "$out"; }
# The player waits for answers only: few orders end before a time, many take minutes next to a hang.
own contain --strategy wasm --technique spsc-mux --isolation thread --orders 4k --fault "panic@order:500;hang@order:500"
own disturb --strategy wasm --isolation thread --fault alloc-storm --repeats 2 --orders 60k --window 300ms
own compare --a strategy=native --b strategy=wasm --isolation thread --strategies 1 --venues 1 --repeats 5 --orders 2k --delay fixed:50us
if clang --target=wasm32 -O2 -ffreestanding -nostdlib -I modules -I ../../bindings/include -Wl,--no-entry \
    -o "$out/player.wasm" modules/player.c; then
  WASM_MODULE=$out/player.wasm own run --strategy wasm --isolation thread --orders 2k --delay fixed:50us --quiet
  echo "the module in C trades"
else
  echo "SKIPPED, NO MODULE IN C WAS BUILT: no clang with WebAssembly (Debian: clang and lld)"
fi
