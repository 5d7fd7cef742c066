// Sealed values in HTTP/2: where they are put in, how they are sent and what comes back.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/http2_case.h"

namespace capgate::seal {
namespace {

using support::head_of;
using support::Heard;
using support::Pairs;
using support::plain_ok;
using support::Said;
using Ids = support::Http2Lab::Ids;
using Kind = core::SecretPlace::Kind;
using Refusals = std::vector<std::pair<std::string, std::string>>;

const std::string placeholder = "ph_0123456789abcdefghij";
const std::string value = "the-real-token-value";  // not as long

class Http2Secret : public support::Http2Case {
 protected:
  void seal(Kind kind) {
    lab.set_keys({{.name = "TOKEN",
                   .placeholder = placeholder,
                   .as = {.kind = kind},
                   .is_bound_here = true,
                   .value = &secret_}});
    start();
  }
  Ids answered(const Pairs& head, Said said) {
    const Ids ids = get("/");
    respond(ids, head, std::move(said));
    return ids;
  }

  const secrets::Secret secret_ = *secrets::Secret::make(value);
};

bool is_never_indexed(const Heard& heard, const std::string& name) {
  return std::ranges::find(heard.never_indexed, name) != heard.never_indexed.end();
}

TEST_F(Http2Secret, InAFieldItIsNeverIndexed) {
  seal(Kind::header);
  for (int i = 0; i < 2; ++i) {
    const Ids ids = lab.ask(
        head_of("GET", "/",
                {{"x-plain", "a"}, {"authorization", "Bearer " + placeholder}, {"x-last", "b"}}));
    const Heard& heard = lab.at_origin(ids);
    EXPECT_EQ(heard.field("authorization"), "Bearer " + value);
    EXPECT_TRUE(is_never_indexed(heard, "authorization"));
    EXPECT_FALSE(is_never_indexed(heard, "x-plain"));
    EXPECT_FALSE(is_never_indexed(heard, ":path"));
  }
}

TEST_F(Http2Secret, InThePathItIsNeverIndexed) {
  seal(Kind::query);
  const Ids ids = get("/a?key=" + placeholder);
  EXPECT_EQ(lab.at_origin(ids).field(":path"), "/a?key=" + value);
  EXPECT_TRUE(is_never_indexed(lab.at_origin(ids), ":path"));
  respond(ids);
  // The audit log gets what the client has said.
  EXPECT_EQ(lab.requests->records.at(0).first, "/a?key=" + placeholder);
}

TEST_F(Http2Secret, EachRequestIsRecordedWithItsOwnSecrets) {
  seal(Kind::header);
  const Ids first = lab.ask(head_of("GET", "/a", {{"authorization", "Bearer " + placeholder}}));
  const Ids second = get("/b");
  respond(first);
  respond(second);
  ASSERT_EQ(lab.requests->records.size(), 2U);
  EXPECT_EQ(lab.requests->used, (std::vector<std::vector<std::string>>{{"TOKEN"}, {}}));
}

TEST_F(Http2Secret, ASecretInTheBodyIsRecorded) {
  seal(Kind::body);
  respond(post("/", {.body = "token=" + placeholder}));
  EXPECT_EQ(lab.requests->used, (std::vector<std::vector<std::string>>{{"TOKEN"}}));
}

// Some origins cut it at the "#", others do not, and rules speak of paths.
TEST_F(Http2Secret, ATargetOfTwoMeaningsIsRefused) {
  seal(Kind::header);
  for (const std::string_view path : {"/a#/../b", "/a\xc3\xa4"}) {
    const std::int32_t id = lab.client->request(head_of("GET", path));
    lab.pump();
    EXPECT_EQ(lab.client->messages[id].status(), "400") << path;
  }
  EXPECT_TRUE(lab.origin->arrived.empty());
}

TEST_F(Http2Secret, WhatTheClientNeverIndexesIsNotIndexedByUs) {
  start();
  const Ids ids = lab.ask(head_of("GET", "/", {{"x-hidden", "h"}, {"x-plain", "a"}}));
  EXPECT_TRUE(is_never_indexed(lab.at_origin(ids), "x-hidden"));
  EXPECT_FALSE(is_never_indexed(lab.at_origin(ids), "x-plain"));
  respond(ids, {{":status", "200"}, {"x-hidden", "h"}});
  EXPECT_TRUE(is_never_indexed(lab.at_client(ids), "x-hidden"));
}

TEST_F(Http2Secret, InABodyItMayChangeTheLength) {
  seal(Kind::body);
  const std::string body = "a=" + placeholder + "&b=1";
  const Ids ids = lab.ask(
      head_of("POST", "/", {{"content-length", std::to_string(body.size())}, {"x-last", "b"}}),
      Said{.is_whole = false});
  for (const char byte : body) {
    lab.client->add(ids.client, {&byte, 1});
    lab.pump();
  }
  lab.client->end(ids.client);
  lab.pump();
  EXPECT_EQ(lab.at_origin(ids).body, "a=" + value + "&b=1");
  EXPECT_TRUE(lab.at_origin(ids).has_ended);
  EXPECT_EQ(lab.at_origin(ids).field("content-length"), "");
  EXPECT_EQ(lab.at_origin(ids).field("x-last"), "b");
}

TEST_F(Http2Secret, InTheWrongBodyItIsRefused) {
  seal(Kind::header);
  // All of it is there before the origin has seen anything.
  const Ids whole = post("/whole", {.body = "x" + placeholder});
  EXPECT_EQ(whole.origin, 0);
  EXPECT_EQ(lab.at_client(whole).status(), "403");
  // It comes after the head has left.
  const Ids split = post("/split");
  lab.client->add(split.client, placeholder.substr(0, 10));
  lab.pump();
  lab.client->add(split.client, placeholder.substr(10));
  lab.pump();
  EXPECT_EQ(lab.at_client(split).status(), "403");
  EXPECT_EQ(lab.at_client(split).closed, NGHTTP2_NO_ERROR);
  EXPECT_EQ(lab.at_origin(split).closed, NGHTTP2_CANCEL);
  EXPECT_EQ(lab.at_origin(split).body, "");
  // It comes after the answer has begun.
  const Ids late = post("/late");
  respond(late, plain_ok, {.body = "answer", .is_whole = false});
  lab.client->add(late.client, placeholder);
  lab.pump();
  EXPECT_EQ(lab.at_client(late).closed, NGHTTP2_CANCEL);
  EXPECT_EQ(lab.at_origin(late).closed, NGHTTP2_CANCEL);
  EXPECT_FALSE(lab.at_client(late).has_ended);
  EXPECT_EQ(
      lab.requests->refusals,
      (Refusals{{"/whole", "other-place"}, {"/split", "other-place"}, {"/late", "other-place"}}));
}

TEST_F(Http2Secret, InTrailersItIsRefused) {
  seal(Kind::header);
  const Ids ids = post("/", {.body = "a", .trailers = {{"authorization", placeholder}}});
  EXPECT_EQ(ids.origin, 0);
  EXPECT_EQ(lab.at_client(ids).status(), "403");
  const Ids late = post("/");
  lab.client->end(late.client, {{"x-sum", placeholder}});
  lab.pump();
  EXPECT_EQ(lab.at_client(late).status(), "403");
  EXPECT_EQ(lab.at_origin(late).closed, NGHTTP2_CANCEL);
  EXPECT_FALSE(lab.at_origin(late).has_ended);
}

TEST_F(Http2Secret, IsScrubbedFromHeadBodyAndTrailers) {
  seal(Kind::header);
  const Ids ids = answered({{":status", "200"}, {"x-echo", "<" + value + ">"}},
                           {.body = "[" + value, .is_whole = false});
  lab.origin->add(ids.origin, "]");
  lab.origin->end(ids.origin, {{"x-end", value}});
  lab.pump();
  const std::string instead = placeholder.substr(0, value.size());
  EXPECT_EQ(lab.at_client(ids).field("x-echo"), "<" + instead + ">");
  EXPECT_EQ(lab.at_client(ids).body, "[" + instead + "]");
  EXPECT_EQ(lab.at_client(ids).trailers, (Pairs{{"x-end", instead}}));
  EXPECT_EQ(lab.requests->scrubbed, 3U);
  const Ids early = get("/");
  lab.origin->inform(early.origin, {{":status", "103"}, {"link", value}});
  lab.pump();
  EXPECT_EQ(lab.at_client(early).informed.at(0).at(1).second, instead);
}

TEST_F(Http2Secret, AnEncodedAnswerIsNotPassedOn) {
  seal(Kind::header);
  const Ids ids = answered({{":status", "200"}, {"content-encoding", "gzip"}},
                           {.body = "unreadable", .is_whole = false});
  EXPECT_EQ(lab.at_client(ids).status(), "502");
  EXPECT_TRUE(lab.at_client(ids).has_ended);
  EXPECT_FALSE(lab.at_client(ids).body.contains("unreadable"));
  EXPECT_EQ(lab.at_origin(ids).closed, NGHTTP2_CANCEL);
  EXPECT_EQ(lab.requests->refusals, (Refusals{{"/", "encoded-response"}}));
  EXPECT_TRUE(lab.requests->records.empty());
}

}  // namespace
}  // namespace capgate::seal
