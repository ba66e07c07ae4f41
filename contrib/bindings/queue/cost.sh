#!/usr/bin/env bash
# What a push and a pop cost from Rust, C and C++: `contrib/bindings/queue/cost.sh [--quick]
# [--instructions] [--before FOLDER]`. For messages of 4 to 1,000 bytes: instructions on one thread
# (valgrind's callgrind, where it is there), and nanoseconds of alternated runs of 20,000 messages, 40
# for each language and size, with their quartiles.
#
#   caught up   the receiver takes each message before the next one is pushed
#   behind      it finds 512 messages each time
#   stream      two threads, as fast as they can
#   round trip  two threads, one message at a time, there and back
#
# "C" calls the library, "inline" is C without a call for each message, "copy" is two copies of a
# message's cache lines by the C library. On two quiet cores. --quick: 5 runs. --instructions: only
# those. --before FOLDER: also a program `cost-rust` and `cost-c-BYTES` of another build, in turn.
set -euo pipefail
cd "$(dirname "$0")/../../.."
runs=40 timed=yes before=
while [ $# -gt 0 ]; do
  case $1 in
  --quick) runs=5 ;;
  --instructions) timed= ;;
  --before) before=${2:?the folder of the other build} && shift ;;
  *) echo "$1: no such option; see the head of $0" >&2 && exit 2 ;;
  esac
  shift
done
cargo build --quiet --release --package bulkhead-queue --example cost
cargo build --quiet --release --package bulkhead-queue
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/target/release/libbulkhead_queue.so" "$folder/libbulkhead_queue.so.1"
programs=(Rust C inline C++)
[ -z "$before" ] || programs=(Rust-before "${programs[@]}" C-before)
sizes=(4 8 56 64 256 1000)

# PROGRAM BYTES MESSAGES: sets `command`.
command_of() {
  case $1 in
  Rust) command=(target/release/examples/cost "$3" "$2") ;;
  Rust-before) command=("$before/cost-rust" "$3" "$2") ;;
  C-before) command=("$before/cost-c-$2" "$3") ;;
  *) command=("$folder/$1-$2" "$3") ;;
  esac
}
# PROGRAM BYTES FUNCTION: instructions of a message.
instructions() {
  local counts=() count
  for count in 2048 12288; do
    command_of "$1" "$2" "$count"
    counts+=("$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*$3*" "${command[@]}" one-thread 2>&1 |
      sed -n 's/.*Collected : \([0-9]*\).*/\1/p')")
  done
  [ "${counts[1]:-0}" -gt "${counts[0]:-0}" ] || { echo "$1: nothing was counted" >&2; exit 1; }
  echo $(((counts[1] - counts[0] + 5120) / 10240))
}
# COLUMN FILE: median and quartiles of a column.
summary() {
  awk -v column="$1" '{ print $column }' "$2" | sort -n | awk '{ value[NR] = $1 } END {
    printf "%9.1f [%.1f-%.1f]", value[int((NR + 1) / 2)], value[int((NR + 3) / 4)], value[int((3 * NR + 1) / 4)] }'
}

for bytes in "${sizes[@]}"; do
  flags=(-O2 -Wall -Wextra -Werror "-DBYTES=$bytes" -I contrib/bindings/queue/include)
  link=("$folder/libbulkhead_queue.so.1" "-Wl,-rpath,\$ORIGIN" -lpthread)
  sources=contrib/bindings/queue/examples/cost
  cc -std=c11 "${flags[@]}" "$sources/cost.c" -o "$folder/C-$bytes" "${link[@]}"
  cc -std=c11 -DINLINE "${flags[@]}" "$sources/cost.c" -o "$folder/inline-$bytes" "${link[@]}"
  c++ -std=c++17 "${flags[@]}" "$sources/cost.cpp" -o "$folder/C++-$bytes" "${link[@]}"
  echo "push and pop of a message of $bytes bytes"
  if command -v valgrind >/dev/null; then
    printf '  %-12s %6d instructions\n' copy "$(instructions C "$bytes" copy_lines)"
    for program in "${programs[@]}"; do
      printf '  %-12s %6d instructions caught up, %6d behind\n' "$program" \
        "$(instructions "$program" "$bytes" push_and_pop)" "$(instructions "$program" "$bytes" push_then_pop)"
    done
  else
    echo "  SKIPPED, NO INSTRUCTION WAS COUNTED: no valgrind here"
  fi
  [ -n "$timed" ] || continue
  for ((run = 0; run < runs; run++)); do
    for program in "${programs[@]}"; do
      command_of "$program" "$bytes" 20000
      timeout 60 "${command[@]}" >>"$folder/$program-$bytes.ns"
    done
  done
  echo "  ns: median [quartiles]; caught up, behind, stream, round trip"
  printf '  %-12s %s\n' copy "$(summary 1 "$folder/C-$bytes.ns")"
  for program in "${programs[@]}"; do
    # A program in C prints the copies first.
    first=1 && case $program in C | inline) first=2 ;; esac
    printf '  %-12s' "$program"
    for column in 0 1 2 3; do printf ' %s' "$(summary $((first + column)) "$folder/$program-$bytes.ns")"; done
    echo
  done
done
