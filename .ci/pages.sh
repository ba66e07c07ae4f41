#!/usr/bin/env bash
# Checks the HTML that bulkhead writes with other people's checkers: each kind of report page, and
# the book where mdbook is installed. vnu-jar (the W3C's Nu checker, with Java) and axe-core 4.14.1
# in Debian's chromium, from npm below target/, at 390 and 1,280 px, light and dark. A broken page
# must be found by both. Two minutes, after the downloads.
#
#   LAUNCHER=PROGRAM .ci/pages.sh     PROGRAM is target/release/launcher by default
#
# Reports loudly what it skips without Java, chromium, npm or a network.
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=${LAUNCHER:-$PWD/target/release/launcher}
tools=$PWD/target/pages
axe=$PWD/proofs/referees/pages/axe.cjs
mkdir -p "$tools"
if [ ! -d "$tools/node_modules/puppeteer-core" ]; then
  npm install --silent --no-audit --no-fund --prefix "$tools" vnu-jar@26.9.27 axe-core@4.14.1 puppeteer-core >"$tools/npm.log" 2>&1 \
    || { echo "SKIPPED, NO PAGE WAS CHECKED: no Node.js with npm, or no network"; exit 0; }
fi
command -v chromium >/dev/null || apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 || true

runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
few="--strategies 1 --venues 2 --orders 500 --window 200ms --delay fixed:1ms"
"$launcher" run --orders 2k --window 200ms --quiet --out "$runs/run" >/dev/null || true
# shellcheck disable=SC2086 # options
"$launcher" bill --technique spsc-mux --isolation process $few --repeats 2 --out "$runs/bill" >/dev/null 2>&1 || true
"$launcher" contain --technique spsc-mux --isolation process --fault kill --out "$runs/contain" >/dev/null 2>&1 || true
# shellcheck disable=SC2086 # options
"$launcher" sweep --technique spsc-mux,linked $few --repeats 2 --out "$runs/sweep" >/dev/null 2>&1 || true
mapfile -t pages < <(find "$runs" -maxdepth 3 -name report.html | sort)
[ "${#pages[@]}" -ge 4 ] || { echo "only ${#pages[@]} pages were written: ${pages[*]}"; exit 1; }
if command -v mdbook >/dev/null; then
  mdbook build docs --dest-dir "$runs/book" >/dev/null 2>&1
  # The chapters; mdbook's own pages (print, 404) are not ours, nor is the bar at the top of each.
  mapfile -t -O "${#pages[@]}" pages < <(find "$runs/book" -name '*.html' ! -name print.html ! -name 404.html ! -name toc.html | sort)
else
  echo "SKIPPED, THE BOOK WAS NOT CHECKED: no mdbook"
fi

# A page with an invalid attribute, an image without a text and a table's head without one.
sed 's|<main|<img src="none.png" wide="1"><table><tr><th></th></tr></table><main|; s|<body>|<body><img src="none.png" wide="1"><table><tr><th></th></tr></table>|' \
  "${pages[0]}" >"$runs/broken.html"

# Not counted: an inline script "violates" the policy for scripts. vnu does not compare a script
# with the hash that the policy names; chromium does, and reports an error on its console, which
# axe.cjs prints. Nor the label of mdbook's sidebar, which its template has in the bar.
vnu() {
  java -jar "$tools/node_modules/vnu-jar/build/dist/vnu.jar" --format gnu "$@" 2>&1 |
    grep -v -e 'Inline script violates Content Security Policy' -e 'must not be used on any “label” element' || true
}
if command -v java >/dev/null; then
  found=$(vnu "${pages[@]}")
  [ -z "$found" ] || { echo "$found" | cut -c 1-300; exit 1; }
  [ -n "$(vnu "$runs/broken.html")" ] || { echo "vnu: A BROKEN PAGE WAS NOT FOUND"; exit 1; }
  echo "vnu: ${#pages[@]} pages are valid, a broken one is found"
else
  echo "SKIPPED, NO PAGE WAS VALIDATED: no Java"
fi
if command -v chromium >/dev/null; then
  cd "$tools"
  node "$axe" "$(command -v chromium)" "${pages[@]}"
  if node "$axe" "$(command -v chromium)" "$runs/broken.html" >/dev/null; then echo "axe: A BROKEN PAGE WAS NOT FOUND"; exit 1; fi
  echo "axe: ${#pages[@]} pages without a finding, a broken one is found"
else
  echo "SKIPPED, NO PAGE WAS OPENED: no chromium"
fi
