#include "egress/hello.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace capgate::egress {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint8_t handshake_record = 22;
constexpr std::uint8_t client_hello_message = 1;
constexpr std::size_t record_head = 5;
constexpr std::size_t message_head = 4;
constexpr std::size_t longest_record = 16384;
constexpr std::size_t longest_hello = std::size_t{64} * 1024;
constexpr std::size_t server_name_extension = 0;
constexpr std::size_t protocols_extension = 16;
constexpr std::size_t encrypted_hello_extension = 0xfe0d;

// TLS 1.0 to 1.2; 1.3 calls itself 1.2 here. SSL 3 is not spoken any more.
constexpr bool is_version(std::size_t version) { return version >= 0x0301 && version <= 0x0303; }

// Takes fields off the front. Once one is missing, all later ones are empty and `ok` stays false.
class Fields {
 public:
  explicit Fields(Bytes bytes) : rest_(bytes) {}

  Bytes take(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      size = 0;
      rest_ = {};
    }
    const Bytes taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::size_t number(std::size_t size) {
    std::size_t value = 0;
    for (const std::uint8_t byte : take(size)) value = value << 8U | byte;
    return value;
  }
  // A length of `length_size` bytes, and as many bytes.
  Bytes vector(std::size_t length_size) { return take(number(length_size)); }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool is_empty() const { return rest_.empty(); }
  [[nodiscard]] bool ended_well() const { return ok_ && rest_.empty(); }

 private:
  Bytes rest_;
  bool ok_ = true;
};

// A second entry or another type of name is where two readers could take different names.
std::optional<std::string> parse_server_name(Bytes extension) {
  Fields fields(extension);
  Fields list(fields.vector(2));
  const std::size_t type = list.number(1);
  const Bytes name = list.vector(2);
  if (!fields.ended_well() || !list.ended_well() || type != 0 || name.empty()) return std::nullopt;
  if (std::ranges::find(name, 0) != name.end()) return std::nullopt;
  return std::string(name.begin(), name.end());
}

std::optional<std::string> parse_protocols(Bytes extension) {
  Fields fields(extension);
  const Bytes list = fields.vector(2);
  if (!fields.ended_well() || list.empty()) return std::nullopt;
  for (Fields names(list); !names.is_empty();) {
    if (names.vector(1).empty() || !names.ok()) return std::nullopt;
  }
  return std::string(list.begin(), list.end());
}

std::optional<ClientHello> parse_extensions(Bytes extensions) {
  ClientHello hello;
  Fields fields(extensions);
  while (!fields.is_empty()) {
    const std::size_t type = fields.number(2);
    const Bytes content = fields.vector(2);
    if (!fields.ok()) return std::nullopt;
    if (type == server_name_extension) {
      std::optional<std::string> name = parse_server_name(content);
      if (!name || hello.has_server_name) return std::nullopt;
      hello.has_server_name = true;
      hello.server_name = *std::move(name);
    } else if (type == protocols_extension) {
      std::optional<std::string> protocols = parse_protocols(content);
      if (!protocols || !hello.protocols.empty()) return std::nullopt;
      hello.protocols = *std::move(protocols);
    } else if (type == encrypted_hello_extension) {
      if (hello.encrypted_hello) return std::nullopt;
      hello.encrypted_hello = true;
    }
  }
  return fields.ok() ? std::optional(std::move(hello)) : std::nullopt;
}

std::optional<ClientHello> parse_hello(Bytes body) {
  Fields fields(body);
  const std::size_t version = fields.number(2);
  fields.take(32);  // random
  const Bytes session = fields.vector(1);
  const Bytes suites = fields.vector(2);
  const Bytes compressions = fields.vector(1);
  if (!fields.ok() || !is_version(version)) return std::nullopt;
  if (session.size() > 32 || compressions.empty()) return std::nullopt;
  if (suites.empty() || suites.size() % 2 != 0) return std::nullopt;
  if (fields.is_empty()) return ClientHello{};  // up to TLS 1.2 the extensions may be absent
  const Bytes extensions = fields.vector(2);
  if (!fields.ended_well()) return std::nullopt;
  return parse_extensions(extensions);
}

// Some servers skip a warning in front of the hello. An alert has two bytes, so the length in its
// head begins with zero; fewer bytes than that may be the start of one.
bool is_alert(Bytes bytes) {
  constexpr std::uint8_t alert_record = 21;
  return !bytes.empty() && bytes[0] == alert_record && (bytes.size() < 2 || bytes[1] == 3) &&
         (bytes.size() < 4 || bytes[3] == 0);
}

// `foreign` is what a record is called that cannot be one of TLS.
Progress check_record_head(Bytes bytes, Progress foreign) {
  if (foreign == Progress::other && is_alert(bytes)) {
    return bytes.size() < 4 ? Progress::more : Progress::malformed;
  }
  if (!bytes.empty() && bytes[0] != handshake_record) return foreign;
  if (bytes.size() > 1 && bytes[1] != 3) return foreign;
  if (bytes.size() > 2 && !is_version(std::size_t{0x0300} | bytes[2])) return Progress::malformed;
  return bytes.size() < record_head ? Progress::more : Progress::done;
}

std::size_t record_length(Bytes head) { return std::size_t{head[3]} << 8U | head[4]; }

// What the records carry, walked from the first on.
class Message {
 public:
  // `length` is what the record promises, `payload` what is there of it.
  Progress add(std::size_t length, Bytes payload) {
    for (std::size_t i = 0; i < payload.size() && size_ + i < message_head; ++i) {
      head_[size_ + i] = payload[i];
    }
    promised_ = size_ + length;
    size_ += payload.size();
    ++records_;
    return check();
  }
  [[nodiscard]] std::size_t records() const { return records_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  [[nodiscard]] Progress check() const {
    if (size_ > 0 && head_[0] != client_hello_message) return Progress::malformed;
    if (size_ < message_head) return Progress::more;
    const std::size_t length = Fields(Bytes(head_).subspan(1)).number(3);
    if (length > longest_hello) return Progress::malformed;
    // Nothing may follow a hello in its record: the server has to answer first.
    if (promised_ > message_head + length) return Progress::malformed;
    return size_ == message_head + length ? Progress::done : Progress::more;
  }

  std::array<std::uint8_t, message_head> head_{};
  std::size_t size_ = 0;
  std::size_t promised_ = 0;
  std::size_t records_ = 0;
};

// For records that were walked before.
std::vector<std::uint8_t> join_records(Bytes bytes, std::size_t size) {
  std::vector<std::uint8_t> message;
  message.reserve(size);
  while (message.size() < size) {
    const Bytes payload = bytes.subspan(record_head, record_length(bytes));
    message.insert(message.end(), payload.begin(), payload.end());
    bytes = bytes.subspan(record_head + payload.size());
  }
  return message;
}

HelloReading finish(std::optional<ClientHello> hello) {
  if (!hello) return {.progress = Progress::malformed};
  return {.progress = Progress::done, .hello = *std::move(hello)};
}

}  // namespace

HelloReading read_client_hello(std::span<const std::uint8_t> bytes) {
  Message message;
  Bytes rest = bytes;
  while (true) {
    const Progress foreign = message.records() == 0 ? Progress::other : Progress::malformed;
    const Progress head = check_record_head(rest, foreign);
    if (head != Progress::done) return {.progress = head};
    const std::size_t length = record_length(rest);
    if (length == 0 || length > longest_record) return {.progress = Progress::malformed};

    rest = rest.subspan(record_head);
    const Bytes payload = rest.first(std::min(length, rest.size()));
    const Progress body = message.add(length, payload);
    if (body == Progress::done) break;
    if (body != Progress::more || payload.size() < length) return {.progress = body};
    rest = rest.subspan(length);
  }
  if (message.records() == 1) {
    return finish(parse_hello(bytes.subspan(record_head + message_head,  //
                                            message.size() - message_head)));
  }
  const std::vector<std::uint8_t> joined = join_records(bytes, message.size());
  return finish(parse_hello(Bytes(joined).subspan(message_head)));
}

}  // namespace capgate::egress
