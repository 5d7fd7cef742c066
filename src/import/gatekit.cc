#include "import/gatekit.h"

#include <array>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "import/block_file.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Value;

constexpr std::array<std::string_view, 5> file_keys = {"proxy", "plugins", "logging", "version",
                                                       "name"};
constexpr std::array<std::string_view, 7> proxy_keys = {
    "transport", "upstream",           "upstreams",      "timeouts",
    "http",      "connection_timeout", "request_timeout"};
constexpr std::array<std::string_view, 8> upstream_keys = {
    "name", "transport", "command", "url", "sandbox", "restart_on_failure", "max_restart_attempts",
    "env"};

// The upstream that --server names, or the only one.
std::optional<Value> choose(Rules& in, Value upstreams) {
  in.out().chosen();
  std::optional<Value> chosen;
  std::string names;
  std::set<std::string_view> seen;
  for (const Value upstream : upstreams.elements()) {
    if (!upstream.is(Kind::object)) {
      in.complain(upstream.span(), "an upstream is a mapping", "write - name: ...");
      return {};
    }
    const auto name = upstream.find("name");
    const std::string_view text = name && name->is(Kind::string) ? name->text() : "";
    if (!text.empty() && !seen.insert(text).second) {
      in.complain(name->span(), format("there are two upstreams {}", quoted(text)),
                  "give each a name of its own");
      return {};
    }
    if (in.place().server.empty() || text == in.place().server) chosen = upstream;
    if (names.size() < 200) names += format("{}{}", names.empty() ? "" : ", ", quoted(text));
  }
  const Span where = Span::at(upstreams.span().begin, upstreams.span().begin);
  if (in.place().server.empty() && upstreams.count() > 1) {
    in.complain(where, format("there are {} of them: {}", upstreams.count(), names),
                "say which server with --server NAME");
    return {};
  }
  if (!chosen) {
    in.complain(where, format("there is no server {}", quoted(in.place().server)),
                names.empty() ? "import a file that has one" : format("there are: {}", names));
  }
  return chosen;
}

void read_upstream(Rules& in, Value upstream) {
  in.check_keys(upstream, upstream_keys, "an upstream");
  in.out().name(in.text(upstream, "name"));
  const std::string_view transport = in.text(upstream, "transport");
  if (upstream.find("url") || (!transport.empty() && transport != "stdio")) {
    return in.refuse(upstream.span(), "the server runs elsewhere, and no sandbox is around it",
                     "choose a server with a command");
  }
  read_command_of(in, upstream, "command");
  if (const auto env = in.member(upstream, "env", Kind::object)) {
    for (const text::Member member : env->members()) {
      read_variable(in, member);
    }
  }
  if (!read_block_of(in, upstream)) return;
  if (!upstream.find("sandbox")->find("network")) {
    in.out().assumed("sandbox.network",
                     "without network everything may be reached there; the manifest "
                     "grants no host. Add net:connect:HOST:PORT");
  }
  in.out().assumed("sandbox.paths",
                   "~/.npm, ~/.cache and ~/.local are writable there without being "
                   "named; the manifest does not grant them");
}

}  // namespace

bool is_gatekit(const text::Document& document) {
  const Value root = document.root();
  if (!has_member(root, "proxy", Kind::object)) return false;
  const Value proxy = *root.find("proxy");
  return has_member(proxy, "upstreams", Kind::array) || has_member(proxy, "upstream", Kind::object);
}

Checked<Imported> read_gatekit(const text::Document& document, const ImportPlace& place) {
  Rules in("gatekit", place);
  const Value root = document.root();
  const auto proxy = root.is(Kind::object) ? in.member(root, "proxy", Kind::object) : std::nullopt;
  if (!proxy) {
    in.complain(Span::at(root.span().begin, root.span().begin), "proxy is missing",
                "write proxy: {upstreams: [...]}");
    return std::move(in).finish();
  }
  in.check_keys(root, file_keys, "the configuration");
  in.check_keys(*proxy, proxy_keys, "proxy");
  if (const auto upstreams = in.member(*proxy, "upstreams", Kind::array)) {
    if (const auto other = proxy->find("upstream"); other && !other->is(Kind::null)) {
      in.complain(other->span(), "it stands beside upstreams", "keep one of the two");
    }
    if (const auto upstream = choose(in, *upstreams)) read_upstream(in, *upstream);
  } else if (const auto upstream = in.member(*proxy, "upstream", Kind::object)) {
    read_upstream(in, *upstream);
  } else {
    in.complain(proxy->span(), "upstreams is missing", "write upstreams: [{name: ...}]");
  }
  if (root.find("plugins")) {
    in.out().dropped("plugins",
                     "they judge the messages of tools, which a manifest does not: keep them "
                     "in front of the server");
  }
  in.out().unsaid("tools", "a sandbox is for the whole server: no tool is named");
  return std::move(in).finish();
}

}  // namespace capgate::imports
