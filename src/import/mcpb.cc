#include "import/mcpb.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "import/own_meta.h"
#include "import/reading.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 4> known_versions = {"0.1", "0.2", "0.3", "0.4"};
constexpr std::array<std::string_view, 28> root_keys = {"$schema",
                                                        "_meta",
                                                        "author",
                                                        "compatibility",
                                                        "description",
                                                        "display_name",
                                                        "documentation",
                                                        "dxt_version",
                                                        "homepage",
                                                        "icon",
                                                        "icons",
                                                        "keywords",
                                                        "license",
                                                        "localization",
                                                        "long_description",
                                                        "manifest_version",
                                                        "name",
                                                        "privacy_policies",
                                                        "prompts",
                                                        "prompts_generated",
                                                        "repository",
                                                        "screenshots",
                                                        "server",
                                                        "support",
                                                        "tools",
                                                        "tools_generated",
                                                        "user_config",
                                                        "version"};
constexpr std::array<std::string_view, 3> server_keys = {"entry_point", "mcp_config", "type"};
constexpr std::array<std::string_view, 4> config_keys = {"args", "command", "env",
                                                         "platform_overrides"};
constexpr std::array<std::string_view, 5> option_types = {"string", "number", "boolean",
                                                          "directory", "file"};

struct UserOption {
  std::string type;
  bool sensitive = false;
  bool multiple = false;
  bool is_used = false;  // something of the server gets it
};

bool is_path_type(const UserOption& option) {
  return option.type == "directory" || option.type == "file";
}

class Reader {
 public:
  Reader(const text::Document& document, const ImportPlace& place)
      : root_(document.root()), out_("mcpb", place) {
    out_.reserve("BUNDLE");
  }

  Checked<Imported> read() && {
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "manifest.json is an object", "see the specification of MCPB");
    } else if (read_version()) {
      read_all();
    }
    return std::move(in_).finish(std::move(out_));
  }

 private:
  void read_all() {
    out_.name(in_.text(root_, "name", Need::required));
    out_.version(in_.text(root_, "version", Need::required));
    Reading::drop_unknown(root_, root_keys, "", out_);
    read_options();
    read_server();
    const auto meta = in_.object(root_, "_meta");
    if (meta && take_own_meta(*meta, in_, out_) == OwnMeta::taken) {
      // Nothing of what follows has to be assumed then.
      out_.command(std::move(command_));
      return;
    }
    grant_server();
    read_tools();
    read_compatibility();
    say_what_is_unsaid();
    out_.command(std::move(command_));
  }

  // ---- which version --------------------------------------------------------------------------

  bool read_version() {
    const auto now = root_.find("manifest_version");
    const auto before = root_.find("dxt_version");
    if (!now && !before) {
      in_.complain(Code::import_version, Span::at(root_.span().begin, root_.span().begin),
                   "manifest_version is missing", "known are 0.1, 0.2, 0.3 and 0.4");
      return false;
    }
    const bool is_known = is_known_version(now) && is_known_version(before);
    if (is_known && now && before && now->text() != before->text()) {
      in_.complain(
          Code::import_version, before->span(),
          format("manifest_version is {} and dxt_version is {}", now->text(), before->text()),
          "only one of them can be right: remove dxt_version");
      return false;
    }
    if (is_known) version_ = (now ? now : before)->text();
    return is_known;
  }

  bool is_known_version(const std::optional<Value>& version) {
    if (!version) return true;
    if (version->is(Kind::string) && contains(known_versions, version->text())) return true;
    const bool is_scalar = !version->is(Kind::object) && !version->is(Kind::array);
    in_.complain(Code::import_version, version->span(),
                 is_scalar ? format("version {} of MCPB is not known", quoted(version->text()))
                           : std::string("the version of MCPB is a text"),
                 "known are 0.1, 0.2, 0.3 and 0.4; a newer one needs a newer capgate");
    return false;
  }

  // ---- what the user is asked for -------------------------------------------------------------

  void read_options() {
    const auto options = in_.object(root_, "user_config");
    if (!options) return;
    for (const Member member : options->members()) {
      if (!member.value.is(Kind::object)) {
        in_.complain(member.value.span(), "an option of user_config is an object",
                     "write {\"type\": \"string\", ...}");
        continue;
      }
      UserOption option{.type = in_.text(member.value, "type", Need::required),
                        .sensitive = in_.flag(member.value, "sensitive"),
                        .multiple = in_.flag(member.value, "multiple")};
      if (!option.type.empty() && !contains(option_types, option.type)) {
        in_.complain(member.value.find("type")->span(),
                     format("an option has no type {}", quoted(option.type)),
                     "string, number, boolean, directory and file are the types");
      }
      options_.emplace(member.key.text(), std::move(option));
    }
  }

  // ---- how it is started ----------------------------------------------------------------------

  void read_server() {
    const auto server = in_.object(root_, "server", Need::required);
    if (!server) return;
    Reading::drop_unknown(*server, server_keys, "server", out_);
    type_ = in_.text(*server, "type", Need::required);
    const bool may_be_uv = version_ == "0.4";
    if (!type_.empty() && type_ != "node" && type_ != "python" && type_ != "binary" &&
        !(may_be_uv && type_ == "uv")) {
      in_.complain(server->find("type")->span(),
                   format("version {} has no server of type {}", version_, quoted(type_)),
                   "node, python and binary are the types; uv is one from 0.4 on");
    }
    const bool needs_config = type_ != "uv";
    (void)in_.text(*server, "entry_point", Need::required);
    const auto config =
        in_.object(*server, "mcp_config", needs_config ? Need::required : Need::optional);
    if (config) read_config(*config);
  }

  void read_config(Value config) {
    Reading::drop_unknown(config, config_keys, "server.mcp_config", out_);
    std::string program = in_.text(config, "command", Need::required);
    auto arguments = in_.list(config, "args");
    auto environment = in_.object(config, "env");
    if (const auto overrides = in_.object(config, "platform_overrides")) {
      if (const auto linux_part = in_.object(*overrides, "linux")) {
        if (auto other = in_.text(*linux_part, "command", Need::optional); !other.empty()) {
          program = std::move(other);
        }
        if (const auto other = in_.list(*linux_part, "args")) arguments = other;
        if (const auto other = in_.object(*linux_part, "env")) environment = other;
      }
    }
    if (!program.empty()) command_.push_back(replaced(program));
    if (arguments) {
      for (const Value word : arguments->elements()) read_argument(word);
    }
    environment_ = environment;
    if (environment) check_environment(*environment);
  }

  void read_argument(Value word) {
    if (!word.is(Kind::string)) {
      return in_.complain(word.span(), "an argument is a text", "put it into quotes");
    }
    for (const std::string_view key : options_in(word.text())) {
      UserOption& option = options_.find(key)->second;
      option.is_used = true;
      if (option.sensitive) {
        out_.dropped(format("user_config.{}", escape_for_terminal(key)),
                     "the secret stands in the command line, where every process can read it, and "
                     "no capability gives it: let the server take it from a variable "
                     "(env:inject:NAME)");
      }
    }
    places_.emplace_back(word.text());
    command_.push_back(replaced(word.text()));
  }

  void check_environment(Value environment) {
    for (const Member member : environment.members()) {
      if (!member.value.is(Kind::string)) {
        in_.complain(member.value.span(), "a variable's value is a text", "put it into quotes");
        continue;
      }
      for (const std::string_view key : options_in(member.value.text())) {
        options_.find(key)->second.is_used = true;
      }
      places_.emplace_back(member.value.text());
    }
  }

  // The options that a text refers to as ${user_config.KEY}; one that there is not is a mistake of
  // the bundle, and gives nothing.
  std::vector<std::string_view> options_in(std::string_view text) {
    constexpr std::string_view opening = "${user_config.";
    std::vector<std::string_view> out;
    for (std::size_t at = text.find(opening); at != std::string_view::npos;
         at = text.find(opening, at + 1)) {
      const std::size_t begin = at + opening.size();
      const std::size_t end = text.find('}', begin);
      if (end == std::string_view::npos) break;
      const std::string_view key = text.substr(begin, end - begin);
      if (const auto it = options_.find(key); it != options_.end()) {
        out.push_back(it->first);
      } else {
        out_.dropped("user_config", format("{} is used, but there is no such option", quoted(key)));
      }
    }
    return out;
  }

  // ${...} of the format as ${NAME} of ours, for what a person reads and types.
  std::string replaced(std::string_view text) {
    std::string out;
    while (true) {
      const std::size_t at = text.find("${");
      const std::size_t end = at == std::string_view::npos ? at : text.find('}', at);
      if (end == std::string_view::npos) return out + std::string(text);
      out += text.substr(0, at);
      out += value_of(text.substr(at + 2, end - at - 2), text.substr(at, end + 1 - at));
      text.remove_prefix(end + 1);
    }
  }

  std::string value_of(std::string_view name, std::string_view as_written) {
    constexpr std::string_view option = "user_config.";
    if (name == "__dirname") return "${BUNDLE}";
    if (name == "/" || name == "pathSeparator") return "/";
    if (name == "HOME") return "${HOME}";
    if (name == "DESKTOP") return "${HOME}/Desktop";
    if (name == "DOCUMENTS") return "${HOME}/Documents";
    if (name == "DOWNLOADS") return "${HOME}/Downloads";
    if (name.starts_with(option)) {
      return format("${{{}}}", out_.variable(name.substr(option.size())));
    }
    return std::string(as_written);
  }

  // ---- what that amounts to -------------------------------------------------------------------

  void grant_server() {
    out_.grant("fs:read:${BUNDLE}/**", "server");
    out_.assumed("server",
                 "the server may read its own directory: bind BUNDLE to where the bundle "
                 "is unpacked, with --set BUNDLE=DIRECTORY");
    grant_paths();
    if (environment_) {
      for (const Member member : environment_->members()) grant_variable(member);
    }
    for (const auto& [key, option] : options_) grant_option(key, option);
  }

  // A path below the user's own directories that the format spells out.
  void grant_paths() {
    for (const std::string& place : places_) {
      const std::string text = replaced(place);
      const std::size_t begin = text.starts_with('-') ? text.find('=') + 1 : 0;
      const std::string_view path = std::string_view(text).substr(begin);
      if (!path.starts_with("${HOME}") || path.substr(1).contains("${")) continue;
      if (find_any(path, "\"\\") != std::string_view::npos) continue;  // cannot be in quotes
      // In quotes nothing of a path is a further field or a refinement.
      const bool needs_quotes = find_any(path, ":?") != std::string_view::npos;
      const std::string scope = needs_quotes ? format("\"{}\"", path) : std::string(path);
      if (out_.grant(format("fs:read:{}", scope), "server.mcp_config")) {
        out_.assumed("server.mcp_config",
                     format("the server is given {}, and the format does not say whether it writes "
                            "there: reading is all it gets; write fs:read,write if tools change "
                            "something",
                            quoted(path)));
      }
    }
  }

  void grant_variable(const Member& member) {
    const std::string_view name = member.key.text();
    const std::string subject = format("server.mcp_config.env.{}", escape_for_terminal(name));
    const auto used = member.value.is(Kind::string) ? options_in(member.value.text())
                                                    : std::vector<std::string_view>();
    const bool is_secret = std::ranges::any_of(
        used, [&](std::string_view key) { return options_.find(key)->second.sensitive; });
    using Action = core::EnvCapability::Action;
    if (used.empty() && !out_.keep_fixed_env(name, subject)) return;
    if (!out_.grant_env(is_secret ? Action::inject : Action::read, name, subject)) return;
    if (is_secret) {
      out_.assumed(subject, format("the format does not say where the secret may go: the server "
                                   "gets the value itself; write env:inject:{}?to=HOST:443 to keep "
                                   "it from the server",
                                   escape_for_terminal(name)));
    } else if (used.empty()) {
      out_.tell_fixed_env(name, subject);
    } else {
      out_.assumed(subject, "its value is an option of the user: set it where capgate is started");
    }
  }

  void grant_option(const std::string& key, const UserOption& option) {
    const std::string subject = format("user_config.{}", escape_for_terminal(key));
    if (!option.is_used) {
      if (is_path_type(option) || option.sensitive) {
        out_.dropped(subject, "nothing of the server gets this option, so nothing is granted");
      }
      return;
    }
    if (!is_path_type(option)) return;
    const std::string name = out_.variable(key);
    const std::string_view below = option.type == "directory" ? "/**" : "";
    if (!out_.grant(format("fs:read:${{{}}}{}", name, below), subject)) return;
    out_.assumed(subject,
                 format("the format does not say whether the server writes there: reading is all "
                        "it gets; write fs:read,write:${{{}}}{} if tools change something. Bind it "
                        "with --set {}=PATH{}",
                        name, below, name, option.multiple ? ", once for each path" : ""));
  }

  // ---- the rest -------------------------------------------------------------------------------

  void read_tools() {
    if (const auto tools = in_.list(root_, "tools")) {
      for (const Value tool : tools->elements()) {
        if (!tool.is(Kind::object)) {
          in_.complain(tool.span(), "a tool is an object", "write {\"name\": ...}");
          continue;
        }
        const std::string name = in_.text(tool, "name", Need::required);
        const std::string description = in_.text(tool, "description", Need::optional);
        if (!name.empty()) out_.tool(name, description);
      }
      out_.whole_server();
    }
    if (in_.flag(root_, "tools_generated") || !root_.find("tools")) {
      out_.unsaid("tools",
                  "the server has tools that the bundle does not list: capgate init lists "
                  "them");
    }
  }

  void read_compatibility() {
    const auto compatibility = in_.object(root_, "compatibility");
    if (!compatibility) return;
    const auto platforms = in_.list(*compatibility, "platforms");
    if (!platforms) return;
    for (const Value platform : platforms->elements()) {
      if (platform.is(Kind::string) && platform.text() == "linux") return;
    }
    out_.dropped("compatibility.platforms", "the bundle says that it is not made for Linux");
  }

  void say_what_is_unsaid() {
    const auto policies = in_.list(root_, "privacy_policies");
    const bool uses_services = policies && policies->count() > 0;
    out_.unsaid("net",
                format("the format cannot say which hosts the server needs, so it reaches "
                       "none{}: add net:connect:HOST:PORT",
                       uses_services ? " (its privacy_policies say that it uses services)" : ""));
    out_.unsaid("exec",
                "the format cannot say which programs the server starts, so it starts none: "
                "add exec:spawn:NAME");
    out_.unsaid("tools[].capabilities",
                "the format cannot say what a single tool needs: all that "
                "is granted is the whole server's");
    constexpr std::array<std::string_view, 5> fetchers = {"npx", "uvx", "uv", "pipx", "bunx"};
    if (type_ == "uv" || (!command_.empty() && contains(fetchers, command_.front()))) {
      out_.unsaid("server",
                  "it is started by a program that gets packages from their registry "
                  "first, and there is no network: install it before, with capgate "
                  "install");
    }
  }

  Value root_;
  Reading in_;
  Collector out_;
  std::string version_;
  std::string type_;
  std::map<std::string, UserOption, std::less<>> options_;
  std::vector<std::string> command_;
  std::optional<Value> environment_;
  std::vector<std::string> places_;  // words and values that may be paths
};

}  // namespace

bool is_mcpb(const text::Document& document) {
  const Value root = document.root();
  return root.is(Kind::object) && (root.find("manifest_version") || root.find("dxt_version"));
}

Checked<Imported> read_mcpb(const text::Document& document, const ImportPlace& place) {
  return Reader(document, place).read();
}

}  // namespace capgate::imports
