#!/usr/bin/env bash
# Measures engines side by side: alternated runs of the unchanged harness on the same two cores.
# speed.sh FOLDER OUT [CORE_A CORE_B [SECONDS [ROUNDS]]]: FOLDER has harness, generator, reference/
# and *_adapter.so (a clone of the benchmark, or a copy of these); it stops after the time or the
# rounds, whichever comes first, and writes OUT/runs.csv and OUT/table.md.
set -u
folder=$(cd "${1:?speed.sh FOLDER OUT [CORE_A CORE_B [SECONDS [ROUNDS]]]}" && pwd)
mkdir -p "${2:?speed.sh FOLDER OUT [CORE_A CORE_B [SECONDS [ROUNDS]]]}"
out=$(cd "$2" && pwd)
core_a=${3:-0} core_b=${4:-1} seconds=${5:-600} rounds=${6:-10}
engines=${ENGINES:-bulkhead bulkhead_ring llc993 cpp_orderbook cpptrader}
scenarios="static normal swing-25 swing-40 flash-crash"
cd "$folder" || exit 1
mkdir -p results
for scenario in $scenarios; do
  file=orders_${scenario}_s23_n1000000.bin
  [ -e "$file" ] || ./generator "$scenario" "$file" 1000000 23 > /dev/null 2>&1 &
done
wait
until_s=$((SECONDS + seconds))
echo "round,scenario,engine,million_per_s,verdict" > "$out/runs.csv"
for round in $(seq 1 "$rounds"); do
  for scenario in $scenarios; do
    for engine in $engines; do
      [ $SECONDS -lt $until_s ] || break 3
      text=$(./harness --engine "./${engine}_adapter.so" --scenario "$scenario" --mode perf \
        --matcher-core "$core_a" --drainer-core "$core_b" 2>&1)
      speed=$(echo "$text" | sed -n 's/^ *Throughput: *\([0-9.]*\).*/\1/p')
      verdict=$(echo "$text" | sed -n 's/^Verdict: //p')
      echo "$round,$scenario,$engine,$speed,$verdict" >> "$out/runs.csv"
    done
  done
done
# Medians (lowest to highest) in million messages a second; the worst scenario's median in the end.
awk -F, -v engines="$engines" -v scenarios="$scenarios" '
  NR > 1 { n[$3, $2]++; v[$3, $2, n[$3, $2]] = $4 + 0; if ($5 != "VALID") invalid[$3]++ }
  function median(e, s,   i, j, t, c) {
    c = n[e, s]
    for (i = 2; i <= c; i++) for (j = i; j > 1 && v[e, s, j] < v[e, s, j - 1]; j--) {
      t = v[e, s, j]; v[e, s, j] = v[e, s, j - 1]; v[e, s, j - 1] = t }
    low = v[e, s, 1]; high = v[e, s, c]
    return c % 2 ? v[e, s, (c + 1) / 2] : (v[e, s, c / 2] + v[e, s, c / 2 + 1]) / 2
  }
  END {
    ne = split(engines, E, " "); ns = split(scenarios, S, " ")
    row = "| engine |"; rule = "|---|"
    for (s = 1; s <= ns; s++) { row = row " " S[s] " |"; rule = rule "---:|" }
    print row " worst | runs |"; print rule "---:|---:|"
    for (e = 1; e <= ne; e++) {
      row = "| " E[e] " |"; worst = 1e9; runs = 0
      for (s = 1; s <= ns; s++) {
        m = median(E[e], S[s]); if (m < worst) worst = m; runs += n[E[e], S[s]]
        row = row sprintf(" %.2f (%.2f–%.2f) |", m, low, high)
      }
      print row sprintf(" **%.2f** | %d%s |", worst, runs, invalid[E[e]] ? ", " invalid[E[e]] " INVALID" : "")
    }
  }' "$out/runs.csv" > "$out/table.md"
cat "$out/table.md"
