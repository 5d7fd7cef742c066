#include "egress/dns_query.h"

#include "base/format.h"
#include "base/text.h"

namespace capgate::egress {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t longest_name = 255;  // on the wire, with its final zero
constexpr std::uint8_t longest_label = 63;
constexpr std::uint16_t opt_type = 41;

// Past the end it gives zeros and remembers that it did.
class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    const Bytes one = take(1);
    return one.empty() ? std::uint8_t{0} : one[0];
  }
  std::uint16_t word() {
    const unsigned high = byte();
    return static_cast<std::uint16_t>(high << 8U | byte());
  }
  Bytes take(std::size_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const Bytes out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return out;
  }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  Bytes rest_;
  bool failed_ = false;
};

void append_escaped(std::string& out, Bytes label) {
  for (const std::uint8_t byte : label) {
    const char c = static_cast<char>(byte);
    if (c == '.' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_printable_ascii(c) && c != ' ') {
      out += c;
    } else {
      out += format("\\{:03}", byte);
    }
  }
}

std::optional<std::string> read_name(Reader& reader) {
  std::string name;
  std::size_t size = 1;
  for (std::uint8_t length = reader.byte(); length != 0; length = reader.byte()) {
    // Longer ones are pointers and what was never standardised: nothing precedes a question that it
    // could point to.
    if (length > longest_label) return {};
    size += 1U + length;
    if (size > longest_name) return {};
    if (!name.empty()) name += '.';
    append_escaped(name, reader.take(length));
  }
  if (reader.failed()) return {};
  return name.empty() ? "." : name;
}

bool are_options(Bytes data) {
  Reader reader(data);
  while (reader.left() != 0) {
    (void)reader.word();  // its code
    (void)reader.take(reader.word());
  }
  return !reader.failed();
}

std::optional<std::uint8_t> read_edns_version(Reader& reader) {
  const std::uint8_t name = reader.byte();
  const std::uint16_t type = reader.word();
  (void)reader.word();  // the size that the client takes: no reply is longer than the least
  (void)reader.byte();  // upper bits of a result
  const std::uint8_t version = reader.byte();
  (void)reader.word();  // flags
  const Bytes options = reader.take(reader.word());
  if (reader.failed() || name != 0 || type != opt_type || !are_options(options)) return {};
  return version;
}

}  // namespace

std::optional<DnsHeader> read_dns_header(Bytes bytes) {
  if (bytes.size() < dns_header_size) return {};
  Reader reader(bytes);
  DnsHeader header{.id = reader.word()};
  const unsigned flags = reader.word();
  header.is_response = (flags & 0x8000U) != 0;
  header.opcode = static_cast<std::uint8_t>(flags >> 11U & 0xfU);
  header.recursion_desired = (flags & 0x0100U) != 0;
  header.checking_disabled = (flags & 0x0010U) != 0;
  return header;
}

std::optional<DnsQuery> read_dns_query(Bytes bytes) {
  Reader reader(bytes);
  (void)reader.take(4);  // the header's first half
  const std::uint16_t questions = reader.word();
  const std::uint16_t answers = reader.word();
  const std::uint16_t authorities = reader.word();
  const std::uint16_t additionals = reader.word();
  if (questions != 1 || answers != 0 || authorities != 0 || additionals > 1) return {};

  auto name = read_name(reader);
  if (!name) return {};
  DnsQuery query{.name = *std::move(name), .type = reader.word(), .class_number = reader.word()};
  if (reader.failed()) return {};
  query.question = bytes.subspan(dns_header_size, bytes.size() - reader.left() - dns_header_size);
  if (additionals == 1) {
    query.edns_version = read_edns_version(reader);
    if (!query.edns_version) return {};
  }
  if (reader.left() != 0) return {};
  return query;
}

}  // namespace capgate::egress
