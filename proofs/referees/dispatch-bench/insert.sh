#!/usr/bin/env bash
# Copies a checkout of junhjang/nonblocking-dispatch-bench and adds bulkhead's ring as its fifth
# technique. Inserts our lines after anchors; changes one number of theirs, that of the techniques.
#
#   insert.sh CHECKOUT COPY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) theirs=$1 copy=$2
mkdir -p "$copy/src"
cp "$theirs/Cargo.toml" "$theirs/Cargo.lock" "$copy/"
cp "$here/bulkhead.rs" "$copy/src/"
# The first table of the manifest that has dependencies; and a workspace of its own.
sed "/^\[dependencies\]/a shm = { package = \"bulkhead-shm\", path = \"$here/../../../shm\" }" "$theirs/Cargo.toml" >"$copy/Cargo.toml"
printf '\n[workspace]\n' >>"$copy/Cargo.toml"
awk '
  function add(line) { print line; added++ }
  /^use crossbeam_queue::ArrayQueue;/ { print; add("mod bulkhead;"); next }
  /^enum Tech \{/ { print; add("    Bulkhead,"); next }
  /^const TECHS:/ { sub(/; 4\]/, "; 5]"); print; add("    (\"bulkhead spsc-mux\", Tech::Bulkhead),"); next }
  /^enum Tx \{/ { print; add("    Ours(bulkhead::Tx),"); next }
  /^enum Rx \{/ { print; add("    Ours(bulkhead::Rx),"); next }
  /fn try_push\(&self/ { in_push = 1 }
  /fn try_pop\(&mut self/ { in_pop = 1 }
  /^fn build\(/ { in_build = 1 }
  { print }
  in_push && /match self \{/ {
    add("            Tx::Ours(ring) => {"); add("                o.ts[idx] = Instant::now();")
    add("                ring.push(o)"); add("            }"); in_push = 0
  }
  in_pop && /match self \{/ { add("            Rx::Ours(ring) => ring.pop(),"); in_pop = 0 }
  in_build && /match tech \{/ {
    add("        Tech::Bulkhead => {"); add("            let (tx, rx) = bulkhead::build(np, spsc_cap);")
    add("            (tx.into_iter().map(Tx::Ours).collect(), Rx::Ours(rx))"); add("        }"); in_build = 0
  }
  END { if (added != 14) { print added " of 14 lines inserted: another version of their program?" >"/dev/stderr"; exit 1 } }
' "$theirs/src/main.rs" >"$copy/src/main.rs"
