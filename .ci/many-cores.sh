#!/usr/bin/env bash
# What each isolation level costs and buys on a machine with many cores: the bills of
# docs/src/isolation-cost.md, the disturbances of docs/src/interference.md, the containment of
# threads and the seed benchmark's set-up, most important first, in parts of one to nine minutes.
# Needs the static programs of contrib/packaging/release.sh, beside each other, and no network. A
# part that does not fit into the time left is skipped by name.
#
#   LAUNCHER=./launcher bash .ci/many-cores.sh [FOLDER]     default: target/many-cores
#   BUDGET=540 PARTS="levels memory" bash .ci/many-cores.sh
#   PLANTED_PROGRAM=./planted PARTS=planted bash .ci/many-cores.sh       planted costs
#                                                                        (.ci/planted.sh), with the
#                                                                        program of proofs/planted
set -euo pipefail
launcher=$(realpath "${LAUNCHER:-target/release/launcher}") out=${1:-target/many-cores} budget=${BUDGET:-540}
parts=${PARTS:-levels disturb contain number memory park native binary limit shared seeds planted} planted=${PLANTED_PROGRAM:-}
mkdir -p "$out"
load="--technique spsc-mux --orders 60k --window 1s --delay uniform:1ms..20ms --venues 4"
mixed="--isolation thread+thread+process"
seed="--preset seed --threading dedicated --orders 400k --window 1s"

# A part: its name, the seconds that it takes, the command and its flags.
part() {
  local name=$1 seconds=$2 began=$SECONDS
  shift 2
  case " $parts " in *" ${name%%-*} "*) ;; *) return 0 ;; esac
  if [ $((SECONDS + seconds)) -gt "$budget" ]; then
    echo "== $name: SKIPPED, $seconds s do not fit into the $((budget - SECONDS)) s that are left"
    return 0
  fi
  echo "== $name: launcher $*"
  "$launcher" "$@" --out "$out/$name" >"$out/$name.txt" 2>"$out/$name.err" </dev/null || echo "== $name: FAILED, exit code $?"
  cat "$out/$name.txt"
  tail -n 5 "$out/$name.err"
  echo "== $name took $((SECONDS - began)) s"
}

"$launcher" doctor >"$out/doctor.txt" || true
# shellcheck disable=SC2086
{
  part levels 60 bill $load --isolation thread+thread+process+sandbox --strategies 4 --idle spin --repeats 20
  part disturb-levels 490 disturb --idle spin --isolation thread,process
  part contain 75 contain --technique spsc-mux --isolation thread
  part number-spin 125 bill $load $mixed --strategies 3,6,12 --idle spin --repeats 16
  part memory 125 bill $load $mixed --strategies 3 --idle spin --working-set 0,256KiB,4MiB,64MiB --repeats 12
  part number-one 60 bill $load --isolation thread,process --strategies 1 --idle spin --repeats 10
  part park 85 bill $load $mixed --strategies 3,12,30 --idle park --repeats 10
  part native 80 bill $load --isolation native,thread,process --strategies 4 --idle spin --repeats 10
  part binary 50 bill $load --isolation thread+process --strategies 2 --idle spin --binary shared,own --working-set 4MiB --repeats 10
  # The seed's set-up in four minutes: its rate of 400,000 orders/s, but 1 s of its 10, and 3 of its
  # 5 repeats. Then ours as processes, and a run that nothing pins. Whole: launcher sweep --preset
  # seed (half an hour).
  part seeds-tables 180 sweep $seed --technique std-mpsc,crossbeam-channel,crossbeam-array-queue,array-queue-mux,spsc-mux \
    --isolation thread --repeats 3
  part seeds-process 35 sweep $seed --technique spsc-mux --isolation thread,process --work 0ns,1500ns --repeats 3
  part seeds-pin 25 sweep $seed --technique spsc-mux --isolation thread --work 0ns --pin on,off --repeats 4
  for sweep in "$out"/seeds-tables/*/; do
    [ ! -d "$sweep" ] || "$launcher" export "$sweep" --svg "$out/seeds.svg" || true
  done
  part disturb-sandbox 245 disturb --idle spin --isolation sandbox
  part limit 340 disturb --find-limit --fault thrash --idle spin --isolation thread,process --steps 4
  part shared 60 bill $load $mixed --strategies 12,30 --strategy-cores 4 --idle yield --repeats 8
}
case " $parts " in *" planted "*)
  # Sixteen bills of half a minute.
  if [ -z "$planted" ]; then
    echo "== planted: SKIPPED, PLANTED_PROGRAM names no program"
  elif [ $((SECONDS + 520)) -gt "$budget" ]; then
    echo "== planted: SKIPPED, 520 s do not fit into the $((budget - SECONDS)) s that are left"
  else
    PROGRAM=$planted BILLS=${BILLS:-4} OUT=$out/planted FLAGS="$load --isolation thread+thread+process --strategies 3 --idle spin --repeats 16" \
      bash "$(dirname "$0")/planted.sh" || echo "== planted: not all found, exit code $?"
  fi
  ;;
esac
