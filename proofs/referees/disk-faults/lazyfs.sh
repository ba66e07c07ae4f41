#!/usr/bin/env bash
# Cuts the power of a journal on lazyfs (FUSE), a file system that forgets what was not synced. The
# victim is killed at each of its first syncs; then lazyfs forgets, and every acknowledged record
# must be recovered. A victim that never syncs must lose records.
#
#   disk-faults/lazyfs.sh LAZYFS DISK_FAULTS [NUMBERS]
#
# LAZYFS is the program of dsrhaslab/lazyfs a47a5ba, DISK_FAULTS ours. A second or less for each of
# the NUMBERS syncs.
set -euo pipefail
lazyfs=$1 program=$2 numbers=${3:-40}
place=$(mktemp -d)
server=""
stop() {
  fusermount3 -u "$place/mount" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  server=""
}
trap 'stop; rm -rf "$place"' EXIT
cat >"$place/config" <<TEXT
[faults]
fifo_path="$place/faults"
fifo_path_completed="$place/completed"
[cache]
apply_eviction=false
[cache.simple]
custom_size="50mb"
blocks_per_page=1
[filesystem]
log_all_operations=false
logfile="$place/log"
TEXT

# trial MODE NUMBER: prints the acknowledged record, and 0 or 1: whether it was recovered after the
# loss.
trial() {
  local last
  rm -rf "$place/mount" "$place/root" "$place/faults" "$place/completed"
  mkdir "$place/mount" "$place/root"
  "$lazyfs" "$place/mount" --config-path "$place/config" -o modules=subdir -o subdir="$place/root" -f >/dev/null 2>&1 &
  server=$!
  for _ in $(seq 100); do mountpoint -q "$place/mount" && [ -p "$place/completed" ] && break; sleep 0.05; done
  # The signal reaches strace too, and the shell would report it.
  { timeout 60 strace -f -q -o /dev/null -e trace=fdatasync -e "inject=fdatasync:signal=KILL:when=$2" \
      "$program" victim "$place/mount/journal" "$1" no >"$place/output" || true; } 2>/dev/null
  (echo lazyfs::clear-cache >"$place/faults") & timeout 10 head -n 1 "$place/completed" >/dev/null
  wait $! || true
  stop
  last=$(tail -n 1 "$place/output")
  if "$program" check "$place/root/journal" "${last:-0}" >"$place/recovered" 2>&1; then echo "${last:-0} 0"; else echo "${last:-0} 1"; fi
}

failed=0
for mode in every group; do
  for number in $(seq "$numbers"); do
    result=$(trial "$mode" "$number")
    [ "${result#* }" = 0 ] || { echo "$mode, power cut at sync $number: ${result% *} records acknowledged: $(cat "$place/recovered")"; failed=1; }
  done
  echo "$mode: power cut at each of $numbers syncs, the last after record ${result% *}"
done
# It makes fewer syncs, those of snapshots: it is killed at the last of them.
result=$(trial never 3)
if [ "${result#* }" = 1 ]; then echo "a victim that never syncs: found"; else echo "a victim that never syncs: NOT FOUND"; failed=1; fi
exit $failed
