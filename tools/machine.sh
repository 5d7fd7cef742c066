# shellcheck shell=bash
# Sourced by ./dev: what this machine has, and what is installed on it.

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The packages of a purpose of tools/packages.txt, those that it includes first.
packages_for() {  # purpose
  awk -v wanted="$1" '
    { sub(/#.*/, "") }
    /^\[/ { gsub(/[][+]/, " "); section = $1; order[++sections] = section
            for (i = 2; i <= NF; i++) includes[section] = includes[section] " " $i; next }
    NF { packages[section] = packages[section] "\n" $1 }
    function print_all(name,   parts, count, i) {
      count = split(includes[name], parts, " ")
      for (i = 1; i <= count; i++) print_all(parts[i])
      print packages[name]
    }
    END { print_all(wanted) }' tools/packages.txt | grep . | sort -u
}

missing_packages() {  # purpose
  local wanted installed
  wanted=$(packages_for "$1")
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p')
  grep -vxF "${installed:-none}" <<<"$wanted" || true
}

# RUNLEVEL keeps packages from starting their daemons.
install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -qq --no-install-recommends "$@" >&2
}

ensure_packages() {  # purpose
  command -v dpkg-query >/dev/null || die "./dev installs packages on Debian 12; elsewhere install the equivalents of tools/packages.txt"
  local missing
  missing=$(missing_packages "$1")
  [ -z "$missing" ] && return
  # shellcheck disable=SC2086
  say "installing" $missing
  # shellcheck disable=SC2086
  install_packages $missing
}

node_is_new_enough() {
  local major
  major=$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null) || return 1
  [ "$major" -ge 22 ]
}

# Prints the path of a Node 22 or later: the machine's, or the one that tests/e2e/node pins.
ensure_node() {
  local found place
  # Node's own packages bring npm; Debian's would conflict with them.
  command -v npm >/dev/null || install_packages npm
  found=$(command -v node || true)
  if [ -n "$found" ] && node_is_new_enough "$found"; then echo "$found"; return; fi
  place=$(/usr/bin/python3 -B tests/e2e/npm_packages.py node)
  echo "$place/node_modules/.bin/node"
}

# ---- ./dev doctor -------------------------------------------------------------------------------

report_packages() {
  local purpose missing
  for purpose in run quick test bench full; do
    missing=$(missing_packages "$purpose")
    if [ -z "$missing" ]; then
      printf '%-6s all packages are installed\n' "$purpose"
    else
      printf '%-6s %d packages are missing (./dev installs them): %s\n' "$purpose" \
        "$(wc -l <<<"$missing")" "$(xargs <<<"$missing")"
    fi
  done
}

report_feature() {  # tiers what remedy command...
  local tiers=$1 what=$2 remedy=$3
  shift 3
  if "$@" >/dev/null 2>&1; then
    printf '%-6s %s: yes\n' "$tiers" "$what"
  else
    printf '%-6s %s: no; %s\n' "$tiers" "$what" "$remedy"
  fi
}

has_landlock() { grep -q landlock /sys/kernel/security/lsm || grep -q landlock_create_ruleset /proc/kallsyms; }
has_space() { [ "$(df --output=avail -k . | tail -n 1)" -gt $((12 * 1024 * 1024)) ]; }
has_memory() { [ "$(awk '/^MemTotal/ {print $2}' /proc/meminfo)" -gt $((7 * 1024 * 1024)) ]; }
# In a virtual machine /dev/kvm may exist although it cannot be used.
can_make_vm() { /usr/bin/python3 -c 'import fcntl; fcntl.ioctl(open("/dev/kvm", "r+b", 0), 0xAE01, 0)'; }
can_be_root() { [ "$(id -u)" = 0 ] || sudo -n true; }

machine_doctor() {
  report_packages
  report_feature all "12 GB of free disk space" "make room: build/ takes up to 6 GB, the caches 4" has_space
  report_feature all "8 GB of memory" "build with fewer jobs (ninja -j 1): linking with sanitizers needs 2 GB each" has_memory
  report_feature run "user namespaces for ordinary users" "see 'capgate doctor'" unshare --user --map-root-user true
  report_feature run "Landlock" "a kernel with CONFIG_SECURITY_LANDLOCK and lsm=landlock" has_landlock
  report_feature test "root, to start daemons and to become other users" "run as root, or set up sudo" can_be_root
  report_feature test "Node 22" "./dev installs one from npm" node_is_new_enough node
  report_feature full "KVM" "virtual machines are emulated, which takes about ten times as long" can_make_vm
}
