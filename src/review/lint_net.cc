// Where connections may lead.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "review/covers.h"
#include "review/lint_detail.h"
#include "review/lint_tables.h"

namespace capgate::review::detail {
namespace {

using core::HostPattern;
using core::NetConnect;

bool is_any(const NetConnect& net) { return net.endpoint.host.kind == HostPattern::Kind::any; }
bool is_wildcard(const NetConnect& net) {
  return net.endpoint.host.kind == HostPattern::Kind::subdomains;
}

// Paste services and the like stand in no other rule: one finding is enough.
bool lint_exfiltration(Linter& linter, const Line& line, const NetConnect& net) {
  const HostPattern& host = net.endpoint.host;
  if (host.kind != HostPattern::Kind::name && !is_wildcard(net)) return false;
  const ExfiltrationService* service = exfiltration_service(host.text);
  if (service == nullptr) return false;
  const bool is_drop = service->use == ExfiltrationService::Use::drop;
  linter.about(line, {.rule = rule::exfiltration_host,
                      .message = format("{} is {}", core::print(host), service->what),
                      .help = is_drop ? "leave it out, unless this is what the server is for"
                                      : "name the paths= that the server needs",
                      .level = is_drop ? Level::warning : Level::note});
  return true;
}

void lint_hosts(Linter& linter, const Line& line, const NetConnect& net) {
  if (is_any(net)) {
    linter.about(line, {.rule = rule::net_any,
                        .message = format("{} reaches every host", shown(line.text)),
                        .help = "name the hosts that the server needs"});
    return;
  }
  if (lint_exfiltration(linter, line, net) || !is_wildcard(net)) return;
  const std::string& name = net.endpoint.host.text;
  if (const auto what = why_shared(name)) {
    linter.about(line, {.rule = rule::net_multi_tenant,
                        .message = format("anybody can get {} below {}", *what, name),
                        .help = "name the hosts that are meant"});
  }
}

// *.x.com without x.com, on the same port.
void lint_apex(Linter& linter, const Line& line, const NetConnect& net, const CoverIndex& index) {
  if (!is_wildcard(net) || why_shared(net.endpoint.host.text)) return;
  NetConnect apex = net;
  apex.endpoint.host.kind = HostPattern::Kind::name;
  const core::Capability wanted = apex;
  if (index.find(wanted)) return;
  linter.about(line, {.rule = rule::net_apex,
                      .message = format("{} does not reach {} itself", shown(line.text),
                                        net.endpoint.host.text),
                      .help = format("add {} if the server needs it", shown(core::print(wanted)))});
}

void lint_port(Linter& linter, const Line& line, const NetConnect& net) {
  if (net.endpoint.port || is_any(net)) return;
  linter.about(line, {.rule = rule::net_no_port,
                      .message = format("{} reaches every port", shown(line.text)),
                      .help = format("write {}:443, or the port that is meant", shown(line.text))});
}

bool leads_to_strangers(const NetConnect& net) {
  const HostPattern& host = net.endpoint.host;
  if (is_any(net)) return true;
  if (is_wildcard(net) && why_shared(host.text)) return true;
  const ExfiltrationService* service = exfiltration_service(host.text);
  return service != nullptr && service->use == ExfiltrationService::Use::drop;
}

void lint_files_to_anywhere(Linter& linter) {
  const Line* file = nullptr;
  const Line* way_out = nullptr;
  std::size_t files = 0;
  for (const Line& line : linter.lines()) {
    if (const auto* net = std::get_if<NetConnect>(line.capability)) {
      if (way_out == nullptr && leads_to_strangers(*net)) way_out = &line;
    } else if (const auto* fs = std::get_if<core::FsCapability>(line.capability)) {
      if (is_system_path(fs->path.base)) continue;
      if (file == nullptr) file = &line;
      ++files;
    }
  }
  if (file == nullptr || way_out == nullptr) return;
  const std::string more = files > 1 ? format(" and {} more", files - 1) : std::string();
  linter.about(*way_out, {.rule = rule::files_to_anywhere,
                          .message = format("what {}{} shows can be sent anywhere by {}",
                                            shown(file->text), more, shown(way_out->text)),
                          .help = "name the hosts, or give the files to a server without network"});
}

}  // namespace

void lint_network(Linter& linter) {
  CoverIndex index;
  for (const Line& line : linter.lines()) {
    if (std::holds_alternative<NetConnect>(*line.capability)) index.add(*line.capability, 0);
  }
  for (const Line& line : linter.lines()) {
    const auto* net = std::get_if<NetConnect>(line.capability);
    if (net == nullptr) continue;
    lint_hosts(linter, line, *net);
    lint_apex(linter, line, *net, index);
    lint_port(linter, line, *net);
  }
  lint_files_to_anywhere(linter);
}

}  // namespace capgate::review::detail
