// Providers whose files or programs somebody else could have put there, and programs that must not
// outlive whoever started them.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>

#include "base/format.h"
#include "secrets/provider_lab.h"
#include "secrets/renewal.h"

namespace capgate::secrets {
namespace {

class ProviderAttack : public ProviderTest {
 protected:
  // A FIFO through which a program tells its process id.
  void SetUp() override {
    ProviderTest::SetUp();
    ASSERT_EQ(::mkfifo(path("id").c_str(), 0600), 0);
    ids_ = sys::Fd(::open(path("id").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_GE(ids_.get(), 0);
  }
  [[nodiscard]] sys::Fd told_process() const {
    pollfd poll{ids_.get(), POLLIN, 0};
    char text[32] = {};
    if (::poll(&poll, 1, 20'000) != 1 || ::read(ids_.get(), text, sizeof(text) - 1) <= 0) return {};
    return sys::Fd(static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(text), 0)));
  }
  // By itself; one that does not is killed, so that nothing is left behind.
  static bool ends(const sys::Fd& process) {
    pollfd poll{process.get(), POLLIN, 0};
    if (::poll(&poll, 1, 20'000) == 1) return true;
    (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    return false;
  }
  // Runs `body` in a child, which then waits, until `look` returns; then kills the child.
  template <typename Body, typename Look>
  static void with_child(const Body& body, const Look& look) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      body();
      for (;;) ::pause();
    }
    look(child);
    (void)::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
  static void kill_and_wait(pid_t child) {
    (void)::kill(child, SIGKILL);
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  }

  sys::Fd ids_;
};

TEST_F(ProviderAttack, ACredentialThatItsGroupCanWriteIsRefused) {
  environment_.push_back("CREDENTIALS_DIRECTORY=" + directory_);
  (void)file("shared", "value", 0460);
  EXPECT_TRUE(refusal("systemd-credential:shared").contains("others than the owner"));
}

TEST_F(ProviderAttack, CredentialsAreNotReadBelowTheCurrentDirectory) {
  environment_.emplace_back("CREDENTIALS_DIRECTORY=.");
  EXPECT_TRUE(refusal("systemd-credential:github").contains("CREDENTIALS_DIRECTORY"));
}

TEST_F(ProviderAttack, NamesAreNoHiddenFiles) {
  EXPECT_FALSE(parse_binding("T=store:.hidden"));
  EXPECT_FALSE(parse_binding("T=systemd-credential:.hidden"));
  EXPECT_TRUE(parse_binding("T=store:hidden"));
}

// A file name would end there.
TEST_F(ProviderAttack, ReferencesHoldNoNul) {
  EXPECT_FALSE(parse_binding(std::string_view("T=file:/a\0/b", 12)));
  EXPECT_TRUE(parse_binding("T=file:/a/b"));
}

// What lies in the current directory is not run, even if PATH says so.
TEST_F(ProviderAttack, ProgramsAreNotFoundInTheCurrentDirectory) {
  (void)script("provide-token", "echo a-value\n");
  environment_[0] = "PATH=" + directory_;
  ASSERT_TRUE(resolved("cmd:provide-token"));
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  for (const char* list : {"PATH=.:/nowhere", "PATH=:/nowhere", "PATH=/nowhere:"}) {
    environment_[0] = list;
    EXPECT_TRUE(refusal("cmd:provide-token").contains("cannot be run")) << list;
  }
  std::filesystem::current_path(before);
}

TEST_F(ProviderAttack, ACommandDoesNotOutliveWhoeverRunsIt) {
  const std::string program =
      script("endless", format("echo $$ > {}\nexec sleep 1000\n", path("id")));
  with_child([&] { (void)resolved("cmd:" + program); },
             [&](pid_t child) {
               const sys::Fd command = told_process();
               ASSERT_GE(command.get(), 0);
               kill_and_wait(child);
               EXPECT_TRUE(ends(command));
             });
}

// Also where another process still has the channel open, as the broker has.
TEST_F(ProviderAttack, ARenewerDoesNotOutliveItsSupervisor) {
  const std::vector<Binding> bindings = {*parse_binding("TOKEN=cmd?ttl=600:echo value-of-token")};
  int held[2];
  ASSERT_EQ(::pipe2(held, O_CLOEXEC), 0);
  const sys::Fd ended(held[0]);
  sys::Fd ends_holder(held[1]);
  with_child(
      [&] {
        auto started = start_renewer(bindings, context());
        if (!started) ::_exit(1);
        const auto info =
            sys::read_file(format("/proc/self/fdinfo/{}", started->process.get()), 4096);
        const pid_t renewer = std::stoi(info->substr(info->find("Pid:") + 4));
        if (::fork() == 0) {
          // Holds the channel until the test closes the pipe.
          ends_holder = sys::Fd();
          char byte = 0;
          (void)!::read(ended.get(), &byte, 1);
          ::_exit(0);
        }
        if (!sys::write_all(ids_.get(), format("{}\n", renewer))) ::_exit(1);
      },
      [&](pid_t child) {
        const sys::Fd renewer = told_process();
        ASSERT_GE(renewer.get(), 0);
        kill_and_wait(child);
        EXPECT_TRUE(ends(renewer));
      });
  ends_holder = sys::Fd();
}

}  // namespace
}  // namespace capgate::secrets
