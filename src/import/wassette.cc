#include "import/wassette.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "import/cidr.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 3> policy_keys = {"version", "description", "permissions"};
constexpr std::array<std::string_view, 6> permission_keys = {"storage", "network",   "environment",
                                                             "runtime", "resources", "ipc"};
constexpr std::array<std::string_view, 2> list_keys = {"allow", "deny"};
constexpr std::array<std::string_view, 4> resource_keys = {"limits", "cpu", "memory", "io"};

// A number with at most three decimals, in thousandths.
std::optional<std::uint64_t> thousandths(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto units = parse_decimal(text.substr(0, dot));
  if (!units || *units > 1'000'000) return {};
  std::uint64_t out = *units * 1000;
  if (dot == std::string_view::npos) return out;
  const std::string_view decimals = text.substr(dot + 1);
  if (decimals.empty() || decimals.size() > 3 || !std::ranges::all_of(decimals, is_digit))
    return {};
  std::uint64_t scale = 100;
  for (const char c : decimals) {
    out += static_cast<std::uint64_t>(c - '0') * scale;
    scale /= 10;
  }
  return out;
}

class Reader {
 public:
  Reader(Value root, const ImportPlace& place) : in_("wassette", place), root_(root) {}

  Checked<Imported> read() {
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "a policy is a mapping", "write version: \"1.0\"");
      return std::move(in_).finish();
    }
    if (!is_known_version()) return std::move(in_).finish();
    in_.check_keys(root_, policy_keys, "a policy");
    if (const auto permissions = in_.member(root_, "permissions", Kind::object)) {
      in_.check_keys(*permissions, permission_keys, "permissions");
      read_storage(*permissions);
      read_network(*permissions);
      read_environment(*permissions);
      read_resources(*permissions);
      read_ipc(*permissions);
      read_runtime(*permissions);
    }
    in_.out().unsaid("exec", "a component of WebAssembly starts no programs: none is granted");
    in_.out().unsaid("tools", "a policy is for the whole component: no tool is named");
    return std::move(in_).finish();
  }

 private:
  bool is_known_version() {
    const auto version = root_.find("version");
    const bool known = version && version->is(Kind::string) && version->text() == "1.0";
    if (!known) {
      in_.add(
          {.code = Code::import_version,
           .where = version ? version->span() : Span::at(root_.span().begin, root_.span().begin),
           .message = version ? "this version of policies is not known" : "version is missing",
           .help = "known is version: \"1.0\""});
    }
    return known;
  }

  // The entries of `allow` or `deny`, each a mapping.
  std::vector<Value> entries(Value section, std::string_view key) {
    std::vector<Value> out;
    const auto list = in_.member(section, key, Kind::array);
    if (!list) return out;
    for (const Value entry : list->elements()) {
      if (entry.is(Kind::object)) {
        out.push_back(entry);
      } else {
        in_.complain(entry.span(), format("{} is a list of mappings", key), "write - uri: ...");
      }
    }
    return out;
  }

  std::optional<Value> section(Value permissions, std::string_view key) {
    const auto found = in_.member(permissions, key, Kind::object);
    if (found) in_.check_keys(*found, list_keys, key);
    return found;
  }

  // ---- storage
  // ------------------------------------------------------------------------------------

  void read_storage(Value permissions) {
    const auto storage = section(permissions, "storage");
    if (!storage) return;
    for (const Value entry : entries(*storage, "allow")) {
      const auto access = read_access(entry);
      const auto item = read_uri(entry, "storage.allow");
      if (!access || !item) continue;
      if (*access == Access::write) {
        in_.out().assumed("storage.allow", format("{} may be written there and not read; writing "
                                                  "includes reading here",
                                                  quoted(item->text)));
      }
      in_.allow_path(*access, *item);
    }
    for (const Value entry : entries(*storage, "deny")) {
      const auto access = read_access(entry);
      const auto item = read_uri(entry, "storage.deny");
      if (access && item) {
        in_.deny_path(*access == Access::write ? Access::write : Access::read, *item);
      }
    }
  }

  std::optional<Access> read_access(Value entry) {
    bool reads = false;
    bool writes = false;
    for (const Value word : in_.texts(entry, "access")) {
      reads |= word.text() == "read";
      writes |= word.text() == "write";
      if (word.text() != "read" && word.text() != "write") {
        in_.complain(whole(word), format("{} is no access", quoted(word.text())),
                     "write read or write");
      }
    }
    if (reads && writes) return Access::read_write;
    if (reads) return Access::read;
    if (writes) return Access::write;
    in_.complain(entry.span(), "access is missing", "add access: [read]");
    return {};
  }

  std::optional<Rules::Item> read_uri(Value entry, std::string_view subject) {
    constexpr std::array<std::string_view, 2> keys = {"uri", "access"};
    in_.check_keys(entry, keys, "an entry of storage");
    const auto uri = in_.member(entry, "uri", Kind::string);
    if (!uri || !uri->text().starts_with("fs://") || uri->text().size() == 5) {
      in_.complain(uri ? uri->span() : entry.span(), "an entry of storage has a uri: fs://PATH",
                   "write uri: \"fs:///srv/data/**\"");
      return {};
    }
    auto item = in_.plain(*uri, subject);
    if (!item) return {};
    item->text = item->text.substr(5);
    if (!item->text.starts_with('/')) {
      in_.out().assumed(subject,
                        format("{} is taken from the directory of this file", quoted(item->text)));
      item->text.insert(0, "./");
    }
    return item;
  }

  // ---- network
  // ------------------------------------------------------------------------------------

  void read_network(Value permissions) {
    const auto network = section(permissions, "network");
    if (!network) return;
    std::vector<core::HostPattern> addresses;
    bool names_a_host = false;
    for (const Value entry : entries(*network, "allow")) {
      if (const auto host = read_host(entry, "network.allow")) {
        const auto parsed = core::parse_host(host->text);
        names_a_host |= parsed && parsed->kind <= core::HostPattern::Kind::name;
        if (parsed) addresses.push_back(*parsed);
        in_.allow_host(*host);
      } else if (const auto block = read_block(entry)) {
        allow_block(entry, *block, addresses);
      }
    }
    for (const Value entry : entries(*network, "deny")) {
      if (const auto host = read_host(entry, "network.deny")) {
        in_.deny_host(*host);
      } else if (const auto block = read_block(entry)) {
        const bool in_use = std::ranges::any_of(
            addresses, [&](const core::HostPattern& host) { return holds(*block, host); });
        if (in_use || (names_a_host && !is_private(*block))) {
          in_.refuse(entry.span(),
                     format("{} is denied, and a host that is allowed may be in it", print(*block)),
                     "a manifest has no deny: allow the hosts that are needed by their names, and "
                     "remove the block; private addresses are closed anyway");
        }
      }
    }
  }

  std::optional<Rules::Item> read_host(Value entry, std::string_view subject) {
    const auto host = in_.member(entry, "host", Kind::string);
    if (!host || host->text().empty()) return {};
    constexpr std::array<std::string_view, 1> keys = {"host"};
    in_.check_keys(entry, keys, "a host");
    return in_.plain(*host, subject);
  }

  std::optional<core::AddressBlock> read_block(Value entry) {
    const auto cidr = in_.member(entry, "cidr", Kind::string);
    constexpr std::array<std::string_view, 2> keys = {"cidr", "host"};
    in_.check_keys(entry, keys, "an entry of network");
    const auto block = cidr ? parse_block(cidr->text()) : std::nullopt;
    if (!block) {
      in_.complain(entry.span(), "an entry of network has a host or a cidr",
                   "write host: api.example.com, or cidr: 192.0.2.0/24");
    }
    return block;
  }

  void allow_block(Value entry, const core::AddressBlock& block,
                   std::vector<core::HostPattern>& addresses) {
    const Value cidr = *entry.find("cidr");
    const std::string_view text = cidr.text().substr(0, cidr.text().find('/'));
    if (block.bits != (block.ipv6 ? 128U : 32U)) {
      in_.out().dropped("network.allow",
                        format("{} is a block of addresses, which a manifest cannot "
                               "name: add the hosts in it that are needed",
                               print(block)));
      return;
    }
    if (const auto host = core::parse_host(text)) {
      addresses.push_back(*host);
      in_.allow_endpoint(
          {.host = *host, .port = {}},
          {.text = std::string(text), .where = whole(cidr), .subject = "network.allow"});
    }
  }

  // ---- the rest
  // -----------------------------------------------------------------------------------

  // One name: a pattern would have to be weighed as the runtime does.
  void check_denied_variable(Value entry) {
    constexpr std::array<std::string_view, 1> keys = {"key"};
    in_.check_keys(entry, keys, "a variable");
    const auto key = in_.member(entry, "key", Kind::string);
    if (!key || key->text().empty()) {
      in_.complain(entry.span(), "a variable has a key", "write key: NAME");
    } else if (!std::ranges::all_of(key->text(), [](char c) { return is_alnum(c) || c == '_'; })) {
      in_.refuse(whole(*key),
                 format("{} is denied, which is no name of one variable", quoted(key->text())),
                 "allow the variables that are needed, each by its name, and deny none");
    }
  }

  void read_environment(Value permissions) {
    const auto environment = section(permissions, "environment");
    if (!environment) return;
    constexpr std::array<std::string_view, 1> keys = {"key"};
    const auto denied = entries(*environment, "deny");
    for (const Value entry : denied) check_denied_variable(entry);
    for (const Value entry : entries(*environment, "allow")) {
      in_.check_keys(entry, keys, "a variable");
      const auto key = in_.member(entry, "key", Kind::string);
      if (!key || key->text().empty()) {
        in_.complain(entry.span(), "a variable has a key", "write key: NAME");
        continue;
      }
      const bool is_denied = std::ranges::any_of(denied, [&](Value deny) {
        return has_member(deny, "key", Kind::string) && deny.find("key")->text() == key->text();
      });
      if (is_denied) {
        in_.out().assumed("environment.deny",
                          format("{} is allowed and denied: the deny holds, and the manifest does "
                                 "not grant it",
                                 quoted(key->text())));
        continue;
      }
      in_.allow_variable(
          core::EnvCapability::Action::read,
          {.text = std::string(key->text()), .where = whole(*key), .subject = "environment.allow"});
    }
    in_.out().assumed("environment",
                      "a policy does not say which variables are secrets: write "
                      "env:inject:NAME for those, so that capgate asks for them");
  }

  void read_resources(Value permissions) {
    const auto resources = in_.member(permissions, "resources", Kind::object);
    if (!resources) return;
    in_.check_keys(*resources, resource_keys, "resources");
    if (const auto io = resources->find("io"); io && !io->is(Kind::null)) {
      in_.refuse(io->span(), "a manifest has no limit for input and output",
                 "remove it from a copy of the file if the manifest may do without");
    }
    read_limits(*resources);
    if (const auto limits = in_.member(*resources, "limits", Kind::object)) {
      constexpr std::array<std::string_view, 2> keys = {"cpu", "memory"};
      in_.check_keys(*limits, keys, "limits");
      read_limits(*limits);
    }
  }

  void read_limits(Value limits) {
    if (const auto cpu = limits.find("cpu"); cpu && !cpu->is(Kind::null)) read_cpu(*cpu);
    if (const auto memory = limits.find("memory"); memory && !memory->is(Kind::null)) {
      read_memory(*memory);
    }
  }

  void limit(core::LimitCapability::Kind kind, std::uint64_t value, Value where) {
    in_.allow(print(core::Capability(core::LimitCapability{.kind = kind, .value = value})),
              {.text = {}, .where = where.span(), .subject = "resources"});
  }

  // Cores ("1", "0.5") or thousandths of one ("500m").
  void read_cpu(Value value) {
    const bool is_scalar = value.is(Kind::string) || value.is(Kind::number);
    std::string_view text = is_scalar ? value.text() : "";
    const bool is_milli = value.is(Kind::string) && text.ends_with('m');
    if (is_milli) text.remove_suffix(1);
    const auto milli = is_milli ? parse_decimal(text) : thousandths(text);
    if (!milli || *milli < 10 || *milli > 1'000'000'000) {
      return in_.complain(value.span(), "cpu is a number of cores, from 0.01 on",
                          "write \"500m\" or \"1\"");
    }
    limit(core::LimitCapability::Kind::cpu, *milli / 10, value);
  }

  // Bytes with Ki, Mi, Gi, Ti as a text; a number counts mebibytes.
  void read_memory(Value value) {
    std::string_view text = value.is(Kind::string) || value.is(Kind::number) ? value.text() : "";
    unsigned shift = value.is(Kind::number) ? 20 : 0;
    constexpr std::array<std::string_view, 4> units = {"Ki", "Mi", "Gi", "Ti"};
    for (unsigned i = 0; value.is(Kind::string) && i < units.size(); ++i) {
      if (!text.ends_with(units.at(i))) continue;
      text.remove_suffix(2);
      shift = (i + 1) * 10;
      break;
    }
    const auto count = parse_decimal(text);
    if (!count || *count == 0 || *count > (std::uint64_t{1} << 50U) >> shift) {
      return in_.complain(value.span(), "memory is a number of bytes", "write \"512Mi\"");
    }
    limit(core::LimitCapability::Kind::memory, *count << shift, value);
  }

  void read_ipc(Value permissions) {
    const auto ipc = section(permissions, "ipc");
    if (!ipc || entries(*ipc, "allow").empty()) return;
    in_.out().dropped("ipc.allow",
                      "sockets are granted one by one, as ipc:connect:\"unix:/PATH\": none "
                      "is");
  }

  void read_runtime(Value permissions) {
    const auto runtime = in_.member(permissions, "runtime", Kind::object);
    if (!runtime) return;
    constexpr std::array<std::string_view, 2> keys = {"docker", "hyperlight"};
    in_.check_keys(*runtime, keys, "runtime");
    if (const auto docker = in_.member(*runtime, "docker", Kind::object)) {
      const auto security = in_.member(*docker, "security", Kind::object);
      if (security && in_.flag(*security, "privileged")) {
        in_.refuse(security->find("privileged")->span(),
                   "a privileged container has every right on the host",
                   "set privileged to false, and name what the component needs");
      }
    }
    in_.out().dropped("runtime",
                      "settings of a container engine: a sandbox has no capabilities of the "
                      "kernel, and gains no privileges");
  }

  Rules in_;
  Value root_;
};

}  // namespace

bool is_wassette(const text::Document& document) {
  const Value root = document.root();
  if (!has_member(root, "permissions", Kind::object) || !root.find("version")) return false;
  for (const Member member : root.members()) {
    if (!contains(policy_keys, member.key.text())) return false;
  }
  for (const Member member : root.find("permissions")->members()) {
    if (!contains(permission_keys, member.key.text())) return false;
    if (!member.value.is(Kind::object)) return false;
  }
  return true;
}

Checked<Imported> read_wassette(const text::Document& document, const ImportPlace& place) {
  return Reader(document.root(), place).read();
}

}  // namespace capgate::imports
