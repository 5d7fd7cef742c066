// What must hold for every golden artifact, whatever the manifest: closed as printed, nothing of a
// glob or a control character in argv, and a filter that answers as its policy demands. The filter
// is taken from the reviewed file itself and evaluated without a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "core/syscalls.h"
#include "lower/bpf.h"
#include "support/base64.h"
#include "support/bpf_interpreter.h"
#include "support/files.h"
#include "text/json.h"

namespace capgate {
namespace {

namespace fs = std::filesystem;
using lower::bpf::answer_allow;
using lower::bpf::answer_errno;
using text::Value;

std::vector<fs::path> goldens(std::string_view file) {
  std::vector<fs::path> out;
  const fs::path root = support::source_directory();
  for (const auto& entry : fs::directory_iterator(root / "tests/golden")) {
    if (fs::exists(entry.path() / file)) out.push_back(fs::relative(entry.path() / file, root));
  }
  std::ranges::sort(out);
  return out;
}

text::Document read_document(const fs::path& path) {
  auto document = text::parse_json(support::read_text(path.string()));
  EXPECT_TRUE(document) << path;
  return *std::move(document);
}

std::vector<std::string> read_strings(Value list) {
  std::vector<std::string> out;
  for (const Value item : list.elements()) out.emplace_back(item.text());
  return out;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// The value that follows a word, or "".
std::string after(const std::vector<std::string>& words, std::string_view word) {
  const auto it = std::ranges::find(words, word);
  return it == words.end() || it + 1 == words.end() ? "" : *(it + 1);
}

std::vector<lower::BpfInstruction> decode(std::string_view base64) {
  const std::string bytes = test::decode_base64(base64);
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes.at(at)); };
  std::vector<lower::BpfInstruction> code;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    code.push_back({.code = static_cast<std::uint16_t>(byte(at) | (byte(at + 1) << 8)),
                    .jt = byte(at + 2),
                    .jf = byte(at + 3),
                    .k = byte(at + 4) | (std::uint32_t{byte(at + 5)} << 8) |
                         (std::uint32_t{byte(at + 6)} << 16) |
                         (std::uint32_t{byte(at + 7)} << 24)});
  }
  return code;
}

class Filter {
 public:
  explicit Filter(std::string_view base64) : code_(decode(base64)) {}
  [[nodiscard]] std::string defect() const { return test::find_defect(code_); }
  [[nodiscard]] std::uint32_t answer(std::string_view call,
                                     std::array<std::uint64_t, 6> args = {}) const {
    const auto id = core::find_syscall(call);
    EXPECT_TRUE(id) << call;
    const int number = lower::syscall_number(lower::Arch::x86_64, *id);
    return test::interpret(
        code_,
        {.nr = static_cast<std::uint32_t>(number), .arch = lower::bpf::audit_x86_64, .args = args});
  }
  [[nodiscard]] std::uint32_t foreign(std::uint32_t arch, std::uint32_t nr) const {
    return test::interpret(code_, {.nr = nr, .arch = arch});
  }

 private:
  std::vector<lower::BpfInstruction> code_;
};

constexpr std::uint32_t eperm = answer_errno | 1;
constexpr std::uint32_t enosys = answer_errno | 38;

// What every filter answers, whatever the policy is.
void expect_fixed_answers(const Filter& filter) {
  EXPECT_EQ(filter.defect(), "");
  for (const std::string_view call :
       {"read", "write", "mmap", "futex", "epoll_wait", "getrandom"}) {
    EXPECT_EQ(filter.answer(call), answer_allow) << call;
  }
  for (const std::string_view call :
       {"ptrace", "mount", "pivot_root", "bpf", "keyctl", "process_vm_readv", "setns", "kexec_load",
        "init_module", "open_by_handle_at", "perf_event_open", "userfaultfd"}) {
    EXPECT_NE(filter.answer(call), answer_allow) << call;
  }
  for (const std::string_view call : {"io_uring_setup", "clone3", "openat2"}) {
    EXPECT_EQ(filter.answer(call), enosys) << call;
  }
  EXPECT_EQ(filter.answer("fchmod", {3, 04755}), eperm);
  EXPECT_EQ(filter.answer("socket", {2, 1, 0}), answer_allow);   // AF_INET, SOCK_STREAM
  EXPECT_NE(filter.answer("socket", {17, 3, 0}), answer_allow);  // AF_PACKET, SOCK_RAW
  EXPECT_NE(filter.answer("socket", {40, 1, 0}), answer_allow);  // AF_VSOCK
  EXPECT_EQ(filter.foreign(0x40000003, 1), lower::bpf::answer_kill_process);  // i386
  EXPECT_EQ(filter.foreign(lower::bpf::audit_x86_64, 0x40000000), lower::bpf::answer_kill_process);
}

struct Needs {
  bool processes = false;
  bool nested = false;
  bool unix_sockets = false;
  bool netlink = false;
  bool memfd = false;  // only where no second exec can follow
  bool fixed_attributes = false;
};

// What depends on the policy.
void expect_policy_answers(const Filter& filter, const Needs& needs) {
  constexpr std::uint64_t thread_flags = 0x3d0f00;
  constexpr std::uint64_t new_user = 0x10000000;
  EXPECT_EQ(filter.answer("clone", {thread_flags}), answer_allow);
  EXPECT_EQ(filter.answer("clone", {17}), needs.processes ? answer_allow : eperm);
  EXPECT_EQ(filter.answer("fork"), needs.processes ? answer_allow : eperm);
  EXPECT_EQ(filter.answer("clone", {new_user | 17}) == answer_allow, needs.nested);
  EXPECT_EQ(filter.answer("unshare", {new_user}) == answer_allow, needs.nested);
  EXPECT_EQ(filter.answer("socket", {1, 1, 0}) == answer_allow, needs.unix_sockets);
  EXPECT_EQ(filter.answer("socket", {16, 3, 0}) == answer_allow, needs.netlink);
  EXPECT_EQ(filter.answer("memfd_create") == answer_allow, needs.memfd);
  EXPECT_EQ(filter.answer("fchmod", {3, 0755}), needs.fixed_attributes ? eperm : answer_allow);
}

bool flag(Value seccomp, std::string_view key) { return seccomp.find(key)->text() == "true"; }

TEST(GoldenArtifacts, EveryPlanFilterAnswersAsItsPolicyDemands) {
  for (const fs::path& path : goldens("plan.json")) {
    SCOPED_TRACE(path);
    const text::Document document = read_document(path);
    const Value seccomp = *document.root().find("plan")->find("seccomp");
    const Needs needs{.processes = flag(seccomp, "processes"),
                      .nested = flag(seccomp, "nestedSandbox"),
                      .unix_sockets = flag(seccomp, "unixSockets"),
                      .netlink = flag(seccomp, "netlinkRoute"),
                      .memfd = !flag(seccomp, "processes"),
                      .fixed_attributes = flag(seccomp, "fixedAttributes")};
    const Value plan = *document.root().find("plan");
    EXPECT_EQ(needs.processes, plan.find("programs")->count() > 0);
    const Filter filter(seccomp.find("base64")->text());
    expect_fixed_answers(filter);
    expect_policy_answers(filter, needs);
    // Without the launch's token no second exec succeeds, unless programs are declared.
    EXPECT_EQ(filter.answer("execve") == answer_allow, needs.processes);
  }
}

TEST(GoldenArtifacts, EveryBwrapFilterAnswersAsItsPolicyDemands) {
  for (const fs::path& path : goldens("bwrap.json")) {
    SCOPED_TRACE(path);
    const text::Document document = read_document(path);
    const text::Document plan = read_document(path.parent_path() / "plan.json");
    const Value seccomp = *plan.root().find("plan")->find("seccomp");
    const Value fd = *document.root().find("fds")->elements().begin();
    EXPECT_EQ(fd.find("purpose")->text(), "seccomp");
    const Filter filter(fd.find("base64")->text());
    expect_fixed_answers(filter);
    const bool processes = flag(seccomp, "processes");
    const bool unix_sockets = flag(seccomp, "unixSockets");
    // The forwarder is let more than the server, and takes that away before it starts it.
    const bool forwards = document.root().find("egress")->count() > 0;
    expect_policy_answers(filter, {.processes = processes || forwards,
                                   .nested = flag(seccomp, "nestedSandbox"),
                                   .unix_sockets = unix_sockets || forwards,
                                   .netlink = flag(seccomp, "netlinkRoute")});
    EXPECT_EQ(filter.answer("socket", {1, 2, 0}) == answer_allow, unix_sockets);  // SOCK_DGRAM
    EXPECT_EQ(filter.answer("execve"), answer_allow);  // bwrap's own last step
    const auto argv = read_strings(*document.root().find("argv"));
    EXPECT_EQ(has(argv, "/run/capgate/capgate-init"), forwards);
    EXPECT_EQ(has(argv, "--no-processes"), forwards && !processes);
    EXPECT_EQ(has(argv, "--unix-sockets"), forwards && unix_sockets);
  }
}

// D6: a glob must not reach argv; D8, D19: nothing that a consumer could take for syntax.
void expect_harmless_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_FALSE(word.contains('*')) << word;
    EXPECT_TRUE(std::ranges::none_of(word, is_control)) << word;
  }
}

TEST(GoldenArtifacts, EveryBwrapArgvIsClosedAsPrinted) {
  for (const fs::path& path : goldens("bwrap.json")) {
    SCOPED_TRACE(path);
    const text::Document document = read_document(path);
    const auto argv = read_strings(*document.root().find("argv"));
    expect_harmless_words(argv);
    for (const std::string_view word :
         {"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
          "--unshare-cgroup", "--as-pid-1", "--clearenv", "--new-session", "--die-with-parent"}) {
      EXPECT_TRUE(has(argv, word)) << word;  // D12, D13, D14
    }
    EXPECT_TRUE(std::ranges::none_of(argv, [](const std::string& word) {
      return word.starts_with("--unshare") && word.ends_with("-try");  // D16
    }));
    EXPECT_FALSE(has(argv, "--share-net"));
    EXPECT_EQ(after(argv, "--cap-drop"), "ALL");
    EXPECT_EQ(after(argv, "--uid"), "1000");
    EXPECT_EQ(after(argv, "--seccomp"), "3");
    EXPECT_EQ(argv.back(), "--");
    const auto plan = read_document(path.parent_path() / "plan.json");
    const Value seccomp = *plan.root().find("plan")->find("seccomp");
    EXPECT_EQ(has(argv, "--disable-userns"), !flag(seccomp, "nestedSandbox"));
  }
}

// The flags of docker and of podman, which differ in a few that close them further.
void expect_closed_container(const fs::path& path) {
  SCOPED_TRACE(path);
  const text::Document document = read_document(path);
  const auto argv = read_strings(*document.root().find("argv"));
  expect_harmless_words(argv);
  const bool forwards = document.root().find("egress")->count() > 0;
  EXPECT_EQ(has(argv, "--entrypoint"), forwards);
  EXPECT_EQ(document.root().find("commandPrefix").has_value(), forwards);
  EXPECT_EQ(after(argv, "--network"), "none");  // D17
  EXPECT_EQ(after(argv, "--cap-drop"), "ALL");
  EXPECT_EQ(after(argv, "--user"), "1000:1000");
  EXPECT_TRUE(after(argv, "--tmpfs").starts_with("/tmp:"));  // D18
  for (const std::string_view word : {"--read-only", "--pids-limit", "--memory", "--init", "-i",
                                      "no-new-privileges", "seccomp=/dev/fd/3"}) {
    EXPECT_TRUE(has(argv, word)) << word;
  }
  EXPECT_FALSE(has(argv, "--privileged"));
  EXPECT_FALSE(has(argv, "--volume"));  // makes a missing source on the host
}

TEST(GoldenArtifacts, EveryDockerArgvIsClosedAsPrinted) {
  for (const fs::path& path : goldens("docker.json")) expect_closed_container(path);
}

TEST(GoldenArtifacts, EveryPodmanArgvIsClosedAsPrinted) {
  EXPECT_GE(goldens("podman.json").size(), 16U);
  for (const fs::path& path : goldens("podman.json")) {
    expect_closed_container(path);
    const text::Document document = read_document(path);
    const auto argv = read_strings(*document.root().find("argv"));
    for (const std::string_view word :
         {"--read-only-tmpfs=false", "--http-proxy=false", "--env-host=false"}) {
      EXPECT_TRUE(has(argv, word)) << word;
    }
    EXPECT_EQ(after(argv, "--userns"), "keep-id:uid=1000,gid=1000");
  }
}

// D24, D28: every artifact says what it comes from and what it leaves out.
TEST(GoldenArtifacts, EveryArtifactHasTheWholeShape) {
  for (const std::string_view file :
       {"bwrap.json", "compose.json", "docker.json", "kubernetes.json", "plan.json", "podman.json",
        "systemd.json"}) {
    for (const fs::path& path : goldens(file)) {
      SCOPED_TRACE(path);
      const text::Document document = read_document(path);
      for (const std::string_view key : {"fds", "egress", "envInjections", "assertions", "notes",
                                         "unenforced", "notCovered", "provenance"}) {
        EXPECT_TRUE(document.root().find(key)) << key;
      }
      const Value provenance = *document.root().find("provenance");
      for (const std::string_view key : {"manifestHash", "policyHash", "grammarVersion",
                                         "canonicalization", "target", "options", "compiler"}) {
        EXPECT_TRUE(provenance.find(key)) << key;
      }
    }
  }
  EXPECT_GE(goldens("bwrap.json").size(), 16U);
}

}  // namespace
}  // namespace capgate
