#include "sandbox/netlink.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <string_view>

namespace capgate::sandbox {
namespace {

using egress::wire::Family;

constexpr std::uint16_t dns_port = 53;
constexpr std::uint32_t loopback_index = 1;  // in every network namespace
constexpr std::string_view table_name("capgate\0", 8);
constexpr std::string_view chain_name("output\0", 7);

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string big_endian(std::uint16_t value) { return bytes_of(htons(value)); }
std::string big_endian(std::uint32_t value) { return bytes_of(htonl(value)); }

std::uint8_t family_number(Family family) { return family == Family::ipv4 ? AF_INET : AF_INET6; }

// Lengths are filled in when what they count is complete.
class Writer {
 public:
  template <typename Head, typename Fill>
  void message(std::uint16_t type, std::uint16_t flags, const Head& head, Fill fill) {
    const std::size_t start = out_.size();
    out_ += bytes_of(nlmsghdr{.nlmsg_len = 0,
                              .nlmsg_type = type,
                              .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags),
                              .nlmsg_seq = ++sequence_,
                              .nlmsg_pid = 0});
    out_ += bytes_of(head);
    pad();
    fill();
    const auto length = static_cast<std::uint32_t>(out_.size() - start);
    std::memcpy(out_.data() + start, &length, sizeof(length));
  }

  void attribute(std::uint16_t type, std::string_view value) {
    nested(type, [&] { out_ += value; }, 0);
  }

  template <typename Fill>
  void nested(std::uint16_t type, Fill fill, std::uint16_t flag = NLA_F_NESTED) {
    const std::size_t start = out_.size();
    out_ += bytes_of(nlattr{.nla_len = 0, .nla_type = static_cast<std::uint16_t>(type | flag)});
    fill();
    const auto length = static_cast<std::uint16_t>(out_.size() - start);
    std::memcpy(out_.data() + start, &length, sizeof(length));
    pad();
  }

  std::string take() && { return std::move(out_); }

 private:
  void pad() { out_.resize(NLMSG_ALIGN(out_.size())); }

  std::string out_;
  std::uint32_t sequence_ = 0;
};

// ---- nf_tables ----------------------------------------------------------------------------------

template <typename Fill>
void expression(Writer& out, std::string_view name_with_nul, Fill fill) {
  out.nested(NFTA_LIST_ELEM, [&] {
    out.attribute(NFTA_EXPR_NAME, name_with_nul);
    out.nested(NFTA_EXPR_DATA, fill);
  });
}

constexpr std::uint32_t data_register = NFT_REG_1;

void load_payload(Writer& out, std::uint32_t base, std::uint32_t offset, std::uint32_t size) {
  expression(out, {"payload\0", 8}, [&] {
    out.attribute(NFTA_PAYLOAD_DREG, big_endian(data_register));
    out.attribute(NFTA_PAYLOAD_BASE, big_endian(base));
    out.attribute(NFTA_PAYLOAD_OFFSET, big_endian(offset));
    out.attribute(NFTA_PAYLOAD_LEN, big_endian(size));
  });
}

void compare(Writer& out, std::uint32_t operation, std::string_view value) {
  expression(out, {"cmp\0", 4}, [&] {
    out.attribute(NFTA_CMP_SREG, big_endian(data_register));
    out.attribute(NFTA_CMP_OP, big_endian(operation));
    out.nested(NFTA_CMP_DATA, [&] { out.attribute(NFTA_DATA_VALUE, value); });
  });
}

void require_tcp(Writer& out) {
  expression(out, {"meta\0", 5}, [&] {
    out.attribute(NFTA_META_DREG, big_endian(data_register));
    out.attribute(NFTA_META_KEY, big_endian(std::uint32_t{NFT_META_L4PROTO}));
  });
  compare(out, NFT_CMP_EQ, std::string(1, static_cast<char>(IPPROTO_TCP)));
}

// The server's own loopback stays its own: 127.0.0.0/8 is known by its first byte.
void require_no_loopback(Writer& out, Family family) {
  if (family == Family::ipv4) {
    load_payload(out, NFT_PAYLOAD_NETWORK_HEADER, 16, 1);
    compare(out, NFT_CMP_NEQ, "\x7f");
    return;
  }
  load_payload(out, NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
  compare(out, NFT_CMP_NEQ, bytes_of(in6addr_loopback));
}

void require_port(Writer& out, std::uint32_t operation, std::uint16_t port) {
  load_payload(out, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
  compare(out, operation, big_endian(port));
}

void redirect_to(Writer& out, std::uint16_t port) {
  expression(out, {"immediate\0", 10}, [&] {
    out.attribute(NFTA_IMMEDIATE_DREG, big_endian(data_register));
    out.nested(NFTA_IMMEDIATE_DATA, [&] { out.attribute(NFTA_DATA_VALUE, big_endian(port)); });
  });
  expression(out, {"redir\0", 6}, [&] {
    out.attribute(NFTA_REDIR_REG_PROTO_MIN, big_endian(data_register));
    out.attribute(NFTA_REDIR_FLAGS, big_endian(std::uint32_t{NF_NAT_RANGE_PROTO_SPECIFIED}));
  });
}

class Batch {
 public:
  explicit Batch(Family family) : family_(family) {
    const nfgenmsg whole{
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    out_.message(NFNL_MSG_BATCH_BEGIN, 0, whole, [] {});
  }

  void add_table() {
    message(NFT_MSG_NEWTABLE, NLM_F_CREATE, [&] { out_.attribute(NFTA_TABLE_NAME, table_name); });
  }

  // At the output, before the packet's route is final (NF_IP_PRI_NAT_DST).
  void add_chain() {
    message(NFT_MSG_NEWCHAIN, NLM_F_CREATE, [&] {
      out_.attribute(NFTA_CHAIN_TABLE, table_name);
      out_.attribute(NFTA_CHAIN_NAME, chain_name);
      out_.nested(NFTA_CHAIN_HOOK, [&] {
        out_.attribute(NFTA_HOOK_HOOKNUM, big_endian(std::uint32_t{NF_INET_LOCAL_OUT}));
        out_.attribute(NFTA_HOOK_PRIORITY, big_endian(static_cast<std::uint32_t>(-100)));
      });
      out_.attribute(NFTA_CHAIN_TYPE, {"nat\0", 4});
    });
  }

  struct Port {
    std::uint32_t comparison;
    std::uint16_t number;
    bool is_last;
  };
  void add_rule(const Port& port, std::uint16_t to) {
    const unsigned flags = NLM_F_CREATE | NLM_F_APPEND | (port.is_last ? NLM_F_ACK : 0U);
    message(NFT_MSG_NEWRULE, static_cast<std::uint16_t>(flags), [&] {
      out_.attribute(NFTA_RULE_TABLE, table_name);
      out_.attribute(NFTA_RULE_CHAIN, chain_name);
      out_.nested(NFTA_RULE_EXPRESSIONS, [&] {
        require_tcp(out_);
        require_no_loopback(out_, family_);
        require_port(out_, port.comparison, port.number);
        redirect_to(out_, to);
      });
    });
  }

  std::string finish() && {
    const nfgenmsg whole{
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    out_.message(NFNL_MSG_BATCH_END, 0, whole, [] {});
    return std::move(out_).take();
  }

 private:
  template <typename Fill>
  void message(unsigned type, std::uint16_t flags, Fill fill) {
    const nfgenmsg head{
        .nfgen_family = family_number(family_), .version = NFNETLINK_V0, .res_id = 0};
    out_.message(static_cast<std::uint16_t>((NFNL_SUBSYS_NFTABLES << 8U) | type), flags, head,
                 fill);
  }

  Family family_;
  Writer out_;
};

}  // namespace

std::string local_route(Family family) {
  rtmsg route{};
  route.rtm_family = family_number(family);
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_STATIC;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  Writer out;
  out.message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, route,
              [&] { out.attribute(RTA_OIF, bytes_of(loopback_index)); });
  return std::move(out).take();
}

std::string redirect(const Redirect& wanted) {
  Batch batch(wanted.family);
  batch.add_table();
  batch.add_chain();
  if (wanted.ports.empty()) {
    batch.add_rule({.comparison = NFT_CMP_NEQ, .number = dns_port, .is_last = true}, wanted.to);
  }
  for (const std::uint16_t& port : wanted.ports) {
    batch.add_rule(
        {.comparison = NFT_CMP_EQ, .number = port, .is_last = &port == &wanted.ports.back()},
        wanted.to);
  }
  return std::move(batch).finish();
}

}  // namespace capgate::sandbox
