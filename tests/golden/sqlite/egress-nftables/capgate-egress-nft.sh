#!/bin/sh
# capgate egress, policy sha256:683453d01ede318693f20d4ef7ce1eaab1654893cf93dc22130ffc8ec60b10db
set -eu
die() { printf 'capgate-egress-nft.sh: %s\n' "$1" >&2; exit 1; }
[ $# -ge 1 ] || die 'usage: capgate-egress-nft.sh PID|/run/netns/NAME [RESOLVER...]'
case $1 in
  /*) net=$1; user=/proc/self/ns/user ;;
  ''|*[!0-9]*) die 'name a process by its number, or a namespace by its absolute path' ;;
  *) net=/proc/$1/ns/net; user=/proc/$1/ns/user ;;
esac
shift
identity() { stat -L -c %d:%i -- "$1"; }
[ "$(identity "$net")" != "$(identity /proc/self/ns/net)" ] ||
  die 'that is the namespace of this shell: the rules would hold for everything in it'
enter() {
  if [ "$(identity "$user")" = "$(identity /proc/self/ns/user)" ]; then
    nsenter --net="$net" -- "$@"
  else
    nsenter --net="$net" --user="$user" --preserve-credentials -- "$@"
  fi
}
[ $# -eq 0 ] || die 'no rule needs names, so no resolver is opened'
{ cat <<'RULES'
table inet capgate {}
delete table inet capgate
table inet capgate {
  chain output {
    type filter hook output priority filter; policy drop;
    ct state established,related accept
    ct state invalid drop
    oifname "lo" accept
    icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
    reject with icmpx admin-prohibited
  }
  chain input {
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    iifname "lo" accept
    icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
  }
}
RULES
} | enter /bin/sh -c '
[ -e /proc/sys/net/core/somaxconn ] || { echo "no /proc/sys/net to look at" >&2; exit 1; }
[ ! -e /proc/sys/net/core/netdev_max_backlog ] || {
  echo "that is the network of the whole machine: the rules would hold for all of it" >&2; exit 1; }
exec nft -f -'
