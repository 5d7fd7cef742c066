#include "review/report_words.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "core/built_in.h"
#include "core/rights.h"

namespace capgate::review {
namespace {

using core::FileRights;
using core::HostPattern;
using core::IpcCapability;

constexpr std::size_t longest_name = 48;
constexpr std::size_t most_names = 2;

void say(Sentence& out, std::string_view words) {
  if (!words.empty()) out.push_back({.text = std::string(words)});
}

// One, two, three names, then "and 4 more".
void say_names(Sentence& out, const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), most_names);
  const bool all = shown == names.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) say(out, all && i + 1 == shown ? " and " : ", ");
    out.push_back({.text = elide(escape_for_terminal(names[i]), longest_name), .is_code = true});
  }
  if (!all) say(out, format(" and {} more", names.size() - shown));
}

bool is_private_tmp(const core::FsCapability& fs) {
  return fs.path.base == "/tmp" && fs.path.shape != core::PathPattern::Shape::entries;
}

// What a policy comes down to, for one sentence.
struct Sums {
  std::vector<std::string> read;
  std::vector<std::string> change;
  std::vector<std::string> hosts;
  std::vector<std::string> held;    // secrets and variables whose values the server gets
  std::vector<std::string> sealed;  // secrets that it uses without holding them
  std::vector<std::string> programs;
  std::vector<std::string> sockets;
  bool every_host = false;
  bool desktop = false;
};

Sums sums_of(const core::Policy& policy) {
  Sums out;
  for (const auto& [fs, origins] : policy.files) {
    if (is_private_tmp(fs)) continue;
    const FileRights rights = core::rights_of(fs.actions);
    out.read.push_back(print(fs.path));
    if (rights.has(FileRights::modify) || rights.has(FileRights::remove)) {
      out.change.push_back(print(fs.path));
    }
  }
  for (const auto& [net, origins] : policy.connect) {
    out.every_host |= net.endpoint.host.kind == HostPattern::Kind::any;
    out.hosts.push_back(print(net.endpoint));
  }
  for (const auto& [env, origins] : policy.variables) {
    (env.to.empty() ? out.held : out.sealed).push_back(env.name);
  }
  for (const auto& [exec, origins] : policy.programs) out.programs.push_back(exec.program);
  for (const auto& [ipc, origins] : policy.sockets) {
    using Kind = IpcCapability::Kind;
    if (ipc.kind == Kind::self || ipc.kind == Kind::netlink_route) continue;
    out.desktop |= ipc.kind == Kind::x11 || ipc.kind == Kind::dbus_session;
    out.sockets.push_back(print_ipc_endpoint(ipc));
  }
  return out;
}

void say_readable(Sentence& out, const Sums& sums) {
  if (!sums.read.empty()) {
    say(out, "what it reads in ");
    say_names(out, sums.read);
  }
  if (sums.held.empty()) return;
  if (!sums.read.empty()) say(out, " and ");
  say(out, sums.held.size() == 1 ? "the value of " : "the values of ");
  say_names(out, sums.held);
}

Sentence about_reading(const Sums& sums) {
  Sentence out;
  const bool reads = !sums.read.empty() || !sums.held.empty();
  if (sums.hosts.empty()) {
    if (!reads) return out;
    say(out, "give its client ");
    say_readable(out, sums);
    return out;
  }
  say(out, reads ? "send " : "talk");
  if (reads) say_readable(out, sums);
  say(out, " to ");
  if (sums.every_host) {
    say(out, "every public host");
  } else {
    say_names(out, sums.hosts);
  }
  return out;
}

Sentence about(std::string_view words, const std::vector<std::string>& names) {
  Sentence out;
  if (names.empty()) return out;
  say(out, words);
  say_names(out, names);
  return out;
}

std::vector<Sentence> parts_of(const Sums& sums) {
  std::vector<Sentence> out{
      about_reading(sums), about("change or remove ", sums.change), about("start ", sums.programs),
      about("act in the name of ", sums.sealed), about("use everything behind ", sums.sockets)};
  std::erase_if(out, [](const Sentence& part) { return part.empty(); });
  return out;
}

void say_parts(Sentence& out, const std::vector<Sentence>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) say(out, i + 1 == parts.size() ? ", and " : ", ");
    out.insert(out.end(), parts[i].begin(), parts[i].end());
  }
}

// A promise gives the server nothing, so it is not counted where it says what the server can do.
std::size_t open_doors(const Report& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.lines, [](const Line& line) {
    return line.held != Held::enforced && line.door != Door::promises;
  }));
}

void say_what_is_open(Sentence& out, const Report& report) {
  const std::size_t open = open_doors(report);
  if (open == 0 && report.problems.empty() && !report.is_partial_target) {
    say(out, ". Nothing else.");
    return;
  }
  const std::string_view target = engine_words(report);
  if (open == 0 && !report.is_partial_target) {
    say(out, format(". But {} refuses this manifest.", target));
    return;
  }
  const std::size_t all = report.lines.size();
  if (report.is_partial_target) {
    say(out, format(". But {} is one part of a sandbox, and holds it to {} of these {} lines.",
                    target, all - open, all));
    return;
  }
  say(out,
      format(". But {} does not fully hold it to {} of these {} lines, so it can do more there.",
             target, open, all));
}

}  // namespace

std::string elide(std::string_view text, std::size_t most) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size();
       at += std::max<std::size_t>(1, utf8_length(text.substr(at)))) {
    starts.push_back(at);
  }
  if (starts.size() <= most || most == 0) return std::string(text);
  const std::size_t kept = most - 1;
  const std::size_t head = (kept + 1) / 2;
  const std::size_t tail = kept - head;
  const std::size_t tail_start = tail == 0 ? text.size() : starts[starts.size() - tail];
  return format("{}…{}", text.substr(0, starts[head]), text.substr(tail_start));
}

std::string_view engine_words(const Report& report) {
  return report.target == "plan" ? std::string_view("capgate’s own engine") : report.target;
}

std::string plain(const Sentence& sentence) {
  std::string out;
  for (const Piece& piece : sentence) out += piece.text;
  return out;
}

Sentence verdict_of(const core::Policy& policy, const Report& report) {
  const Sums sums = sums_of(policy);
  const std::vector<Sentence> parts = parts_of(sums);
  Sentence out;
  if (parts.empty()) {
    say(out, "At worst it computes and gives its client wrong answers");
  } else {
    say(out, "At worst it can ");
    say_parts(out, parts);
  }
  if (sums.desktop) say(out, ", which is most of what you can do at your desktop");
  say_what_is_open(out, report);
  return out;
}

std::vector<std::string> what_is_not_stopped(const core::Manifest& manifest,
                                             const core::Policy& policy) {
  const Sums sums = sums_of(policy);
  std::vector<std::string> out;
  out.emplace_back(
      "What it tells its client. A tool's description or answer may mislead the model that reads "
      "it; the box does not read answers.");
  if (!sums.hosts.empty()) {
    out.emplace_back(
        "What it sends to a host that it may reach. The broker checks where a connection goes, not "
        "what is meant by it.");
  }
  if (!sums.held.empty()) {
    out.emplace_back(
        "What it does with a value that it holds. It can show, keep or send it wherever it may "
        "send anything; a sealed secret (--seal) stays out of its hands.");
  }
  if (!sums.change.empty()) {
    out.emplace_back(
        "What others do with files that it may change. A script that it wrote runs with your "
        "rights as soon as you start it, outside of this box.");
  }
  if (!sums.programs.empty()) {
    out.emplace_back(
        "What a program is told to do. Programs that it may start stay in the same box, and use "
        "everything that is granted here.");
  }
  if (!sums.sockets.empty()) {
    out.emplace_back(
        "What the other end of a socket does for it. That program runs outside of the box, with "
        "rights of its own.");
  }
  if (!manifest.used_variables.empty()) {
    out.emplace_back(
        "Other values of the manifest's variables. The lines here hold for the values with which "
        "this page was made.");
  }
  out.emplace_back(
      "Time. A grant holds as long as the server runs. This page shows one manifest as it was "
      "read; "
      "the manifest, the package and the server's tools can change after it.");
  out.emplace_back(
      "What happens elsewhere: a server that is started without capgate, another entry of the "
      "client's configuration, a hole in the kernel that keeps the box closed.");
  return out;
}

}  // namespace capgate::review
