#include "lower/read_options.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace capgate::lower {
namespace {

using text::Kind;
using text::Member;
using text::Value;

bool read_text(Value value, std::string& out) {
  if (!value.is(Kind::string)) return false;
  out = value.text();
  return true;
}

bool read_texts(Value value, std::vector<std::string>& out) {
  if (!value.is(Kind::array)) return false;
  for (const Value item : value.elements()) {
    if (!read_text(item, out.emplace_back())) return false;
  }
  return true;
}

bool read_flag(Value value, bool& out) {
  out = value.is(Kind::boolean) && value.text() == "true";
  return value.is(Kind::boolean);
}

bool read_arch(Value value, Options& out) {
  if (!value.is(Kind::string)) return false;
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    if (value.text() != arch_name(arch)) continue;
    out.arch = arch;
    return true;
  }
  return false;
}

bool read_port(Value value, Options& out) {
  const auto port = value.is(Kind::number) ? parse_decimal(value.text()) : std::nullopt;
  if (!port || *port == 0 || *port > UINT16_MAX) return false;
  out.egress_port = static_cast<std::uint16_t>(*port);
  return true;
}

bool read_network_policy(Value value, Options& out) {
  out.cilium = value.is(Kind::string) && value.text() == "cilium";
  return out.cilium;
}

struct Key {
  std::string_view name;
  bool (*read)(Value value, Options& out);
};

constexpr Key keys[] = {
    {"arch", read_arch},
    {"brokerImage", [](Value value, Options& out) { return read_text(value, out.broker_image); }},
    {"networkPolicy", read_network_policy},
    {"command", [](Value value, Options& out) { return read_texts(value, out.command); }},
    {"egressDir", [](Value value, Options& out) { return read_text(value, out.egress_dir); }},
    {"egressPort", read_port},
    {"egressTarget", [](Value value, Options& out) { return read_text(value, out.egress_target); }},
    {"home", [](Value value, Options& out) { return read_text(value, out.home); }},
    {"image", [](Value value, Options& out) { return read_text(value, out.image); }},
    {"runtimeDir", [](Value value, Options& out) { return read_text(value, out.runtime_dir); }},
    {"programs", [](Value value, Options& out) { return read_texts(value, out.programs); }},
    {"rootful", [](Value value, Options& out) { return read_flag(value, out.rootful); }},
    {"script", [](Value value, Options& out) { return read_flag(value, out.script); }},
    {"seal", [](Value value, Options& out) { return read_flag(value, out.seal); }},
    {"tool", [](Value value, Options& out) { return read_text(value, out.tool); }},
    {"user", [](Value value, Options& out) { return read_text(value, out.user); }},
    {"writableRoot", [](Value value, Options& out) { return read_flag(value, out.writable_root); }},
};

}  // namespace

std::expected<Options, std::string> read_options(Value value) {
  if (!value.is(Kind::object)) return std::unexpected("its options are no object");
  Options out;
  for (const Member member : value.members()) {
    const auto* key = std::ranges::find(keys, member.key.text(), &Key::name);
    if (key == std::end(keys)) {
      return std::unexpected(
          format("it was made with the option {}, which is not known", quoted(member.key.text())));
    }
    if (!key->read(member.value, out)) {
      return std::unexpected(format("its option {} has no value that it can have", key->name));
    }
  }
  return out;
}

}  // namespace capgate::lower
