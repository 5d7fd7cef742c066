#include "seal/signal.h"

#include <gtest/gtest.h>

#include "egress/task.h"

namespace capgate::seal {
namespace {

egress::Task count_until(Signal& signal, int most, int& count) {
  while (count < most) {
    co_await signal;
    ++count;
  }
}

TEST(SignalTest, WakesWhoWaitsWithinTheCall) {
  Signal signal;
  int count = 0;
  count_until(signal, 2, count);
  EXPECT_EQ(count, 0);
  signal.notify();
  EXPECT_EQ(count, 1);
  signal.notify();
  EXPECT_EQ(count, 2);
}

TEST(SignalTest, WhatIsToldEarlyIsKeptOnce) {
  Signal signal;
  signal.notify();
  signal.notify();
  int count = 0;
  count_until(signal, 2, count);
  EXPECT_EQ(count, 1);
  signal.notify();
  EXPECT_EQ(count, 2);
}

egress::Task answer(Signal& question, Signal& reply, int& rounds) {
  for (;;) {
    co_await question;
    if (++rounds == 3) co_return;
    reply.notify();
  }
}

egress::Task ask(Signal& question, Signal& reply) {
  for (int i = 0; i < 3; ++i) {
    question.notify();  // is answered within this call, so the reply is kept
    if (i < 2) co_await reply;
  }
}

TEST(SignalTest, TwoThatWakeEachOtherDoNotNest) {
  Signal question;
  Signal reply;
  int rounds = 0;
  answer(question, reply, rounds);
  ask(question, reply);
  EXPECT_EQ(rounds, 3);
}

}  // namespace
}  // namespace capgate::seal
