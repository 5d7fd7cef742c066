// What the readers of JSON formats have in common: typed fields, and every mistake in one go.
//
//   Reading in(document.root());
//   const std::string name = in.text(root, "name", Need::required);
//   return std::move(in).finish(std::move(out));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

enum class Need : bool { optional, required };

class Reading {
 public:
  void complain(Code code, Span where, std::string message, std::string help);
  void complain(Span where, std::string message, std::string help) {
    complain(Code::import_shape, where, std::move(message), std::move(help));
  }
  void add(Diagnostics mistakes);

  // Empty where it is missing or something else, which is a mistake. Never with control characters.
  [[nodiscard]] std::string text(text::Value object, std::string_view key, Need need);
  [[nodiscard]] bool flag(text::Value object, std::string_view key);
  [[nodiscard]] std::optional<text::Value> list(text::Value object, std::string_view key);
  [[nodiscard]] std::optional<text::Value> object(text::Value object, std::string_view key,
                                                  Need need = Need::optional);

  // A key that is not known is said to be left out: it grants nothing.
  static void drop_unknown(text::Value object, std::span<const std::string_view> known,
                           std::string_view subject, Collector& out);

  [[nodiscard]] bool is_good() const { return mistakes_.empty(); }
  [[nodiscard]] Checked<Imported> finish(Collector&& out) &&;

 private:
  std::optional<text::Value> find(text::Value object, std::string_view key, text::Kind kind,
                                  Need need);

  Diagnostics mistakes_;
};

}  // namespace capgate::imports
