#!/bin/sh
# Starts a server in the sandbox of server.sb, which lies beside this file:
#
#   ./launch.sh /absolute/path/of/the/program ARGUMENTS...
#
# It exits as the server does; 125 means that nothing was started. Written by capgate compile.
set -u
umask 077
capgate_tmp=''
capgate_child=''
capgate_starting=no
capgate_caught=no

refuse() {
  printf 'launch.sh: %s\n' "$1" >&2
  exit 125
}

# On every way out but SIGKILL. The server may have taken away its own rights.
clean_up() {
  trap '' HUP INT QUIT TERM
  if [ -n "$capgate_tmp" ]; then
    /bin/chmod -R u+rwX "$capgate_tmp" 2>/dev/null
    /bin/rm -rf "$capgate_tmp"
  fi
}

# A shell without job control starts its background processes deaf to INT and QUIT, so every signal
# reaches the server as TERM.
stop() {
  capgate_caught=yes
  if [ -n "$capgate_child" ]; then
    kill -TERM "$capgate_child" 2>/dev/null
  elif [ "$capgate_starting" = no ]; then
    exit "$1"
  fi
}

# Seatbelt compares real paths: behind a link a grant would open nothing, or something else.
granted() {
  [ ! -L "$2" ] || refuse "$2 is a symbolic link: grant what it points to"
  [ -e "$2" ] || refuse "$2 is granted and does not exist"
  if [ -d "$2" ]; then
    capgate_real=$(cd -P "$2" && pwd -P) || refuse "$2 cannot be entered"
  else
    [ "$1" = any ] || refuse "$2 is granted as a directory and is none"
    capgate_real=$(cd -P "${2%/*}/" && pwd -P) || refuse "the directory of $2 cannot be entered"
    capgate_real="${capgate_real%/}/${2##*/}"
  fi
  [ "$capgate_real" = "$2" ] || refuse "$2 leads through a symbolic link to $capgate_real: grant that"
}

# Whoever can change this file or the profile decides what the next start allows.
apart() {
  case $capgate_here/ in
  "$1"/*) refuse "$capgate_here lies in $1, which the server may write: move it" ;;
  esac
}

# NAME, the number of lines, the lines: for the shell that starts the server.
send() {
  capgate_rest=$2
  capgate_lines=1
  while :; do
    case $capgate_rest in
    *"$capgate_newline"*)
      capgate_rest=${capgate_rest#*"$capgate_newline"}
      capgate_lines=$((capgate_lines + 1))
      ;;
    *) break ;;
    esac
  done
  printf '%s\n%s\n%s\n' "$1" "$capgate_lines" "$2"
}
capgate_newline='
'

trap clean_up EXIT
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 131' QUIT
trap 'stop 143' TERM

for capgate_tool in /usr/bin/sandbox-exec /usr/bin/env /usr/bin/mktemp /bin/chmod /bin/mkdir /bin/rm; do
  [ -x "$capgate_tool" ] || refuse "$capgate_tool is missing: this launcher is for macOS"
done
case ${1-} in
/*) ;;
*) refuse 'name the program by its absolute path' ;;
esac
case $0 in
*/*) capgate_here=${0%/*}/ ;;
*) capgate_here=./ ;;
esac
capgate_here=$(cd -P "$capgate_here" && pwd -P) || refuse 'the directory of this file cannot be entered'
[ -f "$capgate_here/server.sb" ] || refuse "$capgate_here/server.sb is missing"

# What the policy grants must be there, under its real name.
granted directory '/srv/repo'
apart '/srv/repo'

# The broker's token for this start: never a word of a command line.
capgate_token=''
[ -f '/run/capgate/token' ] || refuse '/run/capgate/token is missing: start capgate egress'
IFS= read -r capgate_token <'/run/capgate/token' || [ -n "$capgate_token" ] || refuse '/run/capgate/token is empty'

variables() {
  send CAPGATE_EGRESS_TOKEN "$capgate_token"
  :
}

start() {
  exec /usr/bin/env -i \
    'PATH=/Library/Developer/CommandLineTools/usr/bin:/opt/homebrew/Cellar/node/22.11.0/bin:/usr/bin:/bin:/usr/sbin:/sbin' \
    'LANG=en_US.UTF-8' \
    HOME="$capgate_tmp/home" \
    TMPDIR="$capgate_tmp" \
    /bin/sh -c 'set -eu
while IFS= read -r capgate_name; do
  IFS= read -r capgate_lines
  IFS= read -r capgate_value
  while [ "$capgate_lines" -gt 1 ]; do
    IFS= read -r capgate_line
    capgate_value="$capgate_value
$capgate_line"
    capgate_lines=$((capgate_lines - 1))
  done
  export "$capgate_name=$capgate_value"
done <&3
exec 3<&-
case ${CAPGATE_EGRESS_TOKEN:-} in
'\'''\'' | *[!A-Za-z0-9_-]*) echo '\''capgate: the egress token is missing or malformed'\'' >&2; exit 125 ;;
esac
capgate_proxy="http://capgate:$CAPGATE_EGRESS_TOKEN@127.0.0.1:3128"
unset CAPGATE_EGRESS_TOKEN NO_PROXY no_proxy
export HTTP_PROXY="$capgate_proxy" HTTPS_PROXY="$capgate_proxy" ALL_PROXY="$capgate_proxy"
export http_proxy="$capgate_proxy" https_proxy="$capgate_proxy" all_proxy="$capgate_proxy"
export NODE_USE_ENV_PROXY=1
exec "$@"
' capgate \
    /usr/bin/sandbox-exec -f "$capgate_here/server.sb" \
    '-DDIR_1=/Library' \
    '-DDIR_2=/Library/Developer' \
    '-DDIR_3=/Library/Developer/CommandLineTools' \
    '-DDIR_4=/Library/Developer/CommandLineTools/usr' \
    '-DDIR_5=/Library/Developer/CommandLineTools/usr/bin' \
    '-DDIR_6=/opt' \
    '-DDIR_7=/opt/homebrew' \
    '-DDIR_8=/opt/homebrew/Cellar' \
    '-DDIR_9=/opt/homebrew/Cellar/node' \
    '-DDIR_10=/opt/homebrew/Cellar/node/22.11.0' \
    '-DDIR_11=/opt/homebrew/Cellar/node/22.11.0/bin' \
    '-DDIR_12=/opt/homebrew/etc' \
    '-DDIR_13=/srv' \
    '-DPROGRAM_1=/Library/Developer/CommandLineTools/usr/bin/git' \
    '-DPROGRAM_2=/opt/homebrew/Cellar/node/22.11.0/bin/node' \
    '-DPREFIX_1=/Library/Developer/CommandLineTools/usr' \
    '-DPREFIX_2=/opt/homebrew/Cellar/node/22.11.0' \
    '-DLIB_1=/opt/homebrew/etc/ca-certificates' \
    '-DLIB_2=/opt/homebrew/etc/openssl@3' \
    '-DLINKS_1=/opt/homebrew/lib' \
    '-DLINKS_2=/opt/homebrew/opt' \
    '-DFS_1=/srv/repo' \
    -DTMPDIR="$capgate_tmp" -- "$@"
}

capgate_tmp=$(/usr/bin/mktemp -d /private/tmp/capgate.XXXXXXXX) || refuse 'no private directory'
/bin/mkdir "$capgate_tmp/home" || refuse 'no private home'
cd "$capgate_tmp/home" || refuse 'no private home'

# `env -i` and the shell after it become sandbox-exec, and that the server: one process, the child.
exec 4<&0
capgate_starting=yes
variables | start "$@" 3<&0 <&4 4<&- &
capgate_child=$!
exec 4<&-
[ "$capgate_caught" = no ] || kill -TERM "$capgate_child" 2>/dev/null
while :; do
  capgate_caught=no
  wait "$capgate_child"
  capgate_status=$?
  # A signal ends wait before the server ends.
  [ "$capgate_caught" = yes ] && [ "$capgate_status" -gt 128 ] || break
done
exit "$capgate_status"
