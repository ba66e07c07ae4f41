#!/usr/bin/env bash
# Replays CppTrader's cases and exchange-core's feature files through the exchange
# (referees/scenarios): books, trades and open orders are those that their authors expect. A broken
# exchange must be found. Seconds.
#
#   EXCHANGE_CORE=CHECKOUT .ci/scenarios.sh     of exchange-core/exchange-core 2f85487
#
# Reports loudly that it skips exchange-core's without the checkout.
set -euo pipefail
cd "$(dirname "$0")/../referees"
features=()
if [ -n "${EXCHANGE_CORE:-}" ]; then
  features=("$EXCHANGE_CORE"/src/test/resources/exchange/core2/tests/features/{basic,risk}.feature)
else
  echo "SKIPPED, NO SCENARIO OF EXCHANGE-CORE WAS REPLAYED: set EXCHANGE_CORE to a checkout of exchange-core/exchange-core"
fi
scenarios() { cargo run --quiet --locked --release -p scenarios -- "$@"; }
scenarios "${features[@]}"
if scenarios --broken "${features[@]}" >/dev/null; then echo "A BROKEN EXCHANGE WAS NOT FOUND"; exit 1; fi
echo "a broken exchange is found"
