// Whether an address is one of this host's own. An answer that cannot be had, or not be read,
// counts as yes: otherwise a server could reach the host's own services.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "egress/address.h"
#include "sys/fd.h"

namespace capgate::egress {
namespace {

constexpr std::uint8_t loopback[] = {127, 0, 0, 1};
constexpr std::uint8_t elsewhere[] = {192, 0, 2, 1};  // for documentation: nobody has it

constexpr std::chrono::steady_clock::time_point now{std::chrono::hours(1)};

TEST(OwnAddresses, AsksTheKernel) {
  OwnAddresses own;
  EXPECT_TRUE(own.contains(Address::of_ipv4(loopback), now));
  EXPECT_FALSE(own.contains(Address::of_ipv4(elsewhere), now));
}

// In the place of the kernel: the next descriptor is the one that OwnAddresses asks with.
class Kernel {
 public:
  Kernel() {
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    own_ = std::make_unique<OwnAddresses>();
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
    other_ = sys::Fd(pair[1]);
    if (::dup3(pair[0], next, O_CLOEXEC) != next) std::abort();
    ::close(pair[0]);
  }

  // The kernel's answer to the first question.
  template <typename Body>
  void answer(std::uint16_t type, const Body& body, std::uint32_t sequence = 1) {
    struct {
      nlmsghdr head;
      Body body;
      char rest[64];
    } message{.head = {.nlmsg_len = sizeof(message), .nlmsg_type = type, .nlmsg_seq = sequence},
              .body = body,
              .rest = {}};
    send({reinterpret_cast<const char*>(&message), sizeof(message)});
  }
  void send(std::string_view bytes) {
    EXPECT_EQ(::send(other_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  void goes_away() { other_ = sys::Fd(); }

  [[nodiscard]] bool is_own(std::chrono::milliseconds later = {}) {
    return own_->contains(Address::of_ipv4(elsewhere), now + later);
  }

 private:
  std::unique_ptr<OwnAddresses> own_;
  sys::Fd other_;
};

constexpr rtmsg to_others{.rtm_family = AF_INET, .rtm_type = RTN_UNICAST};
constexpr rtmsg to_us{.rtm_family = AF_INET, .rtm_type = RTN_LOCAL};

TEST(OwnAddresses, ReadsTheKindOfTheRoute) {
  Kernel others;
  others.answer(RTM_NEWROUTE, to_others);
  EXPECT_FALSE(others.is_own());
  Kernel us;
  us.answer(RTM_NEWROUTE, to_us);
  EXPECT_TRUE(us.is_own());
}

TEST(OwnAddresses, WithoutARouteItIsNotOurs) {
  for (const int error : {ENETUNREACH, EHOSTUNREACH, ESRCH}) {
    Kernel kernel;
    kernel.answer(NLMSG_ERROR, nlmsgerr{.error = -error});
    EXPECT_FALSE(kernel.is_own()) << error;
  }
}

TEST(OwnAddresses, AnyOtherErrorCountsAsOurs) {
  for (const int error : {EPERM, ENOBUFS, EINVAL, 0}) {
    Kernel kernel;
    kernel.answer(NLMSG_ERROR, nlmsgerr{.error = -error});
    EXPECT_TRUE(kernel.is_own()) << error;
  }
}

TEST(OwnAddresses, AnAnswerToAnotherQuestionCountsAsOurs) {
  Kernel kernel;
  kernel.answer(RTM_NEWROUTE, to_others, 2);
  EXPECT_TRUE(kernel.is_own());
}

TEST(OwnAddresses, AShortAnswerCountsAsOurs) {
  for (const std::size_t size :
       {std::size_t{0}, sizeof(nlmsghdr), NLMSG_LENGTH(sizeof(rtmsg)) - 1}) {
    nlmsghdr head{.nlmsg_type = RTM_NEWROUTE, .nlmsg_seq = 1};
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
    bytes.resize(size);
    Kernel kernel;
    kernel.send(bytes);
    EXPECT_TRUE(kernel.is_own()) << size;
  }
}

TEST(OwnAddresses, WithoutAnAnswerItCountsAsOurs) {
  Kernel kernel;
  kernel.goes_away();
  EXPECT_TRUE(kernel.is_own());
}

TEST(OwnAddresses, AsksAgainAfterASecond) {
  Kernel kernel;
  kernel.answer(RTM_NEWROUTE, to_others, 1);
  EXPECT_FALSE(kernel.is_own());
  kernel.answer(RTM_NEWROUTE, to_us, 2);
  EXPECT_FALSE(kernel.is_own(std::chrono::milliseconds(999)));
  EXPECT_TRUE(kernel.is_own(std::chrono::milliseconds(1000)));
}

}  // namespace
}  // namespace capgate::egress
