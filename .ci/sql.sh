#!/usr/bin/env bash
# Runs every query of the page "Questions in SQL" over two runs, with DuckDB from PyPI below
# target/; and one that is broken, which must fail. Reports loudly that it skips them without Python
# or a network.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet -p launcher --bin launcher
launcher=$PWD/target/debug/launcher
venv=$PWD/target/sql-venv
page=$PWD/docs/src/sql.md
skip() { echo "SKIPPED, NO QUERY WAS RUN: $1"; exit 0; }

if ! "$venv/bin/python" -c 'import duckdb' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 duckdb >"$venv.log" 2>&1 \
    || skip "DuckDB cannot be installed: $(tail -n 1 "$venv.log")"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for seed in 1 2; do
  run=$("$launcher" run --strategies 2 --venues 2 --orders 20k --window 400ms --delay uniform:1ms..5ms --seed "$seed" --quiet)
  "$launcher" export "$run" --csv "$run/orders.csv" >/dev/null
done
"$venv/bin/python" - "$page" <<'PYTHON'
import glob, os, re, sys
import duckdb

queries = [query.strip() for block in re.findall(r"^```sql\n(.*?)^```", open(sys.argv[1]).read(), re.S | re.M) for query in block.split(";") if query.strip()]
db = duckdb.connect()
tables = []
for path in sorted(glob.glob("runs/*/orders.csv")):
    tables.append(f"select *, '{os.path.basename(os.path.dirname(path))}' as run from '{path}'")
db.execute("create table orders as " + " union all ".join(tables))
for query in queries:
    rows = db.execute(query).fetchall()
    print(f"{len(rows):3} rows: {query.splitlines()[0][:100]}")
    assert rows, query
# What they say is true: the slowest order by SQL is the slowest of the summaries.
most = db.execute("select max((t8 - t1) - (t5 - t4)) from orders where measured").fetchone()[0]
told = db.execute("select max(rt_venue.max_ns) from read_json('runs/*/summary.json')").fetchone()[0]
assert abs(most - told) <= 4, (most, told)
try:
    db.execute(queries[0].replace("rt_venue_ns desc", "no_such_column desc"))
    sys.exit("broken: a column that there is not was taken")
except duckdb.Error:
    print(f"{len(queries)} queries ran, a broken one did not")
PYTHON
