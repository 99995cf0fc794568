# Sourced by the tests of this folder: a back-end for one test, and a program run through it.
# through_outboard [run's flags] -- PROGRAM...   runs it, with its exit status
# start_backend unix|shm|tcp DEVICE              sets server (the URL) and backend (the process); ends with the test;
#                                                backend_as: a command that becomes it
# stop_backend                                   SIGTERM; fails unless the daemon ends cleanly with nothing left behind

build=${OUTBOARD_BUILD:?is the build folder, for example build/release}
outboard=$build/bin/outboard
scratch=$(mktemp -d)
backend=''
backend_as=()
log=$scratch/backend.log

# ours: the processes of programs that this test started, by a mark in their environment.
ours() {
  local process
  for process in /proc/[0-9]*; do
    if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qFx "TEST_SCRATCH=$scratch"; then
      echo "${process#/proc/}"
    fi
  done 2>/dev/null
}

# program_process NAME: the one that runs build/programs/NAME. `outboard run` may be its parent or may have become it.
program_process() {
  local process
  for process in $(ours); do
    if [ "$(readlink "/proc/$process/exe")" = "$(readlink -f "$build/programs/$1")" ]; then
      echo "$process"
      return
    fi
  done
  echo "FAIL: no process of $1" >&2
  return 1
}

finish() {
  local status=$?
  if [ -n "$backend" ]; then kill -9 "$backend" 2>/dev/null || true; fi
  # A test that failed half-way leaves no program hanging.
  if [ $status != 0 ]; then ours | xargs -r kill -9 2>/dev/null || true; fi
  if [ $status != 0 ] && [ -s "$log" ]; then
    echo "--- the back-end said:"
    tail -n 40 "$log"
  fi
  rm -rf "$scratch"
  exit $status
}
trap finish EXIT

# The program alone gets the sanitizer's run time and the toolkit's libraries (libcudart.so.13 of "-cudart shared").
through_outboard() {
  local flags=()
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  local environment=(TEST_SCRATCH="$scratch")  # tells this test's programs from another's
  if [ -n "${OUTBOARD_PRELOAD:-}" ]; then
    # CUDA's own run time leaks by design at exit; our own leaks are found in the back-end and in unit tests.
    # It comes first, so what `outboard run` preloads is named again.
    local tool=$OUTBOARD_BUILD/lib/outboard/libcupti.so.13
    [ -e "$tool" ] || tool=
    environment+=(LD_PRELOAD="$OUTBOARD_PRELOAD${tool:+:$tool}" ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}")
  fi
  local libraries=${OUTBOARD_TOOLKIT:+$OUTBOARD_TOOLKIT/lib64:$OUTBOARD_TOOLKIT/lib}
  LD_LIBRARY_PATH=$libraries "$outboard" run "${flags[@]}" -- env "${environment[@]}" "$@"
}

start_backend() {
  local kind=$1 device=$2 listening
  server=$kind:$scratch/socket
  if [ "$kind" = tcp ]; then server=tcp:127.0.0.1:0; fi
  # unix: alone would share memory, as shm: does and a private back-end does.
  if [ "$kind" = unix ]; then export OUTBOARD_RINGS=0; fi
  # It says where it listens once it does: no port is looked for that another test may take, and nobody asks in vain.
  rm -f "$scratch/ready"
  mkfifo "$scratch/ready"
  CACHE_DIRECTORY=$scratch/cache "${backend_as[@]}" "$outboard" serve --listen "$server" --device "$device" --ready-fd 9 \
    9>"$scratch/ready" >"$log" 2>&1 &
  backend=$!
  if ! read -r listening <"$scratch/ready"; then
    echo "FAIL: the back-end did not come up at $server"
    exit 1
  fi
  if [ "$kind" = tcp ]; then server=$listening; fi
}

# The workers of a session that has just ended may need a moment to go.
stop_backend() {
  local status=0
  kill -TERM "$backend"
  wait "$backend" || status=$?
  backend=''
  if [ $status != 0 ]; then
    echo "FAIL: the back-end ended with status $status after SIGTERM"
    exit 1
  fi
  if [ -e "$scratch/socket" ]; then
    echo "FAIL: the back-end left its socket behind"
    exit 1
  fi
}
