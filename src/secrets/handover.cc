#include "secrets/handover.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/result.h"

namespace capgate::secrets {
namespace {

constexpr std::uint32_t magic = 0x53474331;  // a pipe of this version
constexpr std::size_t longest_handed_name = 255;

struct Start {
  std::uint32_t magic = 0;
  std::uint32_t count = 0;
};
// Followed by the name and the value.
struct Entry {
  std::uint32_t name_size = 0;
  std::uint32_t value_size = 0;
  std::int64_t expires = 0;
};

std::unexpected<std::string> failed(std::string_view what, int error) {
  return std::unexpected(format("{}: {}", what, std::strerror(error)));
}

std::unexpected<std::string> no_memory(int error) { return failed("cannot lock memory", error); }

class Writer {
 public:
  explicit Writer(std::span<char> room) : room_(room) {}
  void put(const void* bytes, std::size_t size) {
    if (size != 0) std::memcpy(room_.data(), bytes, size);
    room_ = room_.subspan(size);
  }

 private:
  std::span<char> room_;
};

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}
  template <typename T>
  std::optional<T> take() {
    T out;
    const auto bytes = text(sizeof(T));
    if (!bytes) return std::nullopt;
    std::memcpy(&out, bytes->data(), bytes->size());
    return out;
  }
  std::optional<std::string_view> text(std::size_t size) {
    if (size > rest_.size()) return std::nullopt;
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::expected<Secret, std::string> pack(std::span<const Handed> list) {
  std::size_t size = sizeof(Start);
  for (const Handed& handed : list) {
    if (handed.name.size() > longest_handed_name) {
      return std::unexpected(std::string("a name is too long"));
    }
    size += sizeof(Entry) + handed.name.size() + handed.value.view().size();
  }
  if (size > most_handed_bytes) {
    return std::unexpected(
        format("all secrets together have more than {} bytes", most_handed_bytes));
  }
  auto packed = Secret::room(size);
  if (!packed) return no_memory(errno);
  Writer writer(packed->bytes());
  const Start start{.magic = magic, .count = static_cast<std::uint32_t>(list.size())};
  writer.put(&start, sizeof(start));
  for (const Handed& handed : list) {
    const std::string_view value = handed.value.view();
    const Entry entry{.name_size = static_cast<std::uint32_t>(handed.name.size()),
                      .value_size = static_cast<std::uint32_t>(value.size()),
                      .expires = handed.expires};
    writer.put(&entry, sizeof(entry));
    writer.put(handed.name.data(), handed.name.size());
    writer.put(value.data(), value.size());
  }
  return *std::move(packed);
}

}  // namespace

std::expected<sys::Fd, std::string> write_handover(std::span<const Handed> list) {
  const Secret packed = TRY(pack(list));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("cannot make a pipe", errno);
  sys::Fd reader(ends[0]);
  const sys::Fd writer(ends[1]);
  // A user with many pipes gets small ones. What does not fit must not wait for a reader.
  constexpr int wanted = 65536;
  if (::fcntl(writer.get(), F_GETPIPE_SZ) < wanted &&
      ::fcntl(writer.get(), F_SETPIPE_SZ, wanted) < 0) {
    return failed("cannot make a pipe that holds the secrets", errno);
  }
  if (::fcntl(writer.get(), F_SETFL, O_NONBLOCK) != 0) return failed("cannot set up a pipe", errno);
  const std::string_view bytes = packed.view();
  const ssize_t written = ::write(writer.get(), bytes.data(), bytes.size());
  if (written < 0) return failed("cannot write the secrets to a pipe", errno);
  if (static_cast<std::size_t>(written) != bytes.size()) {
    return std::unexpected(std::string("the pipe does not hold all secrets"));
  }
  return reader;
}

std::expected<std::vector<Handed>, std::string> read_handover(const sys::Fd& reader) {
  auto packed = Secret::room(most_handed_bytes + 1);
  if (!packed) return no_memory(errno);
  std::size_t size = 0;
  while (size <= most_handed_bytes) {
    const auto rest = packed->bytes().subspan(size);
    const ssize_t got = ::read(reader.get(), rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot read the secrets", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  const std::unexpected<std::string> damaged(std::string("the secrets arrived damaged"));
  if (size > most_handed_bytes) return damaged;
  packed->shrink(size);
  Reader bytes(packed->view());
  const auto start = bytes.take<Start>();
  if (!start || start->magic != magic) return damaged;
  std::vector<Handed> out;
  for (std::uint32_t i = 0; i < start->count; ++i) {
    const auto entry = bytes.take<Entry>();
    if (!entry || entry->name_size > longest_handed_name) return damaged;
    const auto name = bytes.text(entry->name_size);
    const auto text = name ? bytes.text(entry->value_size) : std::nullopt;
    if (!text) return damaged;
    auto value = Secret::make(*text);
    if (!value) return no_memory(errno);
    out.push_back(
        {.name = std::string(*name), .value = *std::move(value), .expires = entry->expires});
  }
  if (!bytes.is_at_end()) return damaged;
  return out;
}

}  // namespace capgate::secrets
