#include "sandbox/steps.h"

#include <linux/netlink.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/doctor.h"

namespace capgate::sandbox {
namespace {

using orders::Step;

struct Named {
  std::string_view name;
  std::string_view words;
};
// In the order of the enumeration.
constexpr std::array<Named, static_cast<std::size_t>(Step::count)> steps = {{
    {"none", "starting"},
    {"id_maps", "mapping the user and group ids"},
    {"start_init", "starting capgate-init"},
    {"read_orders", "reading the orders"},
    {"reset", "resetting signals, session and umask"},
    {"loopback", "bringing the loopback interface up"},
    {"network", "making the routes and sockets of the network"},
    {"host_name", "setting the host name"},
    {"private_tree", "making the mounts private"},
    {"new_root", "making the new root"},
    {"mounts", "mounting"},
    {"pivot", "changing to the new root"},
    {"fork_server", "forking the server's process"},
    {"program", "opening the program"},
    {"limits", "setting limits"},
    {"bounding_set", "dropping the bounding set"},
    {"ids", "setting the ids"},
    {"capabilities", "dropping capabilities"},
    {"no_new_privs", "setting no_new_privs"},
    {"landlock", "restricting files with Landlock"},
    {"descriptors", "closing descriptors"},
    {"directory", "entering the working directory"},
    {"read_back", "reading back what was set"},
    {"seccomp", "installing the system call filter"},
    {"exec", "running the program"},
    {"init_drop", "dropping init's own rights"},
}};

// Messages are counted before sockets.
void explain_network(const orders::Report& report, const Capture& capture, std::string& what,
                     std::string& help) {
  if (report.index >= capture.messages.size()) {
    const std::size_t index = report.index - capture.messages.size();
    if (index < capture.sockets.size()) {
      what += format(" ({} on port {})", kind_name(capture.sockets[index].kind),
                     capture.sockets[index].port);
    }
    return;
  }
  what += format(" ({})", capture.messages[report.index].what);
  if (capture.messages[report.index].protocol == NETLINK_NETFILTER) {
    what += ": this kernel has no nf_tables redirect";
    help =
        "declare the ports instead (net:connect:HOST:PORT), and no net:listen for the same port; "
        "or load the kernel's modules nft_chain_nat and nft_redir";
  }
}

}  // namespace

std::string_view step_name(Step step) {
  const auto index = static_cast<std::size_t>(step);
  return index < steps.size() ? steps[index].name : "unknown";
}

Refusal explain_failure(const orders::Report& report, const Bound& bound) {
  const auto index = static_cast<std::size_t>(report.step);
  std::string what(index < steps.size() ? steps[index].words : "an unknown step");
  if (report.step == Step::mounts && report.index < bound.mounts.size()) {
    what += format(" {}", escape_for_terminal(bound.mounts[report.index].target));
  }
  if (report.step == Step::landlock && report.index < bound.landlock.size()) {
    what += format(" ({})", escape_for_terminal(bound.landlock[report.index].path));
  }
  std::string why = std::strerror(report.value);
  std::string help = explain_launch_failure(step_name(report.step), report.value, read_host());
  if (report.value == ESTALE) {
    why = "it changed while it was being granted";
    help = "start again when nothing moves it";
  }
  if (report.step == Step::network) explain_network(report, bound.capture, what, help);
  int code = 125;
  if (report.step == Step::exec) {
    code = report.value == ENOENT ? 127 : 126;
    help = "check the command after --, and that its interpreter is visible";
  }
  return {.message = format("{}: {} (step {})", what, why, step_name(report.step)),
          .help = std::move(help),
          .exit_code = code};
}

Step injected_fault() {
  const char* wanted = std::getenv("CAPGATE_FAIL_STEP");
  if (wanted == nullptr) return Step::none;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].name == wanted) return static_cast<Step>(i);
  }
  return Step::read_orders;  // an unknown name fails, too
}

}  // namespace capgate::sandbox
