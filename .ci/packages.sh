#!/usr/bin/env bash
# The packages that others can depend on, as a registry has them: each passes `cargo publish
# --dry-run` (`cargo package` where no registry can be reached), in the order in which they would be
# published; a new crate that depends on it runs the README's first example, once over the path and
# once over the unpacked archive; and the archive's own examples run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export CARGO_TARGET_DIR=$root/target/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The first example of a README as a program: hidden lines too.
example() {
  echo 'fn main() -> Result<(), Box<dyn std::error::Error>> {'
  awk '/^```/ { if (on) exit; on = /^```rust/; next } on' "$1/README.md" | sed 's/^# //; /^Ok::</d'
  echo 'Ok(()) }'
}

# scratch FOLDER LIBRARY PACKAGE: a new crate that depends on the package in that folder, and runs
# its example.
scratch() {
  local folder=$1 library=$2 package=$3 crate=$work/scratch-$2
  rm -rf "$crate"
  mkdir -p "$crate/src"
  cat >"$crate/Cargo.toml" <<TOML
[package]
name = "scratch"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
$library = { package = "$package", path = "$folder" }
tempfile = "3"
TOML
  example "$folder" >"$crate/src/main.rs"
  (cd "$crate" && cargo run --quiet)
}

for library in shm journal exchange; do
  package=bulkhead-$library
  if ! cargo publish --quiet --allow-dirty --dry-run -p "$package" 2>"$work/log"; then
    grep -qiE 'could not resolve host|failed to (connect|download|fetch)|registry is not' "$work/log" || { cat "$work/log"; exit 1; }
    echo "$package: NO REGISTRY CAN BE REACHED, only packaged"
    cargo package --quiet --allow-dirty --offline -p "$package"
  fi
  scratch "$root/$library" "$library" "$package"
  archive=$(find "$CARGO_TARGET_DIR/package" -name "$package-*.crate" -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
  tar -xzf "$archive" -C "$work"
  unpacked=$work/$(basename "$archive" .crate)
  scratch "$unpacked" "$library" "$package"
  for path in "$unpacked"/examples/*.rs; do
    [ -e "$path" ] || continue
    (cd "$unpacked" && cargo run --quiet --example "$(basename "$path" .rs)")
  done
  echo "$package: published in a dry run; its example runs over the path and over the archive"
done
