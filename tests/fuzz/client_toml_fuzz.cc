// Any bytes at all as a client's TOML: it is read as toml++ reads it, and wrapping can be undone.
#include "fuzz/client_file.h"
#include "support/toml_oracle.h"
#include "text/toml.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using capgate::clients::Syntax;
  using capgate::fuzz::Refusal;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = capgate::text::parse_toml(text);
  const auto oracle = document ? capgate::support::described_by_oracle(text) : std::nullopt;
  // Dates that no calendar has and numbers that fit no integer are the client's to refuse.
  if (oracle) CAPGATE_ASSERT(capgate::support::described(document->root()) == *oracle);
  capgate::fuzz::check_file(text, {.syntax = Syntax::toml, .paths = {{}}}, Refusal::never);
  capgate::fuzz::check_file(text, {.syntax = Syntax::toml, .paths = {{"mcp_servers"}}},
                            Refusal::never);
  return 0;
}
