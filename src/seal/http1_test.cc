// What passes and what is refused; http1_end_test.cc: how it ends.
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

// ---- What passes --------------------------------------------------------------------------------

TEST_F(Http1Test, KeepsEveryByteOfRequestsAndAnswers) {
  play([&] {
    expect_passes(
        "POST /a?b HTTP/1.1\r\nhOst:a\r\nX-A:  b \r\nx-a: c\r\nContent-Length: 5\r\n\r\nhello");
    expect_answers(
        "HTTP/1.1 201 Made it\r\nServer:x\r\nSet-Cookie: a\r\nSet-Cookie:  b\t\r\n"
        "Content-Length: 3\r\n\r\nyes");
    expect_still_works();
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
    EXPECT_EQ(end_of(origin), 0);
  });
  EXPECT_EQ(requests->records, (Strings{"POST /a?b 201", "GET /a 200"}));
  EXPECT_EQ(requests->refusals, Strings{});
  EXPECT_EQ(requests->counted[0], get.size() + 72);
}

TEST_F(Http1Test, PutsTheValueInAndScrubsItFromTheAnswer) {
  play([&] {
    expect_passes(
        format("GET / HTTP/1.1\r\nHost: a\r\nAuthorization:  Bearer {}\r\n\r\n", placeholder),
        format("GET / HTTP/1.1\r\nHost: a\r\nAuthorization:  Bearer {}\r\n\r\n", secret_value));
    const auto answer = [](std::string_view token) {
      return format(
          "HTTP/1.1 200 OK\r\nX-Echo: {}\r\nTransfer-Encoding: chunked\r\n\r\n"
          "28\r\n<{}>\r\n0\r\nX-Trailer: {}\r\n\r\n",
          token, token, token);
    };
    expect_answers(answer(secret_value), answer(placeholder));
  });
  EXPECT_EQ(requests->scrubbed, 3U);
}

TEST_F(Http1Test, ScrubsWhatIsSplitOverSegmentsAndChunks) {
  play([&] {
    expect_passes(get);
    const std::string value(secret_value);
    send_text(origin, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<" +
                          value.substr(0, 4) + "\r\n");
    EXPECT_EQ(receive(client, 53),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n<\r\n");
    send_text(origin, "22\r\n" + value.substr(4) + "\r\n0\r\n\r\n");
    const std::string wanted = format("26\r\n{}\r\n0\r\n\r\n", placeholder);
    EXPECT_EQ(receive(client, wanted.size()), wanted);
  });
  EXPECT_EQ(requests->scrubbed, 1U);
}

TEST_F(Http1Test, SendsOnePipelinedRequestAfterTheOther) {
  const std::string second = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
  play([&] {
    expect_passes(get + second, get);
    expect_answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    EXPECT_FALSE(support::has_event(origin, POLLIN)) << "the answer before has not ended";
    expect_answers("ok");
    EXPECT_EQ(receive(origin, second.size()), second);
    expect_answers(ok);
  });
}

TEST_F(Http1Test, InterimAnswersPass) {
  play([&] {
    expect_passes(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    expect_answers("HTTP/1.1 100 Continue\r\n\r\n");
    expect_passes("hi");
    expect_answers("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok);
    expect_still_works();
  });
  EXPECT_EQ(requests->records, (Strings{"POST / 200", "GET /a 200"}));
}

TEST_F(Http1Test, AnswersWithoutABodyEndWithTheirHead) {
  play([&] {
    expect_passes("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    expect_answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n");
    expect_passes(get);
    expect_answers("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
    expect_passes(get);
    expect_answers("HTTP/1.1 204 No Content\r\n\r\n");
    expect_still_works();
  });
}

TEST_F(Http1Test, ChunkExtensionsAreDroppedAndTrailersKept) {
  play([&] {
    const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect_passes(head + "2;x=y\r\nab\r\n3\r\ncde\r\n0\r\nX-Sum:1\r\n\r\n",
                  head + "5\r\nabcde\r\n0\r\nX-Sum:1\r\n\r\n");
    const std::string answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect_answers(answer + "2;x=y\r\nab\r\n0;z\r\nX-Sum:1\r\n\r\n",
                   answer + "2\r\nab\r\n0\r\nX-Sum:1\r\n\r\n");
    expect_still_works();
  });
}

TEST_F(Http1Test, AnAnswerMayLastUntilTheConnectionEnds) {
  play([&] {
    expect_passes(get);
    expect_answers("HTTP/1.1 200 OK\r\n\r\nsome");
    expect_answers(" more");
    finish_sending(origin);
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
  });
}

TEST_F(Http1Test, AnAnswerThatSaysSoIsTheLast) {
  play([&] {
    expect_passes(get + get, get);
    expect_answers("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(end_of(client), 0);
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
    EXPECT_EQ(end_of(origin), 0) << "the second request must not have left";
  });
}

TEST_F(Http1Test, EventsLeaveAtOnceInBothDirections) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_answers(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; ++i) {
      expect_passes("4\r\ntick\r\n");
      expect_answers("b\r\ndata: 1\r\n\r\n\r\n");
    }
    expect_passes("0\r\n\r\n");
    expect_answers("0\r\n\r\n");
    expect_still_works();
  });
}

TEST_F(Http1Test, NoMoreIsReadThanTheOtherSideTakes) {
  std::size_t taken = 0;
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    const std::string block(65536, 'x');
    // A second without room, as often as not: nobody reads any more.
    while (support::has_event(client, POLLOUT, 1000) && taken < 50'000'000) {
      const ssize_t size = ::send(client.get(), block.data(), block.size(), MSG_DONTWAIT);
      if (size > 0) taken += static_cast<std::size_t>(size);
    }
  });
  EXPECT_LT(taken, 5'000'000U);
}

TEST_F(Http1Test, LargeBodiesArriveWhole) {
  std::string body(3'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + (i >> 8U));
  play([&] {
    const auto expect_whole = [&](const sys::Fd& from, const sys::Fd& to, std::string_view head) {
      std::string got;
      std::thread reader([&] { got = receive(to, head.size() + body.size()); });
      send_text(from, std::string(head) + body);
      reader.join();
      EXPECT_TRUE(got == std::string(head) + body);
    };
    expect_whole(client, origin, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    expect_whole(origin, client, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
    expect_still_works();
  });
}

TEST_F(Http1Test, HeadsMayBeLarge) {
  const std::string large = "X-Large: " + std::string(60000, 'x') + "\r\n\r\n";
  play([&] {
    expect_passes("GET / HTTP/1.1\r\nHost: a\r\n" + large);
    expect_answers("HTTP/1.1 204 No Content\r\n" + large);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(70000, 'x'));
    expect_refusal("400");
  });
  EXPECT_EQ(requests->refusals, Strings{"malformed"});
}

// ---- Values in bodies ---------------------------------------------------------------------------

TEST_F(Http1Test, AShortBodyGetsItsExactNewLength) {
  seal_in(core::SecretPlace::Kind::body, "short");
  play([&] {
    send_text(client, "POST / HTTP/1.1\r\nHost: a\r\ncontent-length:45\r\n\r\nkey=");
    expect_passes(format("{}&a=", placeholder),
                  "POST / HTTP/1.1\r\nHost: a\r\ncontent-length:12\r\n\r\nkey=short&a=");
    expect_answers(ok);
    expect_still_works();
  });
  EXPECT_EQ(requests->used.at(0), Strings{"TOKEN"});
}

TEST_F(Http1Test, ALongBodyWhoseLengthMayChangeIsChunked) {
  seal_in(core::SecretPlace::Kind::body, "short");
  play([&] {
    const std::string filler(70000, 'x');
    send_text(client, "POST / HTTP/1.1\r\nContent-Length: 70038\r\nHost: a\r\n\r\n");
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n";
    EXPECT_EQ(receive(origin, head.size()), head);
    expect_passes(placeholder, "5\r\nshort\r\n");
    send_text(client, filler);
    std::string body;
    while (!body.ends_with("0\r\n\r\n")) body += receive(origin, 1);
    EXPECT_EQ(std::ranges::count(body, 'x'), 70000);
    expect_answers(ok);
    expect_still_works();
  });
}

TEST_F(Http1Test, WhoWaitsForAContinueIsNotWaitedFor) {
  seal_in(core::SecretPlace::Kind::body, "short");
  play([&] {
    expect_passes(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_answers("HTTP/1.1 100 Continue\r\n\r\n");
    expect_passes("hi", "2\r\nhi\r\n0\r\n\r\n");
    expect_answers(ok);
  });
}

TEST_F(Http1Test, APlaceholderInTheBodyIsRefused) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    send_text(client, format("26\r\n{}\r\n", placeholder));
    expect_refusal("403");
    EXPECT_EQ(receive_all(origin), "");
  });
  EXPECT_EQ(requests->refusals, Strings{"other-place"});
}

TEST_F(Http1Test, APlaceholderInATrailerIsRefused) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    send_text(client, format("0\r\nX-A: {}\r\n\r\n", placeholder));
    expect_refusal("403");
    EXPECT_EQ(receive_all(origin), "");
  });
  EXPECT_EQ(requests->refusals, Strings{"other-place"});
}

TEST_F(Http1Test, InTheMiddleOfAnAnswerARefusalIsACut) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    expect_answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    send_text(client, placeholder);
    EXPECT_EQ(receive_all(client), "");
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
  });
}

// ---- What is refused ----------------------------------------------------------------------------

class MalformedTest : public Http1Test, public testing::WithParamInterface<std::string_view> {};

TEST_P(MalformedTest, IsRefusedAndReachesNobody) {
  play([&] {
    send_text(client, GetParam());
    expect_refusal("400");
    EXPECT_EQ(receive_all(origin), "");
  });
  EXPECT_EQ(requests->refusals, Strings{"malformed"});
  EXPECT_EQ(requests->records, Strings{});
}

INSTANTIATE_TEST_SUITE_P(
    Heads, MalformedTest,
    testing::Values(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"));

TEST_F(Http1Test, AMalformedChunkIsRefused) {
  play([&] {
    expect_passes("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    send_text(client, "+2\r\nab\r\n");
    expect_refusal("400");
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Test, ASecondRequestThatIsMalformedWaitsForTheFirstAnswer) {
  play([&] {
    expect_passes(get + "nonsense\r\n\r\n", get);
    expect_answers(ok);
    expect_refusal("400");
  });
}

TEST_F(Http1Test, ARefusedRequestLeavesTheConnectionIfItIsSmall) {
  play([&] {
    const std::string refusal =
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\n"
        "Content-Length: 17\r\n\r\nno rule allows it";
    send_text(client, "POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
    EXPECT_EQ(receive(client, refusal.size()), refusal);
    send_text(client, "lo");
    send_text(client, "HEAD /no HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(receive(client, refusal.size() - 17), refusal.substr(0, refusal.size() - 17));
    expect_still_works();
  });
  EXPECT_EQ(requests->refusals, (Strings{"no-rule", "no-rule"}));
}

TEST_F(Http1Test, ARefusedRequestThatIsTheLastOneEndsTheConnection) {
  play([&] {
    send_text(client, "GET /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect_refusal("403");
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Test, ARefusedRequestWithALargeBodyEndsTheConnection) {
  play([&] {
    send_text(client, "POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhello");
    expect_refusal("403");
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Test, AValueThatCouldForgeAHeadIsNotSent) {
  seal_in(core::SecretPlace::Kind::header, "a-long-value\r\nHost: b");
  play([&] {
    send_text(client,
              format("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {}\r\n\r\n", placeholder));
    EXPECT_EQ(receive(client, 12), "HTTP/1.1 403");
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), RelayEnd::closed);
    EXPECT_EQ(receive_all(origin), "");
  });
}

TEST_F(Http1Test, AnEncodedAnswerIsRefused) {
  play([&] {
    expect_passes(get);
    send_text(origin, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc");
    expect_refusal("502");
  });
  EXPECT_EQ(requests->refusals, Strings{"encoded-response"});
  EXPECT_EQ(requests->records, Strings{});
}

TEST_F(Http1Test, AMalformedAnswerIsRefused) {
  play([&] {
    expect_passes(get);
    send_text(origin, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_refusal("502");
  });
  EXPECT_EQ(requests->refusals, Strings{"malformed-response"});
}

TEST_F(Http1Test, AnAnswerThatCannotBeRecordedIsNotPassedOn) {
  requests->can_record = false;
  play([&] {
    expect_passes(get);
    send_text(origin, ok);
    EXPECT_EQ(receive_all(client), "");
    EXPECT_EQ(wait_for_end(), RelayEnd::failed);
  });
}

}  // namespace
}  // namespace capgate::seal
