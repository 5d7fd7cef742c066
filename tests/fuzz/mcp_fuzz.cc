// The bytes of a hostile server: ask_tools ends, within its limits, and what it gives can be put
// into a manifest that reads as it was meant.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "mcp/starter.h"
#include "mcp/tools.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/yaml.h"

namespace {

using namespace capgate;

constexpr std::size_t most_in_a_pipe = 65536;
constexpr mcp::AskLimits limits{.line = 4096, .bytes = 32768, .tools = 8, .pages = 4};

void check_manifest(const text::Document& document, const mcp::ServerTools& server) {
  const auto tools = document.root().find("tools");
  CAPGATE_ASSERT(document.root().count() == 4 && tools && tools->count() == server.tools.size());
  std::size_t i = 0;
  for (const text::Value tool : tools->elements()) {
    CAPGATE_ASSERT(tool.count() == 2);
    CAPGATE_ASSERT(tool.find("name")->text() == server.tools[i++].name);
    CAPGATE_ASSERT(tool.find("capabilities")->count() == 0);
  }
}

void check_answer(const mcp::ServerTools& server) {
  CAPGATE_ASSERT(server.tools.size() <= limits.tools);
  CAPGATE_ASSERT(!server.protocol.empty());
  for (const mcp::ToolInfo& tool : server.tools) {
    CAPGATE_ASSERT(!tool.name.empty() && std::ranges::none_of(tool.name, is_control));
  }
  const mcp::Starter starter{.server = server,
                             .name = "n" + server.server_name,
                             .version = "v" + server.server_version,
                             .file = "FILE"};
  const auto yaml = text::parse_yaml(mcp::starter_yaml(starter));
  const auto json = text::parse_json(mcp::starter_json(starter));
  CAPGATE_ASSERT(yaml.has_value() && json.has_value());
  check_manifest(*yaml, server);
  check_manifest(*json, server);
}

}  // namespace

// A byte of settings, then everything that the server writes. It is there before it is asked for,
// and its end follows: the ids of the questions are known.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > most_in_a_pipe) return 0;
  int ends[2];
  CAPGATE_ASSERT(::pipe2(ends, O_CLOEXEC) == 0);
  const sys::Fd from(ends[0]);
  sys::Fd written(ends[1]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  CAPGATE_ASSERT(sys::write_all(written.get(), bytes).has_value());
  written = sys::Fd();
  static const sys::Fd to(::open("/dev/null", O_WRONLY | O_CLOEXEC));

  mcp::AskLimits asked = limits;
  if ((data[0] & 1U) != 0) asked.probe = {};
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = mcp::ask_tools({.to = to.get(), .from = from.get()}, asked);
  CAPGATE_ASSERT(std::chrono::steady_clock::now() - begin < asked.probe + std::chrono::seconds(5));
  if (answer) {
    check_answer(*answer);
  } else {
    const std::string& message = answer.error().message;
    CAPGATE_ASSERT(!message.empty() && message.size() < 8192);
    CAPGATE_ASSERT(std::ranges::none_of(message, is_control));
  }
  return 0;
}
