#!/usr/bin/env bash
# Makes the system calls of a journal fail, one after the other with strace and at random with
# fiu-run, and cuts its power on lazyfs (proofs/referees/disk-faults). Acknowledged records survive,
# errors are reported, nothing panics; broken victims are found. About five minutes, at most 200 MB
# of a temporary folder.
#
#   LAZYFS=PROGRAM .ci/disk-faults.sh     PROGRAM is that of dsrhaslab/lazyfs, which this does not
#                                         build
#
# Installs Debian's strace and fiu-utils where it may. Reports loudly what it skips.
set -euo pipefail
cd "$(dirname "$0")/../proofs/referees"
missing() { ! command -v "$1" >/dev/null; }
if missing strace || missing fiu-run; then
  apt-get install -y -qq --no-install-recommends strace fiu-utils >/dev/null 2>&1 || true
fi
cargo build --quiet --locked --release -p disk-faults || { echo "SKIPPED, NO FAULT WAS INJECTED: the crates cannot be had"; exit 0; }
program=${CARGO_TARGET_DIR:-target}/release/disk-faults
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
if missing strace; then
  echo "SKIPPED, NO CALL WAS MADE TO FAIL: no strace"
else
  timeout 1800 "$program" strace "$place/strace"
fi
if missing fiu-run; then
  echo "SKIPPED, NO CALL FAILED AT RANDOM: no fiu-run (Debian's fiu-utils)"
else
  timeout 900 "$program" fiu "$place/fiu" 240
fi
if [ -z "${LAZYFS:-}" ] || [ ! -e /dev/fuse ] || missing fusermount3; then
  echo "SKIPPED, NO POWER WAS CUT: set LAZYFS to the program of lazyfs; it needs /dev/fuse and fusermount3"
else
  timeout 900 bash disk-faults/lazyfs.sh "$LAZYFS" "$program"
fi
