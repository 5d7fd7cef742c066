// Whole connections from memory: any messages, cut anywhere.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "base/format.h"
#include "support/fake_requests.h"
#include "support/http1_messages.h"
#include "support/plain_stream.h"

namespace capgate::seal {
namespace {

using support::Message;

struct Exchange {
  Message request;
  std::string request_bytes;
  std::string answer_bytes;
  std::string answer_wanted;
};

std::string any_token() {
  return *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcXYZ-_09"))));
}

std::string any_fields() {
  std::string out;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    const std::string before = *rc::gen::element<std::string>(" ", "", "  \t");
    const std::string after = *rc::gen::element<std::string>("", "", " ");
    out += format("X-{}:{}{}{}\r\n", any_token(), before, any_token(), after);
  }
  return out;
}

std::string chunks_of(const std::string& body) {
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, body.size() - at + 1);
    append_chunk(out, body.substr(at, size));
    at += size;
  }
  return out;
}

// A body in a framing of its own, and the fields that say so.
struct Framed {
  std::string fields;
  std::string bytes;
  std::string trailers;
};
Framed any_framing(const std::string& body) {
  if (body.empty() && *rc::gen::arbitrary<bool>()) return {"Content-Length: 0\r\n", "", ""};
  if (*rc::gen::arbitrary<bool>()) {
    return {format("Content-Length: {}\r\n", body.size()), body, ""};
  }
  const std::string trailers = any_fields() + "\r\n";
  return {"transfer-encoding: chunked\r\n", chunks_of(body) + "0\r\n" + trailers, trailers};
}

std::string any_body() {
  return *rc::gen::withSize(
      [](int size) { return rc::gen::resize(size * 20, rc::gen::string<std::string>()); });
}

Exchange any_exchange() {
  Exchange out;
  const std::string method = *rc::gen::element<std::string>("GET", "POST", "DELETE");
  const std::string body = any_body();
  const Framed request = any_framing(body);
  const std::string fields = any_fields();
  const auto head = [&](std::string_view token) {
    return format("{} /{} HTTP/1.1\r\nHost: a\r\n{}{}Authorization: Bearer {}\r\n\r\n", method, "p",
                  fields, request.fields, token);
  };
  out.request = {.head = head(support::secret_value),
                 .body = body,
                 .trailers = request.trailers,
                 .is_whole = true};
  out.request_bytes = head(support::placeholder) + request.bytes;

  const std::string interim =
      *rc::gen::element<std::string>("", "HTTP/1.1 103 Hints\r\nA: b\r\n\r\n");
  const std::string answer_body = any_body();
  const Framed answer = any_framing(answer_body);
  const std::string answer_fields = any_fields();
  const auto said = [&](std::string_view token, std::string_view framed) {
    return format("{}HTTP/1.1 200 OK\r\nX-Echo: {}\r\n{}{}\r\n{}", interim, token, answer_fields,
                  answer.fields, framed);
  };
  out.answer_bytes = said(support::secret_value, answer.bytes);
  // How it is cut into chunks is not kept: compared without.
  out.answer_wanted = said(support::placeholder, answer_body + answer.trailers);
  return out;
}

// In pieces of any size.
void feed_in_pieces(support::MemoryStream& stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, bytes.size() + 1);
    stream.feed(std::string(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
}

// Answers with their framing taken away.
std::string read_answers(std::string_view bytes) {
  std::string out;
  while (const std::size_t size = find_head_end(bytes, 0)) {
    const auto head = read_response_head(bytes.substr(0, size));
    RC_ASSERT(head.has_value());
    out += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (head->response.status < 200) continue;
    Message message;
    support::read_body(message, bytes, head->body);
    RC_ASSERT(message.is_whole);
    out += message.body + message.trailers;
  }
  RC_ASSERT(bytes.empty());
  return out;
}

struct Connection {
  egress::Loop loop;
  support::MemoryStream client;
  support::MemoryStream origin;
  support::FakeRequests requests;
  std::optional<RelayEnd> end;

  egress::Task serve() {
    end = co_await relay_http1(
        {.loop = loop, .client = client, .origin = origin, .requests = requests});
  }
};

RC_GTEST_PROP(Http1FlowProperty, MessagesArriveAsTheyWereSent, ()) {
  const int count = *rc::gen::inRange(1, 5);
  const bool is_pipelined = *rc::gen::arbitrary<bool>();
  std::vector<Exchange> exchanges;
  std::string all;
  std::vector<Message> wanted_requests;
  std::string wanted_answers;
  for (int i = 0; i < count; ++i) {
    const Exchange& exchange = exchanges.emplace_back(any_exchange());
    all += exchange.request_bytes;
    wanted_requests.push_back(exchange.request);
    wanted_answers += exchange.answer_wanted;
  }

  Connection connection;
  connection.serve();
  if (is_pipelined) feed_in_pieces(connection.client, all);
  std::size_t sent = 0;
  for (const Exchange& exchange : exchanges) {
    if (!is_pipelined) feed_in_pieces(connection.client, exchange.request_bytes);
    RC_ASSERT(support::read_requests(connection.origin.written()).size() == ++sent);
    feed_in_pieces(connection.origin, exchange.answer_bytes);
  }
  RC_ASSERT(!connection.end.has_value());
  connection.client.end();
  RC_ASSERT(connection.end == RelayEnd::closed);
  RC_ASSERT(support::read_requests(connection.origin.written()) == wanted_requests);
  RC_ASSERT(read_answers(connection.client.written()) == wanted_answers);
  RC_ASSERT(connection.requests.records.size() == exchanges.size());
  RC_ASSERT(connection.requests.refusals.empty());
}

// Wherever it is cut off, both coroutines end and nothing is left waiting.
RC_GTEST_PROP(Http1FlowProperty, EndsWhereverItIsCutOff, ()) {
  const Exchange exchange = any_exchange();
  const auto cut = [](const std::string& bytes) {
    return bytes.substr(0, *rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  };
  Connection connection;
  connection.serve();
  feed_in_pieces(connection.client, cut(exchange.request_bytes));
  feed_in_pieces(connection.origin, cut(exchange.answer_bytes));
  const bool is_client_first = *rc::gen::arbitrary<bool>();
  (is_client_first ? connection.client : connection.origin).end();
  (is_client_first ? connection.origin : connection.client).end();
  RC_ASSERT(connection.end.has_value());
}

}  // namespace
}  // namespace capgate::seal
