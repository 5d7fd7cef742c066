#include "clients/config_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "sys/fd.h"
#include "text/yaml.h"

namespace capgate::clients {
namespace {

constexpr std::string_view file_name = "capgate.yaml";
constexpr std::string_view ending = ".yaml";

std::string directory_of(const std::string& path, const std::string& current) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return current;
  if (path.starts_with('/')) return slash == 0 ? "/" : path.substr(0, slash);
  return format("{}/{}", current, path.substr(0, slash));
}

std::unexpected<ConfigProblem> unreadable(const std::string& file, std::string_view why) {
  return std::unexpected(
      ConfigProblem{.file = file,
                    .text = nullptr,
                    .diagnostics = {},
                    .message = format("cannot read {}: {}", escape_for_terminal(file), why)});
}

struct Place {
  std::string file;
  Layer layer;
  std::string only = {};  // the one server that a file of servers/ may have
};

std::vector<Place> places_of(const Places& places, std::string_view server) {
  std::vector<Place> out;
  if (!places.flag.empty()) out.push_back({places.flag, Layer::flag});
  if (!places.directory.empty()) {
    out.push_back({project_file(places), Layer::project});
  }
  if (!places.config.empty()) {
    out.push_back({format("{}/{}", places.config, file_name), Layer::user});
    out.push_back({format("{}/servers/{}{}", places.config, server, ending), Layer::user,
                   std::string(server)});
  }
  if (!places.system.empty())
    out.push_back({format("{}/{}", places.system, file_name), Layer::system});
  return out;
}

using Found = std::expected<std::vector<FoundServer>, ConfigProblem>;

// A file of servers/ that spoke of another server would be read or not by the name of a third.
std::expected<void, ConfigProblem> check_only(const Place& place, const Config& config,
                                              const text::SharedText& text) {
  if (place.only.empty()) return {};
  for (const ServerConfig& server : config.servers) {
    if (server.name == place.only) continue;
    return std::unexpected(ConfigProblem{
        .file = place.file,
        .text = text,
        .diagnostics = {{.code = Code::config_shape,
                         .where = server.where,
                         .message = format("this file is of the server {} alone", place.only),
                         .help = format("move {} to {}{}, or to capgate.yaml", server.name,
                                        server.name, ending)}},
        .message = {}});
  }
  return {};
}

Found read_text(const Place& place, const text::SharedText& text, const Places& places) {
  const auto fail = [&](Diagnostics mistakes) {
    return std::unexpected(ConfigProblem{
        .file = place.file, .text = text, .diagnostics = std::move(mistakes), .message = {}});
  };
  const auto document = text::parse_yaml(text);
  if (!document) return fail(document.error());
  auto config = parse_config(
      *document, {.directory = directory_of(place.file, places.directory), .home = places.home});
  if (!config) return fail(std::move(config).error());
  if (auto checked = check_only(place, *config, text); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  std::vector<FoundServer> out;
  for (ServerConfig& server : config->servers) {
    out.push_back(
        {.server = std::move(server), .layer = place.layer, .file = place.file, .text = text});
  }
  return out;
}

// Every entry of a file that is there.
Found read_place(const Place& place, const Places& places) {
  const Links links = place.layer == Layer::project ? Links::are_refused : Links::are_followed;
  auto read = read_regular_file(place.file, links);
  if (!read && read.error() == ENOENT && place.layer != Layer::flag) {
    return std::vector<FoundServer>{};
  }
  if (!read && read.error() == ELOOP) return unreadable(place.file, "it is a symbolic link");
  if (!read) return unreadable(place.file, std::strerror(read.error()));
  return read_text(place, text::share(*std::move(read)), places);
}

// Which of the two would hold is not guessed.
std::expected<void, ConfigProblem> check_twice(const std::vector<FoundServer>& found) {
  for (std::size_t i = 1; i < found.size(); ++i) {
    const FoundServer& a = found[i - 1];
    const FoundServer& b = found[i];
    if (a.layer != b.layer || a.server.name != b.server.name) continue;
    return std::unexpected(
        ConfigProblem{.file = b.file,
                      .text = b.text,
                      .diagnostics = {{.code = Code::config_shape,
                                       .where = b.server.where,
                                       .message = format("{} stands in {}, too", b.server.name,
                                                         escape_for_terminal(a.file)),
                                       .help = "remove one of the two"}},
                      .message = {}});
  }
  return {};
}

// The files of servers/, by their names.
std::expected<std::vector<Place>, ConfigProblem> list_servers(const Places& places) {
  const std::string path = format("{}/servers", places.config);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(path.c_str()), ::closedir);
  if (!listing) {
    if (errno == ENOENT) return std::vector<Place>{};
    return unreadable(path, std::strerror(errno));
  }
  std::vector<Place> out;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(ending)) continue;
    const std::string_view server = name.substr(0, name.size() - ending.size());
    if (!is_server_name(server)) continue;
    out.push_back({format("{}/{}", path, name), Layer::user, std::string(server)});
  }
  return out;
}

// Those of no certain server.
std::vector<Place> common_places(const Places& places) {
  std::vector<Place> out = places_of(places, "");
  std::erase_if(out, [](const Place& place) { return place.file.ends_with("/servers/.yaml"); });
  return out;
}

std::expected<std::vector<Place>, ConfigProblem> every_place(const Places& places) {
  std::vector<Place> out = common_places(places);
  if (places.config.empty()) return out;
  auto listed = list_servers(places);
  if (!listed) return std::unexpected(std::move(listed).error());
  std::ranges::move(*listed, std::back_inserter(out));
  return out;
}

// All but the project's; a directory that cannot be listed has none.
std::vector<Place> own_places(const Places& places) {
  std::vector<Place> out = every_place(places).value_or(common_places(places));
  std::erase_if(out, [](const Place& place) { return place.layer == Layer::project; });
  return out;
}

}  // namespace

std::string project_file(const Places& places) {
  return format("{}{}{}", places.directory, places.directory.ends_with('/') ? "" : "/", file_name);
}

std::expected<std::string, int> read_regular_file(const std::string& path, Links links) {
  // Without waiting: a pipe could have been put there that nobody writes.
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (links == Links::are_refused ? O_NOFOLLOW : 0);
  const sys::Fd file(::open(path.c_str(), flags));
  if (file.get() < 0) return std::unexpected(errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return std::unexpected(errno);
  if (S_ISDIR(info.st_mode)) return std::unexpected(EISDIR);
  if (!S_ISREG(info.st_mode)) return std::unexpected(EINVAL);
  std::string text;
  char room[16384];
  while (text.size() <= text::largest_document) {
    const ssize_t got = ::read(file.get(), room, sizeof(room));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    if (got == 0) break;
    text.append(room, static_cast<std::size_t>(got));
  }
  return text;
}

Found read_config_text(const std::string& file, const text::SharedText& text,
                       const Places& places) {
  return read_text({.file = file, .layer = Layer::flag}, text, places);
}

Found find_server(std::string_view name, const Places& places) {
  std::vector<FoundServer> out;
  for (const Place& place : places_of(places, name)) {
    auto read = read_place(place, places);
    if (!read) return read;
    for (FoundServer& found : *read) {
      if (found.server.name == name) out.push_back(std::move(found));
    }
  }
  if (auto checked = check_twice(out); !checked) return std::unexpected(std::move(checked).error());
  return out;
}

std::vector<std::string> deciding_files(const Places& places) {
  std::vector<std::string> out;
  if (!places.config.empty()) out = {places.config, format("{}/servers", places.config)};
  if (!places.system.empty()) out.push_back(places.system);
  // A file in them may be a link to somewhere else.
  for (Place& place : own_places(places)) out.push_back(std::move(place.file));
  return out;
}

std::vector<FoundServer> readable_servers(const Places& places) {
  std::vector<FoundServer> out;
  for (const Place& place : own_places(places)) {
    auto read = read_place(place, places);
    if (read) std::ranges::move(*read, std::back_inserter(out));
  }
  return out;
}

Found all_servers(const Places& places) {
  const auto all = every_place(places);
  if (!all) return std::unexpected(all.error());
  std::vector<FoundServer> out;
  for (const Place& place : *all) {
    auto read = read_place(place, places);
    if (!read) return read;
    std::ranges::move(*read, std::back_inserter(out));
  }
  std::ranges::sort(out, {}, [](const FoundServer& found) {
    return std::tuple(std::string_view(found.server.name), found.layer,
                      std::string_view(found.file));
  });
  if (auto checked = check_twice(out); !checked) return std::unexpected(std::move(checked).error());
  return out;
}

}  // namespace capgate::clients
