#include "secrets/handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace capgate::secrets {
namespace {

Handed handed(std::string name, std::string_view value, std::int64_t expires = 0) {
  return {.name = std::move(name), .value = *Secret::make(value), .expires = expires};
}

std::expected<std::vector<Handed>, std::string> read_bytes(std::string_view bytes) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const sys::Fd reader(ends[0]);
  sys::Fd writer(ends[1]);
  EXPECT_EQ(::write(writer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  writer = sys::Fd();
  return read_handover(reader);
}

TEST(Handover, ArrivesAsItWasSent) {
  std::vector<Handed> list;
  list.push_back(handed("TOKEN", "value-of-token", 1'800'000'000));
  list.push_back(handed("ca.key", std::string_view("\0\x01\n", 3)));
  const auto reader = write_handover(list);
  ASSERT_TRUE(reader) << reader.error();
  const auto back = read_handover(*reader);
  ASSERT_TRUE(back) << back.error();
  ASSERT_EQ(back->size(), 2U);
  EXPECT_EQ((*back)[0].name, "TOKEN");
  EXPECT_EQ((*back)[0].value.view(), "value-of-token");
  EXPECT_EQ((*back)[0].expires, 1'800'000'000);
  EXPECT_EQ((*back)[1].value.view(), std::string_view("\0\x01\n", 3));
}

TEST(Handover, NothingIsAHandoverToo) {
  const auto reader = write_handover({});
  ASSERT_TRUE(reader);
  const auto back = read_handover(*reader);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->empty());
}

TEST(Handover, TheLargestFitsWithoutAReader) {
  std::vector<Handed> list;
  list.push_back(handed("A", std::string(most_handed_bytes - 25, 'a')));
  const auto reader = write_handover(list);
  ASSERT_TRUE(reader) << reader.error();
  const auto back = read_handover(*reader);
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(back->front().value.view().size(), most_handed_bytes - 25);
}

TEST(Handover, WhatDoesNotFitIsRefusedWithoutAByteOfIt) {
  std::vector<Handed> list;
  list.push_back(handed("A", std::string(most_handed_bytes, 'q')));
  const auto reader = write_handover(list);
  ASSERT_FALSE(reader);
  EXPECT_FALSE(reader.error().contains("qq"));
}

// Each cut of a whole one is refused, never read beyond its end.
TEST(Handover, APartIsRefused) {
  std::vector<Handed> list;
  list.push_back(handed("TOKEN", "value"));
  const auto reader = write_handover(list);
  ASSERT_TRUE(reader);
  char bytes[256];
  const ssize_t size = ::read(reader->get(), bytes, sizeof(bytes));
  ASSERT_GT(size, 0);
  const std::string_view whole(bytes, static_cast<std::size_t>(size));
  EXPECT_TRUE(read_bytes(whole));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(read_bytes(whole.substr(0, cut))) << cut;
  }
  EXPECT_FALSE(read_bytes(std::string(whole) + "x"));
}

TEST(Handover, AnotherVersionIsRefused) {
  std::vector<Handed> list;
  list.push_back(handed("TOKEN", "value"));
  const auto reader = write_handover(list);
  ASSERT_TRUE(reader);
  std::string bytes(256, '\0');
  const ssize_t size = ::read(reader->get(), bytes.data(), bytes.size());
  ASSERT_GT(size, 0);
  bytes.resize(static_cast<std::size_t>(size));
  ASSERT_TRUE(read_bytes(bytes));
  ++bytes.front();
  EXPECT_FALSE(read_bytes(bytes));
}

RC_GTEST_PROP(Handover, ForeignBytesAreRefused, (const std::string& bytes)) {
  RC_PRE(bytes.size() < 4096);
  RC_ASSERT(!read_bytes(bytes));
}

}  // namespace
}  // namespace capgate::secrets
