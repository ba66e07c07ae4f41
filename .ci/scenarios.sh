#!/usr/bin/env bash
# Replays CppTrader's cases, exchange-core's feature files and a NASDAQ hour of LOBSTER through the
# exchange (proofs/referees/scenarios): books, trades and open orders are those that their authors
# expect, or that NASDAQ recorded. Each replay must find a broken exchange. Seconds.
#
#   EXCHANGE_CORE=CHECKOUT LOBSTER=FILE .ci/scenarios.sh
#
# EXCHANGE_CORE is a checkout of exchange-core/exchange-core 2f85487. LOBSTER is
# crates/wingfoil/examples/core/order_book/data/aapl.csv of wingfoil-io/wingfoil 9d712a8, whose
# counts are checked too. Reports loudly that it skips what is not set.
set -euo pipefail
cd "$(dirname "$0")/../proofs/referees"
files=()
if [ -n "${EXCHANGE_CORE:-}" ]; then
  files+=("$EXCHANGE_CORE"/src/test/resources/exchange/core2/tests/features/{basic,risk}.feature)
else
  echo "SKIPPED, NO SCENARIO OF EXCHANGE-CORE WAS REPLAYED: set EXCHANGE_CORE to a checkout of exchange-core/exchange-core"
fi
if [ -n "${LOBSTER:-}" ]; then
  files+=("$LOBSTER")
else
  echo "SKIPPED, NO RECORDED HOUR OF NASDAQ WAS REPLAYED: set LOBSTER to aapl.csv of wingfoil-io/wingfoil 9d712a8"
fi
scenarios() { cargo run --quiet --locked --release -p scenarios -- "$@"; }
output=$(scenarios "${files[@]}") || { echo "$output"; exit 1; }
echo "$output"
if [ -n "${LOBSTER:-}" ]; then
  for counts in "91997 messages, 91904 expectations hold, 0 differ" "left out: 9 executions" "72 deletions, 12 executions"; do
    grep -q "$counts" <<<"$output" || { echo "THE COUNTS OF $LOBSTER ARE NOT THE EXPECTED ONES: $counts"; exit 1; }
  done
fi
# Exits with 1 only if each replay differs.
status=0
scenarios --broken "${files[@]}" >/dev/null || status=$?
if [ "$status" -ne 1 ]; then echo "A BROKEN EXCHANGE WAS NOT FOUND"; exit 1; fi
echo "a broken exchange is found"
