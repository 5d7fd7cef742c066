#!/bin/sh
# capgate egress, policy sha256:4d4d7afd47898f9156ce4904f14bd9691c09a2993f1ff62db2be8c7901162a3f
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
for resolver; do
  case $resolver in
    ''|*[!0-9a-fA-F:.]*) die "not an address: $resolver" ;;
  esac
done
{ cat <<'RULES'
table inet capgate {}
delete table inet capgate
table inet capgate {
  set private4 {
    type ipv4_addr; flags interval;
    elements = { 0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16/32, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/4, 240.0.0.0/4 }
  }
  set private6 {
    type ipv6_addr; flags interval;
    elements = { ::/8, 100::/8, 2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20, 5f00::/16, fc00::/7, fe80::/10, fec0::/10, ff00::/8 }
  }
  set resolvers4 {
    type ipv4_addr; flags interval;
  }
  set resolvers6 {
    type ipv6_addr; flags interval;
  }
  chain output {
    type filter hook output priority filter; policy drop;
    ct state established,related accept
    ct state invalid drop
    oifname "lo" accept
    icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
    meta l4proto { tcp, udp } th dport 53 ip daddr @resolvers4 accept
    meta l4proto { tcp, udp } th dport 53 ip6 daddr @resolvers6 accept
    # *
    meta l4proto tcp ip daddr != @private4 accept
    meta l4proto tcp ip6 daddr != @private6 accept
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
for resolver; do
  case $resolver in
    *:*) printf 'add element inet capgate resolvers6 { %s }\n' "$resolver" ;;
    *) printf 'add element inet capgate resolvers4 { %s }\n' "$resolver" ;;
  esac
done
} | enter /bin/sh -c '
[ -e /proc/sys/net/core/somaxconn ] || { echo "no /proc/sys/net to look at" >&2; exit 1; }
[ ! -e /proc/sys/net/core/netdev_max_backlog ] || {
  echo "that is the network of the whole machine: the rules would hold for all of it" >&2; exit 1; }
exec nft -f -'
