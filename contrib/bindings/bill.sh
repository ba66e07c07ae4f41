#!/usr/bin/env bash
# The bill by language: the same strategy in Rust, C, C++, Java and Python, each a process of its
# own at one engine, in one run; the report's tables by strategy are the bill. Builds what it needs;
# a language whose runtime is missing is left out, and said.
#
#   contrib/bindings/bill.sh [--every NANOSECONDS] [--orders N] [--pauses ORDERS] [--debug]
#     [--dry-run] [flags of launcher run]
#
# An order of each is due every 100,000 ns (10,000/s), so that how late it is sent (slip) means the
# same in each language; --every 0: as soon as the one before is answered. --pauses: the garbage
# collectors of Java and Python are forced every so many orders; left out, never.
# --debug: built without optimisation, to try the script. --dry-run: prints the command. Everything
# else is for launcher run.
set -euo pipefail
cd "$(dirname "$0")/../.."
every=100000 orders=20000 pauses=0 dry= more=() profile=release release=--release
while [ $# -gt 0 ]; do
  case $1 in
    --every) every=$2; shift 2 ;;
    --orders) orders=$2; shift 2 ;;
    --pauses) pauses=$2; shift 2 ;;
    --debug) profile=debug release=; shift ;;
    --dry-run) dry=yes; shift ;;
    *) more+=("$1"); shift ;;
  esac
done
made=target/languages
mkdir -p $made/bill
built=target/$profile
# Each with the launcher's features: what both depend on is built once.
for what in "-p experiments" "-p bindings" "-p bindings --example strategy"; do
  cargo build --quiet $release -p launcher $what
done
cp $built/examples/strategy $made/bill/strategy-rust
programs=("$made/bill/strategy-rust $every")
link=(-I contrib/bindings/include -L $built -lbulkhead "-Wl,-rpath,$PWD/$built")
for compiled in "c cc -std=c11" "cpp c++ -std=c++17"; do
  read -r ending compiler standard <<<"$compiled"
  if command -v "$compiler" >/dev/null; then
    "$compiler" "$standard" -O2 contrib/bindings/examples/$ending/strategy.$ending "${link[@]}" -o $made/bill/strategy-$ending
    programs+=("$made/bill/strategy-$ending $every")
  else
    echo "no $compiler: without that language" >&2
  fi
done
{ [ $made/python/installed -nt $built/libbulkhead.so ] && [ -x $made/java/bin/java ]; } || bash .ci/languages.sh >&2
if [ -x $made/java/bin/java ]; then
  rm -rf $made/bill/classes
  $made/java/bin/javac -d $made/bill/classes contrib/bindings/java/src/bulkhead/*.java contrib/bindings/java/examples/Strategy.java
  flags="-Xmx64m -XX:+UseSerialGC --enable-native-access=ALL-UNNAMED -Dbulkhead.library=$PWD/$built/libbulkhead.so"
  programs+=("$made/java/bin/java $flags -cp $made/bill/classes Strategy $every $pauses")
else
  echo "no Java: without that language" >&2
fi
if [ -e $made/python/installed ]; then
  programs+=("$made/python/bin/python contrib/bindings/python/examples/strategy.py $every $pauses")
else
  echo "no Python: without that language" >&2
fi
kinds=player count=$((${#programs[@]} + 1))
for program in "${programs[@]}"; do kinds+=",exec:$program"; done
window=()
[ "$every" = 0 ] || window=(--window $((orders * every / 1000))us)
set -- $built/launcher run --strategy "$kinds" --strategies $count --venue book --venues 1 --technique spsc-mux \
  --orders $((orders * count)) "${window[@]}" "${more[@]}"
if [ -n "$dry" ]; then printf '%q ' "$@"; echo; else exec "$@"; fi
