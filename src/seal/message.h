// The head of an HTTP message, the same for HTTP/1.1 and HTTP/2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::seal {

struct Field {
  std::string name;  // as sent; lower case in HTTP/2
  std::string value;
  bool is_secret = false;  // a value was put in: never indexed in HTTP/2, wiped after use
};

struct Request {
  std::string method;
  std::string target;     // path and query as sent; "*" for OPTIONS
  std::string authority;  // Host or :authority, as sent
  std::vector<Field> fields;
  bool target_is_secret = false;
};

struct Response {
  int status = 0;
  std::string reason;  // HTTP/1.1 only, as sent
  std::vector<Field> fields;
};

// Case-insensitive, as field names are.
[[nodiscard]] bool is_field(const Field& field, std::string_view lower_case_name);
[[nodiscard]] const Field* find_field(const std::vector<Field>& fields,
                                      std::string_view lower_case_name);

// Once it has been sent.
void wipe_secrets(Request& request);

}  // namespace capgate::seal
