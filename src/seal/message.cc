#include "seal/message.h"

#include <algorithm>

#include "base/text.h"
#include "secrets/secret.h"

namespace capgate::seal {

bool is_field(const Field& field, std::string_view lower_case_name) {
  return std::ranges::equal(field.name, lower_case_name,
                            [](char c, char lower) { return to_lower(c) == lower; });
}

const Field* find_field(const std::vector<Field>& fields, std::string_view lower_case_name) {
  const auto found = std::ranges::find_if(
      fields, [&](const Field& field) { return is_field(field, lower_case_name); });
  return found == fields.end() ? nullptr : &*found;
}

void wipe_secrets(Request& request) {
  if (request.target_is_secret) secrets::wipe(request.target);
  for (Field& field : request.fields) {
    if (field.is_secret) secrets::wipe(field.value);
  }
}

}  // namespace capgate::seal
