// When a connection to an origin outlives its client, and when it must not.
#include <gtest/gtest.h>

#include <optional>

#include "base/format.h"
#include "seal/signal.h"
#include "support/http1_stage.h"

namespace capgate::seal {
namespace {

using support::end_of;
using support::finish_sending;
using support::get;
using support::Http1Test;
using support::ok;
using support::receive;
using support::receive_all;
using support::send_text;
using support::Strings;

class Http1Keep : public Http1Test {
 protected:
  Http1Keep() { keeps_origin = true; }
};

TEST_F(Http1Keep, AClientThatLeavesAfterItsAnswersLeavesTheOriginFree) {
  play([&] {
    expect_still_works();
    expect_still_works();
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
  });
}

TEST_F(Http1Keep, WhereNobodyKeepsItTheOriginIsToldOfTheEnd) {
  keeps_origin = false;
  play([&] {
    expect_still_works();
    client = sys::Fd();
    EXPECT_EQ(end_of(origin), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Keep, AnAnswerInChunksIsWholeWithItsTrailers) {
  const std::string chunks =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
  play([&] {
    expect_passes(get);
    expect_answers(chunks);
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
  });
}

TEST_F(Http1Keep, ARefusedRequestDoesNotConcernTheOrigin) {
  play([&] {
    expect_still_works();
    send_text(client, "GET /no HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(receive(client, 12) == "HTTP/1.1 403");
    finish_sending(client);
    (void)receive_all(client);
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
  });
}

// ---- Close is for one hop -----------------------------------------------------------------------

const std::string last_get = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nB: c\r\n\r\n";
const std::string get_as_passed = "GET /a HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n";

TEST_F(Http1Keep, TheClientsWishToCloseIsNotTheOrigins) {
  play([&] {
    expect_passes(last_get, get_as_passed);
    expect_answers(ok, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
  });
}

TEST_F(Http1Keep, AnOriginThatSaysItStaysDoesNotSayThatWeDo) {
  play([&] {
    expect_passes(last_get, get_as_passed);
    expect_answers("HTTP/1.1 204 No Content\r\nconnection:  Keep-Alive\r\nA:b\r\n\r\n",
                   "HTTP/1.1 204 No Content\r\nconnection:  close\r\nA:b\r\n\r\n");
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
  });
}

TEST_F(Http1Keep, WhatFollowsALastRequestIsNotAnswered) {
  play([&] {
    expect_passes(last_get + get, get_as_passed);
    expect_answers(ok, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    EXPECT_EQ(end_of(client), 0);
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::origin_free);
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Keep, MoreThanAWishToCloseIsPassedOn) {
  play([&] {
    expect_passes("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\n\r\n");
    expect_answers("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

// ---- What another client must not get -----------------------------------------------------------

struct Dirty {
  std::string_view what;
  std::string request;
  std::string answer;
};

class DirtyOrigin : public Http1Keep, public testing::WithParamInterface<Dirty> {};

TEST_P(DirtyOrigin, IsNotKept) {
  play([&] {
    send_text(client, GetParam().request);
    if (!GetParam().request.empty()) EXPECT_NE(receive(origin, 10), "");
    send_text(origin, GetParam().answer);
    if (!GetParam().answer.empty()) EXPECT_NE(receive(client, 10), "");
    finish_sending(client);
    (void)receive_all(client);
    client = sys::Fd();
    EXPECT_NE(wait_for_end(), RelayEnd::origin_free) << GetParam().what;
  });
}

const std::string post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n";
std::string ok_with(std::string_view fields) {
  return format("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok", fields);
}

INSTANTIATE_TEST_SUITE_P(
    All, DirtyOrigin,
    testing::Values(
        Dirty{"never used", "", ""},  //
        Dirty{"no answer yet", get, ""},
        Dirty{"an interim answer only", get, "HTTP/1.1 103 Hints\r\n\r\n"},
        Dirty{"half an answer", get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"},
        Dirty{"half of a chunked one", get,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"},
        Dirty{"a body until the end", get, "HTTP/1.1 200 OK\r\n\r\nbody"},
        Dirty{"HTTP/1.0", get, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
        Dirty{"HTTP/1.0 that stays", get,
              "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"},
        Dirty{"the origin closes", get, ok_with("Connection: close\r\n")},
        Dirty{"the origin closes, among others", get, ok_with("Connection: TE, Close\r\n")},
        Dirty{"more than the answer", get, ok + "x"}, Dirty{"an answer too many", get, ok + ok},
        Dirty{"a body where none is", "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n", ok},
        Dirty{"an answer before the body", post, ok},
        Dirty{"an answer amid the body", post + "some", ok},
        Dirty{"an answer that is none", get, "HTTP/1.1 200 OK\r\nA : b\r\n\r\n"},
        Dirty{"a challenge", get, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nok"},
        Dirty{"the connection is authenticated", get,
              ok_with("WWW-Authenticate: Negotiate abc\r\n")},
        Dirty{"it may be", "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM abc\r\n\r\n", ok},
        Dirty{"half a request after it", get + "GET / HT", ok}));

// The origin's bytes come when its answer was passed on and the client is still there.
TEST_F(Http1Keep, WhatComesLaterIsNotKeptEither) {
  play([&] {
    expect_still_works();
    send_text(origin, ok);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Keep, AnOriginThatEndsIsNotFree) {
  play([&] {
    expect_still_works();
    finish_sending(origin);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Keep, AnUpgradedConnectionIsNotFree) {
  play([&] {
    expect_passes("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    expect_answers("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    finish_sending(client);
    EXPECT_EQ(end_of(origin), 0);
    finish_sending(origin);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

// Answers, and takes nothing.
class StuckOrigin final : public Stream {
 public:
  Async<ssize_t> read(std::span<char> into, Time deadline) override {
    return answers.read(into, deadline);
  }
  Async<ssize_t> write(std::string_view /*bytes*/, Time /*deadline*/) override {
    co_await cancelled;
    co_return egress::taken_away;
  }
  Async<ssize_t> finish(Time /*deadline*/) override { co_return egress::ended; }
  void cancel() override {
    cancelled.notify();
    answers.cancel();
  }
  support::MemoryStream answers;
  Signal cancelled;
};

TEST(Http1KeepStuck, ARequestThatHasNotLeftIsNotCutOff) {
  egress::Loop loop;
  support::MemoryStream client;
  StuckOrigin origin;
  support::FakeRequests requests;
  std::optional<RelayEnd> end;
  const auto serve = [&]() -> egress::Task {
    end = co_await relay_http1({.loop = loop,
                                .client = client,
                                .origin = origin,
                                .requests = requests,
                                .keeps_origin = true});
  };
  serve();
  client.feed(last_get);
  origin.answers.feed(ok);
  EXPECT_EQ(end, RelayEnd::closed);
}

}  // namespace
}  // namespace capgate::seal
