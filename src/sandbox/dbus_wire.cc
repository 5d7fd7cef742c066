#include "sandbox/dbus_wire.h"

#include <bit>
#include <cstring>

namespace capgate::sandbox {
namespace {

constexpr std::uint8_t own_byte_order = std::endian::native == std::endian::little ? 'l' : 'B';
constexpr std::size_t fixed_header = 16;
constexpr std::size_t largest_message = 65536;

enum Field : std::uint8_t {
  path = 1,
  interface = 2,
  member = 3,
  error_name = 4,
  reply_serial = 5,
  destination = 6,
  body_signature = 8,
};

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

constexpr std::size_t aligned(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

void write_field(DbusWriter& out, Field field, std::string_view type, std::string_view value) {
  if (value.empty()) return;
  out.structure().byte(field).signature(type);
  if (type == "g") {
    out.signature(value);
  } else {
    out.string(value);
  }
}

// One field of a header. A type that no field of the standard has ends the reading.
bool read_field(DbusReader& in, DbusMessage& message) {
  if (!in.align(8)) return false;
  const auto field = in.byte();
  const auto type = in.signature();
  if (!field || !type) return false;
  if (*type == "u") {
    const auto value = in.uint32();
    if (value && *field == reply_serial) message.reply_to = *value;
    return value.has_value();
  }
  if (*type != "s" && *type != "o" && *type != "g") return false;
  const auto value = *type == "g" ? in.signature() : in.string();
  if (!value) return false;
  if (*field == member) message.member = *value;
  if (*field == error_name) message.error = *value;
  if (*field == body_signature) message.signature = *value;
  return true;
}

}  // namespace

DbusWriter& DbusWriter::byte(std::uint8_t value) {
  bytes_.push_back(static_cast<char>(value));
  return *this;
}

DbusWriter& DbusWriter::uint32(std::uint32_t value) {
  align(sizeof(value));
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  bytes_.append(bytes, sizeof(bytes));
  return *this;
}

DbusWriter& DbusWriter::string(std::string_view value) {
  uint32(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
  return byte(0);
}

DbusWriter& DbusWriter::signature(std::string_view value) {
  byte(static_cast<std::uint8_t>(value.size()));
  bytes_.append(value);
  return byte(0);
}

DbusWriter::Array DbusWriter::begin_array(std::size_t alignment_of_members) {
  uint32(0);
  const std::size_t length_at = bytes_.size() - sizeof(std::uint32_t);
  align(alignment_of_members);
  return {.length_at = length_at, .begin = bytes_.size()};
}

// The length does not count the padding before the first member.
DbusWriter& DbusWriter::end_array(const Array& array) {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - array.begin);
  std::memcpy(bytes_.data() + array.length_at, &length, sizeof(length));
  return *this;
}

DbusWriter& DbusWriter::align(std::size_t to) {
  bytes_.resize(aligned(bytes_.size(), to));
  return *this;
}

std::string encode(const DbusCall& call) {
  DbusWriter out;
  constexpr std::uint8_t no_flags = 0;
  constexpr std::uint8_t version = 1;
  out.byte(own_byte_order)
      .byte(static_cast<std::uint8_t>(DbusMessage::Type::call))
      .byte(no_flags)
      .byte(version)
      .uint32(static_cast<std::uint32_t>(call.body.size()))
      .uint32(call.serial);
  const DbusWriter::Array fields = out.begin_array(8);
  write_field(out, path, "o", call.path);
  write_field(out, interface, "s", call.interface);
  write_field(out, member, "s", call.member);
  write_field(out, destination, "s", call.destination);
  write_field(out, body_signature, "g", call.signature);
  out.end_array(fields).align(8);
  return out.bytes() + std::string(call.body);
}

std::expected<DbusRead, DbusFault> decode(std::string_view bytes) {
  if (bytes.size() < fixed_header) return std::unexpected(DbusFault::incomplete);
  const std::size_t body_size = number_at(bytes, 4);
  const std::size_t fields_size = number_at(bytes, 12);
  const auto type = static_cast<std::uint8_t>(bytes[1]);
  if (static_cast<std::uint8_t>(bytes[0]) != own_byte_order || type < 1 || type > 4 ||
      body_size > largest_message || fields_size > largest_message) {
    return std::unexpected(DbusFault::malformed);
  }
  const std::size_t head = aligned(fixed_header + fields_size, 8);
  const std::size_t size = head + body_size;
  if (bytes.size() < size) return std::unexpected(DbusFault::incomplete);
  DbusMessage message{.type = static_cast<DbusMessage::Type>(type)};
  DbusReader fields(bytes.substr(0, fixed_header + fields_size));
  for (std::size_t i = 0; i < fixed_header / sizeof(std::uint32_t); ++i) (void)fields.uint32();
  while (fields.offset() < fixed_header + fields_size) {
    if (!read_field(fields, message)) return std::unexpected(DbusFault::malformed);
  }
  message.body = bytes.substr(head, body_size);
  return DbusRead{.message = message, .size = size};
}

std::optional<std::string_view> DbusReader::take(std::size_t size) {
  if (size > bytes_.size() - at_) return std::nullopt;
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

bool DbusReader::align(std::size_t to) {
  const std::size_t next = aligned(at_, to);
  if (next > bytes_.size()) return false;
  at_ = next;
  return true;
}

std::optional<std::uint8_t> DbusReader::byte() {
  const auto taken = take(1);
  if (!taken) return std::nullopt;
  return static_cast<std::uint8_t>(taken->front());
}

std::optional<std::uint32_t> DbusReader::uint32() {
  if (!align(sizeof(std::uint32_t))) return std::nullopt;
  const auto taken = take(sizeof(std::uint32_t));
  if (!taken) return std::nullopt;
  return number_at(*taken, 0);
}

std::optional<std::string_view> DbusReader::string() {
  const auto size = uint32();
  if (!size) return std::nullopt;
  const auto taken = take(std::size_t{*size} + 1);
  if (!taken) return std::nullopt;
  return taken->substr(0, *size);
}

std::optional<std::string_view> DbusReader::signature() {
  const auto size = byte();
  if (!size) return std::nullopt;
  const auto taken = take(std::size_t{*size} + 1);
  if (!taken) return std::nullopt;
  return taken->substr(0, *size);
}

}  // namespace capgate::sandbox
