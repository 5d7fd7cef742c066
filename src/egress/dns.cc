#include "egress/dns.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "core/host.h"
#include "egress/decide.h"
#include "egress/dns_query.h"

namespace capgate::egress {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Kind = DnsReply::Kind;

enum Type : std::uint16_t {
  type_a = 1,
  type_ptr = 12,
  type_aaaa = 28,
  type_opt = 41,
  type_svcb = 64,
  type_https = 65,
};
constexpr std::uint16_t class_in = 1;

enum class Rcode : std::uint16_t {
  no_error = 0,
  format_error = 1,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16,
};

// Without EDNS a client takes no more. The longest reply, PTR of an IPv6 address, has 368 bytes.
constexpr std::size_t longest_reply = 512;
// What this resolver takes: a datagram of that size is not fragmented anywhere.
constexpr std::uint16_t edns_payload = 1232;
// Asking again costs nothing, and shows the book which names are in use.
constexpr std::uint32_t seconds_to_live = 5;

struct Answer {
  Kind kind = Kind::malformed;
  Rcode code = Rcode::format_error;
  std::vector<std::uint8_t> data;  // of the one record, of the type that was asked; may be none
};

// ---- What is answered -------------------------------------------------------------------------

Answer give(Bytes data) {
  return {.kind = Kind::answered, .code = Rcode::no_error, .data = {data.begin(), data.end()}};
}

Answer give_nothing() { return give({}); }

// For other types NXDOMAIN would be a claim about a name that exists elsewhere.
Answer deny(std::uint16_t type) {
  const bool is_common = type == type_a || type == type_aaaa || type == type_https ||
                         type == type_svcb || type == type_ptr;
  return {
      .kind = Kind::denied, .code = is_common ? Rcode::no_such_name : Rcode::refused, .data = {}};
}

std::vector<std::uint8_t> encode_name(std::string_view name) {
  std::vector<std::uint8_t> out;
  for (const std::string_view label : EachPart(name, '.')) {
    out.push_back(static_cast<std::uint8_t>(label.size()));
    out.insert(out.end(), label.begin(), label.end());
  }
  out.push_back(0);
  return out;
}

// "1.0.18.198": the bytes from the last to the first.
std::optional<std::array<std::uint8_t, 4>> parse_reversed_ipv4(std::string_view text) {
  std::array<std::uint8_t, 4> out{};
  std::size_t left = out.size();
  for (const std::string_view part : EachPart(text, '.')) {
    const auto value = parse_decimal(part);
    if (left == 0 || !value || *value > 255) return {};
    out[--left] = static_cast<std::uint8_t>(*value);
  }
  if (left != 0) return {};
  return out;
}

// "1.0.0. ... .1.0.0.2": 32 hexadecimal digits from the last to the first.
std::optional<std::array<std::uint8_t, 16>> parse_reversed_ipv6(std::string_view text) {
  std::array<std::uint8_t, 16> out{};
  if (text.size() != 63) return {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i % 2 == 1) {
      if (c != '.') return {};
      continue;
    }
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return {};
    const std::size_t place = i / 2;  // of the digit, counted from the last
    out[15 - place / 2] |= static_cast<std::uint8_t>(digit << (place % 2 == 0 ? 0U : 4U));
  }
  return out;
}

constexpr std::string_view ipv4_tree = ".in-addr.arpa";
constexpr std::string_view ipv6_tree = ".ip6.arpa";

bool is_reverse_name(std::string_view name) {
  return name.ends_with(ipv4_tree) || name.ends_with(ipv6_tree);
}

Answer answer_reverse(std::string_view name, NameBook& names) {
  std::string_view found;
  if (name.ends_with(ipv4_tree)) {
    name.remove_suffix(ipv4_tree.size());
    if (const auto address = parse_reversed_ipv4(name)) found = names.name_of(*address);
  } else {
    name.remove_suffix(ipv6_tree.size());
    if (const auto address = parse_reversed_ipv6(name)) found = names.name_of(*address);
  }
  return found.empty() ? deny(type_ptr) : give(encode_name(found));
}

Answer answer_loopback(std::uint16_t type, bool ipv6) {
  constexpr std::array<std::uint8_t, 4> loopback4 = {127, 0, 0, 1};
  constexpr std::array<std::uint8_t, 16> loopback6 = {0, 0, 0, 0, 0, 0, 0, 0,
                                                      0, 0, 0, 0, 0, 0, 0, 1};
  if (type == type_a) return give(loopback4);
  if (type == type_aaaa && ipv6) return give(loopback6);
  return give_nothing();
}

Answer answer_host(const core::HostPattern& host, std::uint16_t type, const Zone& zone) {
  // Of names, `localhost` and those below it: they never lead out of the sandbox by themselves.
  if (core::names_private_endpoint(host)) return answer_loopback(type, zone.ipv6);
  if (type == type_ptr && is_reverse_name(host.text)) return answer_reverse(host.text, zone.names);
  if (!is_name_allowed(zone.policy, host)) return deny(type);
  if (type == type_a) return give(zone.names.address_of(host.text).ipv4);
  if (type == type_aaaa && zone.ipv6) return give(zone.names.address_of(host.text).ipv6);
  return give_nothing();
}

// None for an address, a pattern and what no host name looks like.
std::optional<core::HostPattern> parse_name(std::string_view text) {
  auto host = core::parse_host(text);
  if (!host || host->kind != core::HostPattern::Kind::name) return {};
  return *std::move(host);
}

// ---- How it is written ------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> out) : out_(out) {}

  void byte(std::uint8_t value) {
    if (size_ < out_.size()) out_[size_] = value;
    ++size_;
  }
  void word(std::size_t value) {
    byte(static_cast<std::uint8_t>(value >> 8U));
    byte(static_cast<std::uint8_t>(value));
  }
  void bytes(Bytes values) {
    for (const std::uint8_t value : values) byte(value);
  }
  // 0 if it does not fit.
  [[nodiscard]] std::size_t size() const { return size_ <= out_.size() ? size_ : 0; }

 private:
  std::span<std::uint8_t> out_;
  std::size_t size_ = 0;
};

void write_header(Writer& writer, const DnsHeader& header, Rcode code) {
  constexpr unsigned is_response = 0x8000;
  // Without it resolvers take an empty answer for a referral and try elsewhere.
  constexpr unsigned recursion_available = 0x0080;
  writer.word(header.id);
  writer.word(is_response | recursion_available | unsigned{header.opcode} << 11U |
              (header.recursion_desired ? 0x0100U : 0U) |
              (header.checking_disabled ? 0x0010U : 0U) | (static_cast<unsigned>(code) & 0xfU));
}

void write_record(Writer& writer, std::uint16_t type, Bytes data) {
  writer.word(0xc000 | dns_header_size);  // the name of the question
  writer.word(type);
  writer.word(class_in);
  writer.word(0);
  writer.word(seconds_to_live);
  writer.word(data.size());
  writer.bytes(data);
}

void write_opt(Writer& writer, Rcode code) {
  writer.byte(0);
  writer.word(type_opt);
  writer.word(edns_payload);
  writer.byte(static_cast<std::uint8_t>(static_cast<unsigned>(code) >> 4U));
  writer.byte(0);  // version
  writer.word(0);  // flags: no DNSSEC
  writer.word(0);
}

void write_counts(Writer& writer, std::size_t questions, std::size_t answers,
                  std::size_t additionals) {
  writer.word(questions);
  writer.word(answers);
  writer.word(0);
  writer.word(additionals);
}

std::size_t write_error(std::span<std::uint8_t> out, const DnsHeader& header, Rcode code) {
  Writer writer(out);
  write_header(writer, header, code);
  write_counts(writer, 0, 0, 0);
  return writer.size();
}

std::size_t write_answer(std::span<std::uint8_t> out, const DnsHeader& header,
                         const DnsQuery& query, const Answer& answer) {
  Writer writer(out);
  write_header(writer, header, answer.code);
  write_counts(writer, 1, answer.data.empty() ? 0 : 1, query.edns_version ? 1 : 0);
  // As it came: clients vary the case of their letters to know an answer from a forgery.
  writer.bytes(query.question);
  if (!answer.data.empty()) write_record(writer, query.type, answer.data);
  if (query.edns_version) write_opt(writer, answer.code);
  return writer.size();
}

DnsReply refuse(std::size_t size) {
  return {.kind = size == 0 ? Kind::none : Kind::malformed, .size = size};
}

}  // namespace

DnsReply answer_dns(Bytes bytes, const Zone& zone, std::span<std::uint8_t> out) {
  out = out.first(std::min(out.size(), longest_reply));
  const auto header = read_dns_header(bytes);
  // A reply to a reply could go back and forth for ever.
  if (!header || header->is_response) return {};
  if (header->opcode != 0) return refuse(write_error(out, *header, Rcode::not_implemented));
  const auto query = read_dns_query(bytes);
  if (!query) return refuse(write_error(out, *header, Rcode::format_error));
  if (query->edns_version.value_or(0) != 0) {
    return refuse(write_answer(out, *header, *query, {.code = Rcode::bad_version}));
  }

  const auto host = parse_name(query->name);
  Answer answer = deny(query->type);
  if (query->class_number != class_in) {
    answer.code = Rcode::refused;
  } else if (host) {
    answer = answer_host(*host, query->type, zone);
  }
  DnsReply reply{.size = write_answer(out, *header, *query, answer)};
  if (reply.size == 0) return {};
  reply.kind = answer.kind;
  reply.name = host ? host->text : query->name;
  reply.type = query->type;
  return reply;
}

}  // namespace capgate::egress
