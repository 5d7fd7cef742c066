// One server's change as edits of bytes, and what they are meant to say. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "clients/edits.h"
#include "clients/entries.h"
#include "clients/meaning.h"

namespace capgate::clients {

struct Rewriting {
  const text::Document* document = nullptr;
  Syntax syntax = Syntax::json;
  std::vector<Edit> edits{};
  Meaning meaning{};
};

// The entry has no problem. Of one that is wrapped already only capgate's path and the profile's
// name are brought up to date: its other options are the user's.
[[nodiscard]] Result<void> wrap_entry(const Entry& entry, std::span<const std::string> prefix,
                                      Rewriting& out);
void unwrap_entry(const Entry& entry, Rewriting& out);
void set_variable(text::Value value, std::string_view word, Rewriting& out);

}  // namespace capgate::clients
