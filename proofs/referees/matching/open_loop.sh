#!/usr/bin/env bash
# Plays the benchmark's five flows at several rates against engines, in an open loop, in turn.
# open_loop.sh FOLDER OUT [CORE_A CORE_B [SECONDS [ROUNDS]]]: FOLDER has the generator and
# *_adapter.so (a clone of the benchmark, or a copy of these) and, where there is no cargo,
# open-loop. It stops after the time or the rounds, whichever comes first, and writes
# OUT/open-loop.csv and OUT/open-loop.md. ENGINES and RATES (million messages a second) choose what
# is run.
set -eu
usage="open_loop.sh FOLDER OUT [CORE_A CORE_B [SECONDS [ROUNDS]]]"
folder=$(cd "${1:?$usage}" && pwd)
mkdir -p "${2:?$usage}"
out=$(cd "$2" && pwd) here=$(cd "$(dirname "$0")" && pwd)
core_a=${3:-0} core_b=${4:-1} seconds=${5:-600} rounds=${6:-5}
engines=${ENGINES:-bulkhead bulkhead_ring llc993 cpp_orderbook cpptrader}
rates=${RATES:-1 2 4 6 8 10}
scenarios=${SCENARIOS:-static normal swing-25 swing-40 flash-crash}
driver=$folder/open-loop
if [ ! -x "$driver" ]; then
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/../target} RUSTFLAGS=${RUSTFLAGS:--C target-cpu=native}
  cargo build --release --quiet --manifest-path "$here/Cargo.toml" --bin open-loop --features open-loop
  driver=$CARGO_TARGET_DIR/release/open-loop
fi
cd "$folder"
for scenario in $scenarios; do
  file=orders_${scenario}_s23_n1000000.bin
  [ -e "$file" ] || ./generator "$scenario" "$file" 1000000 23 >/dev/null 2>&1
done
until_s=$((SECONDS + seconds))
echo "round,engine,scenario,million_per_s,p50_ns,p99_ns,p999_ns,max_ns,reached_per_s,reports,window_p50_ns,window_p99_ns,window_p999_ns,disturbed_windows" >"$out/open-loop.csv"
for round in $(seq "$rounds"); do
  for rate in $rates; do
    for scenario in $scenarios; do
      for engine in $engines; do
        [ $SECONDS -lt $until_s ] || break 4
        [ -e "./${engine}_adapter.so" ] || continue
        # A flow is played in two seconds at the lowest rate: an engine that does not keep up gets
        # ten times that.
        figures=$(timeout 30 "$driver" "./${engine}_adapter.so" "orders_${scenario}_s23_n1000000.bin" "${rate}000000" "$core_a" "$core_b") || figures=",,,,,,,,,"
        echo "$round,$engine,$scenario,$rate,$figures" >>"$out/open-loop.csv"
      done
    done
  done
done
python3 "$here/open_loop.py" "$out/open-loop.csv" "$(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), cores $core_a and $core_b" | tee "$out/open-loop.md"
