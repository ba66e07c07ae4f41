#!/usr/bin/env bash
# Instructions of a push and a pop of one message on one thread, for each technique: `.ci/instructions.sh [NAME…]`. Needs
# valgrind. Counted inside the loop of pushes and pops only, as the difference of two runs of 20,000 and 120,000 messages.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "SKIPPED, NOTHING WAS COUNTED: no valgrind here"; exit 0; }
bench=$(cargo bench -q -p shm --bench handoffs --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*handoffs-[^"]*\)".*/\1/p' | tail -n 1)
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <("$bench" --bench one-thread --quick --json | grep -o '"what":"[^"]*"' | cut -d '"' -f 4)
count() { # NAME SAMPLES
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='handoffs::one_thread::push_and_pop*' "$bench" --bench one-thread --technique "$1" --samples "$2" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for name in "${names[@]}"; do
  few=$(count "$name" 2)
  many=$(count "$name" 12)
  printf '%-26s %5s instructions\n' "$name" "$(((many - few + 50000) / 100000))"
done
