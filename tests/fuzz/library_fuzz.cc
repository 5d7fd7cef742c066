// Any bytes at all as a request to the C interface: the answer is JSON that says ok, or not ok and
// why; asked again, it is the same.
#include <capgate/capgate_c.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "text/json.h"

namespace {

using namespace capgate;

std::string ask(const char* request, std::size_t size) {
  std::size_t length = 0;
  char* answer = capgate_call(request, size, &length);
  CAPGATE_ASSERT(answer != nullptr && std::strlen(answer) == length);
  std::string copy(answer, length);
  capgate_free(answer);
  return copy;
}

void check_diagnostics(text::Value diagnostics) {
  CAPGATE_ASSERT(diagnostics.count() > 0);
  for (const text::Value one : diagnostics.elements()) {
    for (const char* key : {"code", "message", "help"}) {
      CAPGATE_ASSERT(!one.find(key)->text().empty());
    }
    CAPGATE_ASSERT(one.find("line").has_value() == one.find("column").has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string answer = ask(reinterpret_cast<const char*>(data), size);
  const auto document = text::parse_json(answer);
  CAPGATE_ASSERT(document.has_value());
  const text::Value root = document->root();
  if (root.find("ok")->text() == "true") {
    CAPGATE_ASSERT(root.count() == 2);
  } else {
    check_diagnostics(*root.find("diagnostics"));
  }
  CAPGATE_ASSERT(ask(reinterpret_cast<const char*>(data), size) == answer);
  return 0;
}
