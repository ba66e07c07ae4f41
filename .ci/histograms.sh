#!/usr/bin/env bash
# Reads the histograms.hlog of a run with HdrHistogram's own libraries: org.hdrhistogram 2.2.2 from
# Maven and hdr-histogram-js 3.0.1 from npm, below target/. Counts and percentiles must equal those
# of stages.csv, the smallest and the largest value to the bucket (a thousandth). A changed table
# must be found. Seconds, after the downloads.
#
#   LAUNCHER=PROGRAM .ci/histograms.sh     PROGRAM is target/release/launcher by default
#
# Reports loudly what it skips without Java and Maven, or without Node.js and npm, or without a
# network.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-$PWD/target/release/launcher}
readers=$PWD/target/readers
mkdir -p "$readers"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
"$launcher" run --orders 5k --window 500ms --quiet --out "$runs" >/dev/null
run=$(echo "$runs"/*/)

# compare READER TABLE: compares a reader's lines on the standard input with the columns of our
# table, and prints how many agree.
compare() {
  awk -F, -v reader="$1" '
    function near(one, other) { return one - other <= other / 1000 && other - one <= other / 1000 }
    FNR == 1 { file++ }
    file == 1 && FNR > 1 && $2 > 0 { ours[$1] = $0 }
    file == 2 {
      split(ours[$1], our, ",")
      # 1 stage, 2 count, 3 min, 4 p50, 5 p90, 6 p99, 7 p99.9 (empty for few samples), 9 max.
      good = our[2] == $2 && near(our[3], $3) && our[4] == $4 && our[5] == $5 && our[6] == $6 && near(our[9], $8)
      good = good && (our[7] == "" || our[7] == $7)
      if (!good) { print reader " reads " $0 ", stages.csv has " ours[$1]; bad = 1 }
      delete ours[$1]
      count++
    }
    END {
      for (stage in ours) { print reader " does not read " stage; bad = 1 }
      if (count == 0) bad = 1
      if (!bad) print reader ": " count " histograms agree"
      exit bad
    }' "$2" -
}

# check READER COMMAND…: compares what the command prints with our table, and with a broken one.
check() {
  local reader=$1
  shift
  "$@" "${run}histograms.hlog" >"$runs/read"
  compare "$reader" "${run}stages.csv" <"$runs/read"
  awk -F, -v OFS=, '$1 == "round_trip" { $4 += int($4 / 100) } { print }' "${run}stages.csv" >"$runs/broken.csv"
  if compare "$reader" "$runs/broken.csv" <"$runs/read" >/dev/null; then echo "$reader: A CHANGED TABLE WAS NOT FOUND"; exit 1; fi
}

jar=$readers/HdrHistogram-2.2.2.jar
if [ ! -f "$jar" ] && command -v mvn >/dev/null; then
  mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact=org.hdrhistogram:HdrHistogram:2.2.2 -DoutputDirectory="$readers" >"$readers/mvn.log" 2>&1 || true
fi
if [ -f "$jar" ] && command -v java >/dev/null; then
  check "org.hdrhistogram 2.2.2" java -cp "$jar" proofs/referees/histograms/Percentiles.java
else
  echo "SKIPPED, NO HISTOGRAM WAS READ BY org.hdrhistogram: no Java 17 with Maven, or no network"
fi
if [ ! -d "$readers/node_modules/hdr-histogram-js" ] && command -v npm >/dev/null; then
  npm install --silent --no-audit --no-fund --prefix "$readers" hdr-histogram-js@3.0.1 >"$readers/npm.log" 2>&1 || true
fi
if [ -d "$readers/node_modules/hdr-histogram-js" ]; then
  script=$PWD/proofs/referees/histograms/percentiles.mjs
  cd "$readers"
  check "hdr-histogram-js 3.0.1" node "$script"
else
  echo "SKIPPED, NO HISTOGRAM WAS READ BY hdr-histogram-js: no Node.js with npm, or no network"
fi
