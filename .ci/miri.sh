#!/bin/sh
# Runs the tests of shm, system and techniques under Miri: no undefined behaviour in the unsafe code, no data race, no leak. Rings and logs live on
# the heap there; what needs a mapping, a process or a pinned thread is ignored, with its reason beside the test.
set -eu
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "SKIPPED: no Miri here. Get it with: rustup component add miri rust-src --toolchain nightly"
    exit 0
fi
# Isolation off: tests read the clock and the environment. Stacked borrows stay on.
export MIRIFLAGS="-Zmiri-disable-isolation"
# Some cases of each property: Miri is a thousand times slower, and looks for other things than values.
export PROPTEST_CASES=8
# Their numbers come from XorShift: ChaCha, as it is otherwise, is most of what Miri would do.
export PROPTEST_RNG_ALGORITHM=xs
# shm and system have the unsafe code, techniques what is built on it.
exec cargo +nightly miri test -p bulkhead-shm -p system -p techniques --target-dir target/miri --lib --test all "$@"
