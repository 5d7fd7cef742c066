// Any bytes at all: answer_dns stays in its buffer, what it writes can be read, and an address goes
// only to a name that a rule covers. The input is several messages, so that the book fills up.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "core/host.h"
#include "egress/dns.h"
#include "support/dns_messages.h"

namespace {

using namespace capgate;
using egress::DnsReply;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t most_names = 2;

egress::Policy make_policy() {
  egress::Policy policy;
  for (const char* endpoint : {"b.test:443", "*.a.test", "localhost:80", "127.0.0.1:80"}) {
    policy.rules.push_back({.connect = {.endpoint = *core::parse_endpoint(endpoint)}});
  }
  return policy;
}

// The rules above in other words.
bool may_have_address(const std::string& name) {
  return name == "b.test" || (name.ends_with(".a.test") && name.size() > 7);
}

bool is_loopback(const std::string& name) {
  return name == "localhost" || name.ends_with(".localhost");
}

template <std::size_t size>
std::array<std::uint8_t, size> address_in(const support::DnsRecord& record) {
  CAPGATE_ASSERT(record.data.size() == size);
  std::array<std::uint8_t, size> out{};
  std::ranges::copy(record.data, out.begin());
  return out;
}

template <std::size_t size>
void check_address(const support::DnsRecord& record, egress::NameBook& names) {
  const std::string name = to_lower(record.name);
  const auto address = address_in<size>(record);
  if (is_loopback(name)) {
    CAPGATE_ASSERT(address.front() == (size == 4 ? 127 : 0) && address.back() == 1);
    return;
  }
  CAPGATE_ASSERT(may_have_address(name));
  CAPGATE_ASSERT(names.name_of(address) == name);
}

void check_answer(const support::DnsRecord& record, const egress::Zone& zone) {
  if (record.type == 1) {
    check_address<4>(record, zone.names);
  } else if (record.type == 28) {
    CAPGATE_ASSERT(zone.ipv6);
    check_address<16>(record, zone.names);
  } else {
    CAPGATE_ASSERT(record.type == 12);
    CAPGATE_ASSERT(may_have_address(support::DnsReader(record.data).name()));
  }
}

void check_reply(Bytes query, const DnsReply& reply, Bytes written, const egress::Zone& zone) {
  CAPGATE_ASSERT((reply.kind == DnsReply::Kind::none) == written.empty());
  CAPGATE_ASSERT(std::ranges::all_of(reply.name, is_printable_ascii));
  if (written.empty()) return;
  const auto message = support::read_dns_reply(written);
  CAPGATE_ASSERT(message.has_value());
  CAPGATE_ASSERT(query[0] == written[0] && query[1] == written[1]);
  CAPGATE_ASSERT((message->flags & 0x8000U) != 0);
  CAPGATE_ASSERT(message->questions.size() <= 1 && message->answers.size() <= 1);
  CAPGATE_ASSERT(message->authorities.empty() && message->additionals.size() <= 1);
  const bool is_answered = reply.kind == DnsReply::Kind::answered;
  CAPGATE_ASSERT(is_answered == (message->rcode() == 0));
  CAPGATE_ASSERT(is_answered || message->answers.empty());
  for (const support::DnsRecord& question : message->questions) {
    const std::size_t size = question.name.size() + (question.name.empty() ? 5U : 6U);
    CAPGATE_ASSERT(std::ranges::equal(query.subspan(12, size), written.subspan(12, size)));
  }
  for (const support::DnsRecord& answer : message->answers) check_answer(answer, zone);
}

}  // namespace

// First a byte of settings, then messages, each after its length (one byte; at the end all that is
// left) and the room for its reply (in units of four bytes).
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const egress::Policy policy = make_policy();
  Bytes input(data, size);
  if (input.empty()) return 0;
  egress::NameBook names(most_names);
  const egress::Zone zone{.policy = policy, .names = names, .ipv6 = (input[0] & 1U) != 0};
  input = input.subspan(1);
  while (input.size() >= 2) {
    const std::size_t room = std::size_t{input[1]} * 4;
    const std::size_t length = std::min<std::size_t>(input[0], input.size() - 2);
    const Bytes query = input.subspan(2, length);
    input = input.subspan(2 + length);
    // A block of its own, so that a byte past its end is seen.
    const std::unique_ptr<std::uint8_t[]> out(new std::uint8_t[room]);
    const DnsReply reply = egress::answer_dns(query, zone, {out.get(), room});
    CAPGATE_ASSERT(reply.size <= std::min<std::size_t>(room, 512));
    check_reply(query, reply, {out.get(), reply.size}, zone);
    CAPGATE_ASSERT(names.size() <= most_names);
  }
  return 0;
}
