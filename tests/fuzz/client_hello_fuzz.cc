// Any bytes at all: read_client_hello decides once, and a name that it reads is in the bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "egress/hello.h"
#include "fuzz/prefix.h"

using capgate::egress::HelloReading;
using capgate::egress::Progress;
using capgate::egress::read_client_hello;

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_client_hello(bytes.first(part)).progress; });
  const HelloReading reading = read_client_hello(bytes);
  const std::string& name = reading.hello.server_name;
  CAPGATE_ASSERT(reading.hello.has_server_name == !name.empty());
  CAPGATE_ASSERT(reading.progress == Progress::done || !reading.hello.has_server_name);
  CAPGATE_ASSERT(!name.contains('\0') && name.size() <= size);
  // The bytes of the name are there in their order, with heads of records in between.
  std::size_t at = 0;
  for (const char c : name) {
    while (at < size && static_cast<char>(bytes[at]) != c) ++at;
    CAPGATE_ASSERT(at < size);
    ++at;
  }
  return 0;
}
