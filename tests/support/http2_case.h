// What every test of the HTTP/2 relay begins and ends with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/http2_lab.h"

namespace capgate::support {

inline const Pairs plain_ok{{":status", "200"}};

// So that a byte in the wrong place is seen.
[[nodiscard]] inline std::string pattern(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 31 + (i >> 8U));
  return out;
}

class Http2Case : public testing::Test {
 protected:
  void TearDown() override {
    lab.finish();
    ASSERT_TRUE(lab.end || !is_started) << "a coroutine is left";
    EXPECT_LE(lab.client_side.most_writers, 1);
    EXPECT_LE(lab.origin_side.most_writers, 1);
    EXPECT_EQ(lab.client_side.readers + lab.client_side.writers, 0);
    EXPECT_EQ(lab.origin_side.readers + lab.origin_side.writers, 0);
  }
  void start() {
    is_started = true;
    lab.start();
    lab.pump();
  }
  Http2Lab::Ids get(std::string_view path) { return lab.ask(head_of("GET", path)); }
  Http2Lab::Ids post(std::string_view path, Said said = {.is_whole = false}) {
    return lab.ask(head_of("POST", path), std::move(said));
  }
  void respond(Http2Lab::Ids ids, const Pairs& head = plain_ok) {
    lab.origin->respond(ids.origin, head);
    lab.pump();
  }
  void respond(Http2Lab::Ids ids, const Pairs& head, Said said) {
    lab.origin->respond(ids.origin, head, std::move(said));
    lab.pump();
  }

  Http2Lab lab;
  bool is_started = false;
};

}  // namespace capgate::support
