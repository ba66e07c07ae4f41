#!/bin/sh
# Proves that the orderings matter: weakens one at a time in a copy of the workspace, and expects the loom models to
# fail. x86 would hide most of these: its own orders are stronger than what the code asks for.
# `.ci/mutants.sh [NAME…]` runs only those. Exits 1 if a mutant survives that should not, or dies that should survive.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
copy=$root/target/mutants
only=" $* "
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0
# Each mutant is a build of its own: quick to build, since the models' time is small beside it.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
wrong=0

fresh() {
    rm -rf "$copy/tree"
    mkdir -p "$copy/tree"
    # -m: new time stamps, or cargo would take an old mutant's build for this tree's.
    git ls-files -co --exclude-standard | tar -cf - -T - | tar -xmf - -C "$copy/tree"
}

# models LOG TEST…: builds and runs these test files.
models() {
    log=$copy/$1.log
    shift
    (cd "$copy/tree" && timeout 300 cargo test -q -p shm --release --target-dir "$copy/build" --no-fail-fast \
        $(printf -- '--test %s ' "$@")) >"$log" 2>&1
}

# mutant NAME FILE SCRIPT: applies the sed script to shm/src/FILE, where it must change exactly one line, and expects
# $tests to fail.
mutant() {
    case $only in "  " | *" $1 "*) ;; *) return 0 ;; esac
    file=$copy/tree/shm/src/$2
    sed "$3" "shm/src/$2" >"$file"
    changed=$(diff "shm/src/$2" "$file" | grep -c '^>') || true
    if [ "$changed" != 1 ]; then
        echo "$1: the pattern changes $changed lines of $2, not one: the source has moved on"
        exit 2
    fi
    if models "$1" $tests; then
        verdict=survived
    elif grep -q '^error: could not compile' "$copy/$1.log"; then
        echo "$1: does not compile, see $copy/$1.log"
        exit 2
    else
        verdict="killed by $(sed -n 's/^    \([a-z_]*\)$/\1/p' "$copy/$1.log" | sort -u | paste -sd ' ')"
    fi
    case $expected:$verdict in
    killed:"killed by "?* | survived:survived) ;;
    *) verdict="$verdict  <-- EXPECTED: $expected" wrong=$((wrong + 1)) ;;
    esac
    printf '%-22s %s\n' "$1" "$verdict"
    cp "shm/src/$2" "$file"
}

mkdir -p "$copy"
fresh
models unchanged loom_ring loom_control loom_arrays loom_linked loom_deaths ||
    { echo "the models fail without a mutant, see $copy/unchanged.log"; exit 2; }

expected=killed

tests="loom_ring loom_control"
mutant ring-seq-store   ring/spsc.rs     '/slot\[M\]\.store/s/Release/Relaxed/'
mutant ring-seq-load    ring/spsc.rs     '/let sequence = self/s/Acquire/Relaxed/'
mutant ring-head-store  ring/spsc.rs     '/head_word\[0\]\.store(self/s/Release/Relaxed/'
mutant ring-head-load   ring/spsc.rs     '/head_word\.load/s/Acquire/Relaxed/'
mutant bell-ring-fence  bell.rs          '/pub fn ring/,/^    }/s/fence(Ordering::SeqCst)/fence(Ordering::AcqRel)/'
mutant bell-arm-fence   bell.rs          '/pub fn arm/,/^    }/s/fence(Ordering::SeqCst)/fence(Ordering::AcqRel)/'
mutant log-key-store    ../../protocol/src/stamps.rs        '/key_word\.store/s/Release/Relaxed/'
mutant log-key-load     ../../protocol/src/stamps.rs        '/segment\.load(offset/s/Acquire/Relaxed/'
mutant magic-store      memory/header.rs '/store(MAGIC/s/Release/Relaxed/'
mutant magic-load       memory/header.rs '/words\[0\] = load/s/Acquire/Relaxed/'
mutant go-store         ../../protocol/src/control.rs       '/\[STATE\]\.store/s/Release/Relaxed/'
mutant go-load          ../../protocol/src/control.rs       '/load(STATE/s/Acquire/Relaxed/'
mutant ready-store      ../../protocol/src/status.rs        '/Field::State as usize\]\.store/s/Release/Relaxed/'
mutant ready-load       ../../protocol/src/status.rs        '/segment\.load(HEADER_WORDS, /s/Acquire/Relaxed/'

tests=loom_arrays
f=ring/array_queue/producer.rs
mutant array-stamp-store    $f '/slot\[0\]\.store(free | WRITTEN/s/Release/Relaxed/'
mutant array-free-load      $f '/let stamp = /s/Acquire/Relaxed/'
f=ring/array_queue/consumer.rs
mutant array-stamp-load     $f '/let stamp = slot\[0\]/s/Acquire/Relaxed/'
mutant array-free-store     $f '/slot\[0\]\.store(free + LAP/s/Release/Relaxed/'
mutant array-mend-claimed   $f '/ slot\.store(self/s/Release/Relaxed/'
mutant array-mend-unclaimed $f '/slot\.compare_exchange(stamp, free/s/Release/Relaxed/'
f=ring/channel.rs
mutant channel-push-order   $f '/pub fn try_push/,/^    }/s/seqcst_for_loom();/();/'
mutant channel-park-order   $f '/fn park/,/^    }/s/seqcst_for_loom();/();/'

tests=loom_linked
f=ring/linked/producer.rs
mutant linked-stamp-store   $f '/slot\[0\]\.store/s/Release/Relaxed/'
mutant linked-claim         $f '/let claimed = /,/);/s/Release/Relaxed/'
mutant linked-tail-load     $f '/let mut tail = /s/Acquire/Relaxed/'
mutant linked-tail-reload   $f '/^ *tail = self/s/Acquire/Relaxed/'
mutant linked-tail-failed   $f '/let claimed = /,/);/s/Acquire/Relaxed/'
mutant linked-last-load     $f '/let word = self/s/Acquire/Relaxed/'
mutant linked-last-store    $f '/let _ = .*\[LAST\]/,/);/s/Release/Relaxed/'
mutant linked-next-seen     $f '/let seen = self/s/Acquire/Relaxed/'
mutant linked-next-store    $f '/let link = self/,/);/s/Release/Relaxed/'
f=ring/linked/arena.rs
mutant linked-free-load     $f '/\[FREE_TAIL\]\.load/s/Acquire/Relaxed/'
mutant linked-free-store    $f '/\[FREE_TAIL\]\.store/s/Release/Relaxed/'
mutant linked-free-mark     $f '/store(self.free_mark(count)/s/Release/Relaxed/'
f=ring/linked/consumer.rs
mutant linked-stamp-load    $f '/let stamp = slot/s/Acquire/Relaxed/'

# The repair after a death: what a claim must show, and what must not be taken from the living.
tests=loom_deaths
mutant intent-store         ring/intent.rs               '/store(place, /s/Release/Relaxed/'
mutant intent-load          ring/intent.rs               '/let theirs = /s/Acquire/Relaxed/'
mutant intent-ignored       ring/intent.rs               '/counts(\*is_dead)/s/counts/false \&\& counts/'
mutant intent-kept          ring/intent.rs               '/self\.say(0)/s/self/\/\/ self/'
mutant intent-of-the-dead   ring/intent.rs               '/any(position, |is_dead| !/s/!is_dead/true/'
mutant array-claim          ring/array_queue/producer.rs '/^ *Ordering::SeqCst,/s/SeqCst/Relaxed/'
mutant array-repair-tail    ring/array_queue/consumer.rs '/let claimed = .*TAIL\|let claimed = .*tail/s/Acquire/Relaxed/'
mutant linked-claim-dead    ring/linked/producer.rs      '/let claimed = /,/);/s/Release/Relaxed/'
mutant linked-repair-tail   ring/linked/repair.rs        '/let tail = /s/Acquire/Relaxed/'
mutant linked-block-kept    ring/linked/repair.rs        '/self\.take_back(id/s/self/\/\/ self/'

# Loom takes SeqCst accesses for AcqRel ones. The channel's four have a fence in their place, which the two
# channel-…-order mutants above take away; and it knows no thread that dies between two of its own steps as a processor
# would order them. Why each is as it is all the same, shm/src/sync.rs says.
expected=survived
tests="loom_arrays loom_deaths"
mutant array-claim-seqcst   ring/array_queue/producer.rs '/^ *Ordering::SeqCst,/s/SeqCst/Release/'
mutant array-is-claimed     ring/array_queue/consumer.rs '/\.load(Ordering::SeqCst)/s/SeqCst/Relaxed/'
mutant channel-waker-load   ring/channel.rs              '/\.load(Ordering::SeqCst)/s/SeqCst/Relaxed/'
mutant channel-waker-store  ring/channel.rs              '/store(PARKED/s/SeqCst/Relaxed/'
tests="loom_linked loom_deaths"
mutant linked-taken         ring/linked/arena.rs         '/compare_exchange(mark, taken/s/Release/Relaxed/'
mutant linked-head          ring/linked/consumer.rs      '/\[HEAD\]\.store/s/Release/Relaxed/'

echo "$wrong not as expected"
[ "$wrong" = 0 ]
