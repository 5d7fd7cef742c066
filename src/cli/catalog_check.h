// Is every entry of the catalog right? For `capgate catalog test`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::cli {

struct CatalogCheck {
  std::string name;
  std::size_t tools = 0;
  std::vector<std::string> problems;  // empty: it is right
};

// One file: parses strictly, its variables can be bound, and its manifest compiles for our own
// engine, with everything optional and with nothing of it.
[[nodiscard]] CatalogCheck check_entry(std::string_view text);

// All that are built in, by name; also what no entry can see alone: names and packages twice.
[[nodiscard]] std::vector<CatalogCheck> check_catalog();

}  // namespace capgate::cli
