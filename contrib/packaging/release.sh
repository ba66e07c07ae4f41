#!/usr/bin/env bash
# Makes a release archive: static programs that run on any Linux of this architecture, with its
# shell completions and man pages, and a checksum beside it.
#
#   contrib/packaging/release.sh [FOLDER]     default: target/release-archive
#
# The same commit gives the same bytes: paths of this machine are replaced, the archive is sorted
# and has the time of the commit. Needs rustup, tar and gzip.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out=${1:-target/release-archive}
machine=$(uname -m)
target=$machine-unknown-linux-musl
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=bulkhead-$version-$machine-linux
rustup target add "$target" >/dev/null 2>&1 || { echo "rustup could not add the target $target; add it and run again" >&2; exit 1; }

unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS CARGO_PROFILE_RELEASE_DEBUG
remap="--remap-path-prefix=$root=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
RUSTFLAGS="$remap" CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=symbols \
  cargo build --release --quiet --locked --package launcher --package experiments --target "$target"

rm -rf "$out/$name"
mkdir -p "$out/$name/completions" "$out/$name/man"
# One program under two names: as the book calls it, and as the project is called.
cp "${CARGO_TARGET_DIR:-target}/$target/release/"{launcher,bulkhead,bulkhead-experiments} "$out/$name/"
cp LICENSE README.md "$out/$name/"
for shell in bash fish zsh; do
  "$out/$name/launcher" completions "$shell" >"$out/$name/completions/launcher.$shell"
done
"$out/$name/launcher" man --out "$out/$name/man" >/dev/null

time=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --directory "$out" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
  --create "$name" | gzip --no-name --best >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
