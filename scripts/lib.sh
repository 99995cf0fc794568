#!/usr/bin/env bash
# Shared by the shell programs of this folder, ./quickstart and ./check. Sourced, not run; needs bash.
# Names: say (a step), note (a detail), fail (one message, then exit 1), run_logged (quiet unless it fails).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$0")
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m' clear_line=$'\r\e[K'; else bold='' plain='' clear_line=''; fi

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

# show_progress: ninja's output on standard input becomes steps done of all and the minutes that the rest may take, on
# one line of a terminal, else on a line every 15 seconds. Messages of the compiler pass through.
show_progress() {
  local line began=$SECONDS shown=$SECONDS first='' finished total left step='^\[([0-9]+)/([0-9]+)\] '
  while IFS= read -r line; do
    if ! [[ $line =~ $step ]]; then
      printf '%s%s\n' "${clear_line}" "$line"
      continue
    fi
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    # The rate counts from the first step that was seen: what ninja does before is no measure of the rest.
    [ -n "$first" ] || { first=$((finished - 1)) && began=$SECONDS; }
    if [ -z "$clear_line" ] && [ $((SECONDS - shown)) -lt 15 ] && [ "$finished" != "$total" ]; then continue; fi
    shown=$SECONDS
    left=$(((SECONDS - began) * (total - finished) / (finished - first)))
    if [ "$finished" = "$total" ]; then
      left="done in $(((SECONDS - began + 59) / 60)) min"
    elif [ $((SECONDS - began)) -lt 10 ]; then
      left='how long it takes is not known yet'
    else
      left="about $(((left + 59) / 60)) min left"
    fi
    printf '%s    %s of %s steps, %s' "$clear_line" "$finished" "$total" "$left"
    if [ -z "$clear_line" ] || [ "$finished" = "$total" ]; then echo; fi
  done
}

# build_preset NAME [CMAKE_ARGUMENT...] [-- TARGET...]: configures and builds build/NAME, all of it or these targets.
build_preset() {
  local preset=$1 directory=$root/build/$1 toolkit arguments=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    arguments+=("$1")
    shift
  done
  local targets=("$@")  # with the -- in front, or none
  [ $# = 0 ] || targets=(--target "${targets[@]:1}")
  toolkit=$("$root/scripts/toolkit")
  say "Building the $preset preset in build/$preset"
  (cd "$root" && run_logged "$directory.configure.log" cmake --preset "$preset" -DOUTBOARD_TOOLKIT="$toolkit" "${arguments[@]}")
  NINJA_STATUS='[%f/%t] ' cmake --build "$directory" "${targets[@]}" 2>&1 | show_progress ||
    fail "the $preset preset does not build (messages above)"
}
