# For `.ci/run` and `.ci/nightly`: steps with their times. Nothing outlives a failed step.
# Everything is built once and thrown away: incremental builds only cost. A panic names its line
# without debug information, which changes no instruction of a release build.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_DEBUG=0
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

# step NAME: ends the step before it, and begins another one.
took=() name="" began=0
ended() { [ -z "$name" ] || took+=("$((SECONDS - began))	$name"); }
step() {
  ended
  name=$1 began=$SECONDS
  printf '\n== %s (%ss)\n' "$name" "$SECONDS"
}
# The seconds of each step, longest first; also of a run that failed.
report() {
  ended
  printf '\nseconds  step\n'
  printf '%s\n' "${took[@]}" | sort -rn | awk -F '\t' '{ printf "%7d  %s\n", $1, $2 }'
}
trap 'code=$?; report; exit $code' EXIT

# Fails if anything of bulkhead is left in /dev/shm.
nothing_left() {
  local left
  left=$(find /dev/shm -maxdepth 1 -name 'bulkhead.*' 2>/dev/null || true)
  [ -z "$left" ] || { echo "left in /dev/shm: $left"; return 1; }
}

# compiles_nothing COMMAND...: fails if a build that was made before compiles anything again.
compiles_nothing() {
  local again
  again=$("$@" 2>&1 | grep -E '^ +Compiling' || true)
  [ -z "$again" ] || { echo "$* compiles again:"; echo "$again"; return 1; }
}
