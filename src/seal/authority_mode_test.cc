#include "seal/authority_mode.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seal/authority.h"
#include "secrets/handover.h"
#include "sys/file.h"

namespace capgate::seal {
namespace {

sys::Fd memory_file(std::string_view contents) {
  sys::Fd file(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_TRUE(sys::write_all(file.get(), contents));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

std::string contents_of(const sys::Fd& file) {
  std::string out(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(file.get(), out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  return out;
}

struct Made {
  int status = -1;
  std::string bundle;
  std::string key_store;
  std::vector<secrets::Handed> handed;
  std::string complaint;
};

// In a child: it takes over descriptors and makes its process one that cannot be looked at.
Made run_with(std::string_view host_bundle, std::vector<std::string> names) {
  const sys::Fd input = memory_file(host_bundle);
  const sys::Fd bundle = memory_file("");
  const sys::Fd key_store = memory_file("");
  const sys::Fd errors = memory_file("");
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const sys::Fd reader(ends[0]);
  sys::Fd writer(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    constexpr int above = 100;
    const int from[] = {input.get(), writer.get(), errors.get(), bundle.get(), key_store.get()};
    for (int i = 0; i < 5; ++i) ::dup2(from[i], above + i);
    for (int i = 0; i < 5; ++i) ::dup2(above + i, i);
    std::vector<char*> arguments;
    for (std::string& name : names) arguments.push_back(name.data());
    ::_exit(run_authority(arguments));
  }
  writer = sys::Fd();
  Made out;
  auto handed = secrets::read_handover(reader);
  EXPECT_EQ(::waitpid(pid, &out.status, 0), pid);
  out.bundle = contents_of(bundle);
  out.key_store = contents_of(key_store);
  out.complaint = contents_of(errors);
  if (handed) out.handed = *std::move(handed);
  return out;
}

TEST(AuthorityMode, MakesTheKeyTheBundleAndTheKeyStore) {
  const auto host = make_authority(std::vector<std::string>{"host.example"});
  std::string host_bundle = "# of the host\n" + host->anchor_pem();
  host_bundle.pop_back();  // no newline at its end
  const Made made = run_with(host_bundle, {"api.github.com", "localhost"});
  ASSERT_EQ(made.status, 0) << made.complaint;

  ASSERT_EQ(made.handed.size(), 2U);
  EXPECT_EQ(made.handed[0].name, secrets::authority_key);
  EXPECT_EQ(made.handed[1].name, secrets::authority_certificate);
  auto authority = read_authority(made.handed[0].value.view(), made.handed[1].value.view());
  ASSERT_TRUE(authority) << authority.error();
  EXPECT_TRUE(authority->issue("localhost"));
  EXPECT_FALSE(authority->issue("host.example"));

  EXPECT_TRUE(made.bundle.starts_with(host_bundle + "\n"));
  const auto roots = read_pem_bundle(made.bundle);
  ASSERT_EQ(roots.size(), 2U);
  EXPECT_EQ(roots[0], host->anchor_der());
  EXPECT_EQ(made.key_store, *write_jks(roots));
  // The key stands nowhere but in the pipe.
  for (const std::string& text : {made.bundle, made.key_store, made.complaint}) {
    EXPECT_FALSE(text.contains(made.handed[0].value.view().substr(40, 32)));
    EXPECT_FALSE(text.contains("PRIVATE"));
  }
}

TEST(AuthorityMode, WorksOnAHostWithoutCertificates) {
  const Made made = run_with("", {"localhost"});
  EXPECT_EQ(made.status, 0) << made.complaint;
  EXPECT_EQ(read_pem_bundle(made.bundle).size(), 1U);
}

TEST(AuthorityMode, SaysWhatIsWrong) {
  const Made made = run_with("", {"*.example.org"});
  EXPECT_EQ(WEXITSTATUS(made.status), 1);
  EXPECT_EQ(made.complaint,
            "capgate-broker-tls: *.example.org is no name that a certificate can be for\n");
  EXPECT_TRUE(made.handed.empty());
  EXPECT_EQ(WEXITSTATUS(run_with("", {}).status), 1);
}

// Before anything is read or made: a key that is in memory later is hidden from the start.
TEST(AuthorityMode, HidesItsMemory) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDIN_FILENO, STDERR_FILENO}) ::dup2(null, fd);
    const bool was_hidden = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
    (void)run_authority({});
    rlimit cores{};
    const bool is_hidden = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 &&
                           ::getrlimit(RLIMIT_CORE, &cores) == 0 && cores.rlim_max == 0;
    ::_exit(!was_hidden && is_hidden ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace capgate::seal
