#!/usr/bin/env bash
# Builds copies of the folder that the book says to copy: next to the original as it is, and
# elsewhere under another name with the path of `launcher` edited. A copy that is added to the
# workspace is resolved only: it must have the workspace's features.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
beside=$(mktemp -d contrib/examples/copied-XXXXXX)
elsewhere=$(mktemp -d)
trap 'rm -rf "$beside" "$elsewhere"' EXIT
# Both with the versions of this lock file, and with one folder for what is built.
export CARGO_TARGET_DIR=$root/target/copied
for copy in "$beside" "$elsewhere"; do
  cp -r contrib/examples/own-strategy/. "$copy"
  cp Cargo.lock "$copy"
done
(cd "$elsewhere" && grep -rl 'own.strategy' . | xargs sed -i 's/own-strategy/mine/g; s/own_strategy/mine/g')
sed -i "s#\"../../../launcher\"#\"$root/launcher\"#" "$elsewhere/Cargo.toml"
for copy in "$beside" "$elsewhere"; do
  (cd "$copy" && cargo check --quiet --all-targets)
  echo "a copy in $copy builds"
done

# As a member: in a clone, because the workspace's manifest is edited. The same features as the
# original, so nothing else is compiled.
git clone --quiet . "$elsewhere/clone"
cd "$elsewhere/clone"
cp -r contrib/examples/own-strategy contrib/examples/mine
(cd contrib/examples/mine && grep -rl 'own.strategy' . | xargs sed -i 's/own-strategy/mine/g; s/own_strategy/mine/g')
sed -i 's#"contrib/examples/own-strategy"#&, "contrib/examples/mine"#' Cargo.toml
tree() { cargo tree --quiet --package "$1" --edges normal,build --prefix none --format '{p} {f}' | sed "s#$1#copy#g" | sort -u; }
mine=$(tree mine)
[ "$mine" = "$(tree own-strategy)" ] || { echo "a copy in the workspace has other features than the original"; exit 1; }
echo "a copy in the workspace shares what is built"
