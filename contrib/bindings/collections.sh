#!/usr/bin/env bash
# What a collector of garbage in one strategy does to the others: strategy-1 of three is the example
# in Python or Java, which collects every so many orders over 200,000 objects, or never, in turn;
# the others are the example in Rust. The figures are the others' alone.
#
#   contrib/bindings/collections.sh python|java [--every NANOSECONDS] [--orders N] [--pauses ORDERS]
#     [flags of launcher compare]
#
# Needs what contrib/bindings/bill.sh needs; builds it.
set -euo pipefail
cd "$(dirname "$0")/../.."
language=${1:?collections.sh python|java [flags]}
shift
every=100000 orders=30000 pauses=500 more=()
while [ $# -gt 0 ]; do
  case $1 in
    --every) every=$2; shift 2 ;;
    --orders) orders=$2; shift 2 ;;
    --pauses) pauses=$2; shift 2 ;;
    *) more+=("$1"); shift ;;
  esac
done
# Builds the programs of all languages, and what runs them.
bash contrib/bindings/bill.sh --dry-run >/dev/null
made=target/languages
case $language in
  python) program="$PWD/$made/python/bin/python $PWD/contrib/bindings/python/examples/strategy.py" ;;
  java) program="$PWD/$made/java/bin/java -Xmx64m -XX:+UseSerialGC --enable-native-access=ALL-UNNAMED -Dbulkhead.library=$PWD/target/release/libbulkhead.so -cp $PWD/$made/bill/classes Strategy" ;;
  *) echo "collections.sh python|java" >&2; exit 2 ;;
esac
# One program for all three strategies, so that it is one setting to compare.
wrapper() { # NAME ORDERS_BETWEEN_COLLECTIONS
  cat >"$made/$1" <<END
#!/bin/sh
case \$BULKHEAD_PROCESS in
  strategy-1) exec $program $every $2 ;;
  *) exec $PWD/$made/bill/strategy-rust $every ;;
esac
END
  chmod +x "$made/$1"
}
wrapper never-collects 0
wrapper collects "$pauses"
target/release/launcher compare --a "strategy=exec:$made/never-collects" --b "strategy=exec:$made/collects" --fault calm:strategy-1 \
  --strategies 3 --venue book --venues 1 --isolation process --idle park --orders "$orders" --window $((orders * every / 3000))us \
  ${more[@]+"${more[@]}"}
