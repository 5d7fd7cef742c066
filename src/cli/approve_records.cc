#include "cli/approve_records.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/entry.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/pins.h"
#include "cli/project.h"
#include "clients/approvals.h"
#include "sys/put_file.h"

namespace capgate::cli {
namespace {

using clients::Approval;
using clients::Approvals;
using text::JsonWriter;

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

std::vector<std::string> scopes(const Arguments& arguments) {
  const clients::Places places = config_places(arguments);
  if (places.flag.empty()) return {places.directory, ""};
  return {approval_scope(
      {.server = {}, .layer = clients::Layer::flag, .file = places.flag, .text = {}})};
}

// Not through a link that somebody put there.
sys::Sys<void> write_lock(const std::string& file, std::string_view text) {
  struct stat info{};
  if (::lstat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return std::unexpected(sys::SysError{"open", S_ISLNK(info.st_mode) ? ELOOP : EINVAL, file});
  }
  return sys::put_file(file, text, {.mode = 0666});
}

}  // namespace

int cannot(std::string_view message, Output& output) {
  output.err += format("capgate: {}\n", message);
  return Exit::unreadable;
}

int list_approvals(const Arguments& arguments, Output& output) {
  const auto all = Approvals(approvals_directory()).all();
  if (!all) return cannot(all.error(), output);
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("approvals").begin_array();
    for (const Approval& each : *all) {
      json.begin_object().key("directory").string(each.directory);
      json.key("server").string(each.server).key("hash").string(each.hash);
      json.key("date").string(each.date);
      write_texts(json.key("policy"), each.policy);
      if (each.pin) write_pin(*each.pin, json.key("pin"));
      json.end_object();
    }
    json.end_array().end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  for (const Approval& each : *all) {
    const std::size_t tools = each.pin && each.pin->tools ? each.pin->tools->size() : 0;
    output.out += format(
        "{}  {}  {}{}\n", each.date, escape_for_terminal(each.server),
        each.directory.empty() ? "your own configuration" : escape_for_terminal(each.directory),
        tools == 0 ? "" : format("  {} tool{}", tools, tools == 1 ? "" : "s"));
  }
  if (all->empty()) output.err += "nothing is approved\n";
  return Exit::ok;
}

int revoke_approval(const Arguments& arguments, Output& output) {
  const std::string name(*arguments.value("--revoke"));
  const Approvals approvals(approvals_directory());
  // This project's, or that of --config; else the user's own.
  std::expected<bool, std::string> revoked = false;
  for (const std::string& scope : scopes(arguments)) {
    revoked = approvals.revoke(scope, name);
    if (!revoked) return cannot(revoked.error(), output);
    if (*revoked) break;
  }
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("revoked").boolean(*revoked);
    json.end_object();
    output.out += std::move(json).take() + "\n";
  }
  if (*revoked) {
    output.err += format("{} is not approved any more\n", quoted(name));
    return Exit::ok;
  }
  return usage_error(format("nothing of {} was approved here", quoted(name)),
                     "capgate approve --list shows what was, and where", output);
}

std::expected<void, int> keep_in_lock(const clients::Pin& pin, const std::string& file,
                                      Output& output) {
  std::vector<clients::Pin> pins;
  auto text = clients::read_regular_file(file, clients::Links::are_refused);
  if (!text && text.error() != ENOENT) {
    return std::unexpected(
        cannot(format("cannot read {}: {}", escape_for_terminal(file), std::strerror(text.error())),
               output));
  }
  if (text) {
    auto read = clients::parse_pins(*std::move(text));
    if (!read) {
      return std::unexpected(cannot(format("{} cannot be read: {}", escape_for_terminal(file),
                                           escape_for_terminal(read.error())),
                                    output));
    }
    pins = *std::move(read);
  }
  std::erase_if(pins, [&](const clients::Pin& each) { return each.server == pin.server; });
  pins.push_back(pin);
  const std::string printed = clients::print_pins(std::move(pins));
  if (!clients::parse_pins(printed)) {
    return std::unexpected(
        cannot(format("what {} says of its tools is too much for a lock", pin.server), output));
  }
  if (const auto written = write_lock(file, printed); !written) {
    return std::unexpected(cannot(
        format("cannot write {}: {}", escape_for_terminal(file), sys::reason(written.error())),
        output));
  }
  return {};
}

}  // namespace capgate::cli
