#include "sandbox/dbus_wire.h"

#include <gtest/gtest.h>

namespace capgate::sandbox {
namespace {

using namespace std::string_view_literals;

// A reply of dbus-daemon, as it was on the wire: Hello's, with the name of the connection.
constexpr auto hello_reply =
    "l\x02\x01\x01\x09\x00\x00\x00\x01\x00\x00\x00\x3d\x00\x00\x00"
    "\x06\x01s\x00\x04\x00\x00\x00:1.0\x00\x00\x00\x00"
    "\x05\x01u\x00\x01\x00\x00\x00"
    "\x08\x01g\x00\x01s\x00\x00"
    "\x07\x01s\x00\x14\x00\x00\x00org.freedesktop.DBus\x00\x00\x00\x00"
    "\x04\x00\x00\x00:1.0\x00"sv;

TEST(DbusWire, ACallIsWhatTheSpecificationSays) {
  DbusWriter body;
  body.uint32(7);
  const std::string call = encode({.destination = "a.b",
                                   .path = "/a",
                                   .interface = "a.c",
                                   .member = "M",
                                   .signature = "u",
                                   .body = body.bytes(),
                                   .serial = 2});
  EXPECT_EQ(call,
            "l\x01\x00\x01\x04\x00\x00\x00\x02\x00\x00\x00\x47\x00\x00\x00"
            "\x01\x01o\x00\x02\x00\x00\x00/a\x00\x00\x00\x00\x00\x00"
            "\x02\x01s\x00\x03\x00\x00\x00"
            "a.c\x00\x00\x00\x00\x00"
            "\x03\x01s\x00\x01\x00\x00\x00M\x00\x00\x00\x00\x00\x00\x00"
            "\x06\x01s\x00\x03\x00\x00\x00"
            "a.b\x00\x00\x00\x00\x00"
            "\x08\x01g\x00\x01u\x00\x00"
            "\x07\x00\x00\x00"sv);
}

TEST(DbusWire, ArraysDoNotCountThePaddingBeforeTheirFirstMember) {
  DbusWriter out;
  const auto outer = out.begin_array(8);
  out.structure().string("PIDs").signature("au");
  const auto inner = out.begin_array(4);
  out.uint32(9).end_array(inner).end_array(outer);
  EXPECT_EQ(out.bytes(),
            "\x18\x00\x00\x00\x00\x00\x00\x00"
            "\x04\x00\x00\x00PIDs\x00\x02"
            "au\x00\x00\x00\x00"
            "\x04\x00\x00\x00\x09\x00\x00\x00"sv);
}

TEST(DbusWire, AReplyIsRead) {
  const auto read = decode(hello_reply);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size, hello_reply.size());
  EXPECT_EQ(read->message.type, DbusMessage::Type::reply);
  EXPECT_EQ(read->message.reply_to, 1U);
  EXPECT_EQ(read->message.signature, "s");
  EXPECT_EQ(DbusReader(read->message.body).string(), ":1.0");
}

TEST(DbusWire, EveryPrefixIsIncompleteAndWhatFollowsIsLeft) {
  for (std::size_t size = 0; size < hello_reply.size(); ++size) {
    const auto read = decode(hello_reply.substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error(), DbusFault::incomplete) << size;
  }
  const auto read = decode(std::string(hello_reply) + "l\x02");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size, hello_reply.size());
}

// No byte of a message, whatever it is, leads the reader out of it.
TEST(DbusWire, AnyChangedByteIsReadOrRefused) {
  for (std::size_t at = 0; at < hello_reply.size(); ++at) {
    for (const int value : {0, 1, 8, 0x7f, 0x80, 0xff}) {
      std::string changed(hello_reply);
      changed[at] = static_cast<char>(value);
      const auto read = decode(changed);
      if (!read) continue;
      EXPECT_LE(read->size, changed.size());
      (void)DbusReader(read->message.body).string();
    }
  }
}

TEST(DbusWire, LargeMessagesAndTheOtherByteOrderAreRefused) {
  std::string large(hello_reply);
  large[7] = 1;
  EXPECT_EQ(decode(large).error(), DbusFault::malformed);
  std::string other(hello_reply);
  other[0] = 'B';
  EXPECT_EQ(decode(other).error(), DbusFault::malformed);
}

}  // namespace
}  // namespace capgate::sandbox
