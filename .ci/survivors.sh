#!/usr/bin/env bash
# Changes functions of journal, exchange and shm with cargo-mutants, and runs the tests of the
# package. A mutant that no test notices must be in survivors.tsv, which tells why. Each day of the
# year has its part of 24: about 160 mutants, 12 s each.
#
#   .ci/survivors.sh [PACKAGE…]             journal, exchange, shm
#   SHARD=5 .ci/survivors.sh exchange       another part than today's, from 0 to 23
#
# Installs cargo-mutants below target/ where it is missing. Reports loudly what it skips. Exits with
# 1 if a survivor is not known.
set -euo pipefail
# Mutants fill /dev/shm, and killed tests leave files there: they have one of their own, of 2 GB,
# where that may be mounted.
if [ -z "${OWN_SHM:-}" ] && unshare --mount mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
  OWN_SHM=1 exec unshare --mount bash -c 'mount -t tmpfs -o size=2g tmpfs /dev/shm; exec "$0" "$@"' "$(realpath "$0")" "$@"
fi
cd "$(dirname "$0")/.."
parts=24
shard=${SHARD:-$((10#$(date +%j) % parts))}
out=$PWD/target/survivors
export PATH="$out/tools/bin:$PATH" CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$out/build TMPDIR=$out/copies
mkdir -p "$TMPDIR"
if ! cargo mutants --version >/dev/null 2>&1; then
  CARGO_TARGET_DIR=$out/tools cargo install --quiet --locked --version 27.1.0 --root "$out/tools" cargo-mutants ||
    { echo "SKIPPED, NO MUTANT WAS MADE: cargo-mutants cannot be installed"; exit 0; }
fi

# Mutants without their line and column, which move.
names() { sed 's/:[0-9]*:[0-9]*: /: /' "$1" | sort -u; }
known() { grep -v '^#' .ci/survivors.tsv | cut -f 1 | sort -u; }

failed=0
[ $# -gt 0 ] || set -- journal exchange shm
for package in "$@"; do
  case $package in
  journal) options=(--timeout 120) ;;
  # State and its restoration compile with serde only.
  exchange) options=(--features serde --timeout 40) ;;
  shm) options=(--exclude '**/*tests.rs' --timeout 30) ;;
  *) echo "$package: journal, exchange or shm" >&2 && exit 2 ;;
  esac
  results=$out/$package-$shard
  rm -rf "$results"
  code=0
  cargo mutants --package "bulkhead-$package" "${options[@]}" --sharding round-robin --shard "$shard/$parts" --jobs 1 --baseline skip \
    --output "$results" --colors never --no-times -- --lib --tests >"$results.log" 2>&1 || code=$?
  # 0: all were noticed; 2: some survived; 3: some took too long, which notices them too.
  case $code in 0 | 2 | 3) ;; *) tail -n 20 "$results.log"; exit 1 ;; esac
  lists=$results/mutants.out
  echo "$package, part $shard of $parts: $(wc -l <"$lists/caught.txt") noticed, $(wc -l <"$lists/timeout.txt") noticed by their time," \
    "$(wc -l <"$lists/unviable.txt") do not compile, $(wc -l <"$lists/missed.txt") survive"
  unknown=$(comm -23 <(names "$lists/missed.txt") <(known))
  [ -z "$unknown" ] || { echo "not in survivors.tsv:"; echo "$unknown"; failed=1; }
done
exit $failed
