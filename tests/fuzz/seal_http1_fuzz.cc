// Any bytes from the client and from the origin, in any pieces, through the relay of HTTP/1.1: what
// the origin receives equals what the client sent except for the placeholder, as far as it goes; a
// value never reaches the client; and the relay ends when both sides do.
//
// The input: one byte that says which side speaks next and how much (most significant bit: the
// origin), then so many bytes; until the input ends.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "egress/loop.h"
#include "seal/relay.h"
#include "support/fake_requests.h"
#include "support/http1_messages.h"
#include "support/plain_stream.h"

namespace {

using namespace capgate;

// Short, so that they are found: "PH" stands for the placeholder, "SV" for the value.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct Said {
  std::string client;
  std::string origin;
};

class Play {
 public:
  Said run(std::string_view script) {
    Said said;
    serve();
    while (!script.empty()) {
      const auto order = static_cast<unsigned char>(script.front());
      script.remove_prefix(1);
      std::string part(script.substr(0, order & 0x7fU));
      script.remove_prefix(part.size());
      if ((order & 0x80U) != 0) {
        part = replaced(part, "SV", support::secret_value);
        said.origin += part;
        origin.feed(part);
      } else {
        part = replaced(part, "PH", support::placeholder);
        said.client += part;
        client.feed(part);
      }
    }
    origin.end();
    client.end();
    CAPGATE_ASSERT(end.has_value());
    return said;
  }

  egress::Loop loop;
  support::MemoryStream client;
  support::MemoryStream origin;
  support::FakeRequests requests;
  std::optional<seal::RelayEnd> end;

 private:
  egress::Task serve() {
    end = co_await seal::relay_http1(
        {.loop = loop, .client = client, .origin = origin, .requests = requests});
  }
};

// With the same eyes on both sides: the keyring's own changes are made to what was sent, too.
std::string as_admitted(const std::string& head, support::FakeRequests& judge) {
  auto read = seal::read_request_head(head);
  CAPGATE_ASSERT(read.has_value());
  const std::vector<seal::Field> as_read = read->request.fields;
  const bool asks = seal::find_field(as_read, "accept-encoding") != nullptr;
  CAPGATE_ASSERT(judge.keys().swap(read->request).has_value());
  if (!asks) read->request.fields.pop_back();
  return seal::write_request_head(read->request, as_read, read->spacing);
}

bool is_refused(const std::string& head, support::FakeRequests& judge) {
  auto read = seal::read_request_head(head);
  return read->request.target.starts_with("/no") || !judge.keys().swap(read->request);
}

// Every request that the origin got is one that the client sent, in order; those between were
// refused.
void check_requests(const Said& said, const std::string& got) {
  support::FakeRequests judge;
  const auto sent = support::read_requests(said.client);
  std::size_t at = 0;
  for (const support::Message& message : support::read_requests(got)) {
    while (at < sent.size() && is_refused(sent[at].head, judge)) ++at;
    CAPGATE_ASSERT(at < sent.size());
    const support::Message& original = sent[at++];
    CAPGATE_ASSERT(message.head == as_admitted(original.head, judge));
    CAPGATE_ASSERT(original.body.starts_with(message.body));
    CAPGATE_ASSERT(!message.is_whole || message.body == original.body);
    CAPGATE_ASSERT(!message.is_whole || message.trailers == original.trailers);
    CAPGATE_ASSERT(!message.is_whole || original.is_whole);
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Play play;
  const Said said = play.run({reinterpret_cast<const char*>(data), size});
  const std::string& got = play.origin.written();
  CAPGATE_ASSERT(!play.client.written().contains(support::secret_value));
  // Frames of a WebSocket are not looked into on their way to the origin.
  const bool is_upgraded = play.client.written().contains(" 101");
  if (is_upgraded) return 0;
  CAPGATE_ASSERT(!got.contains(support::placeholder));
  check_requests(said, got);
  return 0;
}
