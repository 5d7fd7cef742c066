// What Deno permits a program, gathered kind by kind, and the manifest that comes of it.
//
//   Permissions out(place);
//   out["net"].allow.push_back({.text = "api.github.com:443", .where = span});
//   return std::move(out).finish();
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"
#include "import/imported.h"
#include "import/rules.h"

namespace capgate::imports::deno {

inline constexpr std::array<std::string_view, 8> kind_names = {"read", "write", "net", "env",
                                                               "run",  "sys",   "ffi", "import"};

struct Entry {
  std::string text;
  Span where;
};

// One kind of permission: nothing, a list, or all of it; the same for what is denied.
struct Permission {
  std::optional<Span> all;
  std::optional<Span> none;
  std::vector<Entry> allow;
  std::vector<Entry> deny;
};

class Permissions {
 public:
  explicit Permissions(const ImportPlace& place) : in_("deno", place) {}

  Rules& in() { return in_; }
  Permission& operator[](std::string_view kind);
  void refuse_all(Span where);

  [[nodiscard]] Checked<Imported> finish() &&;

 private:
  [[nodiscard]] bool is_short();
  void deny_everything();
  void files(std::string_view kind, Access access);
  void network(std::string_view kind);
  void environment();
  void programs();
  void libraries();
  void allowed_and_denied(std::string_view kind, std::string_view what);
  [[nodiscard]] bool is_plain_path(const Entry& entry);
  [[nodiscard]] bool is_read(const Entry& entry);

  Rules in_;
  std::array<Permission, kind_names.size()> kinds_;
};

}  // namespace capgate::imports::deno
