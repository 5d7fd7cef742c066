// A value that people trust us with: in locked memory that no core dump shows, wiped when it ends.
//
//   std::optional<Secret> token = Secret::make("ghp_...");     // none: memory cannot be locked
//   token->view()                                              // for as long as the Secret lives
//
// Moving leaves the other empty. It has no operator== and no printing on purpose: nothing formats a
// Secret by accident. The caller's own copy of the bytes is the caller's to wipe (wipe()).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace capgate::secrets {

class Secret {
 public:
  Secret() = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  // None if no memory can be locked (RLIMIT_MEMLOCK): a secret in memory that may be swapped out is
  // not kept at all. errno tells why.
  [[nodiscard]] static std::optional<Secret> make(std::string_view value);
  // Room for `size` bytes, zeroed, to be filled by the caller (who reads a pipe into it).
  [[nodiscard]] static std::optional<Secret> room(std::size_t size);

  [[nodiscard]] std::string_view view() const { return {data_, size_}; }
  [[nodiscard]] std::span<char> bytes() { return {data_, size_}; }
  [[nodiscard]] bool is_empty() const { return size_ == 0; }
  void shrink(std::size_t size);  // wipes what is beyond

 private:
  char* data_ = nullptr;  // pages of its own
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

// Overwrites in a way that no compiler leaves out.
void wipe(std::span<char> bytes);
void wipe(std::string& text);

}  // namespace capgate::secrets
