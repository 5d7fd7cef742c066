#include "import/toolhive.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 5> profile_keys = {"name", "read", "write", "network",
                                                          "privileged"};
constexpr std::array<std::string_view, 3> network_keys = {"mode", "outbound", "inbound"};
constexpr std::array<std::string_view, 4> outbound_keys = {"insecure_allow_all", "allow_host",
                                                           "allow_port", "allow_transport"};
constexpr std::array<std::string_view, 1> inbound_keys = {"allow_host"};

class Reader {
 public:
  Reader(Value root, const ImportPlace& place) : in_("toolhive", place), root_(root) {}

  Checked<Imported> read() {
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "a permission profile is a mapping",
                   "write {\"read\": [], \"write\": [], \"network\": {\"outbound\": {}}}");
      return std::move(in_).finish();
    }
    in_.check_keys(root_, profile_keys, "a permission profile");
    in_.start_is_unknown("ToolHive");
    in_.out().name(in_.text(root_, "name"));
    read_mounts("read", Access::read);
    read_mounts("write", Access::write);
    if (const auto network = in_.member(root_, "network", Kind::object)) read_network(*network);
    if (in_.flag(root_, "privileged")) {
      in_.refuse(root_.find("privileged")->span(),
                 "a privileged container has every right on the host",
                 "set privileged to false, and name what the server needs");
    }
    in_.out().unsaid("exec",
                     "a profile does not say which programs the server starts: none is "
                     "granted; add exec:spawn:NAME where one is needed");
    in_.out().unsaid("env",
                     "a profile does not name variables: none is granted; add env:read:NAME "
                     "and env:inject:NAME");
    in_.out().unsaid("tools", "a profile is for the whole server: no tool is named");
    return std::move(in_).finish();
  }

 private:
  // PATH, HOST:CONTAINER, or SCHEME://RESOURCE:CONTAINER.
  void read_mounts(std::string_view key, Access access) {
    for (const Value item : in_.texts(root_, key)) {
      auto mount = in_.plain(item, key);
      if (!mount) continue;
      if (mount->text.contains("://")) {
        in_.out().dropped(key,
                          format("{} is a volume of the container engine, which has no path on "
                                 "this host: grant a directory instead",
                                 quoted(mount->text)));
        continue;
      }
      const std::size_t colon = mount->text.find(':');
      if (colon != std::string::npos && mount->text.find(':', colon + 1) != std::string::npos) {
        in_.complain(mount->where, "a mount has one colon, between host and container",
                     "write HOST-PATH:CONTAINER-PATH");
        continue;
      }
      if (colon != std::string::npos) {
        const std::string inside = mount->text.substr(colon + 1);
        mount->text.resize(colon);
        if (inside != mount->text) {
          in_.out().assumed(key, format("{} was {} in the container: the server sees the path of "
                                        "the host, and its arguments must say so",
                                        quoted(mount->text), quoted(inside)));
        }
      }
      if (find_any(mount->text, "*?[]") != std::string_view::npos) {
        in_.complain(mount->where, "a mount has no wildcards", "name the directory");
        continue;
      }
      in_.allow_path(access, *mount);
    }
  }

  void read_network(Value network) {
    in_.check_keys(network, network_keys, "network");
    const std::string_view mode = in_.text(network, "mode");
    const auto outbound = in_.member(network, "outbound", Kind::object);
    if (outbound) in_.check_keys(*outbound, outbound_keys, "outbound");
    if (const auto inbound = in_.member(network, "inbound", Kind::object)) read_inbound(*inbound);
    if (mode == "none") {
      if (outbound) {
        in_.out().assumed("network.mode",
                          "the mode none leaves no network, whatever outbound says: "
                          "no host is granted");
      }
      return;
    }
    if (mode == "host") {
      return in_.refuse(network.find("mode")->span(),
                        "the host's own network has no rules: everything could be reached",
                        "leave mode out, and name hosts and ports in outbound");
    }
    if (!mode.empty() && mode != "bridge" && mode != "default") {
      in_.out().dropped("network.mode",
                        format("the container network {} is not taken over: what is "
                               "granted is what outbound names",
                               quoted(mode)));
    }
    if (outbound) read_outbound(*outbound);
  }

  void read_inbound(Value inbound) {
    in_.check_keys(inbound, inbound_keys, "inbound");
    if (!in_.texts(inbound, "allow_host").empty()) {
      in_.out().dropped("network.inbound",
                        "who may connect to the server is not said by a manifest: "
                        "add net:listen:PORT if the server listens");
    }
  }

  // A transport that is missing from the list was forbidden: UDP never leaves a sandbox anyway.
  // True if TCP is in it, or there is no list.
  bool read_transport(Value outbound) {
    const auto transports = in_.texts(outbound, "allow_transport");
    const bool has_tcp =
        transports.empty() || std::ranges::any_of(transports, [](const Value item) {
          return to_lower(item.text()) == "tcp";
        });
    for (const Value item : transports) {
      const std::string transport = to_lower(item.text());
      if (transport == "tcp") continue;
      if (transport == "udp") {
        in_.out().dropped("network.outbound.allow_transport",
                          has_tcp ? "UDP does not leave a sandbox: only TCP is granted"
                                  : "UDP does not leave a sandbox, and the list has no TCP: no "
                                    "host is granted");
      } else {
        in_.complain(whole(item), format("{} is no transport", quoted(item.text())),
                     "write tcp or udp; newer profiles leave allow_transport out");
      }
    }
    return has_tcp;
  }

  void read_outbound(Value outbound) {
    constexpr std::string_view subject = "network.outbound";
    const bool has_tcp = read_transport(outbound);
    const auto hosts = in_.texts(outbound, "allow_host");
    const auto ports = read_ports(outbound);
    if (!has_tcp) return;
    if (in_.flag(outbound, "insecure_allow_all")) {
      in_.allow_endpoint({}, {.text = "insecure_allow_all",
                              .where = outbound.find("insecure_allow_all")->span(),
                              .subject = subject});
      return;
    }
    if (hosts.empty() && !ports.empty()) {
      for (const std::uint16_t port : ports) {
        in_.allow_endpoint({.host = {}, .port = port},
                           {.text = format("*:{}", port),
                            .where = outbound.find("allow_port")->span(),
                            .subject = "network.outbound.allow_port"});
      }
      return;
    }
    if (hosts.size() * std::max<std::size_t>(ports.size(), 1) > 1024) {
      return in_.refuse(outbound.span(), "more than 1024 pairs of a host and a port",
                        "name domains instead of each host: \".example.com\"");
    }
    if (hosts.size() > 1 && ports.size() > 1) {
      in_.out().assumed(subject,
                        "every host may be reached on every port of the list, so all pairs "
                        "are granted; remove those that are not needed");
    }
    for (const Value item : hosts) read_host(item, ports);
  }

  std::vector<std::uint16_t> read_ports(Value outbound) {
    std::vector<std::uint16_t> out;
    const auto list = in_.member(outbound, "allow_port", Kind::array);
    if (!list) return out;
    for (const Value item : list->elements()) {
      const auto port = parse_decimal(item.is(Kind::number) ? item.text() : "");
      if (port && *port > 0 && *port <= 65535) {
        out.push_back(static_cast<std::uint16_t>(*port));
      } else {
        in_.complain(item.span(), "allow_port is a list of ports", "write numbers from 1 to 65535");
      }
    }
    sort_and_deduplicate(out);
    return out;
  }

  void read_host(Value value, const std::vector<std::uint16_t>& ports) {
    auto item = in_.plain(value, "network.outbound.allow_host");
    if (!item) return;
    const bool is_domain = item->text.starts_with('.');
    const std::string name = is_domain ? item->text.substr(1) : item->text;
    if (name.contains('*')) {
      return in_.complain(item->where, "a host has no wildcards here",
                          "write \".example.com\" for a domain and everything below it");
    }
    if (name == "localhost" || name.starts_with("127.") || name == "::1" || name == "[::1]") {
      in_.out().dropped(item->subject,
                        format("{} was the container itself: the host's own loopback "
                               "is not meant, and not granted",
                               quoted(name)));
      return;
    }
    auto host = core::parse_host(name);
    if (!host) {
      Diagnostic mistake = std::move(host).error();
      mistake.where = item->where;
      return in_.add(std::move(mistake));
    }
    allow(*host, ports, *item);
    if (!is_domain) return;
    host = core::parse_host(format("*.{}", name));
    if (host) allow(*host, ports, *item);
  }

  void allow(const core::HostPattern& host, const std::vector<std::uint16_t>& ports,
             const Rules::Item& item) {
    if (ports.empty()) in_.allow_endpoint({.host = host, .port = {}}, item);
    for (const std::uint16_t port : ports) in_.allow_endpoint({.host = host, .port = port}, item);
  }

  Rules in_;
  Value root_;
};

}  // namespace

bool is_toolhive(const text::Document& document) {
  const Value root = document.root();
  if (!root.is(Kind::object)) return false;
  for (const Member member : root.members()) {
    if (!contains(profile_keys, member.key.text())) return false;
  }
  const auto network = root.find("network");
  if (network) {
    if (!network->is(Kind::object)) return false;
    for (const Member member : network->members()) {
      if (!contains(network_keys, member.key.text())) return false;
    }
    return true;
  }
  // The other dialect with `read` and `write` is Rampart's, which has no name.
  return (has_member(root, "read", Kind::array) || has_member(root, "write", Kind::array)) &&
         (root.find("name") || root.find("privileged"));
}

Checked<Imported> read_toolhive(const text::Document& document, const ImportPlace& place) {
  return read_toolhive_profile(document.root(), place);
}

Checked<Imported> read_toolhive_profile(Value profile, const ImportPlace& place) {
  return Reader(profile, place).read();
}

}  // namespace capgate::imports
