#include "sandbox/systemd_scope.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "sandbox/dbus_wire.h"
#include "sys/fd.h"

namespace capgate::sandbox {
namespace {

using namespace std::chrono_literals;

// The end of a job of the unit that was asked for, as systemd tells it.
std::string job_removed(std::string_view heard, std::string_view result) {
  const std::size_t at = heard.find("run-capgate-");
  if (at == std::string_view::npos) return {};
  DbusWriter body;
  body.uint32(7).string("/org/freedesktop/systemd1/job/7");
  body.string(heard.substr(at, heard.find('\0', at) - at)).string(result);
  DbusWriter out;
  out.byte('l').byte(4).byte(1).byte(1).uint32(static_cast<std::uint32_t>(body.bytes().size()));
  out.uint32(9);
  const auto fields = out.begin_array(8);
  out.structure().byte(3).signature("s").string("JobRemoved");
  out.structure().byte(8).signature("g").signature("uoss");
  out.end_array(fields).align(8);
  return out.bytes() + body.bytes();
}

// A bus that says what a test wants. Each entry is said once something has been heard; "job RESULT"
// is the end of the job.
class FakeBus {
 public:
  explicit FakeBus(std::vector<std::string> words) {
    char place[] = "/tmp/capgate-bus-XXXXXX";
    directory_ = ::mkdtemp(place);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().data(), path().size());
    listener_ = sys::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this, words = std::move(words)] { serve(words); });
  }
  FakeBus(const FakeBus&) = delete;
  FakeBus& operator=(const FakeBus&) = delete;
  FakeBus(FakeBus&&) = delete;
  FakeBus& operator=(FakeBus&&) = delete;
  ~FakeBus() {
    thread_.join();
    ::unlink(path().c_str());
    ::rmdir(directory_.c_str());
  }

  [[nodiscard]] std::string path() const { return directory_ + "/bus"; }

 private:
  void serve(const std::vector<std::string>& words) const {
    const sys::Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char heard[8192];
    for (const std::string& word : words) {
      const ssize_t size = ::recv(client.get(), heard, sizeof(heard), 0);
      if (size <= 0) return;
      const std::string said =
          word.starts_with("job ")
              ? job_removed({heard, static_cast<std::size_t>(size)}, word.substr(4))
              : word;
      (void)::send(client.get(), said.data(), said.size(), MSG_NOSIGNAL);
    }
    while (::recv(client.get(), heard, sizeof(heard), 0) > 0) {
    }
  }

  std::string directory_;
  sys::Fd listener_;
  std::thread thread_;
};

std::string failure(const std::vector<std::string>& words) {
  const FakeBus bus(words);
  const auto joined = join_systemd_scope(bus.path(), 200ms);
  return joined ? "joined " + *joined : joined.error();
}

std::string error_message() {
  DbusWriter out;
  out.byte('l').byte(3).byte(1).byte(1).uint32(0).uint32(1);
  const auto fields = out.begin_array(8);
  out.structure().byte(4).signature("s").string("org.freedesktop.DBus.Error.ServiceUnknown");
  out.structure().byte(5).signature("u").uint32(2);
  out.end_array(fields).align(8);
  return out.bytes();
}

TEST(BusPath, IsThatOfAUnixSocketWithAPath) {
  EXPECT_EQ(bus_path("unix:path=/run/user/1000/bus"), "/run/user/1000/bus");
  EXPECT_EQ(bus_path("unix:path=/run/user/1000/bus,guid=12"), "/run/user/1000/bus");
  EXPECT_EQ(bus_path("tcp:host=h,port=1;unix:guid=1,path=/b"), "/b");
  EXPECT_EQ(bus_path("unix:abstract=/tmp/x"), std::nullopt);
  EXPECT_EQ(bus_path("autolaunch:"), std::nullopt);
  EXPECT_EQ(bus_path("unix:path=/a%20b"), std::nullopt);
  EXPECT_EQ(bus_path(""), std::nullopt);
}

TEST(SystemdScope, WithoutABusTheAnswerIsImmediate) {
  const auto start = std::chrono::steady_clock::now();
  const auto joined = join_systemd_scope("/nowhere/bus", 10s);
  ASSERT_FALSE(joined);
  EXPECT_TRUE(joined.error().contains("cannot be reached")) << joined.error();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
}

// At each point of the conversation.
TEST(SystemdScope, ABusThatHangsIsGivenUp) {
  const std::string late = "the session bus did not answer in time";
  EXPECT_EQ(failure({}), late);
  EXPECT_EQ(failure({"OK 12"}), late);
  EXPECT_EQ(failure({"OK 1234\r\n"}), late);
  EXPECT_EQ(failure({"OK 1234\r\n", "l\x02\x01"}), late);
}

TEST(SystemdScope, ABusThatRefusesOrLiesIsNotBelieved) {
  EXPECT_EQ(failure({"REJECTED EXTERNAL\r\n"}), "the session bus refuses this user");
  EXPECT_EQ(failure({"OK 1\r\n", std::string(64, 'x')}),
            "the session bus does not follow its protocol");
  EXPECT_EQ(failure({"OK 1\r\n", error_message()}),
            "systemd gives no scope: org.freedesktop.DBus.Error.ServiceUnknown");
  EXPECT_EQ(failure({"OK 1\r\n", "job failed"}), "systemd could not start the scope: failed");
  // The kernel is asked whether it is true.
  EXPECT_EQ(failure({"OK 1\r\n", "job done"}), "systemd moved nothing into the scope");
}

}  // namespace
}  // namespace capgate::sandbox
