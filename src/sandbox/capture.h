// How connections of a sandbox reach the broker: routes, redirects and sockets, spelled out.
//
//   const Capture capture = make_capture(plan.network, WithProxy::no);
//   capture.messages     netlink messages that init sends
//   capture.sockets      sockets that init makes and sends out, each of one kind (egress/wire.h)
//
// Pure: the same network gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egress/wire.h"
#include "lower/bpf.h"
#include "lower/plan.h"
#include "sandbox/orders.h"

namespace capgate::sandbox {

struct CaptureMessage {
  std::uint32_t protocol = 0;  // NETLINK_*
  std::string bytes = {};
  std::uint32_t flags = 0;     // orders.h
  std::string_view what = {};  // in words
};

struct CaptureSocket {
  egress::wire::SocketKind kind = egress::wire::SocketKind::capture;
  std::uint16_t port = 0;
  std::uint32_t domain = 0;
  std::uint32_t type = 0;
  std::uint32_t protocol = 0;
  std::uint32_t backlog = 0;
  std::uint32_t flags = 0;
  std::string address = {};  // struct sockaddr
  std::vector<orders::SocketOption> options = {};
  std::vector<lower::BpfInstruction> filter = {};
};

struct Capture {
  std::vector<CaptureMessage> messages;
  std::vector<CaptureSocket> sockets;
  bool inner_sockets = false;    // init makes sockets when the broker asks: ports are published
  std::uint16_t proxy_port = 0;  // 0: no proxy

  [[nodiscard]] bool is_needed() const { return !sockets.empty() || inner_sockets; }
};

enum class WithProxy : bool { no, yes };
[[nodiscard]] Capture make_capture(const lower::PlanNetwork& network, WithProxy proxy);

// Packets that tell of a port where nobody listens, and nothing else, cut at 128 bytes. For a raw
// socket of `protocol` (TCP, ICMP or ICMPv6), which sees the IP header in IPv4 only.
[[nodiscard]] std::vector<lower::BpfInstruction> refusal_filter(egress::wire::Family family,
                                                                std::uint32_t protocol);

[[nodiscard]] std::string_view kind_name(egress::wire::SocketKind kind);  // "capture"

}  // namespace capgate::sandbox
