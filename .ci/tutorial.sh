#!/usr/bin/env bash
# Runs the tutorial's commands word for word, in an empty folder that holds a clone of this
# repository. `--list` only prints them.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD page=docs/src/tutorial.md
commands=$(awk '/^```console$/ { on = 1; next } /^```/ { on = 0 } on && sub(/^\$ /, "")' "$page")
[ "${1:-}" = --list ] && { echo "$commands"; exit; }
for wanted in 'cargo run' 'launcher compare' 'kill:' '-p own-strategy' 'sed -i' 'technique=heap-ring'; do
  grep -q -- "$wanted" <<<"$commands" || { echo "$page: no command with $wanted: the search for commands is broken"; exit 1; }
done
work=$(mktemp -d) log=$(mktemp)
trap 'rm -rf "$work" "$log"' EXIT
git clone --quiet "$root" "$work/bulkhead"
# What is built outlives the folder: a rerun builds no crate of the registry again.
mkdir -p "$root/target/tutorial" "$work/.cargo"
printf '[build]\ntarget-dir = "%s"\n' "$root/target/tutorial" >"$work/.cargo/config.toml"
ln -s "$root/target/tutorial" "$work/bulkhead/target"
cd "$work"
while IFS= read -r command; do
  # In this shell: a command may change the folder or the path.
  if eval "$command" >"$log" 2>&1 </dev/null; then
    printf '%4ss  %s\n' "$SECONDS" "$command"
  else
    code=$?
    tail -n 40 "$log"
    echo "exit code $code: $command"
    exit 1
  fi
done <<<"$commands"
