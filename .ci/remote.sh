#!/usr/bin/env bash
# Strategies on another host (contrib/bridge-aeron): formatting, lints, tests, two hosts in
# namespaces with a network between them that delays, reorders, loses and falls apart, and one run
# over both. Aeron's driver is C: its build needs cmake below 4, its bindings libclang, both of
# which are fetched from PyPI into target/remote, and libuuid's headers. Where they cannot be had
# that is said loudly and nothing is tested; without root the two hosts are not. Ten minutes of two
# cores: all of bulkhead is built once more.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/remote
python=$tools/bin/python
skip() { echo "SKIPPED, NO OTHER HOST IS TESTED: $1"; exit 0; }

# What the build needs, from PyPI; fails where it cannot be had.
fetch() {
  [ -x "$python" ] || "${PYTHON:-python3}" -m venv "$tools"
  "$python" -m pip install --quiet 'cmake<4' 'libclang>=18'
}

command -v cc >/dev/null || skip "no C compiler"
printf '#include <uuid/uuid.h>\nint main(void) { uuid_t u; uuid_generate(u); return 0; }\n' | cc -x c - -luuid -o /dev/null 2>/dev/null \
  || skip "no headers of libuuid (apt-get install uuid-dev)"
fetch || skip "no cmake or libclang (pip install 'cmake<4' libclang)"
export PATH="$tools/bin:$PATH"
if [ -z "${LIBCLANG_PATH:-}" ]; then
  LIBCLANG_PATH=$("$python" -c 'import clang, pathlib; print(pathlib.Path(clang.__file__).parent / "native")')
  export LIBCLANG_PATH
fi
# libclang from PyPI has none of the compiler's own headers.
if command -v gcc >/dev/null; then
  export BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:-} -I$(gcc -print-file-name=include)"
fi

cd contrib/bridge-aeron
cargo fmt --check
cargo clippy --quiet --locked --all-targets -- -D warnings
cargo test --quiet --locked --lib --test loopback
# One pair of hosts at a time: they share these cores.
cargo test --quiet --locked --test hosts -- --test-threads=1 --nocapture
if [ "$(id -u)" = 0 ]; then
  out=$(BRIDGE=$PWD/target/debug/bulkhead-bridge bash two-hosts.sh --orders 2k --window 1s --delay fixed:1ms --idle park) || { echo "$out"; exit 1; }
  grep -A 14 '^between the hosts' <<<"$out"
  grep -q 'answered 2000, lost 0, cut off 0, unknown 0, not sent 0' <<<"$out"
fi
