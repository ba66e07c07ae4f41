#!/usr/bin/env bash
# semver.sh [REVISION]: compares the public interfaces of the packages that others can depend on
# with those of a revision: by default the newest tag `v*`. Fails if a change needs another version
# number than the one in Cargo.toml. Reports loudly that it compared nothing where there is no such
# tag yet, or no cargo-semver-checks: it takes some minutes to install, so only BULKHEAD_SLOW=1
# .ci/nightly does.
set -euo pipefail
cd "$(dirname "$0")/.."
revision=${1:-$(git tag --list 'v*' --sort=-v:refname | head -1)}
skipped() {
  echo "SKIPPED, NO PUBLIC INTERFACE WAS COMPARED: $1"
  exit 0
}
[ -n "$revision" ] || skipped "no tag v* yet; name a revision: bash .ci/semver.sh REVISION"
if ! cargo semver-checks --version >/dev/null 2>&1; then
  # Not optimised: each package takes it less than a second.
  cargo install --quiet --debug --locked cargo-semver-checks || skipped "cargo-semver-checks cannot be installed"
fi
cargo semver-checks --baseline-rev "$revision" -p bulkhead-shm -p bulkhead-journal -p bulkhead-exchange
