#!/usr/bin/env bash
# The binary interface of the queue's C library against that of the last release,
# contrib/bindings/queue/abi: `.ci/abi.sh`. Functions and constants may be added, none may change or
# go. `.ci/abi.sh --write` writes it, when a release is made.
#
# abidiff reads a library that is compiled from the header, in which every function is a trap: the
# types of C, without those of the Rust code. That the header is the code's is checked by
# contrib/bindings/queue/tests/header.rs; that the real library exports just these functions is
# checked here. So are broken headers, which must be found.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
last=contrib/bindings/queue/abi/bulkhead_queue
header=contrib/bindings/queue/include/bulkhead_queue.h

if ! command -v abidiff >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { apt-get update && apt-get install --yes --no-install-recommends abigail-tools; } >/dev/null 2>&1 || true
fi
command -v abidiff >/dev/null || { echo "SKIPPED, NO INTERFACE WAS COMPARED: no abidiff here, and it cannot be installed"; exit 0; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# HEADER NAME: compiles the header's functions to the library NAME.
library_of() {
  { printf '#include <stddef.h>\n#include <stdint.h>\n'; grep -v '^#include' "$1" | cc -E -P -x c - | sed 's/);$/) { __builtin_trap(); }/'; } >"$2.c"
  cc -g -O0 -fPIC -shared -Wl,-soname,libbulkhead_queue.so.1 -o "$2" "$2.c"
}
constants() { sed -n 's/^#define \(BHQ_[A-Z_]* .*\)/\1/p' "$1" | grep -v '^BHQ_VERSION ' | sort; }
functions() { nm --dynamic --defined-only "$1" | awk '$2 == "T" { print $3 }' | grep '^bhq_' | sort; }

# HEADER: succeeds if it has all that the last release has, unchanged.
is_compatible() {
  local now=$folder/now.so gone
  library_of "$1" "$now"
  gone=$(comm -23 "$last.constants" <(constants "$1"))
  [ -z "$gone" ] || { echo "constants that changed or are gone: $gone"; return 1; }
  abidiff --no-architecture --no-added-syms --no-show-locs "$last.abi" "$now"
}

if [ "${1:-}" = --write ]; then
  library_of "$header" "$folder/libbulkhead_queue.so"
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-architecture "$folder/libbulkhead_queue.so" |
    sed "s|path='[^']*'|path='bulkhead_queue.h'|" >"$last.abi"
  constants "$header" >"$last.constants"
  echo "written: $last.abi, $last.constants"
  exit
fi

is_compatible "$header" || { echo "the interface of $header is not that of the last release" >&2; exit 1; }

# NAME SED-EXPRESSION: the header, changed so, must be refused.
refused() {
  sed -e "$2" "$header" >"$folder/broken.h"
  ! cmp --quiet "$header" "$folder/broken.h" || { echo "$1: nothing was broken" >&2; exit 1; }
  ! is_compatible "$folder/broken.h" >/dev/null 2>&1 || { echo "$1: was not found" >&2; exit 1; }
  echo "found: $1"
}
refused "a removed function" '/^int32_t bhq_release(/d'
refused "a narrower argument" '/^int32_t bhq_prod/s/uint32_t index/uint16_t index/'
refused "another handle" 's/^int32_t bhq_push(bhq_sender \*/int32_t bhq_push(bhq_receiver */'
refused "another result" 's/^int32_t bhq_pop(/int64_t bhq_pop(/'
refused "another constant" 's/^#define BHQ_FULL -1$/#define BHQ_FULL -2/'
printf "#define BHQ_ADDED 1\nint32_t bhq_added(void);\n" >"$folder/added"
sed "/^int32_t bhq_release(/r $folder/added" "$header" >"$folder/added.h"
is_compatible "$folder/added.h" >/dev/null || { echo "an added function was refused" >&2; exit 1; }

cargo build --quiet --package bulkhead-queue
diff <(functions "$folder/now.so" | grep -v '^bhq_added$') <(functions target/debug/libbulkhead_queue.so) ||
  { echo "the library and its header have different functions" >&2; exit 1; }
echo "the interface is that of the last release: $(functions target/debug/libbulkhead_queue.so | wc -l) functions, $(wc -l <"$last.constants") constants"
