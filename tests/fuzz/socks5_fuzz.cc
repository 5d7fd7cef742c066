// Any bytes at all, as a greeting and as a request: both decide once and take no more than there
// is.
#include <cstddef>
#include <cstdint>
#include <span>

#include "egress/socks.h"
#include "fuzz/prefix.h"

using namespace capgate::egress;

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_socks_greeting(bytes.first(part)).progress; });
  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_socks_request(bytes.first(part)).progress; });

  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_socks_password(bytes.first(part)).progress; });

  const SocksPassword password = read_socks_password(bytes);
  CAPGATE_ASSERT(password.size <= size);
  CAPGATE_ASSERT((password.progress == Progress::done) == (password.size > 0));
  const SocksGreeting greeting = read_socks_greeting(bytes);
  CAPGATE_ASSERT(greeting.size <= size);
  CAPGATE_ASSERT((greeting.progress == Progress::done) == (greeting.size > 0));
  const SocksRequest request = read_socks_request(bytes);
  CAPGATE_ASSERT(request.size <= size);
  CAPGATE_ASSERT((request.progress == Progress::done) == (request.size > 0));
  CAPGATE_ASSERT(request.host.empty() || request.progress == Progress::done);
  CAPGATE_ASSERT(!request.host.empty() || request.progress != Progress::done ||
                 request.problem != SocksReply::succeeded);
  return 0;
}
