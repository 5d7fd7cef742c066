#include "seal/reused_origin.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "support/plain_stream.h"

namespace capgate::seal {
namespace {

using egress::failed;
using egress::never;
using egress::taken_away;
using support::MemoryStream;

class ReusedOriginTest : public testing::Test {
 protected:
  ~ReusedOriginTest() override { origin.cancel(); }  // whoever still reads
  egress::Task read() {
    std::array<char, 64> room;
    const ssize_t size = co_await origin.read(room, never);
    heard = size > 0 ? std::string(room.data(), static_cast<std::size_t>(size)) : "";
    got = size;
  }
  egress::Task write(std::string bytes, Repeats repeats) {
    origin.begin_request(repeats);
    sent = co_await origin.write(bytes, never);
  }

  MemoryStream kept;
  MemoryStream another;
  bool has_another = true;
  bool is_silent = true;
  int made = 0;
  ReusedOrigin origin{kept, [this] { return is_silent; },
                      [this]() -> Async<Stream*> {
                        ++made;
                        co_return has_another ? &another : nullptr;
                      }};
  std::optional<ssize_t> got;
  std::optional<ssize_t> sent;
  std::string heard;
};

TEST_F(ReusedOriginTest, IsTheKeptOneWhereThatAnswers) {
  read();
  write("GET", Repeats::freely);
  kept.feed("ok");
  EXPECT_EQ(heard, "ok");
  EXPECT_EQ(kept.written(), "GET");
  write("POST", Repeats::never);
  EXPECT_EQ(kept.written(), "GETPOST");
  EXPECT_EQ(made, 0);
}

TEST_F(ReusedOriginTest, AfterAnAnswerAnEndIsAnEnd) {
  read();
  write("GET", Repeats::freely);
  kept.feed("ok");
  read();
  write("GET", Repeats::freely);
  got.reset();
  kept.end();
  EXPECT_EQ(got, egress::ended);
  EXPECT_EQ(made, 0);
}

TEST_F(ReusedOriginTest, AsksAgainWhereTheKeptOneEnds) {
  read();
  write("GET", Repeats::freely);
  EXPECT_EQ(sent, 3);
  kept.end();
  EXPECT_EQ(another.written(), "GET");
  EXPECT_FALSE(got.has_value());
  another.feed("ok");
  EXPECT_EQ(heard, "ok");
}

TEST_F(ReusedOriginTest, AsksAgainOnce) {
  read();
  write("GET", Repeats::freely);
  kept.end();
  another.end();
  EXPECT_EQ(got, egress::ended);
  EXPECT_EQ(made, 1);
}

TEST_F(ReusedOriginTest, WhatChangesSomethingIsSentOnceAndElsewhere) {
  read();
  write("POST", Repeats::never);
  EXPECT_EQ(kept.written(), "");
  EXPECT_EQ(another.written(), "POST");
  EXPECT_EQ(sent, 4);
  kept.end();
  EXPECT_EQ(another.written(), "POST");
  another.feed("ok");
  EXPECT_EQ(heard, "ok");
}

TEST_F(ReusedOriginTest, AnEndBeforeTheRequestIsNotTheClients) {
  read();
  kept.end();
  EXPECT_FALSE(got.has_value());
  write("GET", Repeats::freely);
  EXPECT_EQ(kept.written(), "");
  EXPECT_EQ(another.written(), "GET");
}

TEST_F(ReusedOriginTest, WhatComesBeforeTheRequestIsNotTheAnswer) {
  read();
  kept.feed("forged");
  EXPECT_FALSE(got.has_value());
  write("GET", Repeats::freely);
  EXPECT_EQ(kept.written(), "");
  another.feed("ok");
  EXPECT_EQ(heard, "ok");
}

TEST_F(ReusedOriginTest, LooksOnceMoreBeforeItAsks) {
  is_silent = false;
  write("GET", Repeats::freely);
  EXPECT_EQ(kept.written(), "");
  EXPECT_EQ(another.written(), "GET");
}

TEST_F(ReusedOriginTest, FailsWhereThereIsNoOther) {
  has_another = false;
  read();
  write("POST", Repeats::never);
  EXPECT_EQ(sent, failed);
  EXPECT_EQ(got, failed);
}

TEST_F(ReusedOriginTest, FailsWhereThereIsNoOtherToAskAgain) {
  has_another = false;
  read();
  write("GET", Repeats::freely);
  kept.end();
  EXPECT_EQ(got, failed);
}

TEST_F(ReusedOriginTest, IsTakenAwayWhileItWaitsForARequest) {
  read();
  kept.end();
  origin.leave();
  EXPECT_EQ(got, taken_away);
}

TEST_F(ReusedOriginTest, IsCancelledWhateverItWaitsFor) {
  read();
  origin.cancel();
  EXPECT_EQ(got, taken_away);
}

}  // namespace
}  // namespace capgate::seal
