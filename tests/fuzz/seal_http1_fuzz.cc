// Any bytes from the client and from the origin, in any pieces, through the relay of HTTP/1.1: what
// the origin receives equals what the client sent except for the placeholder, as far as it goes; a
// value never reaches the client; and the relay ends when both sides do. A connection that is left
// to another client has answered all that it was asked, and nothing else.
//
// The input: one byte that says which side speaks next and how much (most significant bit: the
// origin), then so many bytes; until the input ends.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "egress/http_text.h"
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
        if (!end) said.origin += part;
        origin.feed(part);
      } else {
        part = replaced(part, "PH", support::placeholder);
        said.client += part;
        client.feed(part);
      }
    }
    // Who ends first decides whether the other one is kept.
    const bool is_client_first = said.client.size() % 2 == 0;
    (is_client_first ? client : origin).end();
    (is_client_first ? origin : client).end();
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
    end = co_await seal::relay_http1({.loop = loop,
                                      .client = client,
                                      .origin = origin,
                                      .requests = requests,
                                      .keeps_origin = true});
  }
};

// With the same eyes on both sides: the keyring's own changes are made to what was sent, too.
std::string as_admitted(const std::string& head, support::FakeRequests& judge) {
  auto read = seal::read_request_head(head);
  CAPGATE_ASSERT(read.has_value());
  const std::vector<seal::Field> as_read = read->request.fields;
  // For this hop alone; other fields of that name are passed on.
  const auto is_connection = [](const seal::Field& field) {
    return seal::is_field(field, "connection");
  };
  const auto connection = std::ranges::find_if(read->request.fields, is_connection);
  if (read->upgrade == seal::RequestHead::Upgrade::none &&
      connection != read->request.fields.end() &&
      egress::equal_in_any_case(connection->value, "close") &&
      std::ranges::count_if(read->request.fields, is_connection) == 1) {
    read->request.fields.erase(connection);
  }
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

// As a client that trusts nobody reads it: each request has its answer, to the last byte.
void check_is_free(const Said& said, const std::string& got) {
  std::string_view bytes = said.origin;
  for (const support::Message& request : support::read_requests(got)) {
    CAPGATE_ASSERT(request.is_whole);
    seal::ResponseHead head;
    do {
      const std::size_t size = seal::find_head_end(bytes, 0);
      auto read = seal::read_response_head(bytes.substr(0, size));
      CAPGATE_ASSERT(size > 0 && read.has_value());
      head = *std::move(read);
      bytes.remove_prefix(size);
    } while (head.response.status < 200);
    const int status = head.response.status;
    if (request.head.starts_with("HEAD ") || status == 204 || status == 304) head.body = {};
    CAPGATE_ASSERT(!head.is_last && head.body.kind != seal::Framing::Kind::until_close);
    support::Message answer;
    support::read_body(answer, bytes, head.body);
    CAPGATE_ASSERT(answer.is_whole);
  }
  CAPGATE_ASSERT(bytes.empty());
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
  if (play.end == seal::RelayEnd::origin_free) check_is_free(said, got);
  return 0;
}
