#!/usr/bin/env bash
# Replays exchange-core's feature files through the exchange (referees/scenarios): books, trades and open orders are those that its
# authors expect. A broken exchange must be found. Seconds.
#
#   EXCHANGE_CORE=CHECKOUT .ci/scenarios.sh     of exchange-core/exchange-core 2f85487
#
# Reports loudly that it skips them without the checkout.
set -euo pipefail
cd "$(dirname "$0")/../referees"
if [ -z "${EXCHANGE_CORE:-}" ]; then
  echo "SKIPPED, NO SCENARIO WAS REPLAYED: set EXCHANGE_CORE to a checkout of exchange-core/exchange-core"
  exit 0
fi
features=("$EXCHANGE_CORE"/src/test/resources/exchange/core2/tests/features/{basic,risk}.feature)
scenarios() { cargo run --quiet --locked --release -p scenarios -- "$@"; }
scenarios "${features[@]}"
if scenarios --broken "${features[@]}" >/dev/null; then echo "A BROKEN EXCHANGE WAS NOT FOUND"; exit 1; fi
echo "a broken exchange is found"
