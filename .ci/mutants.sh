#!/bin/sh
# Proves that the orderings matter: weakens one at a time in a copy of the workspace, and expects the loom models to
# fail. x86 would hide most of these: its own orders are stronger than what the code asks for.
# `.ci/mutants.sh [NAME…]` runs only those. Exits 1 if a mutant survives.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
copy=$root/target/mutants
only=" $* "
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0
# Each mutant is a build of its own: quick to build, since the models' time is small beside it.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
survivors=0

fresh() {
    rm -rf "$copy/tree"
    mkdir -p "$copy/tree"
    git ls-files -co --exclude-standard | tar -cf - -T - | tar -xf - -C "$copy/tree"
}

models() {
    (cd "$copy/tree" && timeout 300 cargo test -q -p shm --release --target-dir "$copy/build" \
        --no-fail-fast --test loom_ring --test loom_control) >"$copy/$1.log" 2>&1
}

# mutant NAME FILE SCRIPT: applies the sed script to shm/src/FILE, where it must change exactly one line.
mutant() {
    case $only in "  " | *" $1 "*) ;; *) return 0 ;; esac
    file=$copy/tree/shm/src/$2
    sed "$3" "shm/src/$2" >"$file"
    changed=$(diff "shm/src/$2" "$file" | grep -c '^>') || true
    if [ "$changed" != 1 ]; then
        echo "$1: the pattern changes $changed lines of $2, not one: the source has moved on"
        exit 2
    fi
    if models "$1"; then
        verdict=SURVIVED
        survivors=$((survivors + 1))
    elif grep -q '^error: could not compile' "$copy/$1.log"; then
        echo "$1: does not compile, see $copy/$1.log"
        exit 2
    else
        verdict=$(sed -n 's/^    \([a-z_]*\)$/\1/p' "$copy/$1.log" | sort -u | paste -sd ' ')
        verdict="killed by $verdict"
    fi
    printf '%-22s %s\n' "$1" "$verdict"
    cp "shm/src/$2" "$file"
}

mkdir -p "$copy"
fresh
models unchanged || { echo "the models fail without a mutant, see $copy/unchanged.log"; exit 2; }

mutant ring-seq-store   ring/spsc.rs     '/slot\[M\]\.store/s/Release/Relaxed/'
mutant ring-seq-load    ring/spsc.rs     '/let sequence = self/s/Acquire/Relaxed/'
mutant ring-head-store  ring/spsc.rs     '/head_word\[0\]\.store/s/Release/Relaxed/'
mutant ring-head-load   ring/spsc.rs     '/head_word\.load/s/Acquire/Relaxed/'
mutant bell-ring-fence  bell.rs          '/pub fn ring/,/^    }/s/fence(Ordering::SeqCst)/fence(Ordering::AcqRel)/'
mutant bell-arm-fence   bell.rs          '/pub fn arm/,/^    }/s/fence(Ordering::SeqCst)/fence(Ordering::AcqRel)/'
mutant log-key-store    stamps.rs        '/key_word\.store/s/Release/Relaxed/'
mutant log-key-load     stamps.rs        '/segment\.load(offset/s/Acquire/Relaxed/'
mutant magic-store      memory/header.rs '/store(MAGIC/s/Release/Relaxed/'
mutant magic-load       memory/header.rs '/words\[0\] = load/s/Acquire/Relaxed/'
mutant go-store         control.rs       '/\[STATE\]\.store/s/Release/Relaxed/'
mutant go-load          control.rs       '/load(STATE/s/Acquire/Relaxed/'
mutant ready-store      status.rs        '/Field::State as usize\]\.store/s/Release/Relaxed/'
mutant ready-load       status.rs        '/segment\.load(HEADER_WORDS, /s/Acquire/Relaxed/'

echo "$survivors survived"
[ "$survivors" = 0 ]
