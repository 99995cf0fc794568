#!/bin/sh
# Installs Outboard's client into a dev container, as root, while its image is built: from the .deb package or, where there is no
# dpkg, from the wheel. One of them lies beside this file. The loader then finds the libraries by itself, so that programs which
# the editor starts use the server's GPUs, too. Variable SERVER: the option of devcontainer-feature.json.
set -eu

fail() {
  echo "outboard: $1" >&2
  exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
machine=$(uname -m)
[ "$machine" = x86_64 ] || fail "the packages are for x86_64, this image is for $machine"
case ${SERVER:-} in
  *[!A-Za-z0-9:/._-]*) fail "option server: \"$SERVER\" is no URL like tcp:gpubox or tcp:gpubox:26882" ;;
esac

one() {
  [ $# = 1 ] || fail "more than one package lies in $here: $*"
  [ -e "$1" ]
}
if command -v dpkg >/dev/null && one "$here"/outboard_*_amd64.deb; then
  dpkg -i "$here"/outboard_*_amd64.deb
  program=/usr/bin/outboard libraries=/usr/lib/outboard
elif one "$here"/outboard-*.whl; then
  command -v python3 >/dev/null || fail "the wheel is unpacked by python3, which the image lacks"
  folder=/opt/outboard  # a folder of its own: it serves whatever Python the image has later
  program=$folder/outboard/bin/outboard libraries=$folder/outboard/lib/outboard
  mkdir -p "$folder" /usr/local/bin
  python3 -m zipfile -e "$here"/outboard-*.whl "$folder"
  chmod 755 "$program"
  ln -sf "$program" /usr/local/bin/outboard
else
  fail "neither outboard_VERSION_amd64.deb nor the wheel lies in $here; scripts/release makes both"
fi

echo "$libraries" >/etc/ld.so.conf.d/outboard.conf
ldconfig
if [ -n "${SERVER:-}" ]; then
  mkdir -p /etc/outboard
  settings=/etc/outboard/outboard.toml
  # Before what is there: keys outside of tables come first.
  { printf 'server = "%s"  # by the dev container feature\n' "$SERVER"; [ ! -e "$settings" ] || cat "$settings"; } >"$settings.new"
  mv "$settings.new" "$settings"
fi
# It starts here, or says what it lacks.
"$program" version
