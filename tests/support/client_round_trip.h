// Reading and changing a client's file in a test: what fails is a failure of the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/client_files.h"

namespace capgate::support {

using clients::Shape;

inline ClientFile read(std::string text, const Shape& shape) {
  auto file = clients::read_client_file(std::move(text), shape);
  if (file) return *std::move(file);
  ADD_FAILURE() << file.error().front().message;
  return {};
}

inline std::string changed(const ClientFile& file, const std::vector<Change>& changes) {
  auto text = clients::apply(file, changes);
  if (text) return *std::move(text);
  ADD_FAILURE() << text.error().message;
  return {};
}

inline std::string wrapped(const std::string& text, const Shape& shape) {
  const ClientFile file = read(text, shape);
  return changed(file, wrap_changes(file));
}

inline std::string unwrapped(const std::string& text, const Shape& shape) {
  const ClientFile file = read(text, shape);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < file.servers.size(); ++i) {
    changes.push_back({.kind = Change::Kind::unwrap, .server = i});
  }
  return changed(file, changes);
}

// Wraps all that can be, and checks what must hold for any file.
inline std::string round_trip(const std::string& text, const Shape& shape) {
  const ClientFile before = read(text, shape);
  std::string out = changed(before, wrap_changes(before));
  const ClientFile after = read(out, shape);
  EXPECT_EQ(before.servers.size(), after.servers.size());
  for (std::size_t i = 0; i < std::min(before.servers.size(), after.servers.size()); ++i) {
    EXPECT_EQ(before.servers[i].command, after.servers[i].command);
    if (can_be_wrapped(before.servers[i])) {
      EXPECT_EQ(after.servers[i].profile, "p" + std::to_string(i));
    }
  }
  EXPECT_EQ(changed(after, wrap_changes(before)), out);
  EXPECT_EQ(changed(after, undone(wrap_changes(before))), text);
  return out;
}

// The same with the line ends of Windows, after a byte order mark, and without the last line end.
inline void round_trip_spellings(const std::string& text, const Shape& shape) {
  round_trip(text, shape);
  std::string windows;
  for (const char c : text) {
    windows += c == '\n' ? "\r\n" : std::string(1, c);
  }
  round_trip(windows, shape);
  round_trip("\xef\xbb\xbf" + text, shape);
  round_trip(std::string(trim(text)), shape);
}

}  // namespace capgate::support
