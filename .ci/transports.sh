#!/usr/bin/env bash
# Other people's transports in real runs (proofs/referees/transports): formatting, lints, tests, and
# a bill with bulkhead's own. Their bindings are made by bindgen, which needs libclang, and Aeron is
# built by CMake 3: where LIBCLANG_PATH does not name the one, or there is none of the other, both
# are fetched from PyPI into target/transports; where they cannot be had, that is said loudly and
# nothing is tested. Some minutes of two cores: all of bulkhead is built once more, with their
# dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/transports
python=$tools/bin/python

# What the build needs, from PyPI; fails where it cannot be had.
fetch() {
  [ -x "$python" ] || "${PYTHON:-python3}" -m venv "$tools"
  "$python" -m pip install --quiet 'libclang>=18' 'cmake<4'
}

if [ -z "${LIBCLANG_PATH:-}" ] || ! cmake --version 2>/dev/null | grep -q 'version 3\.'; then
  if ! fetch; then
    echo "SKIPPED, NO TRANSPORT IS TESTED: no libclang (pip install libclang; LIBCLANG_PATH=…/clang/native) or no CMake 3 (pip install 'cmake<4')"
    exit 0
  fi
  LIBCLANG_PATH=$("$python" -c 'import clang, pathlib; print(pathlib.Path(clang.__file__).parent / "native")')
  export LIBCLANG_PATH PATH="$tools/bin:$PATH"
fi
# libclang from PyPI has none of the compiler's own headers.
if command -v gcc >/dev/null; then
  export BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:-} -I$(gcc -print-file-name=include)"
fi

features=aeron,iceoryx2
# Their launcher calls the program of the experiments that is in PATH.
cargo build --quiet --release -p launcher -p experiments
export PATH="$PWD/target/release:$PATH"
cd proofs/referees/transports
cargo fmt --check
cargo clippy --quiet --locked --all-targets -- -D warnings
# Each alone, and all together.
for some in ${features//,/ } "$features"; do
  cargo clippy --quiet --locked --all-targets --features "$some" -- -D warnings
done
cargo test --quiet --locked --features "$features"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
own() { cargo run --quiet --locked --features "$features" -- "$@" --out "$out"; }
own run --technique iceoryx2 --orders 2k --window 200ms --quiet
own bill --technique "spsc-mux,$features" --isolation process --strategies 1 --venues 2 --orders 500 --window 200ms --delay fixed:1ms --repeats 2
own contain --technique "$features" --isolation process --fault kill
