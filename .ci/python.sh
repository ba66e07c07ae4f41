#!/usr/bin/env bash
# Opens what the launcher writes for other programs with those programs' own readers: traces with
# Perfetto's messages, metrics with Prometheus' parser, from PyPI below target/. The tests hold
# broken texts, which the parser must refuse. Reports loudly that it skips them without Python or a
# network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/python-venv
skip() { echo "SKIPPED, NOTHING WAS OPENED: $1"; exit 0; }

if ! "$venv/bin/python" -c 'import perfetto, prometheus_client' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 perfetto prometheus-client >"$venv.log" 2>&1 \
    || skip "the packages cannot be installed: $(tail -n 1 "$venv.log")"
fi
for test in exports::exports_are_read_by_what_they_are_for live::watching::metrics_are_read_by_the_parser_of_prometheus; do
  BULKHEAD_PYTHON=$venv/bin/python cargo test --quiet --workspace --test all -- --exact "$test" --nocapture
done
