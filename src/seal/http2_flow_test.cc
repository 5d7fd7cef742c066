// Windows, limits and ends of HTTP/2 connections.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "seal/http2_session.h"
#include "support/http2_case.h"

namespace capgate::seal {
namespace {

using support::head_of;
using support::Http2Lab;
using support::Pairs;
using support::pattern;
using support::plain_ok;
using support::Said;
using Ids = support::Http2Lab::Ids;
using Records = std::vector<std::pair<std::string, int>>;

class Http2Flow : public support::Http2Case {};

constexpr std::size_t window = 65535;  // of a peer that says nothing of it
constexpr std::size_t large = 4 << 20;

TEST_F(Http2Flow, AClientThatDoesNotReadStopsTheOrigin) {
  lab.set_peers({.reads_bodies = false}, {});
  start();
  const Ids ids = get("/");
  respond(ids, plain_ok, {.body = pattern(large)});
  EXPECT_EQ(lab.at_client(ids).body.size(), window);
  const std::size_t unsaid = lab.origin->unsaid(ids.origin);
  EXPECT_GE(unsaid, large - window - stream_window);
  // It goes on before everything that is held has left.
  for (int i = 0; i < 3; ++i) {
    lab.client->read(ids.client, window);
    lab.pump();
  }
  EXPECT_LT(lab.origin->unsaid(ids.origin), unsaid);
  while (!lab.at_client(ids).has_ended) {
    const std::size_t before = lab.at_client(ids).body.size();
    lab.client->read(ids.client, window);
    lab.pump();
    ASSERT_GT(lab.at_client(ids).body.size(), before);
  }
  EXPECT_EQ(lab.at_client(ids).body, pattern(large));
}

TEST_F(Http2Flow, AnOriginThatDoesNotReadStopsTheClient) {
  lab.set_peers({}, {.reads_bodies = false});
  start();
  const Ids ids = post("/", {.body = pattern(large)});
  EXPECT_EQ(lab.at_origin(ids).body.size(), window);
  EXPECT_GE(lab.client->unsaid(ids.client), large - window - stream_window);
  while (!lab.at_origin(ids).has_ended) {
    const std::size_t before = lab.at_origin(ids).body.size();
    lab.origin->read(ids.origin, window);
    lab.pump();
    ASSERT_GT(lab.at_origin(ids).body.size(), before);
  }
  EXPECT_EQ(lab.at_origin(ids).body, pattern(large));
}

TEST_F(Http2Flow, AConnectionThatIsNotReadStopsTheOther) {
  start();
  const Ids ids = get("/");
  lab.client_side.stall(true);
  respond(ids, plain_ok, {.body = pattern(large)});
  EXPECT_GE(lab.origin->unsaid(ids.origin), large - stream_window - (128 << 10));
  lab.client_side.stall(false);
  lab.pump();
  EXPECT_EQ(lab.at_client(ids).body, pattern(large));
  EXPECT_LE(lab.client_side.largest_write, std::size_t{70} << 10);
  EXPECT_GE(lab.client_side.largest_write, std::size_t{40} << 10);
}

// As many streams as there may be, each with a full window that nobody reads, but one.
TEST_F(Http2Flow, StreamsThatAreNotReadDoNotStopOthers) {
  const nghttp2_settings_entry tiny{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100};
  lab.set_peers({.reads_bodies = false, .entries = {tiny}}, {});
  start();
  for (std::uint32_t i = 1; i < most_streams; ++i) {
    const Ids ids = get("/stalled");
    respond(ids, plain_ok, {.body = pattern(2 * stream_window)});
    ASSERT_EQ(lab.at_client(ids).body.size(), 100U);
  }
  const Ids ids = get("/read");
  respond(ids, plain_ok, {.body = pattern(1000)});
  while (!lab.at_client(ids).has_ended) {
    const std::size_t before = lab.at_client(ids).body.size();
    lab.client->read(ids.client, 100);
    lab.pump();
    ASSERT_GT(lab.at_client(ids).body.size(), before);
  }
  EXPECT_EQ(lab.at_client(ids).body, pattern(1000));
}

// All streams of all connections together; and what waits goes on when something is read.
TEST_F(Http2Flow, ABudgetBoundsWhatIsHeldBack) {
  constexpr std::size_t most = 2 << 20;
  lab.buffers = BufferBudget(most);
  const nghttp2_settings_entry small{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000};
  lab.set_peers({.reads_bodies = false, .entries = {small}}, {});
  start();
  std::vector<Ids> all;
  std::size_t held = 0;
  for (int i = 0; i < 40; ++i) {
    all.push_back(get("/stalled"));
    respond(all.back(), plain_ok, {.body = pattern(stream_window)});
    held += stream_window - lab.origin->unsaid(all.back().origin);
    EXPECT_LE(lab.buffers.used(), most);
  }
  // Without the budget, it would be all of the 10 MiB.
  EXPECT_LE(held, most + connection_window);
  EXPECT_GT(held, most / 2);
  const auto is_done = [&] {
    return std::ranges::all_of(all, [&](const Ids& ids) { return lab.at_client(ids).has_ended; });
  };
  std::vector<std::size_t> read(all.size());
  for (int rounds = 0; !is_done() && rounds < 10'000; ++rounds) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t came = lab.at_client(all[i]).body.size();
      if (!lab.at_client(all[i]).has_ended) lab.client->read(all[i].client, came - read[i]);
      read[i] = came;
    }
    lab.pump();
  }
  EXPECT_TRUE(is_done());
  for (const Ids& ids : all) EXPECT_TRUE(lab.at_client(ids).body == pattern(stream_window));
}

// What a stream held when it was reset is given back, or the connection would stop some day.
TEST_F(Http2Flow, ResetStreamsGiveTheirWindowBack) {
  const nghttp2_settings_entry tiny{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100};
  lab.set_peers({.reads_bodies = false, .entries = {tiny}},
                {.reads_bodies = false, .entries = {tiny}});
  start();
  const std::string body(stream_window + 1000, 'b');
  for (std::uint32_t i = 0; i < most_streams + 20; ++i) {
    const Ids down = get("/");
    respond(down, plain_ok, {.body = body, .is_whole = false});
    ASSERT_EQ(lab.origin->unsaid(down.origin), 1000U);
    lab.client->reset(down.client, NGHTTP2_CANCEL);
    lab.pump();
    const Ids up = post("/", {.body = body, .is_whole = false});
    ASSERT_EQ(lab.client->unsaid(up.client), 1000U);
    lab.origin->reset(up.origin, NGHTTP2_CANCEL);
    lab.pump();
  }
}

TEST_F(Http2Flow, ManyStreamsAtOnce) {
  start();
  std::vector<std::int32_t> streams;
  for (std::size_t i = 0; i < 250; ++i) {
    streams.push_back(lab.client->request(head_of("POST", "/" + std::to_string(i)),
                                          Said{.body = pattern(1000 * (i % 50))}));
  }
  lab.pump();
  std::size_t answered = 0;
  while (answered < lab.origin->arrived.size()) {
    const std::int32_t stream = lab.origin->arrived[answered++];
    const support::Heard& heard = lab.origin->messages[stream];
    lab.origin->respond(stream, {{":status", "200"}, {"x-path", heard.field(":path")}},
                        {.body = heard.body});
    lab.pump();
  }
  ASSERT_EQ(answered, streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const support::Heard& heard = lab.client->messages[streams[i]];
    EXPECT_EQ(heard.field("x-path"), "/" + std::to_string(i));
    EXPECT_EQ(heard.body, pattern(1000 * (i % 50)));
    EXPECT_TRUE(heard.has_ended);
  }
}

TEST_F(Http2Flow, TheClientMayOpenAsManyStreamsAsTheOriginAllows) {
  lab.set_peers({}, {.entries = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 3}}});
  start();
  const auto limit = [&] {
    return nghttp2_session_get_remote_settings(lab.client->raw,
                                               NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  };
  EXPECT_EQ(limit(), 3U);
  EXPECT_EQ(nghttp2_session_get_remote_settings(lab.origin->raw, NGHTTP2_SETTINGS_ENABLE_PUSH), 0U);
  const nghttp2_settings_entry more{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000};
  (void)nghttp2_submit_settings(lab.origin->raw, NGHTTP2_FLAG_NONE, &more, 1);
  lab.pump();
  EXPECT_EQ(limit(), 100U);
}

TEST_F(Http2Flow, MoreThanTheOriginAllowsMayBeTriedAgain) {
  lab.set_peers({}, {.entries = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1}}});
  is_started = true;
  lab.start();
  lab.origin_side.feed(lab.origin->say());
  // Before the client could know of the limit.
  const std::int32_t first = lab.client->request(head_of("GET", "/1"));
  const std::int32_t second = lab.client->request(head_of("GET", "/2"));
  lab.client_side.feed(lab.client->say());
  lab.pump();
  EXPECT_EQ(lab.client->messages[second].closed, NGHTTP2_REFUSED_STREAM);
  ASSERT_EQ(lab.origin->arrived.size(), 1U);
  respond({.client = first, .origin = lab.origin->arrived[0]});
  EXPECT_EQ(lab.client->messages[first].status(), "200");
}

// A limit that the origin lowers later holds requests back, and one of them is not wanted any more.
TEST_F(Http2Flow, RequestsWaitForAStreamOfTheOrigin) {
  start();
  const Ids first = get("/1");
  const nghttp2_settings_entry one{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
  const std::int32_t second = lab.client->request(head_of("GET", "/wait/2"));
  const std::int32_t third = lab.client->request(head_of("GET", "/wait/3"));
  lab.pump();
  (void)nghttp2_submit_settings(lab.origin->raw, NGHTTP2_FLAG_NONE, &one, 1);
  lab.pump();
  lab.requests->let_go();
  lab.pump();
  ASSERT_EQ(lab.origin->arrived.size(), 1U);
  lab.client->reset(second, NGHTTP2_CANCEL);
  lab.pump();
  respond(first);
  ASSERT_EQ(lab.origin->arrived.size(), 2U);
  EXPECT_EQ(lab.origin->messages[lab.origin->arrived[1]].field(":path"), "/wait/3");
  respond({.client = third, .origin = lab.origin->arrived[1]});
  EXPECT_EQ(lab.client->messages[third].status(), "200");
  EXPECT_EQ(lab.requests->records, (Records{{"/1", 200}, {"/wait/2", 0}, {"/wait/3", 200}}));
}

TEST_F(Http2Flow, PingsAreAnswered) {
  start();
  (void)nghttp2_submit_ping(lab.client->raw, NGHTTP2_FLAG_NONE, nullptr);
  (void)nghttp2_submit_ping(lab.origin->raw, NGHTTP2_FLAG_NONE, nullptr);
  lab.pump();
  EXPECT_EQ(lab.client->pongs, 1);
  EXPECT_EQ(lab.origin->pongs, 1);
}

TEST_F(Http2Flow, AfterTheOriginsGoawayWhatHasBegunIsCompleted) {
  start();
  const Ids ids = get("/");
  (void)nghttp2_submit_goaway(lab.origin->raw, NGHTTP2_FLAG_NONE, ids.origin, NGHTTP2_NO_ERROR,
                              nullptr, 0);
  lab.pump();
  EXPECT_EQ(lab.client->goaway, NGHTTP2_NO_ERROR);
  EXPECT_FALSE(lab.end);
  respond(ids, plain_ok, {.body = "complete"});
  EXPECT_EQ(lab.at_client(ids).body, "complete");
  EXPECT_EQ(lab.end, RelayEnd::closed);
  EXPECT_TRUE(lab.client_side.is_finished);
  EXPECT_TRUE(lab.origin_side.is_finished);
}

TEST_F(Http2Flow, WhatTheOriginsGoawayLeavesOutMayBeTriedElsewhere) {
  start();
  const Ids first = get("/1");
  const Ids second = get("/2");
  const Ids judged = get("/wait");
  (void)nghttp2_submit_goaway(lab.origin->raw, NGHTTP2_FLAG_NONE, first.origin, NGHTTP2_NO_ERROR,
                              nullptr, 0);
  lab.pump();
  lab.requests->let_go();
  lab.pump();
  EXPECT_EQ(lab.at_client(second).closed, NGHTTP2_REFUSED_STREAM);
  EXPECT_EQ(lab.at_client(judged).closed, NGHTTP2_REFUSED_STREAM);
  EXPECT_FALSE(lab.at_client(first).closed);
  respond(first);
  EXPECT_EQ(lab.end, RelayEnd::closed);
  EXPECT_EQ(lab.requests->records, (Records{{"/2", 0}, {"/wait", 0}, {"/1", 200}}));
}

TEST_F(Http2Flow, TheClientsEndIsTheOriginsGoaway) {
  start();
  respond(get("/"));
  lab.client_side.end();
  lab.pump();
  EXPECT_EQ(lab.end, RelayEnd::closed);
  EXPECT_EQ(lab.origin->goaway, NGHTTP2_NO_ERROR);
  EXPECT_TRUE(lab.origin_side.is_finished);
}

TEST_F(Http2Flow, AClientThatLeavesItsRequestsIsAFailure) {
  start();
  get("/");
  lab.client_side.end();
  EXPECT_EQ(lab.end, RelayEnd::failed);
  EXPECT_EQ(lab.requests->records, (Records{{"/", 0}}));
}

TEST_F(Http2Flow, AnOriginThatEndsInTheMiddleResetsTheStream) {
  start();
  const Ids silent = get("/1");
  const Ids begun = get("/2");
  respond(begun, plain_ok, {.body = "half", .is_whole = false});
  lab.origin_side.end(egress::failed);
  lab.pump();
  EXPECT_EQ(lab.at_client(silent).closed, NGHTTP2_INTERNAL_ERROR);
  EXPECT_EQ(lab.at_client(begun).closed, NGHTTP2_INTERNAL_ERROR);
  EXPECT_EQ(lab.client->goaway, NGHTTP2_NO_ERROR);
  EXPECT_EQ(lab.end, RelayEnd::failed);
  EXPECT_EQ(lab.requests->records, (Records{{"/2", 200}, {"/1", 0}}));
}

TEST_F(Http2Flow, WhatTheOriginHasSaidBeforeItEndedArrives) {
  lab.set_peers({.reads_bodies = false}, {});
  start();
  const Ids ids = get("/");
  respond(ids, plain_ok, {.body = pattern(200'000)});
  lab.origin_side.end();
  lab.pump();
  EXPECT_EQ(lab.client->goaway, NGHTTP2_NO_ERROR);
  while (!lab.at_client(ids).has_ended) {
    const std::size_t before = lab.at_client(ids).body.size();
    lab.client->read(ids.client, window);
    lab.pump();
    ASSERT_GT(lab.at_client(ids).body.size(), before);
  }
  EXPECT_EQ(lab.at_client(ids).body, pattern(200'000));
  EXPECT_EQ(lab.end, RelayEnd::closed);
}

TEST_F(Http2Flow, RapidResetsEndTheConnection) {
  start();
  int asked = 0;
  while (!lab.end && asked < 2000) {
    const std::int32_t stream = lab.client->request(head_of("GET", "/"));
    lab.client_side.feed(lab.client->say());
    lab.client->reset(stream, NGHTTP2_CANCEL);
    lab.pump();
    ++asked;
  }
  EXPECT_EQ(lab.client->goaway, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(lab.end, RelayEnd::failed);
  EXPECT_LT(asked, 600);
  EXPECT_GT(asked, 400);
}

TEST_F(Http2Flow, PingsThatNobodyHearsTheAnswersOfEndTheConnection) {
  start();
  lab.client_side.stall(true);
  for (int i = 0; i < 3000 && !lab.end; ++i) {
    (void)nghttp2_submit_ping(lab.client->raw, NGHTTP2_FLAG_NONE, nullptr);
    lab.client_side.feed(lab.client->say());
  }
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Flow, LargeHeadsPassUpToTheLimit) {
  start();
  const std::string value(60'000, 'v');
  const Ids ids = lab.ask(head_of("GET", "/", {{"x-large", value}}));
  EXPECT_EQ(lab.at_origin(ids).field("x-large"), value);
  respond(ids, {{":status", "200"}, {"x-large", value}});
  EXPECT_EQ(lab.at_client(ids).field("x-large"), value);

  const Pairs over{{"x-a", std::string(40'000, 'v')}, {"x-b", std::string(40'000, 'v')}};
  const Ids refused = lab.ask(head_of("GET", "/", over));
  EXPECT_EQ(lab.at_client(refused).status(), "431");
  EXPECT_EQ(refused.origin, 0);
  const Ids too_much = get("/");
  Pairs answer = plain_ok;
  answer.insert(answer.end(), over.begin(), over.end());
  respond(too_much, answer, {.body = "x"});
  EXPECT_EQ(lab.at_client(too_much).status(), "502");
  EXPECT_FALSE(lab.end);
}

TEST_F(Http2Flow, ManySmallFieldsCountAsWell) {
  start();
  const Ids ids = lab.ask(head_of("GET", "/", Pairs(3000, {"a", "b"})));
  EXPECT_EQ(lab.at_client(ids).status(), "431");
  lab.ask(head_of("GET", "/", Pairs(20'000, {"a", "b"})));
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream,
                  std::string_view payload) {
  std::string out{'\0',
                  static_cast<char>(payload.size() >> 8U),
                  static_cast<char>(payload.size()),
                  static_cast<char>(type),
                  static_cast<char>(flags),
                  '\0',
                  '\0',
                  '\0',
                  static_cast<char>(stream)};
  return out.append(payload);
}

TEST_F(Http2Flow, ContinuationsWithoutEndEndTheConnection) {
  start();
  lab.client_side.feed(frame(NGHTTP2_HEADERS, 0, 1, ""));
  for (int i = 0; i < 100 && !lab.end; ++i) {
    lab.client_side.feed(frame(NGHTTP2_CONTINUATION, 0, 1, ""));
  }
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Flow, AHeadThatHasBegunMustCome) {
  is_started = true;
  lab.start();
  EXPECT_NE(lab.client_side.read_deadline, egress::never);
  EXPECT_NE(lab.origin_side.read_deadline, egress::never);
  lab.pump();
  EXPECT_EQ(lab.client_side.read_deadline, egress::never);
  EXPECT_EQ(lab.origin_side.read_deadline, egress::never);
  const std::string path(
      "\x82\x87\x44\x01/\x41\x08"
      "api.test",
      15);
  lab.client_side.feed(frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, path));
  EXPECT_EQ(lab.client_side.read_deadline, lab.loop.now() + std::chrono::seconds(15));
  lab.client_side.feed(frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, ""));
  EXPECT_EQ(lab.client_side.read_deadline, egress::never);
  lab.pump();
  EXPECT_EQ(lab.origin->arrived.size(), 1U);
}

TEST_F(Http2Flow, BytesThatAreNoHttp2EndTheConnection) {
  start();
  lab.client_side.feed(std::string(1000, '\x7f'));
  lab.pump();
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Flow, AnOriginThatIsNoHttp2EndsTheConnection) {
  start();
  const Ids ids = get("/");
  lab.origin_side.feed(std::string(1000, '\x7f'));
  lab.pump();
  EXPECT_TRUE(lab.at_client(ids).closed);
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Flow, APushIsNotAccepted) {
  start();
  const Ids ids = get("/");
  lab.origin_side.feed(frame(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1,
                             std::string("\0\0\0\x02\x82\x87\x84", 7)));
  lab.pump();
  EXPECT_TRUE(lab.at_client(ids).closed);
  EXPECT_EQ(lab.end, RelayEnd::failed);
}

TEST_F(Http2Flow, WhatCannotBeRecordedEndsTheConnection) {
  start();
  const Ids ids = get("/");
  lab.requests->can_record = false;
  respond(ids, plain_ok, {.body = "x"});
  EXPECT_EQ(lab.end, RelayEnd::failed);
  EXPECT_EQ(lab.at_client(ids).status(), "");
}

TEST_F(Http2Flow, TakenAwayEndsWithoutAWord) {
  start();
  get("/");
  lab.client_side.cancel();
  EXPECT_FALSE(lab.end);  // until both are woken
  lab.origin_side.cancel();
  EXPECT_EQ(lab.end, RelayEnd::taken_away);
  EXPECT_TRUE(lab.requests->records.empty());
  EXPECT_FALSE(lab.client_side.is_finished);
}

RC_GTEST_PROP(Http2FlowProperty, BodiesArriveWhateverTheWindows, ()) {
  Http2Lab lab;
  const auto settings = [](std::uint32_t size) {
    return support::Http2Peer::Settings{.entries = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, size}}};
  };
  const auto a_window = rc::gen::inRange<std::uint32_t>(1, 3000);
  lab.set_peers(settings(*a_window), settings(*a_window));
  lab.start();
  const auto sizes =
      *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(rc::gen::pair(
          rc::gen::inRange<std::size_t>(0, 20'000), rc::gen::inRange<std::size_t>(0, 20'000)));
  std::vector<std::int32_t> streams;
  for (const auto& [up, down] : sizes) {
    streams.push_back(lab.client->request(head_of("POST", "/" + std::to_string(down)),
                                          Said{.body = pattern(up)}));
    if (*rc::gen::arbitrary<bool>()) lab.step();
  }
  std::size_t answered = 0;
  do {
    for (; answered < lab.origin->arrived.size(); ++answered) {
      const std::int32_t stream = lab.origin->arrived[answered];
      const std::string path = lab.origin->messages[stream].field(":path");
      lab.origin->respond(stream, plain_ok, {.body = pattern(std::stoul(path.substr(1)))});
    }
  } while (lab.step());
  RC_ASSERT(lab.origin->arrived.size() == sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    RC_ASSERT(lab.client->messages[streams[i]].body == pattern(sizes[i].second));
    RC_ASSERT(lab.client->messages[streams[i]].has_ended);
    RC_ASSERT(lab.origin->messages[lab.origin->arrived[i]].body == pattern(sizes[i].first));
  }
}

}  // namespace
}  // namespace capgate::seal
