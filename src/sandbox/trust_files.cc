#include "sandbox/trust_files.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/format.h"

namespace capgate::sandbox {
namespace {

// Below /etc, which Landlock lets be read.
constexpr const char* own_directory = "/etc/capgate";
constexpr const char* own_bundle = "/etc/capgate/ca.pem";
constexpr const char* own_anchor = "/etc/capgate/anchor.pem";
constexpr const char* own_key_store = "/etc/capgate/cacerts";

struct Variable {
  std::string_view name;
  std::string_view file;
};
constexpr Variable variables[] = {
    // In the place of the roots that the program would use.
    {"AWS_CA_BUNDLE", own_bundle},
    {"CURL_CA_BUNDLE", own_bundle},
    {"GIT_SSL_CAINFO", own_bundle},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", own_bundle},
    {"PIP_CERT", own_bundle},
    {"REQUESTS_CA_BUNDLE", own_bundle},
    {"SSL_CERT_FILE", own_bundle},
    // Beside them: reading all roots twice would cost each start.
    {"DENO_CERT", own_anchor},
    {"NODE_EXTRA_CA_CERTS", own_anchor},
};

std::string anchor_of(const std::string& bundle) {
  const std::size_t begin = bundle.rfind("-----BEGIN CERTIFICATE-----");
  return begin == std::string::npos ? std::string() : bundle.substr(begin);
}

struct Close {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};

// Of a directory; none if it cannot be listed.
std::vector<std::string> names_in(const char* directory) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, Close> list(::opendir(directory));
  if (!list) return out;
  while (const dirent* entry = ::readdir(list.get())) {
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  std::ranges::sort(out);
  return out;
}

// Installed ones, and those of programs that may run.
std::vector<std::string> java_homes(const Bound& bound) {
  std::vector<std::string> out;
  for (const std::string& name : names_in("/usr/lib/jvm")) out.push_back("/usr/lib/jvm/" + name);
  for (const std::string& program : bound.executables) {
    if (program.ends_with("/bin/java")) out.emplace_back(parent_of(parent_of(program)));
  }
  return out;
}

std::vector<std::string> java_key_stores(const Bound& bound) {
  std::vector<std::string> out;
  for (const std::string& home : java_homes(bound)) {
    for (const std::string_view place : {"lib/security", "jre/lib/security"}) {
      // The second, where it exists, is what Java takes.
      for (const std::string_view name : {"cacerts", "jssecacerts"}) {
        out.push_back(format("{}/{}/{}", home, place, name));
      }
    }
  }
  return out;
}

// Mounts go to the end of links: that is where each name leads, inside as on the host.
void cover_all(Tree& tree, const std::vector<std::string>& paths, const std::string& made) {
  std::set<std::string> places;
  for (const std::string& path : paths) places.insert(real_path(path));
  for (const std::string& place : places) {
    const auto identity = identify(place);
    if (identity && identity->type == S_IFREG && tree.is_host(place)) {
      tree.cover_with(place, made);
    }
  }
}

void set_variables(std::vector<std::string>& environment) {
  for (const auto& [name, file] : variables) {
    const std::string begin = format("{}=", name);
    const bool is_set = std::ranges::any_of(
        environment, [&](const std::string& entry) { return entry.starts_with(begin); });
    if (!is_set) environment.push_back(format("{}{}", begin, file));
  }
}

}  // namespace

std::expected<void, Refusal> place_trust(const Parts& parts, const Trust& trust) {
  Tree& tree = parts.tree;
  if (tree.has(own_directory) || tree.is_host(own_directory)) {
    return std::unexpected(Refusal{
        .message =
            format("{} is where a sandbox with sealed secrets has its certificates", own_directory),
        .help = "grant another directory, or seal nothing"});
  }
  tree.file(own_bundle, trust.bundle, 0444);
  tree.file(own_anchor, anchor_of(trust.bundle), 0444);
  tree.file(own_key_store, trust.key_store, 0444);
  cover_all(tree, well_known_bundles(), own_bundle);
  cover_all(tree, java_key_stores(parts.bound), own_key_store);
  set_variables(parts.bound.environment);
  return {};
}

}  // namespace capgate::sandbox
