#include "import/srt.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/address_blocks.h"
#include "core/base_system.h"
#include "import/cidr.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 17> settings_keys = {"network",
                                                            "filesystem",
                                                            "credentials",
                                                            "ignoreViolations",
                                                            "enableWeakerNestedSandbox",
                                                            "allowNestedUserNamespaces",
                                                            "enableWeakerNetworkIsolation",
                                                            "allowAppleEvents",
                                                            "ripgrep",
                                                            "mandatoryDenySearchDepth",
                                                            "allowPty",
                                                            "seccomp",
                                                            "bwrapPath",
                                                            "socatPath",
                                                            "javaAgentJarPath",
                                                            "windows",
                                                            "git"};
constexpr std::array<std::string_view, 6> filesystem_keys = {
    "disabled", "denyRead", "allowRead", "allowWrite", "denyWrite", "allowGitConfig"};
constexpr std::array<std::string_view, 19> network_keys = {
    "allowedDomains",          "deniedDomains",        "deniedDomainReasons", "strictAllowlist",
    "deniedResolvedAddresses", "allowUnixSockets",     "allowAllUnixSockets", "allowLocalBinding",
    "allowMachLookup",         "httpProxyPort",        "socksProxyPort",      "mitmProxy",
    "allowPlaintextHeaderSet", "stripResponseHeaders", "refuseOpaqueTunnels", "requireHostMatch",
    "ambiguousRequestTarget",  "tlsTerminate",         "parentProxy"};
constexpr std::array<std::string_view, 5> credential_keys = {
    "files", "envVars", "allowPlaintextInject", "awsPairs", "sigv4"};

bool is_on(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && !value->is(Kind::null) && !(value->is(Kind::boolean) && value->text() == "false");
}

// A text, or {"path": ..., "literal": true}, which is never a pattern.
std::optional<Rules::Item> read_entry(Rules& in, Value entry, std::string_view subject,
                                      TranslatePath translate) {
  if (entry.is(Kind::string) && !entry.text().empty() &&
      std::ranges::none_of(entry.text(), is_control)) {
    return translate(in, entry, entry.text(), subject);
  }
  const bool is_marked = has_member(entry, "path", Kind::string) &&
                         has_member(entry, "literal", Kind::boolean) && entry.count() == 2 &&
                         entry.find("literal")->text() == "true";
  if (!is_marked) {
    in.complain(entry.span(), format("{} is a list of paths", subject),
                "write a path, or {\"path\": PATH, \"literal\": true}");
    return {};
  }
  const Value path = *entry.find("path");
  if (path.text().empty() || find_any(path.text(), "*?[]{}$") != std::string_view::npos ||
      std::ranges::any_of(path.text(), is_control)) {
    in.complain(path.span(), "a path with such characters in its name cannot be granted",
                "name the directory around it, or rename it");
    return {};
  }
  return translate(in, path, path.text(), subject);
}

template <typename Use>
void each_path(Rules& in, Value filesystem, std::string_view key, TranslatePath translate,
               Use use) {
  const auto list = in.member(filesystem, key, Kind::array);
  if (!list) return;
  for (const Value entry : list->elements()) {
    if (const auto item = read_entry(in, entry, key, translate)) use(*item);
  }
}

// What a sandbox has anyway, and what the runtime needs for itself, is no grant: `capgate export`
// lists both, as whoever denies `/` must.
void allow_read(Rules& in, const Rules::Item& item) {
  const std::size_t slash = item.text.find_last_of('/');
  if (core::is_base_system(item.text)) {
    in.allow_base(item);
    in.out().assumed(item.subject,
                     "the system itself (/usr, and a few files of /etc) is in every sandbox: it is "
                     "not granted by name");
  } else if (item.text == core::timezone_file) {
    in.allow("clock:tzdata", item);
  } else if (slash != std::string::npos && item.text.substr(slash + 1) == core::srt_proxy_sockets) {
    in.out().dropped(item.subject,
                     format("{} is the runtime's own, for its proxy", quoted(item.text)));
  } else {
    in.allow_path(Access::read, item);
  }
}

void read_filesystem(Rules& in, Value filesystem, TranslatePath translate) {
  in.check_keys(filesystem, filesystem_keys, "filesystem");
  if (in.flag(filesystem, "disabled")) {
    in.refuse(filesystem.find("disabled")->span(),
              "without rules for files everything may be read and written",
              "remove disabled, and name what the server needs in allowWrite and allowRead");
  }
  each_path(in, filesystem, "allowRead", translate,
            [&](const Rules::Item& item) { allow_read(in, item); });
  each_path(in, filesystem, "allowWrite", translate,
            [&](const Rules::Item& item) { in.allow_path(Access::write, item); });
  each_path(in, filesystem, "denyRead", translate,
            [&](const Rules::Item& item) { in.deny_path(Access::read, item); });
  each_path(in, filesystem, "denyWrite", translate,
            [&](const Rules::Item& item) { in.deny_path(Access::write, item); });
  if (in.flag(filesystem, "allowGitConfig")) {
    in.out().dropped("filesystem.allowGitConfig",
                     "configuration of git stays read-only inside a writable directory: grant "
                     "fs:write:/REPOSITORY/.git/config by name if the server must change it");
  }
}

// What restricts further than hosts and ports, and has no word in the language.
void refuse_filters(Rules& in, Value network) {
  for (const std::string_view key : {"refuseOpaqueTunnels", "stripResponseHeaders"}) {
    const auto value = network.find(key);
    if (!value || !is_on(network, key) || (value->is(Kind::array) && value->count() == 0)) continue;
    in.refuse(value->span(), format("{} restricts what passes, and a manifest cannot say it", key),
              "remove it from a copy of the file if the manifest may do without");
  }
  const auto list = in.member(network, "deniedResolvedAddresses", Kind::array);
  if (!list) return;
  std::vector<core::AddressBlock> blocks;
  for (const Value item : list->elements()) {
    const auto block = item.is(Kind::string) ? parse_block(item.text()) : std::nullopt;
    if (!block) {
      in.complain(item.span(), "deniedResolvedAddresses is a list of addresses and their blocks",
                  "write \"10.0.0.0/8\" or \"192.0.2.1\"");
    } else if (!is_private(*block)) {
      in.refuse(
          item.span(),
          format("{} is public, and a manifest cannot deny addresses to names", print(*block)),
          "remove it from a copy of the file if the manifest may do without; private addresses "
          "are closed anyway");
    } else {
      blocks.push_back(*block);
    }
  }
  // What `capgate export` writes where names have private=true; any other list leaves it closed.
  sort_and_deduplicate(blocks);
  if (blocks == core::without_mapped(core::closed_blocks())) in.open_private();
}

void drop_settings(Rules& in, Value object, std::span<const std::string_view> keys,
                   std::string_view prefix, std::string_view message) {
  for (const std::string_view key : keys) {
    if (is_on(object, key)) in.out().dropped(format("{}{}", prefix, key), std::string(message));
  }
}

void read_network(Rules& in, Value network) {
  in.check_keys(network, network_keys, "network");
  for (const Value value : in.texts(network, "allowedDomains")) {
    const auto item = in.plain(value, "network.allowedDomains");
    if (!item) continue;
    if (item->text == "*" || item->text.starts_with("*:")) {
      in.refuse(item->where, "every host is allowed", "name the domains that the server needs");
    } else {
      in.allow_host(*item);
    }
  }
  for (const Value value : in.texts(network, "deniedDomains")) {
    if (const auto item = in.plain(value, "network.deniedDomains")) in.deny_host(*item);
  }
  refuse_filters(in, network);
  constexpr std::string_view sockets[] = {"allowUnixSockets", "allowAllUnixSockets"};
  drop_settings(in, network, sockets, "network.",
                "sockets are granted one by one, as ipc:connect:\"unix:/PATH\": none is");
  constexpr std::string_view local[] = {"allowLocalBinding"};
  drop_settings(
      in, network, local, "network.",
      "a port on which the server listens for the host is net:listen:PORT: none is granted");
  constexpr std::string_view ways[] = {
      "httpProxyPort",   "socksProxyPort",         "mitmProxy", "tlsTerminate", "parentProxy",
      "allowMachLookup", "allowPlaintextHeaderSet"};
  drop_settings(in, network, ways, "network.",
                "how connections travel is the sandbox's own matter, and not in a manifest");
}

void read_credentials(Rules& in, Value credentials, TranslatePath translate) {
  in.check_keys(credentials, credential_keys, "credentials");
  if (const auto files = in.member(credentials, "files", Kind::array)) {
    for (const Value file : files->elements()) {
      if (!has_member(file, "path", Kind::string) || file.find("path")->text().empty()) {
        in.complain(file.span(), "credentials.files is a list of {path, mode}", "add its path");
        continue;
      }
      const Value path = *file.find("path");
      if (const auto item = translate(in, path, path.text(), "credentials.files")) {
        in.deny_reading_for_good(*item);
      }
    }
  }
  const auto variables = in.member(credentials, "envVars", Kind::array);
  if (!variables) return;
  for (const Value variable : variables->elements()) {
    if (!has_member(variable, "name", Kind::string) ||
        !has_member(variable, "mode", Kind::string)) {
      in.complain(variable.span(), "credentials.envVars is a list of {name, mode}",
                  "add its name and its mode");
    } else if (variable.find("mode")->text() == "mask") {
      in.out().dropped("credentials.envVars",
                       format("the secret {} is not granted: seal it with "
                              "env:inject:NAME?to=HOST:443, which masks it in the same way",
                              quoted(variable.find("name")->text())));
    }
  }
}

std::optional<Rules::Item> as_it_is(Rules& in, Value value, std::string_view text,
                                    std::string_view subject) {
  if (text.contains("${")) {
    in.complain(whole(value), format("{} has no variables", subject), "write the path out");
    return {};
  }
  return Rules::Item{.text = std::string(text), .where = whole(value), .subject = subject};
}

}  // namespace

void read_sandbox_object(Rules& in, Value object, TranslatePath translate) {
  in.allowed_reads_win();
  if (const auto files = in.member(object, "filesystem", Kind::object)) {
    read_filesystem(in, *files, translate);
  }
  if (const auto network = in.member(object, "network", Kind::object)) read_network(in, *network);
  in.out().assumed("filesystem",
                   "everything is readable there that no rule denies; a manifest names "
                   "what is read. Granted is what may be written, and what allowRead "
                   "names: add fs:read:PATH for the rest");
  in.out().unsaid("exec",
                  "the settings do not say which programs are started, and allow all: none "
                  "is granted; add exec:spawn:NAME where one is needed");
}

bool is_srt(const text::Document& document) {
  const Value root = document.root();
  if (!has_member(root, "filesystem", Kind::object) && !has_member(root, "network", Kind::object))
    return false;
  for (const Member member : root.members()) {
    if (!contains(settings_keys, member.key.text())) return false;
  }
  constexpr std::string_view telling[] = {"allowedDomains", "deniedDomains"};
  constexpr std::string_view telling_files[] = {"denyRead", "allowRead", "allowWrite", "denyWrite"};
  const auto network = root.find("network");
  const auto files = root.find("filesystem");
  const auto holds = [](const std::optional<Value>& object,
                        std::span<const std::string_view> keys) {
    return object && object->is(Kind::object) &&
           std::ranges::any_of(keys, [&](auto key) { return object->find(key).has_value(); });
  };
  return holds(network, telling) || holds(files, telling_files);
}

Checked<Imported> read_srt(const text::Document& document, const ImportPlace& place) {
  Rules in("srt", place);
  const Value root = document.root();
  if (!root.is(Kind::object)) {
    in.complain(root.span(), "the settings are a mapping",
                "write {\"filesystem\": {...}, \"network\": {...}}");
    return std::move(in).finish();
  }
  in.check_keys(root, settings_keys, "the settings");
  in.start_is_unknown("srt");
  read_sandbox_object(in, root, as_it_is);
  if (const auto credentials = in.member(root, "credentials", Kind::object)) {
    read_credentials(in, *credentials, as_it_is);
  }
  constexpr std::string_view weaker[] = {"enableWeakerNestedSandbox", "allowNestedUserNamespaces",
                                         "enableWeakerNetworkIsolation", "allowAppleEvents",
                                         "allowPty"};
  drop_settings(in, root, weaker, "", "it weakens the sandbox, and a manifest has no word for it");
  constexpr std::string_view tools[] = {
      "ripgrep",   "seccomp",          "bwrapPath",
      "socatPath", "javaAgentJarPath", "windows",
      "git",       "ignoreViolations", "mandatoryDenySearchDepth"};
  drop_settings(in, root, tools, "", "a setting of the runtime itself, not a permission");
  in.out().unsaid("env",
                  "the settings pass every variable on: none is granted; add env:read:NAME and "
                  "env:inject:NAME");
  in.out().unsaid("tools", "the settings are for a whole process: no tool is named");
  return std::move(in).finish();
}

}  // namespace capgate::imports
