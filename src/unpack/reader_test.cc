// What capgate-unpack is started with, and what is left to it. A shell stands in its place and runs
// the "bundle".
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "unpack/bundle.h"
#include "unpack/confine.h"

namespace capgate::unpack {
namespace {

// What the script prints.
std::string output_of(std::string_view script) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const sys::Fd bundle(ends[0]);
  {
    const sys::Fd writer(ends[1]);
    const std::string text = "echo -n m; PATH=/usr/bin:/bin; " + std::string(script);
    EXPECT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  const sys::Fd shell(::open("/bin/sh", O_PATH | O_CLOEXEC));
  const auto found = read_bundle({.bundle = bundle, .program = shell});
  return found ? found->manifest : found.error().message;
}

TEST(Reader, HasTheBundleAndTheAnswerAndNothingElse) {
  const sys::Fd inherited(::dup(STDERR_FILENO));  // not closed on exec
  ASSERT_EQ(::fcntl(inherited.get(), F_GETFD), 0);
  EXPECT_EQ(output_of("exec ls /proc/self/fd"), "0\n1\n2\n3\n");
}

TEST(Reader, WritesNowhereButToTheAnswer) {
  EXPECT_EQ(output_of("exec readlink /proc/self/fd/2"), "/dev/null\n");
}

TEST(Reader, HasNoneOfTheVariables) {
  ASSERT_EQ(::setenv("CAPGATE_TEST_SECRET", "value", 1), 0);
  const std::string found = output_of("exec env");
  ASSERT_EQ(::unsetenv("CAPGATE_TEST_SECRET"), 0);
  EXPECT_EQ(found.find("CAPGATE_TEST_SECRET"), std::string::npos) << found;
}

TEST(Reader, HasASessionOfItsOwnAndNoDirectoryOfTheCaller) {
  EXPECT_EQ(output_of("read -r pid name state parent group session rest </proc/$$/stat; "
                      "[ \"$session\" = $$ ] && pwd"),
            "/\n");
}

// Part of an answer is no answer.
TEST(Reader, IsNotBelievedWhenItFailsAfterItsAnswer) {
  EXPECT_EQ(output_of("echo '{}'; exit 1"), "capgate-unpack ended with status 1");
  EXPECT_EQ(output_of("echo '{}'; kill -9 $$"),
            "cannot be read: the reader was stopped by signal 9");
}

// A child that is confined and waits, as its parent finds it in /proc.
class Waiting {
 public:
  Waiting() {
    int ready[2];
    int done[2];
    if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      ::close(done[1]);
      become_ordinary();
      if (!confine().empty()) (void)::syscall(SYS_exit_group, 1);
      char byte = 0;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(done[0], &byte, 1);
      (void)::syscall(SYS_exit_group, 0);
    }
    ::close(ready[1]);
    ::close(done[0]);
    done_ = done[1];
    char byte = 1;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    ::close(done_);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

  [[nodiscard]] std::string path(const char* name) const {
    return "/proc/" + std::to_string(pid_) + "/" + name;
  }
  [[nodiscard]] std::string field(const char* file, std::string_view name) const {
    std::ifstream in(path(file));
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(name)) continue;
      std::istringstream words(line.substr(name.size()));
      std::string first;
      std::string second;
      words >> first >> second;
      return second.empty() ? first : first + " " + second;
    }
    return "no such field";
  }

 private:
  // The files of root's processes are root's in any case, and a change of ids hides memory, too.
  static void become_ordinary() {
    constexpr uid_t ordinary = 12345;
    if (::getuid() == 0 && ::syscall(SYS_setresuid, ordinary, ordinary, ordinary) != 0) {
      (void)::syscall(SYS_exit_group, 1);
    }
    if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) (void)::syscall(SYS_exit_group, 1);
  }

  pid_t pid_ = -1;
  int done_ = -1;
};

TEST(Confine, ResourcesAreFew) {
  const Waiting child;
  EXPECT_EQ(child.field("limits", "Max core file size"), "0 0");
  EXPECT_EQ(child.field("limits", "Max file size"), "0 0");
  EXPECT_EQ(child.field("limits", "Max processes"), "0 0");
  EXPECT_EQ(child.field("limits", "Max open files"), "0 0");
  EXPECT_EQ(child.field("limits", "Max cpu time"), "10 10");
}

TEST(Confine, MemoryIsClosedToProcessesOfTheSameUser) {
  const Waiting child;
  struct stat info{};
  ASSERT_EQ(::stat(child.path("mem").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
}

TEST(Confine, GainsNoPrivileges) {
  const Waiting child;
  EXPECT_EQ(child.field("status", "NoNewPrivs:"), "1");
}

}  // namespace
}  // namespace capgate::unpack
