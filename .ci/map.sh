#!/bin/sh
# The README's map of the code: one line a file, which is the first sentence of the file's own documentation.
# `.ci/map.sh` prints it; `.ci/map.sh --write` puts it into the README; `.ci/map.sh --check` fails if the README's is old.
set -eu
cd "$(dirname "$0")/.."

map() {
    for crate in shm protocol analysis strategy gateway orchestrator launcher; do
        printf '%s/src/\n' "$crate"
        git ls-files "$crate/src" | grep '\.rs$' | grep -v '/tests\.rs$' | sort | while read -r file; do
            sed -n 's|^//! ||p; /^$/q' "$file" | tr '\n' ' ' | awk -v name="${file#"$crate"/src/}" '{
                line = $0
                gsub(/`|\[|\]/, "", line)
                if (match(line, /[.?]( |$)/)) line = substr(line, 1, RSTART - 1)
                if (length(line) > 92) { line = substr(line, 1, 91); sub(/ [^ ]*$/, " …", line) }
                printf "  %-32s %s\n", name, line
            }'
        done
    done
}

# The README with the map of now between its two marks.
readme() {
    map >"${TMPDIR:-/tmp}/bulkhead-map.$$"
    awk -v map="${TMPDIR:-/tmp}/bulkhead-map.$$" '
        /^<!-- map -->$/ { print; print "```"; while ((getline line < map) > 0) print line; print "```"; skip = 1 }
        /^<!-- end of map -->$/ { skip = 0 }
        !skip { print }' README.md
    rm -f "${TMPDIR:-/tmp}/bulkhead-map.$$"
}

case "${1:-}" in
    --write) readme >README.new && mv README.new README.md ;;
    --check) readme | diff README.md - || { echo "the README's map is old: .ci/map.sh --write"; exit 1; } ;;
    *) map ;;
esac
