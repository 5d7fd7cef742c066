#include "library/request.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::v0 {
namespace {

using text::Kind;
using text::Member;
using text::Value;

class Reader {
 public:
  explicit Reader(const text::Document& document)
      : root_(document.root()), source_("<request>", document.source()) {}

  Expected<Request> read() {
    if (!root_.is(Kind::object)) {
      complain(root_, "a request is an object", R"(write {"manifest": ..., "target": ...})");
      return std::move(errors_);
    }
    read_members(root_, request_keys);
    const bool needs_manifest = request_.operation != Operation::targets;
    if (needs_manifest && !root_.find("manifest")) {
      complain(root_, "manifest is missing", "add the text of a manifest, as a string");
    }
    request_.lower.pretty = request_.pretty;
    if (!errors_.empty()) return std::move(errors_);
    return std::move(request_);
  }

 private:
  struct Key {
    std::string_view name;
    void (Reader::*read)(Value value);
  };
  static const Key request_keys[6];
  static const Key option_keys[18];

  void complain(Value value, std::string message, std::string help) {
    const auto at = source_.position(value.span().begin);
    errors_.push_back({.code = "REQUEST_INVALID",
                       .message = std::move(message),
                       .help = std::move(help),
                       .line = at.line,
                       .column = at.column,
                       .file = source_.name()});
  }

  template <std::size_t n>
  void read_members(Value object, const Key (&known)[n]) {
    for (const Member member : object.members()) {
      const auto* key = std::ranges::find(known, member.key.text(), &Key::name);
      if (key != std::end(known)) {
        (this->*key->read)(member.value);
        continue;
      }
      std::vector<std::string_view> names(n);
      std::ranges::transform(known, names.begin(), &Key::name);
      const auto meant = closest(member.key.text(), names);
      complain(member.key, format("unknown key {}", quoted(member.key.text())),
               meant ? format("did you mean {}?", *meant) : "leave it out");
    }
  }

  bool is(Value value, Kind kind, std::string_view what) {
    if (value.is(kind)) return true;
    complain(value, format("this is {}", what), "see capgate_c.h for the keys of a request");
    return false;
  }
  void read_text(Value value, std::string& out) {
    if (is(value, Kind::string, "a string")) out = value.text();
  }
  void read_flag(Value value, bool& out) {
    if (is(value, Kind::boolean, "true or false")) out = value.text() == "true";
  }
  void read_texts(Value value, std::vector<std::string>& out) {
    if (!is(value, Kind::array, "an array of strings")) return;
    out.reserve(value.count());
    for (const Value item : value.elements()) read_text(item, out.emplace_back());
  }

  void read_operation(Value value) {
    constexpr std::string_view names[] = {"compile", "check", "parse", "targets"};
    const auto* name = std::ranges::find(names, value.is(Kind::string) ? value.text() : "");
    if (name == std::end(names)) {
      complain(value, "there is no such operation", "write compile, check, parse or targets");
      return;
    }
    request_.operation = static_cast<Operation>(name - std::begin(names));
  }
  void read_manifest(Value value) { read_text(value, request_.manifest); }
  void read_name(Value value) { read_text(value, request_.name); }
  void read_target(Value value) { read_text(value, request_.target); }
  void read_pretty(Value value) { read_flag(value, request_.pretty); }
  void read_options(Value value) {
    if (is(value, Kind::object, "an object")) read_members(value, option_keys);
  }

  void read_tool(Value value) { read_text(value, request_.compile.tool.emplace()); }
  void read_variables(Value value) {
    if (!is(value, Kind::object, "an object")) return;
    request_.compile.variables.reserve(value.count());
    for (const Member member : value.members()) {
      Variable& variable = request_.compile.variables.emplace_back();
      variable.name = member.key.text();
      if (member.value.is(Kind::string)) {
        variable.values.emplace_back(member.value.text());
      } else {
        read_texts(member.value, variable.values);
      }
    }
  }
  void read_seal(Value value) { read_flag(value, request_.compile.seal); }
  void read_validators(Value value) {
    if (!is(value, Kind::object, "an object")) return;
    auto& validators = request_.compile.validators.emplace();
    for (const Member member : value.members()) {
      read_text(member.value, validators[std::string(member.key.text())]);
    }
  }
  void read_programs(Value value) { read_texts(value, request_.lower.programs); }
  void read_accepted(Value value) { read_texts(value, request_.lower.accept_unenforced); }
  void read_user(Value value) { read_text(value, request_.lower.user); }
  void read_writable_root(Value value) { read_flag(value, request_.lower.writable_root); }
  void read_image(Value value) { read_text(value, request_.lower.image); }
  void read_broker_image(Value value) { read_text(value, request_.lower.broker_image); }
  void read_rootful(Value value) { read_flag(value, request_.lower.rootful); }
  void read_network_policy(Value value) {
    const std::string_view name = value.is(Kind::string) ? value.text() : "";
    if (name != "kubernetes" && name != "cilium") {
      complain(value, "there is no such kind of policy", "write kubernetes or cilium");
    }
    request_.lower.cilium = name == "cilium";
  }
  void read_egress_port(Value value) {
    const auto port = value.is(Kind::number) ? parse_decimal(value.text()) : std::nullopt;
    if (!port || *port == 0 || *port > UINT16_MAX) {
      complain(value, "this is a port", "write a number from 1 to 65535");
      return;
    }
    request_.lower.egress_port = static_cast<unsigned short>(*port);
  }
  void read_command(Value value) { read_texts(value, request_.lower.command); }
  void read_egress_dir(Value value) { read_text(value, request_.lower.egress_dir); }
  void read_egress_target(Value value) { read_text(value, request_.lower.egress_target); }
  void read_script(Value value) { read_flag(value, request_.lower.script); }
  void read_arch(Value value) {
    const std::string_view name = value.is(Kind::string) ? value.text() : "";
    if (name != "x86_64" && name != "aarch64") {
      complain(value, "there is no such architecture", "write x86_64 or aarch64");
    }
    request_.lower.arch = name == "aarch64" ? Arch::aarch64 : Arch::x86_64;
  }

  Value root_;
  Source source_;
  Request request_;
  Errors errors_;
};

const Reader::Key Reader::request_keys[] = {
    {"operation", &Reader::read_operation}, {"manifest", &Reader::read_manifest},
    {"name", &Reader::read_name},           {"target", &Reader::read_target},
    {"pretty", &Reader::read_pretty},       {"options", &Reader::read_options},
};

const Reader::Key Reader::option_keys[] = {
    {"tool", &Reader::read_tool},
    {"variables", &Reader::read_variables},
    {"seal", &Reader::read_seal},
    {"validators", &Reader::read_validators},
    {"programs", &Reader::read_programs},
    {"acceptUnenforced", &Reader::read_accepted},
    {"user", &Reader::read_user},
    {"writableRoot", &Reader::read_writable_root},
    {"arch", &Reader::read_arch},
    {"image", &Reader::read_image},
    {"command", &Reader::read_command},
    {"egressDir", &Reader::read_egress_dir},
    {"brokerImage", &Reader::read_broker_image},
    {"rootful", &Reader::read_rootful},
    {"networkPolicy", &Reader::read_network_policy},
    {"egressPort", &Reader::read_egress_port},
    {"script", &Reader::read_script},
    {"egressTarget", &Reader::read_egress_target},
};

}  // namespace

Expected<Request> read_request(std::string_view json) {
  const text::SharedText shared = text::share(std::string(json));
  const auto document = text::parse_json(shared);
  if (!document) return errors_of(document.error(), Source("<request>", *shared));
  return Reader(*document).read();
}

}  // namespace capgate::v0
