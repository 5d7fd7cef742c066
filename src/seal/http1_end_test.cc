#include <gtest/gtest.h>

#include "base/format.h"
#include "support/http1_stage.h"

namespace capgate::seal {
namespace {

using support::end_of;
using support::finish_sending;
using support::get;
using support::Http1Test;
using support::ok;
using support::placeholder;
using support::receive;
using support::receive_all;
using support::secret_value;
using support::send_text;
using support::Strings;

// ---- How it ends --------------------------------------------------------------------------------

class CutTest : public Http1Test, public testing::WithParamInterface<std::string_view> {};

TEST_P(CutTest, IsNoCleanEnd) {
  play([&] {
    expect_passes(get);
    send_text(origin, GetParam());
    finish_sending(origin);
    const std::string got = receive_all(client);
    EXPECT_FALSE(got.ends_with("0\r\n\r\n")) << got;
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Answers, CutTest,
    testing::Values("", "HTTP/1.1 200", "HTTP/1.1 100 Continue\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA\r\n\r\n"));

TEST_F(Http1Test, ARequestThatIsNeverAnsweredIsRecorded) {
  play([&] {
    expect_passes(get);
    origin = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
  });
  EXPECT_EQ(requests->records, Strings{"GET /a 0"});
}

TEST_F(Http1Test, AnOriginThatClosesMeanwhileEndsTheConnection) {
  play([&] {
    expect_still_works();
    finish_sending(origin);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Test, AnAnswerThatNobodyAskedForIsNotTakenForTheNext) {
  play([&] {
    expect_passes(get);
    expect_answers(ok + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", ok);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Test, NothingIsHeardBeforeTheFirstRequest) {
  play([&] {
    send_text(origin, ok);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Test, AClientThatLeavesIsToldToTheOrigin) {
  play([&] {
    expect_passes(get);
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Test, AnEarlyAnswerEndsTheConnectionCleanly) {
  const std::string large = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig";
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhello");
    expect_answers(large);
    // It is read on, so that no reset costs the client what it was told.
    EXPECT_TRUE(send_text(client, std::string(300000, 'x')));
    EXPECT_EQ(end_of(client), 0);
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
  EXPECT_EQ(requests->records, Strings{"POST / 413"});
}

TEST_F(Http1Test, AnOriginThatTakesNoMoreMayHaveAnswered) {
  const std::string large = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig";
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhello");
    // Its answer's end is still to come when the client's next bytes find nobody.
    expect_answers(large.substr(0, large.size() - 2));
    ASSERT_EQ(::shutdown(origin.get(), SHUT_RD), 0);
    send_text(client, "more");
    send_text(client, "and more");
    expect_answers("ig");
    EXPECT_EQ(end_of(client), 0);
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Test, AnAnswerMayBeginBeforeTheRequestHasEnded) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    expect_answers("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    expect_passes("cd");
    expect_answers("cd");
    expect_still_works();
  });
}

TEST_F(Http1Test, AHeadThatHasBegunMustCome) {
  head_seconds = 0;
  play([&] {
    expect_still_works();
    send_text(client, "GET / HT");
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
    EXPECT_EQ(receive_all(client), "");
  });
}

TEST_F(Http1Test, WhatIsTakenAwayIsNotTouched) {
  play([&] { expect_passes(get + "half of", get); });
  stage.loop.cancel_all();
  EXPECT_EQ(end, RelayEnd::taken_away);
  EXPECT_EQ(requests->records, Strings{});
}

// ---- Upgrades -----------------------------------------------------------------------------------

const std::string upgrade =
    "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const std::string agreed =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

TEST_F(Http1Test, AWebSocketIsRawInBothDirectionsAndStillScrubbed) {
  play([&] {
    expect_still_works();
    expect_passes(upgrade + "early", upgrade);
    expect_answers(agreed + "hello");
    EXPECT_EQ(receive(origin, 5), "early");
    expect_passes("GET / HTTP/1.0\n\n");
    expect_answers(format("<{}>", secret_value), format("<{}>", placeholder));
    finish_sending(client);
    EXPECT_EQ(end_of(origin), 0);
    expect_answers("last");
    finish_sending(origin);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
  EXPECT_EQ(requests->records, (Strings{"GET /a 200", "GET /ws 101"}));
  EXPECT_EQ(requests->scrubbed, 1U);
}

TEST_F(Http1Test, AWebSocketThatIsNotTakenUpLeavesHttp) {
  play([&] {
    expect_passes(upgrade);
    expect_answers(ok);
    expect_still_works();
  });
}

TEST_F(Http1Test, OtherUpgradesAreRefused) {
  play([&] {
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    expect_refusal("403");
    EXPECT_EQ(receive_all(origin), "");
  });
  EXPECT_EQ(requests->refusals, Strings{"not-spoken-here"});
}

TEST_F(Http1Test, AnUpgradeThatNobodyAskedForIsRefused) {
  play([&] {
    expect_passes(get);
    send_text(origin, agreed);
    expect_refusal("502");
  });
}

}  // namespace
}  // namespace capgate::seal
