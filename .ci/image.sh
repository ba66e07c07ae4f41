#!/usr/bin/env bash
# Builds the release archive and the image of contrib/packaging/Dockerfile, and makes a run in it.
# With Docker where a daemon answers, else with buildah as root; skipped loudly where there is
# neither.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/runs"

skip() { echo "SKIPPED, NO IMAGE WAS BUILT: $1"; exit 0; }
# build FOLDER: makes the image from an unpacked release. run COMMAND…: runs the program in it.
if docker info >/dev/null 2>&1; then
  build() { docker build --quiet --file contrib/packaging/Dockerfile --tag bulkhead-ci "$1"; }
  run() { docker run --rm --shm-size=256m --volume "$work/runs:/data/runs" bulkhead-ci "$@"; }
elif command -v buildah >/dev/null && [ "$(id -u)" = 0 ]; then
  store=(buildah --root "$work/store" --runroot "$work/state" --storage-driver vfs)
  build() {
    "${store[@]}" bud --quiet --isolation chroot --file contrib/packaging/Dockerfile --tag bulkhead-ci "$1"
    container=$("${store[@]}" from localhost/bulkhead-ci)
  }
  # `buildah run` takes no entry point: it is named.
  run() { "${store[@]}" run --isolation chroot --volume "$work/runs:/data/runs" "$container" -- /launcher "$@"; }
else
  skip "it needs a Docker daemon, or buildah and root (apt-get install buildah)"
fi

rustup target add "$(uname -m)-unknown-linux-musl" >/dev/null 2>&1 || skip "rustup could not add the target for a static build"
bash contrib/packaging/release.sh "$work/release"
build "$(find "$work/release" -mindepth 1 -maxdepth 1 -type d)"
run run --technique spsc-mux --strategies 1 --venues 1 --orders 2k --window 200ms --delay 1ms --json >"$work/summary.json"
perl -MJSON::PP -0777 -ne 'my $s = decode_json($_); $s->{valid} && $s->{orders}{returned} == 2000 or die "the run in the image is not valid\n"' \
  "$work/summary.json"
# A usage error keeps its exit code through the image.
code=0
run run --capacity 2097152 >"$work/refused" 2>&1 || code=$?
[ "$code" = 2 ] || { cat "$work/refused"; echo "a capacity above the limit ended with $code, not with 2"; exit 1; }
echo "the image makes a valid run of 2,000 orders"
