#!/usr/bin/env bash
# What a push and a pop cost from C and from C++ over Rust: `contrib/bindings/queue/cost.sh
# [--quick] [--instructions]`. Instructions on one thread (valgrind's callgrind, where it is there),
# and nanoseconds of alternated runs of 20,000 messages, 150 for each language and size: the fastest
# one and the median, on one thread and between two. On quiet cores. --quick: 20 runs, to check the
# script. --instructions: only those.
set -euo pipefail
cd "$(dirname "$0")/../../.."
runs=150 timed=yes
for word in "$@"; do
  case $word in
  --quick) runs=20 ;;
  --instructions) timed= ;;
  *) echo "$word: no such option; see the head of $0" >&2 && exit 2 ;;
  esac
done
cargo build --quiet --release --package bulkhead-queue --example cost
cargo build --quiet --release --package bulkhead-queue
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/target/release/libbulkhead_queue.so" "$folder/libbulkhead_queue.so.1"
languages=(Rust C C++)

# LANGUAGE WORDS MESSAGES: sets `command`.
command_of() {
  command=("$folder/$1-$2" "$3")
  [ "$1" != Rust ] || command=(target/release/examples/cost "$3" "$2")
}
count() { # LANGUAGE WORDS MESSAGES
  command_of "$@"
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*push_and_pop*' "${command[@]}" one-thread 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
# COLUMN FILE: the fastest and the median of a column.
summary() {
  awk -v column="$1" '{ print $column }' "$2" | sort -n |
    awk '{ value[NR] = $1 } END { printf "%7.1f ns at best, %7.1f at the median", value[1], value[int((NR + 1) / 2)] }'
}

for words in 1 3 7 125; do
  flags=(-O2 -Wall -Wextra -Werror "-DWORDS=$words" -I contrib/bindings/queue/include)
  link=("$folder/libbulkhead_queue.so.1" "-Wl,-rpath,\$ORIGIN" -lpthread)
  cc -std=c11 "${flags[@]}" contrib/bindings/queue/examples/cost/cost.c -o "$folder/C-$words" "${link[@]}"
  c++ -std=c++17 "${flags[@]}" contrib/bindings/queue/examples/cost/cost.cpp -o "$folder/C++-$words" "${link[@]}"
  echo "push and pop of a message of $((8 * words)) bytes"
  if command -v valgrind >/dev/null; then
    for language in "${languages[@]}"; do
      few=$(count "$language" "$words" 2000) many=$(count "$language" "$words" 12000)
      [ "${many:-0}" -gt "${few:-0}" ] || { echo "$language: nothing was counted" >&2; exit 1; }
      printf '  %-4s  %6d instructions\n' "$language" $(((many - few + 5000) / 10000))
    done
  else
    echo "  SKIPPED, NO INSTRUCTION WAS COUNTED: no valgrind here"
  fi
  [ -n "$timed" ] || continue
  for ((run = 0; run < runs; run++)); do
    for language in "${languages[@]}"; do
      command_of "$language" "$words" 20000
      timeout 60 "${command[@]}" >>"$folder/$language-$words.ns"
    done
  done
  for language in "${languages[@]}"; do
    printf '  %-4s  one thread %s;  two threads %s\n' "$language" "$(summary 1 "$folder/$language-$words.ns")" "$(summary 2 "$folder/$language-$words.ns")"
  done
done
