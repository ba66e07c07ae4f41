#!/usr/bin/env bash
# Checks the packages outside the workspace: formatting and lints of the referees and of the Python
# package (.ci/transports.sh has those of other transports), and that the fuzz targets compile.
# The fuzz targets need nightly; without it they are skipped with a message.
# Some minutes of two cores in a clean checkout: what they are compared with is large.
set -euo pipefail
cd "$(dirname "$0")/.."
(cd proofs/referees && cargo fmt --all --check && cargo clippy --quiet --locked --workspace --all-targets -- -D warnings)
echo "referees: clean"
(cd contrib/bindings/python && cargo fmt --check && cargo clippy --quiet --locked -- -D warnings)
echo "contrib/bindings/python: clean"
if [ -n "${LIBCLANG_PATH:-}" ]; then
  (cd proofs/referees/queues && cargo clippy --quiet --all-targets --features iceoryx2 -- -D warnings)
  echo "proofs/referees/queues with iceoryx2: clean"
else
  echo "SKIPPED, iceoryx2 WAS NOT COMPILED: it needs libclang (pip install libclang; LIBCLANG_PATH=…/clang/native)"
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "SKIPPED, NO FUZZ TARGET WAS COMPILED: no nightly toolchain (rustup toolchain install nightly)"
  exit 0
fi
for fuzz in proofs/fuzz/exchange proofs/fuzz/journal proofs/fuzz/techniques; do
  (cd "$fuzz" && RUSTFLAGS="-D warnings" cargo +nightly check --quiet)
  echo "$fuzz: compiles"
done
