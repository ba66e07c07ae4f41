#!/usr/bin/env bash
# Other people's transports in real runs (examples/transports): formatting, lints, tests, and a bill of each beside bulkhead's own. Their bindings are
# made by bindgen, which needs libclang, and Aeron's C code is built by cmake of 3.30 or later but below 4. Where libclang is not named by
# LIBCLANG_PATH both are fetched from PyPI into target/transports; what cannot be had is skipped loudly.
# `.ci/transports.sh iceoryx2` takes these features only; without one: all that can be built here.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/transports
python=$tools/bin/python

# What the build scripts need, from PyPI; fails where it cannot be had.
fetch() {
  [ -x "$python" ] || "${PYTHON:-python3}" -m venv "$tools"
  "$python" -m pip install --quiet 'libclang>=18' 'cmake>=3.30,<4'
}

if [ -z "${LIBCLANG_PATH:-}" ]; then
  if ! fetch; then
    echo "SKIPPED, NO TRANSPORT IS TESTED: no libclang (pip install libclang; LIBCLANG_PATH=…/clang/native)"
    exit 0
  fi
  LIBCLANG_PATH=$("$python" -c 'import clang, pathlib; print(pathlib.Path(clang.__file__).parent / "native")')
  export LIBCLANG_PATH PATH="$tools/bin:$PATH"
fi
# libclang from PyPI has none of the compiler's own headers.
if command -v gcc >/dev/null; then
  export BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:-} -I$(gcc -print-file-name=include)"
fi

features=${1:-iceoryx2}
if [ -z "${1:-}" ]; then
  version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  case $version in
    3.[3-9][0-9]*) features=iceoryx2,aeron ;;
    *) echo "SKIPPED, AERON IS NOT TESTED: cmake ${version:-is not there}, and it needs 3.30 or later but below 4" ;;
  esac
fi
# The workspace's own parts are built already.
export CARGO_TARGET_DIR=$PWD/target
cd examples/transports
cargo fmt --check
cargo clippy --quiet --locked --all-targets -- -D warnings
cargo clippy --quiet --locked --all-targets --features "$features" -- -D warnings
cargo test --quiet --locked --features "$features"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --quiet --locked --features "$features" -- bill --technique "spsc-mux,$features" --isolation process --strategies 1 --venues 2 \
  --orders 500 --window 200ms --delay fixed:1ms --repeats 2 --quiet --out "$out"
