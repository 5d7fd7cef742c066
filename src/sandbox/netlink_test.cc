#include "sandbox/netlink.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::sandbox {
namespace {

using egress::wire::Family;

struct Message {
  nlmsghdr head;
  std::string_view rest;
};

// Every message with its own length, which must be aligned and lead exactly to the end.
std::vector<Message> messages_of(std::string_view bytes) {
  std::vector<Message> out;
  while (!bytes.empty()) {
    Message message{};
    EXPECT_GE(bytes.size(), sizeof(nlmsghdr));
    std::memcpy(&message.head, bytes.data(), sizeof(nlmsghdr));
    const std::size_t length = message.head.nlmsg_len;
    EXPECT_EQ(length % NLMSG_ALIGNTO, 0U);
    if (length < sizeof(nlmsghdr) || length > bytes.size()) {
      ADD_FAILURE() << "a message of " << length << " in " << bytes.size();
      return out;
    }
    message.rest = bytes.substr(sizeof(nlmsghdr), length - sizeof(nlmsghdr));
    out.push_back(message);
    bytes.remove_prefix(length);
  }
  return out;
}

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

// The bytes that `ip route add local 0.0.0.0/0 dev lo` sends, but for flags and sequence.
TEST(Netlink, TheRouteIsLocalToTheLoopback) {
  const auto messages = messages_of(local_route(Family::ipv4));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].head.nlmsg_type, RTM_NEWROUTE);
  EXPECT_EQ(messages[0].head.nlmsg_flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK);
  const std::string all = local_route(Family::ipv4);
  EXPECT_EQ(hex(std::string_view(all).substr(16)),
            "02000000ff04fe0200000000"  // AF_INET, /0, table local, static, host, local
            "0800040001000000");        // RTA_OIF 1
  const std::string other = local_route(Family::ipv6);
  EXPECT_EQ(hex(std::string_view(other).substr(16, 1)), "0a");
  EXPECT_EQ(std::string_view(other).substr(17), std::string_view(all).substr(17));
}

std::vector<unsigned> types_of(const std::vector<Message>& messages) {
  std::vector<unsigned> out;
  for (const Message& message : messages) out.push_back(message.head.nlmsg_type);
  return out;
}

constexpr unsigned nft(unsigned type) { return (unsigned{NFNL_SUBSYS_NFTABLES} << 8U) | type; }

TEST(Netlink, ARedirectIsOneBatchThatEndsWithAnAcknowledgedRule) {
  const std::string bytes = redirect({Family::ipv4, {443, 5432}, 61000});
  const auto messages = messages_of(bytes);
  EXPECT_EQ(types_of(messages), (std::vector<unsigned>{NFNL_MSG_BATCH_BEGIN, nft(NFT_MSG_NEWTABLE),
                                                       nft(NFT_MSG_NEWCHAIN), nft(NFT_MSG_NEWRULE),
                                                       nft(NFT_MSG_NEWRULE), NFNL_MSG_BATCH_END}));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ((messages[i].head.nlmsg_flags & NLM_F_ACK) != 0, i == 4) << i;
    EXPECT_EQ(messages[i].head.nlmsg_seq, i + 1);
  }
  EXPECT_EQ(hex(messages[0].rest), "0000000a");
  EXPECT_EQ(hex(messages[5].rest), "0000000a");
}

TEST(Netlink, TheChainIsNatAtTheOutput) {
  const std::string bytes = redirect({Family::ipv4, {}, 61000});
  EXPECT_EQ(hex(messages_of(bytes)[2].rest),
            "02000000"
            "0c000100"
            "6361706761746500"  // capgate
            "0b000300"
            "6f757470757400"
            "00"                  // output
            "14000480"            // hook
            "0800010000000003"    // local out
            "08000200ffffff9c"    // priority -100
            "080007006e617400");  // nat
}

// Each expression of the rule is one whole line here.
TEST(Netlink, TheRuleForEveryPortLeavesLoopbackAndDnsAlone) {
  const std::string bytes = redirect({Family::ipv4, {}, 61000});
  const std::string rule = hex(messages_of(bytes)[3].rest);
  const auto has = [&](std::string_view part) {
    EXPECT_NE(rule.find(part), std::string::npos) << part << "\n" << rule;
  };
  has("0800010000000001"
      "0800020000000010");  // meta l4proto
  has("0800020000000000"
      "0c000380"
      "0500010006000000");  // == tcp
  has("0800020000000001"
      "0800030000000010"
      "0800040000000001");  // first byte of daddr
  has("0800020000000001"
      "0c000380"
      "050001007f000000");  // != 127
  has("0800020000000002"
      "0800030000000002"
      "0800040000000002");  // dport
  has("0800020000000001"
      "0c000380"
      "0600010000350000");  // != 53
  has("0c000280"
      "06000100ee480000");  // immediate 61000
  has("0a000100"
      "7265646972000000"
      "14000280"
      "0800010000000001"
      "0800030000000002");
}

TEST(Netlink, ARuleForOnePortComparesThatPort) {
  const std::string rule = hex(messages_of(redirect({Family::ipv4, {5432}, 61000}))[3].rest);
  EXPECT_NE(rule.find("08000200000000000c0003800600010015380000"), std::string::npos) << rule;
  EXPECT_EQ(rule.find("0600010000350000"), std::string::npos) << rule;
}

TEST(Netlink, Ipv6LeavesItsLoopbackAlone) {
  const std::string bytes = redirect({Family::ipv6, {443}, 61000});
  const auto messages = messages_of(bytes);
  EXPECT_EQ(messages[1].rest[0], AF_INET6);
  const std::string rule = hex(messages[3].rest);
  EXPECT_NE(rule.find("08000300000000180800040000000010"), std::string::npos) << rule;
  EXPECT_NE(rule.find("0800020000000001180003801400010000000000000000000000000000000001"),
            std::string::npos)
      << rule;
}

}  // namespace
}  // namespace capgate::sandbox
