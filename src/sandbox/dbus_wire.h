// The little of the D-Bus wire format that asking systemd for a scope takes (systemd_scope.h): a
// method call out, replies and signals in. Pure, and for the machine's own byte order only: a bus
// passes messages on as their sender wrote them, and sender and reader are on one machine.
//
//   DbusWriter body;
//   body.string("run-1.scope").string("fail");
//   encode({.path = "/org/...", .interface = "...", .member = "StartTransientUnit", ...})
//   auto read = decode(bytes);      read->message, read->size: what to drop from the front
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace capgate::sandbox {

// Values one after the other, each aligned as its type wants. The first byte is at an offset that
// is a multiple of 8, as that of a message and that of a body are.
class DbusWriter {
 public:
  DbusWriter& byte(std::uint8_t value);
  DbusWriter& uint32(std::uint32_t value);
  DbusWriter& boolean(bool value) { return uint32(value ? 1 : 0); }
  DbusWriter& string(std::string_view value);     // of object paths, too
  DbusWriter& signature(std::string_view value);  // at most 255 characters
  DbusWriter& structure() { return align(8); }    // its members follow

  // The members follow; end_array() takes what begin_array() gave.
  struct Array {
    std::size_t length_at = 0;
    std::size_t begin = 0;
  };
  [[nodiscard]] Array begin_array(std::size_t alignment_of_members);
  DbusWriter& end_array(const Array& array);

  DbusWriter& align(std::size_t to);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct DbusCall {
  std::string_view destination;
  std::string_view path;
  std::string_view interface;
  std::string_view member;
  std::string_view signature;  // of the body; empty: none
  std::string_view body;
  std::uint32_t serial = 1;
};
[[nodiscard]] std::string encode(const DbusCall& call);

struct DbusMessage {
  enum class Type : std::uint8_t { call = 1, reply = 2, error = 3, signal = 4 };
  Type type = Type::call;
  std::uint32_t reply_to = 0;  // of replies and errors
  std::string_view member;     // of signals
  std::string_view error;      // of errors: "org.freedesktop.DBus.Error.ServiceUnknown"
  std::string_view signature;
  std::string_view body;
};

struct DbusRead {
  DbusMessage message;  // parts of the bytes that were read
  std::size_t size = 0;
};

enum class DbusFault : std::uint8_t {
  incomplete,  // more bytes are needed
  malformed,   // or larger than any message of this conversation
};
[[nodiscard]] std::expected<DbusRead, DbusFault> decode(std::string_view bytes);

// Values as DbusWriter writes them. Nothing where the bytes end before the value does.
class DbusReader {
 public:
  explicit DbusReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] std::optional<std::uint8_t> byte();
  [[nodiscard]] std::optional<std::uint32_t> uint32();
  [[nodiscard]] std::optional<std::string_view> string();
  [[nodiscard]] std::optional<std::string_view> signature();
  [[nodiscard]] bool align(std::size_t to);
  [[nodiscard]] std::size_t offset() const { return at_; }

 private:
  std::optional<std::string_view> take(std::size_t size);

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace capgate::sandbox
