// Any bytes at all: read_http_head decides once; a head in origin-form is a head again, and says
// the same; a body ends at the same byte however it is cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/http.h"
#include "fuzz/prefix.h"

namespace {

using namespace capgate::egress;

constexpr std::size_t most = 4096;

void check_origin_form(std::string_view bytes, const HttpHead& head) {
  const std::string origin = to_origin_form(bytes, head);
  const HeadReading again = read_http_head(origin, origin.size());
  CAPGATE_ASSERT(again.progress == Progress::done);
  CAPGATE_ASSERT(again.head.size == origin.size());
  CAPGATE_ASSERT(again.head.method == head.method && again.head.path == head.path);
  CAPGATE_ASSERT(again.head.has_host == head.has_host && again.head.host == head.host);
  CAPGATE_ASSERT(again.head.body == head.body && again.head.length == head.length);
  CAPGATE_ASSERT(again.head.authority.empty());
}

void check_body(std::string_view bytes, const HttpHead& head) {
  BodyReader whole(head);
  const std::size_t size = whole.take(bytes);
  CAPGATE_ASSERT(size <= bytes.size());
  CAPGATE_ASSERT(size == bytes.size() || whole.is_done() || whole.is_malformed());
  BodyReader single(head);
  std::size_t taken = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) taken += single.take(bytes.substr(at, 1));
  CAPGATE_ASSERT(taken == size);
  CAPGATE_ASSERT(single.is_done() == whole.is_done());
  CAPGATE_ASSERT(single.is_malformed() == whole.is_malformed());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_http_head(bytes.substr(0, part), most).progress; });
  capgate::fuzz::check_prefixes(
      size, [&](std::size_t part) { return read_http_status(bytes.substr(0, part)).progress; });
  check_body(bytes, HttpHead{.body = HttpHead::Body::chunked});

  const HeadReading reading = read_http_head(bytes, most);
  if (reading.progress != Progress::done) return 0;
  const HttpHead& head = reading.head;
  CAPGATE_ASSERT(head.size <= size && head.size <= most);
  CAPGATE_ASSERT(bytes.substr(0, head.size).ends_with("\r\n\r\n"));
  CAPGATE_ASSERT(head.target.contains(head.authority));
  CAPGATE_ASSERT(!is_plain_path(head.path) || head.path.starts_with('/'));
  check_body(bytes.substr(head.size), head);
  if (head.method != "CONNECT") check_origin_form(bytes, head);
  return 0;
}
