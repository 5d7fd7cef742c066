#include "clients/approvals.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "clients/config_files.h"
#include "sys/file.h"
#include "sys/put_file.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;
using text::Kind;

constexpr std::string_view ending = ".json";

void write_list(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

std::unexpected<std::string> problem(std::string_view what, const std::string& file, int error) {
  return std::unexpected(
      format("cannot {} {}: {}", what, escape_for_terminal(file), std::strerror(error)));
}

std::string print(const Approval& approval) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(approval.pin ? 2 : 1);
  json.key("directory").string(approval.directory).key("server").string(approval.server);
  json.key("hash").string(approval.hash).key("date").string(approval.date);
  write_list(json.key("policy"), approval.policy);
  if (approval.pin) write_pin(*approval.pin, json.key("pin"));
  json.end_object();
  return std::move(json).take() + "\n";
}

std::optional<Approval> parse(std::string text) {
  const auto document = text::parse_json(std::move(text));
  if (!document || !document->root().is(Kind::object)) return {};
  const text::Value root = document->root();
  const auto version = root.find("schemaVersion");
  if (!version || !version->is(Kind::number)) return {};
  if (version->text() != "1" && version->text() != "2") return {};
  Approval out;
  const std::pair<std::string_view, std::string*> texts[] = {{"directory", &out.directory},
                                                             {"server", &out.server},
                                                             {"hash", &out.hash},
                                                             {"date", &out.date}};
  for (const auto& [key, member] : texts) {
    const auto value = root.find(key);
    if (!value || !value->is(Kind::string)) return {};
    *member = value->text();
  }
  const auto policy = root.find("policy");
  if (!policy || !policy->is(Kind::array)) return {};
  for (const text::Value line : policy->elements()) {
    if (!line.is(Kind::string)) return {};
    out.policy.emplace_back(line.text());
  }
  const auto pin = root.find("pin");
  if (pin.has_value() != (version->text() == "2")) return {};
  if (!pin) return out;
  auto read = read_pin(*pin);
  if (!read || read->server != out.server) return {};
  out.pin = *std::move(read);
  return out;
}

std::expected<std::optional<Approval>, std::string> read(const std::string& file) {
  auto text = read_regular_file(file, Links::are_refused);
  if (!text && text.error() == ENOENT) return std::nullopt;
  if (!text) return problem("read", file, text.error());
  auto approval = parse(*std::move(text));
  if (!approval) {
    return std::unexpected(
        format("{} is no approval; remove it and approve again", escape_for_terminal(file)));
  }
  return approval;
}

std::expected<void, std::string> replace(const std::string& file, std::string_view text) {
  const auto done = sys::put_file(file, text, {.mode = 0600});
  if (!done) return problem("write", file, done.error().err);
  return {};
}

}  // namespace

std::string approval_hash(const ServerConfig& server, std::string_view directory,
                          std::string_view manifest_text) {
  JsonWriter json(JsonWriter::Style::compact);
  json.begin_object().key("directory").string(directory).key("server").string(server.name);
  write_list(json.key("command"), server.command);
  json.key("manifest").string(server.manifest);
  json.key("manifestText").string(sha256_hex(manifest_text));
  write_list(json.key("capabilities"), server.capabilities);
  json.key("variables").begin_object();
  for (const core::Binding& binding : server.variables) {
    write_list(json.key(binding.name), binding.values);
  }
  json.end_object();
  write_list(json.key("secrets"), server.secrets);
  json.key("seal").boolean(server.seal).end_object();
  return "sha256:" + sha256_hex(std::move(json).take());
}

std::string Approvals::file_of(std::string_view directory, std::string_view server) const {
  std::string both(directory);
  both += '\0';
  both += server;
  return format("{}/{}{}", base_, sha256_hex(both), ending);
}

std::expected<std::optional<Approval>, std::string> Approvals::find(std::string_view directory,
                                                                    std::string_view server) const {
  const std::string file = file_of(directory, server);
  auto found = read(file);
  // A file that was copied here is of another project.
  if (found && *found && ((*found)->directory != directory || (*found)->server != server)) {
    return std::unexpected(
        format("{} is of another project; remove it", escape_for_terminal(file)));
  }
  return found;
}

std::expected<void, std::string> Approvals::keep(const Approval& approval) const {
  if (auto made = sys::make_directories(base_); !made) {
    return problem("make", made.error().subject, made.error().err);
  }
  const std::string text = print(approval);
  // A server's own words could make it too large or too deep to be read again.
  if (const auto again = parse(text); !again || *again != approval) {
    return std::unexpected(format("what {} says of its tools is too much to be kept",
                                  escape_for_terminal(approval.server)));
  }
  return replace(file_of(approval.directory, approval.server), text);
}

std::string Approvals::mark_of(std::string_view tree) const {
  auto text = read_regular_file(format("{}/{}.mark", base_, sha256_hex(tree)), Links::are_refused);
  return text ? *std::move(text) : std::string();
}

void Approvals::keep_mark(std::string_view tree, std::string_view mark) const {
  if (!sys::make_directories(base_)) return;
  const auto kept = replace(format("{}/{}.mark", base_, sha256_hex(tree)), mark);
  if (!kept) return;  // every file is read again the next time, that is all
}

std::expected<std::vector<Approval>, std::string> Approvals::all() const {
  std::vector<Approval> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(base_.c_str()), ::closedir);
  if (!listing) {
    if (errno == ENOENT) return out;
    return problem("list", base_, errno);
  }
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!std::string_view(entry->d_name).ends_with(ending)) continue;
    auto found = read(format("{}/{}", base_, entry->d_name));
    if (!found) return std::unexpected(std::move(found).error());
    if (*found) out.push_back(**std::move(found));
  }
  std::ranges::sort(out, {}, [](const Approval& approval) {
    return std::tuple(std::string_view(approval.directory), std::string_view(approval.server));
  });
  return out;
}

std::expected<bool, std::string> Approvals::revoke(std::string_view directory,
                                                   std::string_view server) const {
  const std::string file = file_of(directory, server);
  if (::unlink(file.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return problem("remove", file, errno);
}

}  // namespace capgate::clients
