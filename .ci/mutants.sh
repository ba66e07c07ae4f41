#!/usr/bin/env bash
# Proves that the orderings matter: weakens one at a time in a copy of the workspace, and expects
# the loom models to fail. x86 would hide most of these: its own orders are stronger than what the
# code asks for. The mutants are the lines of .ci/mutants.tsv, which names modules and not files.
#
#   .ci/mutants.sh [NAME…]   builds and runs them, or only those (minutes each). Exits 1 if a mutant
#                            survives that should not, or
#                            dies that should survive.
#   .ci/mutants.sh --check   builds nothing: each line changes exactly one line of its module, and
#                            .ci/mutants.md is their table
#   .ci/mutants.sh --write   writes that table
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
copy=$root/target/mutants
page=.ci/mutants.md
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0
# Each mutant is a build of its own: quick to build, since the models' time is small beside it.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

rows() { grep -v '^#' .ci/mutants.tsv; }

# file MODULE: crate::path::of::module is crate/src/path/of/module.rs, or the folder's mod.rs.
file() {
    local path=${1#*::}
    path=${1%%::*}/src/${path//::/\/}
    if [ -f "$path.rs" ]; then echo "$path.rs"; else echo "$path/mod.rs"; fi
}

# mutate FILE SCRIPT: the mutated text; fails unless exactly one line is another.
mutate() {
    local changed
    changed=$(sed "$2" "$1" | diff "$1" - | grep -c '^>') || true
    if [ "$changed" != 1 ]; then
        echo "$name: the pattern changes $changed lines of $1, not one: the source has moved on" >&2
        return 1
    fi
    sed "$2" "$1"
}

table() {
    cat <<'TEXT'
# Mutants of the orderings

Each row weakens one memory ordering, or leaves one step out, and the loom models must fail (`.ci/mutants.sh`). Made from
`.ci/mutants.tsv`; `.ci/mutants.sh --write` writes this page.

| mutant | module | weakened | killed by, or why it is expected to survive |
|---|---|---|---|
TEXT
    rows | while IFS=$'\t' read -r name module _ expected weakened why _; do
        [ "$expected" = killed ] || why="survives: $why"
        printf '| `%s` | `%s` | %s | %s |\n' "$name" "$module" "$weakened" "$why"
    done
}

case ${1:-} in
--write)
    table >$page
    exit 0
    ;;
--check)
    bad=0
    while IFS=$'\t' read -r name module _ _ _ _ script; do
        mutate "$(file "$module")" "$script" >/dev/null || bad=1
    done < <(rows)
    table | diff - $page || { echo "$page is out of date: run .ci/mutants.sh --write"; bad=1; }
    echo "$(rows | wc -l) mutants"
    exit $bad
    ;;
esac

fresh() {
    rm -rf "$copy/tree"
    mkdir -p "$copy/tree"
    # -m: new time stamps, or cargo would take an old mutant's build for this tree's.
    git ls-files -co --exclude-standard | tar -cf - -T - | tar -xmf - -C "$copy/tree"
}

# models LOG MODULE…: builds and runs the models of these modules of the crates' tests/loom.
models() {
    local log=$copy/$1.log module packages=()
    shift
    for module in "$@"; do
        # The package's name, which need not be its folder's.
        packages+=(-p "$(cd "$copy/tree" && sed -n 's/^name = "\(.*\)"/\1/p;T;q' "$(ls ./*/tests/loom/"$module".rs | cut -d / -f 2)/Cargo.toml")")
    done
    (cd "$copy/tree" && timeout 300 cargo test -q "${packages[@]}" --no-fail-fast --release --target-dir "$copy/build" --test loom -- \
        $(printf '%s:: ' "$@")) >"$log" 2>&1 </dev/null
}

only=" $* "
wrong=0
mkdir -p "$copy"
fresh
# Without a mutant: only the models that those to be run need, the others take minutes.
needed=$(rows | awk -F'\t' -v only="$only" 'only == "  " || index(only, " " $1 " ") { print $3 }' | tr ' ' '\n' | sort -u)
# shellcheck disable=SC2086 # a word each
models unchanged $needed ||
    { echo "the models fail without a mutant, see $copy/unchanged.log"; exit 2; }

while IFS=$'\t' read -r name module tests expected _ _ script; do
    case $only in "  " | *" $name "*) ;; *) continue ;; esac
    source=$(file "$module")
    mutate "$source" "$script" >"$copy/tree/$source" || exit 2
    if models "$name" $tests; then
        verdict=survived
    elif grep -q '^error: could not compile' "$copy/$name.log"; then
        echo "$name: does not compile, see $copy/$name.log"
        exit 2
    else
        verdict="killed by $(sed -n 's/^    \([a-z_:]*\)$/\1/p' "$copy/$name.log" | sort -u | paste -sd ' ')"
    fi
    case $expected:$verdict in
    killed:"killed by "?* | survived:survived) ;;
    *) verdict="$verdict  <-- EXPECTED: $expected" wrong=$((wrong + 1)) ;;
    esac
    printf '%-22s %s\n' "$name" "$verdict"
    cp "$source" "$copy/tree/$source"
done < <(rows)

echo "$wrong not as expected"
[ "$wrong" = 0 ]
