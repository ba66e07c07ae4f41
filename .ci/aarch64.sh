#!/usr/bin/env bash
# Another processor: all of the workspace compiles for aarch64, and the unit tests of shm, system,
# techniques, journal and protocol run there under qemu-user. Installs what it needs where it may;
# says loudly what it skips. The tests beside the units do not run: an emulated process has no
# ptrace, no seccomp and no Landlock of its own. And it keeps the order of the processor below: that
# the orderings are enough for aarch64 is shown by loom (`.ci/loom.sh`), not here.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
# A directory of its own: who waits for another cargo's lock waits for one that runs on what the
# cores have left.
export CARGO_TARGET_DIR=target/aarch64
skip() {
  echo "SKIPPED, NOTHING RAN AS AARCH64: $1"
  exit 0
}
command -v rustup >/dev/null || skip "no rustup to add the target with"
rustup target add "$target" >/dev/null 2>&1 || skip "rustup could not add the target $target"

cargo check --quiet --workspace --target "$target"
echo "the workspace compiles for aarch64"

tools() { command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null; }
if ! tools; then
  { apt-get update -qq && apt-get install -y -qq qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; } >/dev/null 2>&1 || true
fi
tools || skip "no qemu-aarch64 and aarch64-linux-gnu-gcc (apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
cargo test --quiet -p bulkhead-shm -p system -p techniques -p bulkhead-journal -p protocol --lib --target "$target"
echo "SKIPPED as aarch64: the tests in folders (ptrace, seccomp, Landlock, processes), and benches"
