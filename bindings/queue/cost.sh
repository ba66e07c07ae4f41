#!/usr/bin/env bash
# What a push and a pop cost from C and from C++ over Rust: `bindings/queue/cost.sh [--quick] [--instructions]`.
# Instructions on one thread (valgrind's callgrind, where it is there), and nanoseconds of alternated runs: on one thread, and between
# two, the median of all runs. 25 runs of 4 million messages; --quick: 3 of 200,000, to check the script. --instructions: only those.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=25 messages=4000000 timed=yes
for word in "$@"; do
  case $word in
  --quick) runs=3 messages=200000 ;;
  --instructions) timed= ;;
  *) echo "$word: no such option; see the head of $0" >&2 && exit 2 ;;
  esac
done
cargo build --quiet --release --package bulkhead-queue --example cost
cargo build --quiet --release --package bulkhead-queue
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/target/release/libbulkhead_queue.so" "$folder/libbulkhead_queue.so.1"
# WORDS LANGUAGE MESSAGES [one-thread]
program() {
  case $2 in
  Rust) target/release/examples/cost "$3" "$1" ${4:-} ;;
  *) "$folder/$2-$1" "$3" ${4:-} ;;
  esac
}
count() { # WORDS LANGUAGE MESSAGES
  local words=("$folder/$2-$1" "$3")
  [ "$2" != Rust ] || words=(target/release/examples/cost "$3" "$1")
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*push_and_pop*' "${words[@]}" one-thread 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }
for words in 1 3 7 125; do
  flags=(-O2 "-DWORDS=$words" -I bindings/queue/include)
  cc -std=c11 "${flags[@]}" bindings/queue/examples/cost/cost.c -o "$folder/C-$words" "$folder/libbulkhead_queue.so.1" -Wl,-rpath,'$ORIGIN' -lpthread
  c++ -std=c++17 "${flags[@]}" bindings/queue/examples/cost/cost.cpp -o "$folder/C++-$words" "$folder/libbulkhead_queue.so.1" -Wl,-rpath,'$ORIGIN' -lpthread
  echo "a message of $((8 * words)) bytes"
  if command -v valgrind >/dev/null; then
    for language in Rust C C++; do
      few=$(count "$words" "$language" 2000) many=$(count "$words" "$language" 12000)
      [ "${many:-0}" -gt "${few:-0}" ] || { echo "$language: nothing was counted" >&2; exit 1; }
      printf '  %-5s %6d instructions of a push and a pop\n' "$language" $(((many - few + 5000) / 10000))
    done
  else
    echo "  SKIPPED, NO INSTRUCTION WAS COUNTED: no valgrind here"
  fi
  [ -n "$timed" ] || continue
  for ((run = 0; run < runs; run++)); do
    for language in Rust C C++; do
      program "$words" "$language" "$messages" >>"$folder/$language-$words.ns"
    done
  done
  for language in Rust C C++; do
    printf '  %-5s %8.1f ns on one thread, %8.1f ns between two\n' "$language" \
      "$(awk '{ print $1 }' "$folder/$language-$words.ns" | median)" "$(awk '{ print $2 }' "$folder/$language-$words.ns" | median)"
  done
done
