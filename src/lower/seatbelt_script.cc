#include "lower/seatbelt_script.h"

#include "base/format.h"
#include "lower/common.h"
#include "lower/seatbelt_paths.h"
#include "lower/seatbelt_profile.h"
#include "lower/seatbelt_text.h"

namespace capgate::lower::seatbelt {
namespace {

using core::LimitCapability;
using core::PathPattern;

// `export "NAME=VALUE"` assigns without looking at the value a second time. The names of this
// shell's own variables are not those of anyone's capability.
constexpr std::string_view read_variables = R"(while IFS= read -r capgate_name; do
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
)";

// NO_PROXY stays away: nothing may go around the broker.
constexpr std::string_view set_proxy = R"(case ${CAPGATE_EGRESS_TOKEN:-} in
'' | *[!A-Za-z0-9_-]*) echo 'capgate: the egress token is missing or malformed' >&2; exit 125 ;;
esac
capgate_proxy="http://capgate:$CAPGATE_EGRESS_TOKEN@127.0.0.1:@PORT@"
unset CAPGATE_EGRESS_TOKEN NO_PROXY no_proxy
export HTTP_PROXY="$capgate_proxy" HTTPS_PROXY="$capgate_proxy" ALL_PROXY="$capgate_proxy"
export http_proxy="$capgate_proxy" https_proxy="$capgate_proxy" all_proxy="$capgate_proxy"
export NODE_USE_ENV_PROXY=1
)";

constexpr std::string_view script_begin = R"(#!/bin/sh
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
)";

constexpr std::string_view script_end = R"(
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
)";

void add_checks(std::string& out, const Input& input) {
  out += "\n# What the policy grants must be there, under its real name.\n";
  for (const FileGrant& grant : file_grants(input.policy)) {
    const bool any = grant.granted->capability.path.shape == PathPattern::Shape::node;
    out += format("granted {} {}\n", any ? "any" : "directory", shell_word(grant.base));
    if (grant.writes()) out += format("apart {}\n", shell_word(grant.base));
  }
}

void add_token(std::string& out, const Input& input) {
  if (input.policy.connect.empty()) return;
  const std::string file = shell_word(format("{}/token", input.options.egress_dir));
  out += format(
      "\n# The broker's token for this start: never a word of a command line.\n"
      "capgate_token=''\n"
      "[ -f {0} ] || refuse {1}\n"
      "IFS= read -r capgate_token <{0} || [ -n \"$capgate_token\" ] || refuse {2}\n",
      file,
      shell_word(format("{}/token is missing: start capgate egress", input.options.egress_dir)),
      shell_word(format("{}/token is empty", input.options.egress_dir)));
}

void add_variables(std::string& out, const Input& input, const Launch& launch) {
  out += '\n';
  for (const std::string& name : launch.variables) {
    out += format("[ \"${{{0}+set}}\" = set ] || refuse 'the variable {0} is not set'\n", name);
  }
  out += "variables() {\n";
  for (const std::string& name : launch.variables) out += format("  send {0} \"${0}\"\n", name);
  if (!input.policy.connect.empty())
    out += format("  send {} \"$capgate_token\"\n", token_variable);
  out += "  :\n}\n";
}

void add_start(std::string& out, const Input& input, const Launch& launch) {
  out += "\nstart() {\n  exec /usr/bin/env -i \\\n";
  for (const std::string& setting : launch.environment) {
    out += format("    {} \\\n", shell_word(setting));
  }
  if (launch.private_home) out += "    HOME=\"$capgate_tmp/home\" \\\n";
  out += "    TMPDIR=\"$capgate_tmp\" \\\n";
  std::string entry = entry_script(input);
  if (entry.empty()) entry = "exec 3<&-\nexec \"$@\"\n";
  out += format("    /bin/sh -c {} capgate \\\n", shell_word(entry));
  out += format("    /usr/bin/sandbox-exec -f \"$capgate_here/{}\" \\\n", profile_name);
  for (const auto& [key, value] : launch.parameters) {
    out += format("    {} \\\n", shell_word(format("-D{}={}", key, value)));
  }
  out += "    -DTMPDIR=\"$capgate_tmp\" -- \"$@\"\n}\n";
}

}  // namespace

std::string entry_script(const Input& input) {
  std::string out;
  for (const auto& grant : input.policy.limits) {
    if (grant.capability.kind != LimitCapability::Kind::files) continue;
    out += format("ulimit -n {}\n", grant.capability.value);
  }
  const bool connects = !input.policy.connect.empty();
  if (connects || !input.policy.variables.empty()) out += read_variables;
  if (connects) {
    std::string proxy(set_proxy);
    constexpr std::string_view hole = "@PORT@";
    proxy.replace(proxy.find(hole), hole.size(), std::to_string(input.options.egress_port));
    out += proxy;
  }
  if (out.empty()) return out;
  return format("set -eu\n{}exec \"$@\"\n", out);
}

File make_script(const Input& input, const Launch& launch) {
  std::string out(script_begin);
  add_checks(out, input);
  add_token(out, input);
  add_variables(out, input, launch);
  add_start(out, input, launch);
  out +=
      "\ncapgate_tmp=$(/usr/bin/mktemp -d /private/tmp/capgate.XXXXXXXX) || refuse 'no private "
      "directory'\n"
      "/bin/mkdir \"$capgate_tmp/home\" || refuse 'no private home'\n"
      "cd \"$capgate_tmp/home\" || refuse 'no private home'\n";
  out += script_end;
  return {.name = script_name, .contents = std::move(out), .executable = true};
}

}  // namespace capgate::lower::seatbelt
