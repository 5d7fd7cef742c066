#include <gtest/gtest.h>

#include "support/http2_case.h"

namespace capgate::seal {
namespace {

using support::head_of;
using support::Heard;
using support::Pairs;
using support::pattern;
using support::plain_ok;
using support::Said;
using Ids = support::Http2Lab::Ids;
using Records = std::vector<std::pair<std::string, int>>;

class Http2Test : public support::Http2Case {};

TEST_F(Http2Test, CarriesRequestAndResponse) {
  start();
  const Pairs head = head_of("POST", "/a?b=c",
                             {{"x-second", "2"},
                              {"x-first", "1"},
                              {"x-second", "again"},
                              {"cookie", "a=b"},
                              {"te", "trailers"}});
  const Ids ids = lab.ask(head, Said{.body = "question"});
  EXPECT_EQ(lab.at_origin(ids).head, head);
  EXPECT_EQ(lab.at_origin(ids).body, "question");
  EXPECT_TRUE(lab.at_origin(ids).has_ended);
  const Pairs response{
      {":status", "201"}, {"server", "x"}, {"set-cookie", "a"}, {"set-cookie", "b"}};
  respond(ids, response, {.body = "answer"});
  EXPECT_EQ(lab.at_client(ids).head, response);
  EXPECT_EQ(lab.at_client(ids).body, "answer");
  EXPECT_EQ(lab.at_client(ids).closed, NGHTTP2_NO_ERROR);
  EXPECT_EQ(lab.requests->records, (Records{{"/a?b=c", 201}}));
  EXPECT_GT(lab.requests->to_origin, 0U);
  EXPECT_GT(lab.requests->to_client, 0U);
}

TEST_F(Http2Test, ARequestWithoutABodyEndsWithItsHead) {
  start();
  const Ids ids = get("/");
  EXPECT_TRUE(lab.at_origin(ids).has_ended);
  respond(ids, {{":status", "204"}});
  EXPECT_TRUE(lab.at_client(ids).has_ended);
  const Request& judged = lab.requests->judged.at(0);
  EXPECT_EQ(judged.method, "GET");
  EXPECT_EQ(judged.target, "/");
  EXPECT_EQ(judged.authority, "api.test");
}

TEST_F(Http2Test, AnAnswerToHeadHasALengthAndNoBody) {
  start();
  const Ids ids = lab.ask(head_of("HEAD", "/"));
  respond(ids, {{":status", "200"}, {"content-length", "1000"}});
  EXPECT_EQ(lab.at_client(ids).field("content-length"), "1000");
  EXPECT_EQ(lab.at_client(ids).closed, NGHTTP2_NO_ERROR);
}

TEST_F(Http2Test, RefusedRequestsAreAnsweredAndNeverReachTheOrigin) {
  start();
  const Ids ids = get("/refused");
  EXPECT_EQ(lab.at_client(ids).status(), "403");
  EXPECT_EQ(lab.at_client(ids).field("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(lab.at_client(ids).body, "no rule allows it");
  EXPECT_EQ(lab.at_client(ids).closed, NGHTTP2_NO_ERROR);
  EXPECT_TRUE(lab.origin->arrived.empty());
  EXPECT_TRUE(lab.requests->records.empty());
  // One that has more to say is told to stop, after the answer.
  const Ids longer = post("/refused/long", {.body = pattern(1 << 20), .is_whole = false});
  EXPECT_EQ(lab.at_client(longer).status(), "403");
  EXPECT_TRUE(lab.at_client(longer).has_ended);
  EXPECT_EQ(lab.at_client(longer).closed, NGHTTP2_NO_ERROR);
  const Ids head = lab.ask(head_of("HEAD", "/refused"));
  EXPECT_EQ(lab.at_client(head).status(), "403");
  EXPECT_EQ(lab.at_client(head).body, "");
  // The connection goes on.
  const Ids next = get("/next");
  respond(next);
  EXPECT_EQ(lab.at_client(next).status(), "200");
}

TEST_F(Http2Test, OthersGoOnWhileOneWaitsForItsVerdict) {
  start();
  const Ids waiting = post("/wait", {.body = "held", .is_whole = false});
  EXPECT_EQ(lab.requests->waiting, 1);
  EXPECT_EQ(waiting.origin, 0);
  const Ids other = get("/other");
  respond(other, plain_ok, {.body = "x"});
  EXPECT_TRUE(lab.at_client(other).has_ended);
  lab.client->add(waiting.client, " and more");
  lab.client->end(waiting.client, {{"x-check", "sum"}});
  lab.pump();
  lab.requests->let_go();
  lab.pump();
  const Heard& heard = lab.origin->messages[lab.origin->arrived.back()];
  EXPECT_EQ(heard.field(":path"), "/wait");
  EXPECT_EQ(heard.body, "held and more");
  EXPECT_EQ(heard.trailers, (Pairs{{"x-check", "sum"}}));
  EXPECT_TRUE(heard.has_ended);
}

TEST_F(Http2Test, AClientMayLeaveWhileItsRequestIsJudged) {
  start();
  const Ids ids = post("/wait", {.body = "held", .is_whole = false});
  lab.client->reset(ids.client, NGHTTP2_CANCEL);
  lab.pump();
  lab.requests->let_go();
  lab.pump();
  EXPECT_TRUE(lab.origin->arrived.empty());
  EXPECT_EQ(lab.requests->records, (Records{{"/wait", 0}}));
}

TEST_F(Http2Test, TheConnectionMayEndWhileARequestIsJudged) {
  start();
  post("/wait", {.is_whole = false});
  lab.client_side.end(egress::failed);
  EXPECT_FALSE(lab.end);  // it may still be judged within the frames of the relay
  lab.requests->let_go();
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Test, TakenAwayAfterItsEndWhileARequestIsJudged) {
  start();
  post("/wait", {.is_whole = false});
  lab.client_side.end(egress::failed);
  lab.origin_side.cancel();
  lab.requests->let_go();
  EXPECT_EQ(lab.end, RelayEnd::taken_away);
}

TEST_F(Http2Test, TakenAwayWhileARequestIsJudged) {
  start();
  post("/wait", {.is_whole = false});
  lab.client_side.cancel();
  lab.origin_side.cancel();
  EXPECT_FALSE(lab.end);
  lab.requests->let_go();
  EXPECT_EQ(lab.end, RelayEnd::taken_away);
  EXPECT_TRUE(lab.requests->records.empty());
}

struct Malformed {
  Pairs head;
  std::string status;
};

TEST_F(Http2Test, RefusesRequestsThatNameNoOneAuthority) {
  start();
  const std::vector<Malformed> cases{
      {head_of("GET", "/", {{"host", "other.test"}}), "400"},
      {{{":method", "GET"}, {":scheme", "http"}, {":authority", "api.test"}, {":path", "/"}},
       "400"},
      {{{":method", "CONNECT"}, {":authority", "api.test:443"}}, "405"},
  };
  for (const Malformed& each : cases) {
    const Ids ids = lab.ask(each.head);
    EXPECT_EQ(lab.at_client(ids).status(), each.status) << each.head.back().second;
    EXPECT_EQ(lab.requests->refusals.back().second, "malformed");
  }
  EXPECT_TRUE(lab.origin->arrived.empty());
  EXPECT_TRUE(lab.requests->judged.empty());
}

TEST_F(Http2Test, HostAloneIsTheAuthority) {
  start();
  const Pairs head{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"host", "api.test"}};
  const Ids ids = lab.ask(head);
  EXPECT_EQ(lab.at_origin(ids).head, head);
  EXPECT_EQ(lab.requests->judged.at(0).authority, "api.test");
}

TEST_F(Http2Test, WhatIsNoHttpIsResetAndNeverReachesTheOrigin) {
  lab.set_peers({.is_strict = false}, {});
  start();
  Pairs protocol = head_of("CONNECT", "/");
  protocol.insert(protocol.begin() + 1, {":protocol", "websocket"});
  const std::vector<Pairs> cases{
      head_of("GET", "/", {{"connection", "close"}}),
      head_of("GET", "/", {{"transfer-encoding", "chunked"}}),
      head_of("GET", "/", {{"te", "gzip"}}),
      head_of("GET", "/", {{"x-text", "a\r\nb: c"}}),
      head_of("GET", "/", {{"x text", "a"}}),
      head_of("GET", "/", {{"content-length", "1"}, {"content-length", "2"}}),
      head_of("GET", "/", {{"host", "api.test"}, {"host", "api.test"}}),
      head_of("GET", "no-slash"),
      {{":method", "GET"}, {":scheme", "https"}, {":path", "/"}},
      {{":method", "GET"}, {":authority", "api.test"}, {":path", "/"}},
      protocol,
  };
  for (const Pairs& head : cases) {
    const std::size_t before = lab.requests->refusals.size();
    const Ids ids = lab.ask(head);
    EXPECT_TRUE(lab.at_client(ids).closed) << head.back().first;
    EXPECT_NE(lab.at_client(ids).closed, NGHTTP2_NO_ERROR) << head.back().first;
    EXPECT_EQ(lab.requests->refusals.size(), before + 1) << head.back().first;
  }
  EXPECT_TRUE(lab.origin->arrived.empty());
  EXPECT_FALSE(lab.end);
}

TEST_F(Http2Test, ABodyThatIsNotAsLongAsSaidIsCutOff) {
  lab.set_peers({.is_strict = false}, {});
  start();
  const Ids ids = lab.ask(head_of("POST", "/", {{"content-length", "10"}}), Said{.body = "short"});
  EXPECT_EQ(lab.at_client(ids).closed, NGHTTP2_PROTOCOL_ERROR);
  EXPECT_FALSE(lab.at_origin(ids).has_ended);
  EXPECT_EQ(lab.at_origin(ids).closed, NGHTTP2_PROTOCOL_ERROR);
}

TEST_F(Http2Test, InformationalResponsesPass) {
  start();
  const Ids ids = post("/");
  lab.origin->inform(ids.origin, {{":status", "100"}});
  lab.origin->inform(ids.origin, {{":status", "103"}, {"link", "</a.css>"}});
  lab.pump();
  EXPECT_EQ(lab.at_client(ids).informed,
            (std::vector<Pairs>{{{":status", "100"}}, {{":status", "103"}, {"link", "</a.css>"}}}));
  EXPECT_TRUE(lab.requests->records.empty());
  lab.client->end(ids.client);
  lab.pump();
  respond(ids, plain_ok, {.body = "done"});
  EXPECT_EQ(lab.at_client(ids).body, "done");
  EXPECT_EQ(lab.requests->records, (Records{{"/", 200}}));
}

TEST_F(Http2Test, InformationalResponsesWithoutEndAreNotKept) {
  start();
  const Ids ids = get("/");
  for (int i = 0; i < 70; ++i) lab.origin->inform(ids.origin, {{":status", "103"}});
  lab.pump();
  EXPECT_EQ(lab.at_client(ids).status(), "502");
  EXPECT_EQ(lab.at_origin(ids).closed, NGHTTP2_CANCEL);
}

TEST_F(Http2Test, TrailersPassBothWays) {
  start();
  const Ids ids = post("/", {.body = "a", .trailers = {{"x-up", "1"}, {"x-up", "2"}}});
  EXPECT_EQ(lab.at_origin(ids).trailers, (Pairs{{"x-up", "1"}, {"x-up", "2"}}));
  EXPECT_TRUE(lab.at_origin(ids).has_ended);
  respond(ids, plain_ok, {.body = "b", .trailers = {{"grpc-status", "0"}}});
  EXPECT_EQ(lab.at_client(ids).trailers, (Pairs{{"grpc-status", "0"}}));
  EXPECT_EQ(lab.at_client(ids).body, "b");
  EXPECT_TRUE(lab.at_client(ids).has_ended);
  // Without any body between.
  const Ids bare = post("/", {.trailers = {{"x-up", "3"}}});
  EXPECT_EQ(lab.at_origin(bare).trailers, (Pairs{{"x-up", "3"}}));
  respond(bare, plain_ok, {.trailers = {{"x-down", "4"}}});
  EXPECT_EQ(lab.at_client(bare).trailers, (Pairs{{"x-down", "4"}}));
}

TEST_F(Http2Test, EventsArriveBeforeTheStreamEnds) {
  start();
  const Ids ids = get("/events");
  respond(ids, {{":status", "200"}, {"content-type", "text/event-stream"}},
          {.body = "data: 1\n\n", .is_whole = false});
  EXPECT_EQ(lab.at_client(ids).body, "data: 1\n\n");
  EXPECT_FALSE(lab.at_client(ids).has_ended);
  lab.origin->add(ids.origin, "data: 2\n\n");
  lab.pump();
  EXPECT_EQ(lab.at_client(ids).body, "data: 1\n\ndata: 2\n\n");
  lab.origin->end(ids.origin);
  lab.pump();
  EXPECT_TRUE(lab.at_client(ids).has_ended);
}

TEST_F(Http2Test, BothDirectionsOfAStreamAreIndependent) {
  start();
  const Ids ids = post("/chat");
  respond(ids, plain_ok, {.is_whole = false});
  for (const std::string word : {"one", "two", "three"}) {
    lab.client->add(ids.client, word);
    lab.pump();
    EXPECT_TRUE(lab.at_origin(ids).body.ends_with(word));
    lab.origin->add(ids.origin, word);
    lab.pump();
    EXPECT_TRUE(lab.at_client(ids).body.ends_with(word));
  }
}

TEST_F(Http2Test, AnAnswerBeforeTheEndOfTheRequestStopsIt) {
  start();
  const Ids ids = post("/", {.body = "beginning", .is_whole = false});
  lab.origin->respond(ids.origin, {{":status", "413"}}, {.body = "too much"});
  lab.pump();
  lab.origin->reset(ids.origin, NGHTTP2_NO_ERROR);
  lab.pump();
  EXPECT_EQ(lab.at_client(ids).status(), "413");
  EXPECT_EQ(lab.at_client(ids).body, "too much");
  EXPECT_EQ(lab.at_client(ids).closed, NGHTTP2_NO_ERROR);
}

TEST_F(Http2Test, ResetsPassBothWays) {
  start();
  for (const std::uint32_t code : {NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR,
                                   NGHTTP2_HTTP_1_1_REQUIRED, NGHTTP2_NO_ERROR}) {
    const Ids up = post("/");
    lab.client->reset(up.client, code);
    lab.pump();
    EXPECT_EQ(lab.at_origin(up).closed, code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL : code);
    const Ids down = get("/");
    lab.origin->reset(down.origin, code);
    lab.pump();
    EXPECT_EQ(lab.at_client(down).closed, code == NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
    const Ids half = get("/");
    respond(half, plain_ok, {.body = "half", .is_whole = false});
    lab.origin->reset(half.origin, code);
    lab.pump();
    EXPECT_EQ(lab.at_client(half).closed, code == NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
  }
  const Ids unknown = get("/");
  lab.origin->reset(unknown.origin, 12345);
  lab.pump();
  EXPECT_EQ(lab.at_client(unknown).closed, NGHTTP2_INTERNAL_ERROR);
  EXPECT_FALSE(lab.end);
}

TEST_F(Http2Test, AMalformedAnswerIsOurError) {
  lab.set_peers({}, {.is_strict = false});
  start();
  const std::vector<Pairs> heads{
      {{":status", "200"}, {"connection", "close"}},
      {{":status", "200"}, {"x-text", "a\nb"}},
      {{":status", "101"}},
      {{":status", "200"}, {"transfer-encoding", "chunked"}},
  };
  for (const Pairs& head : heads) {
    const Ids ids = get("/");
    respond(ids, head, {.body = "x"});
    EXPECT_EQ(lab.at_client(ids).status(), "502") << head.back().first;
    EXPECT_EQ(lab.requests->refusals.back(),
              (std::pair<std::string, std::string>("/", "malformed")));
  }
  EXPECT_TRUE(lab.requests->records.empty());
}

}  // namespace
}  // namespace capgate::seal
