// What of its starter the server inherits from capgate-init, what init keeps, and how it ends.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "support/init_stage.h"

namespace capgate::sandbox {
namespace {

using orders::Step;
using test::InitStage;
using test::is_readable;
using test::make_pipe;
using test::read_to_end;

std::string output_of(InitStage& stage) {
  stage.start();
  std::string out = stage.output();
  const auto report = stage.report();
  EXPECT_TRUE(report && report->kind == orders::Report::Kind::exited);
  return out;
}

// The same command without a sandbox, started by a process that did the same before.
std::string outside(const std::function<void()>& as_caller, const char* path) {
  auto [out, writer] = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(writer.get(), STDOUT_FILENO);
    as_caller();
    ::execl("/usr/bin/cat", "cat", path, nullptr);
    ::_exit(1);
  }
  writer = sys::Fd();
  std::string text = read_to_end(out.get());
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  return text;
}

std::string read_text(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return std::move(out).str();
}

// What follows a name in one of the kernel's tables, without the space between.
std::string field(const std::string& table, const std::string& name) {
  const std::size_t at = table.find(name);
  if (at == std::string::npos) return "no " + name;
  const std::size_t begin = table.find_first_not_of(" \t:", at + name.size());
  return table.substr(begin, table.find('\n', begin) - begin);
}

// One line of the server, which runs on.
std::string line_of(const InitStage& stage) {
  std::string out;
  for (char byte = 0; byte != '\n';) {
    if (!is_readable(stage.output_fd()) || ::read(stage.output_fd(), &byte, 1) != 1) return out;
    out += byte;
  }
  return out;
}

constexpr const char* no_signals = "0000000000000000";

// ---- what the caller had set up for itself
// --------------------------------------------------------

TEST(InitReset, ThePersonalityIsTheUsualOne) {
  const auto as_caller = [] { ::personality(ADDR_NO_RANDOMIZE); };
  EXPECT_EQ(outside(as_caller, "/proc/self/personality"), "00040000\n");
  InitStage stage("exec cat /proc/self/personality");
  stage.as_caller = as_caller;
  EXPECT_EQ(output_of(stage), "00000000\n");
}

TEST(InitReset, SignalsAreNeitherIgnoredNorBlocked) {
  const auto as_caller = [] {
    (void)::signal(SIGHUP, SIG_IGN);
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  };
  const std::string control = outside(as_caller, "/proc/self/status");
  EXPECT_NE(field(control, "SigIgn"), no_signals);
  EXPECT_NE(field(control, "SigBlk"), no_signals);
  InitStage stage("exec cat /proc/self/status");
  stage.as_caller = as_caller;
  const std::string status = output_of(stage);
  EXPECT_EQ(field(status, "SigIgn"), no_signals);
  EXPECT_EQ(field(status, "SigBlk"), no_signals);
}

// A server in the caller's session could be stopped by its terminal, and signal all of it.
TEST(InitReset, TheSessionIsItsOwn) {
  InitStage stage("exec cut -d' ' -f6 /proc/self/stat");
  EXPECT_EQ(output_of(stage), "1\n");
}

TEST(InitReset, FilesOfTheServerAreNotWritableByOthers) {
  InitStage stage("umask");
  stage.as_caller = [] { ::umask(0); };
  EXPECT_EQ(output_of(stage), "0022\n");
}

TEST(InitReset, TheDirectoriesOfTheSandboxHaveTheModesOfTheOrders) {
  InitStage stage("stat -c %a /made");
  stage.directory("/made");
  stage.allow("/made", {"read_dir"});
  stage.as_caller = [] { ::umask(077); };
  EXPECT_EQ(output_of(stage), "755\n");
}

TEST(InitReset, ThereAreNoCoreDumps) {
  const auto as_caller = [] {
    rlimit core{};
    ::getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max;
    ::setrlimit(RLIMIT_CORE, &core);
  };
  const auto core_size = [](const std::string& limits) {
    std::istringstream words(field(limits, "Max core file size"));
    std::string soft;
    std::string hard;
    words >> soft >> hard;
    return soft + " " + hard;
  };
  EXPECT_EQ(core_size(outside(as_caller, "/proc/self/limits")), "unlimited unlimited");
  InitStage stage("exec cat /proc/self/limits");
  stage.as_caller = as_caller;
  EXPECT_EQ(core_size(output_of(stage)), "1 1");
}

// ---- the rights of the server
// ---------------------------------------------------------------------

TEST(InitRights, TheServerHasNoCapabilityAndGainsNone) {
  InitStage stage("exec cat /proc/self/status");
  const std::string status = output_of(stage);
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(field(status, set), "0000000000000000") << set;
  }
  EXPECT_EQ(field(status, "NoNewPrivs"), "1");
  EXPECT_EQ(field(status, "Seccomp"), "2");
  EXPECT_EQ(field(status, "Uid"), "1000\t1000\t1000\t1000");
  EXPECT_EQ(field(status, "Gid"), "1000\t1000\t1000\t1000");
}

TEST(InitRights, EveryNamespaceIsNew) {
  const char* const names[] = {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"};
  InitStage stage("cd /proc/self/ns; readlink cgroup ipc mnt net pid user uts");
  std::istringstream inside(output_of(stage));
  for (const char* name : names) {
    std::string seen;
    inside >> seen;
    EXPECT_TRUE(seen.starts_with(name)) << seen;
    EXPECT_NE(seen, read_link(AT_FDCWD, std::string("/proc/self/ns/") + name));
  }
}

TEST(InitRights, LimitsAreSoftAndHard) {
  InitStage stage("exec cat /proc/self/limits");
  stage.launch.limits = {{.resource = RLIMIT_NOFILE, .value = 77}};
  std::istringstream words(field(output_of(stage), "Max open files"));
  std::string soft;
  std::string hard;
  words >> soft >> hard;
  EXPECT_EQ(soft, "77");
  EXPECT_EQ(hard, "77");
}

TEST(InitRights, TheServerHasThreeDescriptors) {
  auto [reader, writer] = make_pipe();
  InitStage stage("exec ls /proc/self/fd");  // the fourth is the list itself
  stage.details.inner_sockets = writer.get();
  EXPECT_EQ(output_of(stage), "0\n1\n2\n3\n");
}

// A variable that the policy does not inject, say one that the proxy's replaces, stays outside.
TEST(InitRights, TheServerHoldsTheSecretsThatTheBoundPlanNames) {
  InitStage stage("exec env");
  stage.bound.injected = {"GIVEN"};
  std::vector<InjectedSecret> secrets;
  stage.as_caller = [&] {  // in the supervisor: the memory of a secret is empty after a fork
    for (const char* name : {"GIVEN", "OTHER"}) {
      auto value = secrets::Secret::make("secret value");
      if (value) secrets.push_back({.name = name, .value = *std::move(value)});
    }
    stage.launch.injected = secrets;
  };
  const std::string variables = output_of(stage);
  EXPECT_NE(variables.find("GIVEN=secret value\n"), std::string::npos) << variables;
  EXPECT_EQ(variables.find("OTHER"), std::string::npos) << variables;
}

TEST(InitRights, TheDirectoryIsTheOneOfTheOrders) {
  InitStage stage("pwd");
  stage.bound.directory = "/usr/bin";
  EXPECT_EQ(output_of(stage), "/usr/bin\n");
}

// ---- what init keeps
// ------------------------------------------------------------------------------

// A client that waits for the end of the server's output must not wait for init.
TEST(InitKeeps, NoneOfTheServersStreams) {
  InitStage stage("exec 1>&- 2>&-; read line; exit 7");
  stage.start();
  EXPECT_EQ(stage.output(), "");
  EXPECT_EQ(stage.errors(), "");
  stage.answer("go\n");
  const auto report = stage.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->value, 7 << 8);
}

TEST(InitKeeps, NoReaderOfTheServersInput) {
  InitStage stage("exec 0<&-; echo closed; exec sleep 1000");
  stage.start();
  EXPECT_EQ(line_of(stage), "closed\n");
  EXPECT_TRUE(stage.input_has_no_reader());
}

TEST(InitKeeps, NoOtherDescriptor) {
  auto [reader, writer] = make_pipe();
  InitStage stage("echo runs; exec sleep 1000");
  stage.details.inner_sockets = writer.get();  // the orders do not ask for it
  stage.start();
  writer = sys::Fd();
  EXPECT_EQ(line_of(stage), "runs\n");
  EXPECT_EQ(read_to_end(reader.get()), "");
}

TEST(InitKeeps, NoRights) {
  InitStage stage("echo runs; exec sleep 1000");
  stage.start();
  EXPECT_EQ(line_of(stage), "runs\n");
  const std::string place = "/proc/" + std::to_string(stage.pid());
  const std::string status = read_text(place + "/status");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(field(status, set), "0000000000000000") << set;
  }
  EXPECT_EQ(field(status, "NoNewPrivs"), "1");
  // Files of a process that is not dumpable belong to root: nobody of its user looks into it.
  struct stat info{};
  ASSERT_EQ(::stat((place + "/mem").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
}

// ---- what init is told
// ----------------------------------------------------------------------------

CaptureSocket listener() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(443);
  return {.domain = AF_INET,
          .type = SOCK_STREAM,
          .backlog = 1,
          .address = std::string(reinterpret_cast<const char*>(&address), sizeof(address))};
}

// A server that runs before somebody accepts would be refused its first connection.
TEST(InitControl, WithANetworkTheServerWaitsForTheSupervisor) {
  InitStage stage("echo runs");
  stage.bound.capture.sockets = {listener()};
  stage.start();
  EXPECT_EQ(stage.report()->kind, orders::Report::Kind::socket);
  EXPECT_EQ(stage.report()->kind, orders::Report::Kind::network_ready);
  EXPECT_FALSE(is_readable(stage.output_fd(), 300));
  stage.send({.kind = orders::Command::Kind::go});
  EXPECT_EQ(stage.output(), "runs\n");
}

TEST(InitControl, ASignalReachesTheServer) {
  InitStage stage("echo runs; exec sleep 1000");
  stage.start();
  EXPECT_EQ(line_of(stage), "runs\n");
  stage.send({.kind = orders::Command::Kind::signal, .signal = SIGTERM});
  const auto report = stage.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, orders::Report::Kind::exited);
  EXPECT_EQ(report->value, SIGTERM);
}

TEST(InitControl, TheSandboxEndsWithTheSupervisor) {
  InitStage stage("echo runs; exec sleep 1000");
  stage.start();
  EXPECT_EQ(line_of(stage), "runs\n");
  stage.close_control();
  EXPECT_EQ(stage.output(), "");
}

// Whatever the server started ends with it.
TEST(InitControl, TheSandboxEndsWithTheServer) {
  InitStage stage("sleep 1000 & exit 3");
  stage.start();
  const auto report = stage.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->value, 3 << 8);
  EXPECT_EQ(stage.output(), "");
}

// ---- the orders
// ------------------------------------------------------------------------------------

TEST(InitOrders, EachStepCanBeMadeToFailAndTheServerDoesNotRun) {
  for (auto step = static_cast<std::uint32_t>(Step::read_orders);
       step < static_cast<std::uint32_t>(Step::count); ++step) {
    InitStage stage("echo runs");
    stage.launch.fail_step = static_cast<Step>(step);
    stage.start();
    const auto report = stage.report();
    ASSERT_TRUE(report) << step;
    EXPECT_EQ(report->kind, orders::Report::Kind::failed) << step;
    EXPECT_EQ(static_cast<std::uint32_t>(report->step), step);
    EXPECT_EQ(stage.output(), "") << step;
  }
}

// A block that was not made for this init means nothing to it.
TEST(InitOrders, OnlyTheOwnFormatIsRead) {
  const std::function<void(orders::Header&)> changes[] = {
      [](orders::Header& header) { ++header.magic; },
      [](orders::Header& header) { ++header.size; },
      [](orders::Header& header) { --header.size; },
  };
  for (const auto& change : changes) {
    InitStage stage("echo runs");
    stage.edit_orders = [&](std::string& block) {
      change(*reinterpret_cast<orders::Header*>(block.data()));
    };
    stage.start();
    const auto report = stage.report();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, orders::Report::Kind::failed);
    EXPECT_EQ(report->step, Step::read_orders);
    EXPECT_EQ(stage.output(), "");
  }
}

}  // namespace
}  // namespace capgate::sandbox
