# Sourced by the tests of this folder: a back-end for one test, and a program run through it.
# through_outboard [run's flags] -- PROGRAM...   runs it, with its exit status
# start_backend unix|tcp DEVICE                  sets server (the URL) and backend (the process); ends with the test
# stop_backend                                   SIGTERM; fails unless the daemon ends cleanly with nothing left behind

build=${OUTBOARD_BUILD:?is the build folder, for example build/release}
outboard=$build/bin/outboard
scratch=$(mktemp -d)
backend=''
log=$scratch/backend.log

finish() {
  local status=$?
  if [ -n "$backend" ]; then kill -9 "$backend" 2>/dev/null || true; fi
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
  local environment=()
  if [ -n "${OUTBOARD_PRELOAD:-}" ]; then
    # CUDA's own run time leaks by design at exit; our own leaks are found in the back-end and in unit tests.
    environment+=(LD_PRELOAD="$OUTBOARD_PRELOAD" ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}")
  fi
  local libraries=${OUTBOARD_TOOLKIT:+$OUTBOARD_TOOLKIT/lib64:$OUTBOARD_TOOLKIT/lib}
  LD_LIBRARY_PATH=$libraries "$outboard" run "${flags[@]}" -- env "${environment[@]}" "$@"
}

start_backend() {
  local kind=$1 device=$2 try
  if [ "$kind" = unix ]; then
    server=unix:$scratch/socket
  else
    server=tcp:127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  fi
  "$outboard" serve --listen "$server" --device "$device" >"$log" 2>&1 &
  backend=$!
  for try in $(seq 100); do
    if "$outboard" devices --server "$server" >/dev/null 2>&1; then return; fi
    kill -0 "$backend" 2>/dev/null || break
    sleep 0.05
  done
  echo "FAIL: the back-end did not come up at $server (try $try)"
  exit 1
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
