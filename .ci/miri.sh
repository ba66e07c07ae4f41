#!/bin/sh
# Runs the tests of shm and system, which have the unsafe code, under Miri: no undefined behavior,
# no data race, no leak. Rings and logs are on the heap there; tests that need a mapping, a process
# or a pinned thread are ignored, each with its reason. BULKHEAD_SLOW=1 adds techniques, which is
# built on them.
set -eu
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "SKIPPED: no Miri here. Get it with: rustup component add miri rust-src --toolchain nightly"
    exit 0
fi
# Isolation off: tests read the clock and the environment. Stacked borrows stay on.
export MIRIFLAGS="-Zmiri-disable-isolation"
# Some cases of each property: Miri is a thousand times slower, and looks for other things than
# values.
export PROPTEST_CASES=8
# Their numbers come from XorShift: ChaCha, as it is otherwise, is most of what Miri would do.
export PROPTEST_RNG_ALGORITHM=xs
packages="-p bulkhead-shm -p system"
[ "${BULKHEAD_SLOW:-}" != 1 ] || packages="$packages -p techniques"
exec cargo +nightly miri test $packages --target-dir target/miri --lib --test all "$@"
