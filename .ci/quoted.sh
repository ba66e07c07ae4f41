#!/usr/bin/env bash
# Runs every command that the README or the book quotes, shortened, through the same code: fewer
# orders, shorter windows, fewer repeats; no other path. A command counts if it follows `$ `
# in a console block, or in backticks with all its arguments (no placeholder in capitals); the
# tutorial's console blocks are for `.ci/tutorial.sh`. The seeds' pages quote what
# `.ci/seeds.py` runs. `.ci/quoted.sh --list` only prints them, as
# they are quoted and as they are run. What needs a build of its own or a minute (benches, the soak,
# the survey) runs with `--benches`, and nothing else then.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/quoted-runs
launcher=target/release/launcher

# Every quoted command, one a line, in the order of the pages.
quoted() {
  perl -0777 -ne '
    my $text = $_;
    while ($text =~ s/^```(\w*)[^\n]*\n(.*?)^```[ \t]*$/\n/ms) {
      my ($kind, $block) = ($1, $2);
      next if $kind ne "console" or $ARGV =~ /tutorial/;
      print "$1\n" while $block =~ /^\$ (.+)$/mg;
    }
    while ($text =~ /`([^`]+)`/g) {
      my $span = $1; $span =~ s/\s+/ /g;
      next unless $span =~ /^(\.\/launcher|launcher|cargo (run|bench)|BULKHEAD_\w+=1 \w+|bash \.ci|mdbook) \S/;
      next if $span =~ /^launcher (sweep|compare|contain|disturb|predict|resume|inspect|report|bill|kill|revive|limits|retire|replace|add|lab|watch|list|delete|export|completions|man|benchmark)$/;
      next if $span =~ /(?<![\w-])(?!BULKHEAD)[A-Z]{1,}[A-Z0-9_\/]*(?![\w-])/ or $span =~ /…|\.\.\./;
      print "$span\n";
    }' README.md $(find docs/src -name '*.md' ! -name 'seeds*.md' | sort) | awk '!seen[$0]++'
}

# The benches with the features that the launcher's build has given what they depend on: alone they
# would have nearly all of it built anew.
benches() { echo "${1/-p benches/-p launcher -p benches}"; }

# Whether a command needs a build of its own or a minute.
is_long() { [[ $1 =~ ^cargo\ bench|--example\ soak|^launcher\ (survey|ladder) ]]; }

# The same command with less to do; empty for what another step of .ci/run does as it stands.
shortened() {
  local command=${1/#.\/launcher/launcher}
  case $command in
    "cargo test"* | "bash .ci/"* | BULKHEAD_SLOW=1*) return ;;
    "cargo bench -p benches --bench handoffs"*) [[ $command == *" -- "* ]] || command+=" --"; benches "$command --quick"; return ;;
    "cargo bench -p benches --bench engine"* | "cargo bench -p benches --bench recovery-"*) benches "$command -- --quick"; return ;;
    "cargo bench -p benches --bench merge"*) benches "$command -- 0.1"; return ;;
    "cargo bench -p "*) benches "$command"; return ;;
    "cargo run --release -- run"*) echo "$command --orders 4k --window 300ms --out $out"; return ;;
    # The tests have built it.
    "cargo run -p bulkhead-shm --example "*) echo "cargo test -q --workspace --no-run && target/debug/examples/${command##* }"; return ;;
    "cargo run --release -p bulkhead-exchange --example soak -- "*)
      echo "cargo build --release -p launcher -p bulkhead-exchange --example soak && target/release/examples/soak ${command/*soak -- --operations 10m/--operations 200k}"
      return ;;
    "cargo run --release -p bulkhead-exchange --example back_test"*)
      [[ $command == *" -- "* ]] || command+=" --"
      echo "$command --passes 3"
      return ;;
    "launcher "*) ;;
    *) echo "$command"; return ;;
  esac
  command=${command/#launcher/$launcher}
  local kind; kind=$(awk '{print $2}' <<<"$command")
  # A planned sweep has its folder where it says: below the others here.
  if [ "$kind" = sweep ] && [[ $command =~ \ (--plan|--run|--join)\  ]]; then
    command=$(sed -E "s# sweep-1# $out/sweep-1#; s/--orders [0-9a-zA-Z]+/--orders 2k/; s/--window [0-9a-z.]+/--window 200ms/; s/--repeats [0-9]+/--repeats 2/" <<<"$command")
    echo "$command"
    return
  fi
  case $kind in
    bill)
      # A declared bill has its plan in the file, and a search takes minutes.
      case $command in
        *--declared*) echo "${command/ bill.json/ $out/bill.json} --out $out"; return ;;
        *--find-capacity*) echo "$command --dry-run"; return ;;
      esac
      command=${command/ bill.json/ $out/bill.json} ;;
  esac
  case $kind in
    run | sweep | bill | compare | contain | disturb)
      command=$(sed -E 's/--orders [0-9a-zA-Z]+/--orders 2k/; s/--window [0-9a-z.]+/--window 200ms/; s/--repeats [0-9]+/--repeats 2/; s/--steps [0-9]+/--steps 2/; s/--crossover [0-9a-z]+/--crossover 10ms/' <<<"$command")
      # Far from a kill when the run ends: a killed exchange is not restarted after that.
      [[ $command == *" every "* ]] && command=$(sed -E 's/ every [0-9a-z]+/ every 400ms/; s/--window 200ms/--window 700ms/' <<<"$command")
      [[ $command == *--orders* || $command == *--schedule* || $command == *--preset* ]] || [[ $kind == contain || $command == *--window* ]] || command+=" --orders 2k --window 200ms"
      [[ $command == *"--preset seed"* && $kind =~ ^(run|sweep)$ && $command != *--orders* ]] && command+=" --orders 8k --window 300ms"
      [[ $command == *"--preset seed"* && $kind == sweep && $command != *--repeats* ]] && command+=" --work 0ns,1500ns --repeats 1"
      [[ $command == *"--preset bill"* && $command != *--technique* ]] && command+=" --technique spsc-mux,pipe,std-mpsc"
      [[ $kind == bill && $command != *--technique* && $command != *--contain* ]] && command+=" --technique spsc-mux --repeats 2"
      [[ $kind == compare && $command != *--repeats* ]] && command+=" --repeats 2"
      [[ $kind == contain ]] && command=$(sed -E 's/--technique ([a-z-]+,[a-z-]+),[a-z,-]+/--technique \1/' <<<"$command")
      [[ $kind == contain && $command != *--technique* ]] && command+=" --technique spsc-mux"
      [[ $kind == contain && $command != *--fault* ]] && command+=" --fault kill"
      [[ $kind == contain ]] && command=$(sed -E 's/--fault "([a-z]+;[a-z]+);[a-z;]+"/--fault "\1"/; s/--fault ([a-z]+,[a-z]+),[a-z,]+/--fault \1/' <<<"$command")
      [[ $kind == contain && $command != *--isolation* ]] && command+=" --isolation process"
      [[ $kind == contain ]] && command=${command/--isolation thread,process/--isolation process}
      # A core for each role of the seed's set-up is more than most machines have.
      [ "$(nproc)" -ge 15 ] || command=${command/--threading dedicated/--threading auto}
      # A recording takes as long as the morning did.
      [[ $command == *--schedule* && $command != *--speed* ]] && command+=" --speed 50"
      # Two of the amounts of work, with every technique.
      command=$(sed -E 's/--work ([0-9a-z]+,[0-9a-z]+),[0-9a-z,]+/--work \1/' <<<"$command")
      # A shortened run may be over before its fault is due.
      [[ $command == *--fault* ]] && command+=" --allow-unfired"
      command+=" --out $out" ;;
    lab)
      command=$(sed -E 's/--events [0-9a-zA-Z]+//; s/--runs [0-9]+//' <<<"$command")
      command+=" --events 100 --runs 1 --out $out" ;;
    survey) command+=" --quick --out $out" ;;
    ladder) command+=" --out $out" ;;
    # A calibration takes a minute.
    predict) command+=" --dry-run --out $out" ;;
    # What is about a run that goes on needs one.
    kill | revive | limits | retire | replace | add) command="beside_a_run $command" ;;
    # What is about a finished run takes the newest of those that were made here.
    open) return ;; # It needs a browser.
    inspect | report | export) command=${command/ latest/ \$(newest_run)} ;;
    board) command=$(sed -E 's/ --duration [0-9a-z]+//; s/--readers [0-9,]*,64/--readers 0,4/; s/(replay):[^ ,]+/\1:data\/coinbase-2016-03-12\/flow.csv/' <<<"$command")
      command+=" --duration 50ms --out $out" ;;
    simulate)
      command=$(sed -E 's/--seeds [0-9a-zA-Z]+/--seeds 20/' <<<"$command")
      [[ $command == *--seed* ]] || command+=" --seeds 20" ;;
  esac
  echo "$command"
}

# The folder of the newest finished run.
newest_run() { dirname "$(ls -t "$out"/*/run.json | head -n 1)"; }

# A command about a run that goes on: beside one that is ended afterwards.
beside_a_run() {
  "$launcher" run --strategies 4 --spare-strategies 1 --isolation process --on-death continue --orders 60k --window 60s --delay uniform:1ms..20ms --idle park --out "$out" >/dev/null 2>&1 &
  local run=$! code=0
  for _ in $(seq 100); do
    "$launcher" limits latest >/dev/null 2>&1 && break
    sleep 0.1
  done
  "$@" || code=$?
  kill -INT "$run" 2>/dev/null || true
  wait "$run" || true
  return "$code"
}

if [ "${1:-}" = --list ]; then
  quoted | while IFS= read -r command; do printf '%s\n    → %s\n' "$command" "$(shortened "$command")"; done
  exit 0
fi

long=""
[ "${1:-}" = --benches ] && long=1
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
log=$(mktemp)
number=0
while IFS= read -r command; do
  run=$(shortened "$command")
  [ -n "$run" ] || continue
  is_long "$command" && [ -z "$long" ] && continue
  [ -n "$long" ] && ! is_long "$command" && continue
  number=$((number + 1))
  code=0
  eval "$run" >"$log" 2>&1 </dev/null || code=$?
  # doctor says with 1 that a machine is not fit to measure on.
  if [ "$code" = 0 ] || { [ "$code" = 1 ] && [[ $run == *"launcher doctor"* ]]; }; then
    printf '%4ss  %s\n' "$SECONDS" "$run"
  else
    tail -n 40 "$log"
    echo "exit code $code: $run"
    echo "quoted as: $command"
    exit 1
  fi
done < <(quoted)
rm -f "$log"
[ "$number" -ge "$([ -n "$long" ] && echo 4 || echo 40)" ] || { echo "only $number commands are quoted: the search for them is broken"; exit 1; }
echo "$number quoted commands ran"
