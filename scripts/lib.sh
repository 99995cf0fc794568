#!/usr/bin/env bash
# Shared by the shell programs of this folder, ./quickstart and ./check. Sourced, not run; needs bash.
# Names: say (a step), note (a detail), fail (one message, then exit 1), run_logged (quiet unless it fails).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$0")
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
note() { printf '    %s\n' "$*"; }
fail() {
  printf '%s: %s\n' "$program" "$*" >&2
  exit 1
}

# wrong_option ARGUMENT: the same two lines everywhere.
wrong_option() {
  printf '%s: unknown option "%s"; see %s --help\n' "$program" "$1" "$program" >&2
  exit 2
}

# run_logged LOGFILE COMMAND...: the output goes to the log; a failure shows its end and where the rest is.
run_logged() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "failed: $* (the whole output is in $log)"
  fi
}

# build_preset NAME [CMAKE_ARGUMENT...]: configures and builds build/NAME, with ninja's progress on a terminal. build_only
# names the targets, if not all are wanted.
build_only=()
build_preset() {
  local preset=$1 directory=$root/build/$1 toolkit
  shift
  toolkit=$("$root/scripts/toolkit")
  say "Building the $preset preset in build/$preset"
  (cd "$root" && run_logged "$directory.configure.log" cmake --preset "$preset" -DOUTBOARD_TOOLKIT="$toolkit" "$@")
  local build=(cmake --build "$directory")
  [ ${#build_only[@]} = 0 ] || build+=(--target "${build_only[@]}")
  if [ -t 1 ]; then
    NINJA_STATUS='[%f/%t, %p, %e s] ' "${build[@]}" || fail "the $preset preset does not build (messages above)"
  else
    # Without a terminal ninja prints a line for each step: every fiftieth is progress enough.
    NINJA_STATUS='[%f/%t] %e ' "${build[@]}" 2>&1 | awk -v keep=50 '
      /^\[[0-9]+\/[0-9]+\] [0-9.]+ / {
        split($1, at, /[][\/]/)
        if (at[2] == 0 || (at[2] % keep != 0 && at[2] != at[3])) next
        left = $2 * (at[3] - at[2]) / at[2] / 60
        print "    " at[2] " of " at[3] " steps" (left >= 1 ? sprintf(", about %d min left", left + 0.5) : "")
        fflush()
        next
      }
      { print }' || fail "the $preset preset does not build (messages above)"
  fi
}
