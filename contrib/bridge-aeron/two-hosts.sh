#!/usr/bin/env bash
# Two hosts on this machine and a run on each, the strategies of one trading at the engine of the
# other: namespaces of their own for the network, processes, mounts, /dev/shm and the monotonic
# clock, which is 1,000 s ahead on the engine's host. Prints both reports; what crossed stands at
# the end. Needs root. AtomicWords are the load of both runs, instead of these:
# contrib/bridge-aeron/two-hosts.sh --orders 10k --window 5s --delay fixed:1ms
set -euo pipefail
cd "$(dirname "$0")"
bridge=${BRIDGE:-$PWD/target/release/bulkhead-bridge}
[ -x "$bridge" ] || { echo "there is no $bridge: cargo build --release here, or name it in BRIDGE"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "namespaces like these take root"; exit 1; }
[ $# -gt 0 ] || set -- --orders 10k --window 5s --delay fixed:1ms
out=$(mktemp -d)
inits=()
# Whatever runs in a host ends with it, and so does its end of the cable.
finish() {
  for init in "${inits[@]}"; do
    kill -9 "$init" 2>/dev/null || true
    wait "$init" 2>/dev/null || true
  done
  rm -rf "$out"
}
trap finish EXIT

# A host, whose clock is ahead by so many seconds; its first process is told in `first`.
host() {
  unshare --net --mount --pid --ipc --time --monotonic "$1" --fork --kill-child --mount-proc \
    sh -c 'mount -t tmpfs tmpfs /dev/shm && ip link set lo up && exec sleep infinity' 2>/dev/null &
  inits+=("$!")
  for _ in $(seq 500); do
    first=$(cat "/proc/$!/task/$!/children" 2>/dev/null | tr -d ' ')
    [ -n "$first" ] && [ "$(cat "/proc/$first/comm" 2>/dev/null)" = sleep ] && return
    sleep 0.01
  done
  echo "no host" && exit 1
}
in_host() { local pid=$1; shift; nsenter --target "$pid" --net --mount --pid --ipc --time -- "$@"; }

host 1000; engine=$first
host 0; far=$first
# The cable between them. Process ids are this host's, so only the network is entered.
nsenter --target "$engine" --net ip link add cable type veth peer name cable netns "$far"
in_host "$engine" ip addr add 10.77.0.1/24 dev cable
in_host "$far" ip addr add 10.77.0.2/24 dev cable
in_host "$engine" ip link set cable up
in_host "$far" ip link set cable up

in_host "$far" "$bridge" join two-hosts@10.77.0.1:40400 --strategies 2 "$@" --out "$out/far" >"$out/far.txt" 2>&1 &
joined=$!
in_host "$engine" "$bridge" run --remote two-hosts@10.77.0.1:40400 "$@" --out "$out/engine"
code=0
wait "$joined" || code=$?
cat "$out/far.txt"
exit "$code"
