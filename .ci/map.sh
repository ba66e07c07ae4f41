#!/bin/sh
# The map of the code, docs/map.md: one line a file, which is the beginning of the file's own
# documentation. `.ci/map.sh` prints it; `.ci/map.sh --write` writes the page; `.ci/map.sh --check`
# fails if the page is old.
set -eu
cd "$(dirname "$0")/.."
page=docs/map.md

map() {
    printf '# Map of the code\n\nFrom the documentation of each file (`.ci/map.sh --write`).\n'
    for crate in shm system techniques protocol journal strategy gateway exchange venue orchestrator roles roles/heap-techniques record planner supervision verdict catalog statistics analysis experiments run-memory simulation launcher contrib/bindings contrib/bindings/queue contrib/bridge contrib/bridge-aeron; do
        [ -d "$crate/src" ] || continue
        printf '\n## %s\n\n' "$crate"
        git ls-files -co --exclude-standard "$crate/src" | grep '\.rs$' | grep -v 'tests\.rs$\|/tests/\|/cases/\|/snapshots\|/fixtures' | sort | while read -r file; do
            [ -f "$file" ] || continue
            sed -n 's|^//! ||p; /^$/q' "$file" | tr '\n' ' ' | awk -v name="${file#"$crate"/src/}" '{
                line = $0
                gsub(/\[`|`\]/, "`", line); gsub(/\[|\]/, "", line)
                if (match(line, /[.?]( |$)/)) line = substr(line, 1, RSTART - 1)
                printf "- `%s`: %s\n", name, line
            }'
        done
    done
}

case "${1:-}" in
    --write) map >"$page.new" && mv "$page.new" "$page" ;;
    --check) map | diff "$page" - || { echo "the map of the code is old: .ci/map.sh --write"; exit 1; } ;;
    *) map ;;
esac
