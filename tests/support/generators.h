// RapidCheck generators for the values of src/core. What they give is canonical: exactly the values
// that parsing can give, so that parse(print(x)) == x must hold for each.
//
//   RC_GTEST_PROP(Grammar, PrintsAndParsesBack, ()) {
//     const core::Capability capability = *support::capability();
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/ranges.h"
#include "base/text.h"
#include "core/capability.h"
#include "core/scope.h"

namespace capgate::core {

// What RapidCheck prints of a counterexample.
inline void showValue(const Capability& capability, std::ostream& os) { os << print(capability); }
inline void showValue(const Endpoint& endpoint, std::ostream& os) { os << print(endpoint); }

}  // namespace capgate::core

namespace capgate::support {

[[nodiscard]] inline rc::Gen<std::string> text_over(std::string_view alphabet) {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string(alphabet)));
}

[[nodiscard]] inline std::string pick(std::vector<std::string> choices) {
  return *rc::gen::elementOf(std::move(choices));
}

[[nodiscard]] inline bool flip() { return *rc::gen::arbitrary<bool>(); }

// The same items in another order, any order.
[[nodiscard]] inline std::vector<std::string> shuffled(std::vector<std::string> items) {
  for (std::size_t i = items.size(); i > 1; --i) {
    const auto other = *rc::gen::arbitrary<std::uint32_t>() % i;
    std::swap(items[i - 1], items[other]);
  }
  return items;
}

// ---- Hosts -----------------------------------------------------------------------------------

// Few labels and ports, so that endpoints often match.
[[nodiscard]] inline rc::Gen<core::Endpoint> endpoint() {
  return rc::gen::exec([] {
    std::string text = pick({"*",
                             "*.a",
                             "*.b.a",
                             "*.ab.a",
                             "a",
                             "b.a",
                             "ab.a",
                             "c.b.a",
                             "xn--e-1ga.b.a",
                             "localhost",
                             "a.localhost",
                             "*.localhost",
                             "8.8.8.8",
                             "10.0.0.1",
                             "127.0.0.1",
                             "[::1]",
                             "[2606:4700::1]",
                             "[fd00::1]",
                             "*.8b.com",
                             "1.8b.com",
                             "8b.com"});
    text += pick({"", ":80", ":443", ":65535"});
    return *core::parse_endpoint(text);
  });
}

// ---- Paths -----------------------------------------------------------------------------------

// A name in a path, with every character of the grammar that it may hold.
[[nodiscard]] inline rc::Gen<std::string> component() {
  return rc::gen::exec([] {
    std::string name = *rc::gen::nonEmpty(text_over("aab.-_ :?\"\\$%,&=#~@!+;'<>|^`()1\xc3\xa9"));
    // "$a" would be a variable without braces, a blank at the end of a path is refused.
    for (std::size_t i = 0; i + 1 < name.size(); ++i) {
      if (name[i] == '$' && is_alpha(name[i + 1])) name[i + 1] = '1';
      if (name[i] == '$' && name[i + 1] == '_') name[i + 1] = '-';
    }
    if (name.back() == ' ') name.back() = '1';
    if (name == "." || name == "..") name = "...";
    return name;
  });
}

[[nodiscard]] inline std::string plain_path() {
  std::string path;
  const auto depth = *rc::gen::inRange(1, 4);
  for (int i = 0; i < depth; ++i) path += "/" + *component();
  return path;
}

[[nodiscard]] inline core::PathPattern path_pattern() {
  using Shape = core::PathPattern::Shape;
  core::PathPattern path{.shape = *rc::gen::element(Shape::node, Shape::tree, Shape::entries),
                         .base = plain_path()};
  if (flip() && flip()) path.base = "/";
  if (path.shape == Shape::entries) {
    const std::string globs[] = {"*", "*.md", "a*", *component() + "*" + *component() + "*"};
    path.glob = pick({globs[0], globs[1], globs[2], globs[3]});
  }
  return path;
}

// ---- Capabilities ----------------------------------------------------------------------------

[[nodiscard]] inline core::FsActions fs_actions() {
  using enum core::FsAction;
  const unsigned bits = *rc::gen::resize(100, rc::gen::inRange(1U, 16U));
  core::FsActions actions;
  if ((bits & 1U) != 0) actions.add(read);
  if ((bits & 2U) != 0) actions.add(create);
  if ((bits & 4U) != 0) actions.add(write);
  if ((bits & 8U) != 0) actions.add(remove);
  return actions;
}

[[nodiscard]] inline std::vector<std::string> sorted_choices(std::vector<std::string> from) {
  auto chosen = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::move(from)));
  sort_and_deduplicate(chosen);
  return chosen;
}

[[nodiscard]] inline core::NetRefinements net_refinements() {
  using Sni = core::NetRefinements::Sni;
  using Proto = core::NetRefinements::Proto;
  return {.sni = *rc::gen::element(Sni::match, Sni::any, Sni::strict),
          .proto = *rc::gen::element(Proto::detect, Proto::tcp, Proto::tls, Proto::http),
          .methods = sorted_choices({"GET", "POST", "DELETE", "M-SEARCH"}),
          .paths = sorted_choices({"/", "/user", "/repos/**", "/a:b", "/a=b", "/a$b", "/*"})};
}

// private=true is for names alone.
[[nodiscard]] inline core::NetConnect net_connect(core::Endpoint endpoint) {
  using Kind = core::HostPattern::Kind;
  const core::HostPattern& host = endpoint.host;
  const bool is_name = (host.kind == Kind::name || host.kind == Kind::subdomains) &&
                       !host.text.ends_with("localhost");
  core::NetConnect connect{.endpoint = std::move(endpoint), .refinements = net_refinements()};
  connect.refinements.private_network = is_name && flip();
  return connect;
}

[[nodiscard]] inline core::EnvCapability variable() {
  using Place = core::SecretPlace::Kind;
  core::EnvCapability env{.action = *rc::gen::element(core::EnvCapability::Action::read,
                                                      core::EnvCapability::Action::inject),
                          .name = pick({"A", "_", "TOKEN", "A1_B"}),
                          .unsafe = flip()};
  if (env.action == core::EnvCapability::Action::read || flip()) return env;
  for (core::Endpoint& to : *rc::gen::nonEmpty<std::vector<core::Endpoint>>(
           rc::gen::container<std::vector<core::Endpoint>>(endpoint()))) {
    if (!to.port) to.port = std::uint16_t{443};
    if (to.host.kind == core::HostPattern::Kind::name) env.to.push_back(std::move(to));
  }
  sort_and_deduplicate(env.to);
  if (env.to.empty()) return env;
  env.as.kind =
      *rc::gen::element(Place::header, Place::basic, Place::query, Place::path, Place::body);
  env.as.header = env.as.kind == Place::header ? pick({"authorization", "x-api-key", "x_1"}) : "";
  return env;
}

[[nodiscard]] inline core::IpcCapability socket() {
  using enum core::IpcCapability::Kind;
  core::IpcCapability ipc{
      .kind = *rc::gen::element(dbus_session, dbus_system, netlink_route, self, unix_path, x11),
      .unsafe = flip()};
  if (ipc.kind == unix_path) ipc.path = plain_path();
  return ipc;
}

[[nodiscard]] inline core::LimitCapability limit() {
  using enum core::LimitCapability::Kind;
  core::LimitCapability out{.kind = *rc::gen::element(cpu, disk, files, memory, pids, time)};
  const auto units = *rc::gen::inRange(std::uint64_t{1}, std::uint64_t{100'000});
  out.value = units;
  if (out.kind == disk || out.kind == memory) out.value <<= *rc::gen::inRange(0, 31);
  if (out.kind == time) out.value = std::min<std::uint64_t>(units * 60, 365 * 24 * 3600);
  return out;
}

[[nodiscard]] inline core::AssertCapability assertion() {
  core::AssertCapability out{.id = *rc::gen::nonEmpty(text_over("ab1._-/"))};
  out.text = *text_over("ab :?\"\\$&={}*\xc3\xa9");
  if (out.text.empty()) out.text = out.id;
  return out;
}

// Well-formed and canonical; whether it may be granted (core/scope.h) is another question.
[[nodiscard]] inline rc::Gen<core::Capability> capability() {
  return rc::gen::exec([]() -> core::Capability {
    switch (*rc::gen::element(0, 1, 2, 3, 4, 5, 6, 7, 8)) {
      case 0:
        return core::FsCapability{
            .actions = fs_actions(), .path = path_pattern(), .unsafe = flip()};
      case 1: return net_connect(*endpoint());
      case 2: return core::NetListen{.port = *rc::gen::inRange<std::uint16_t>(1, 65535)};
      case 3:
        return core::ExecCapability{.program = pick({"git", "g++", "python3.11", "a_b-c", "7z"}),
                                    .nested_sandbox = flip()};
      case 4: return variable();
      case 5: return socket();
      case 6:
        return core::ClockCapability{.source =
                                         *rc::gen::element(core::ClockCapability::Source::system,
                                                           core::ClockCapability::Source::tzdata)};
      case 7: return limit();
      default: return assertion();
    }
  });
}

// The same, with `unsafe` set exactly where it must be; nothing if it may not be granted at all.
[[nodiscard]] inline std::optional<core::Capability> make_grantable(core::Capability capability) {
  const auto set_unsafe = [&](bool unsafe) {
    if (auto* fs = std::get_if<core::FsCapability>(&capability)) fs->unsafe = unsafe;
    if (auto* env = std::get_if<core::EnvCapability>(&capability)) env->unsafe = unsafe;
    if (auto* ipc = std::get_if<core::IpcCapability>(&capability)) ipc->unsafe = unsafe;
  };
  for (const bool unsafe : {false, true}) {
    set_unsafe(unsafe);
    if (core::check_scope(capability, "")) return capability;
  }
  return {};
}

}  // namespace capgate::support
