#include "import/sandbox_block.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/path.h"
#include "core/scope.h"
#include "core/sensitive.h"

namespace capgate::imports {
namespace {

using core::FsAction;
using text::Kind;
using text::Member;
using text::Value;

constexpr Code sandbox_code = Code::manifest_shape;
constexpr Code key_code = Code::manifest_unknown_key;

constexpr std::array<std::string_view, 6> known_keys = {"enabled", "paths", "network",
                                                        "read",    "write", "exec"};

class Reader {
 public:
  Reader(Value block, const BlockPlace& place) : block_(block), place_(place) {}

  Checked<SandboxBlock> read() {
    if (!block_.is(Kind::object)) {
      complain(block_.span(), "a sandbox block is a mapping",
               "write {read: [PATH], write: [], network: [\"HOST:PORT\"], exec: false}");
    } else {
      check_keys();
      read_enabled();
      read_paths("paths", FsAction::write);
      read_paths("read", FsAction::read);
      read_paths("write", FsAction::write);
      read_network();
      read_exec();
    }
    if (mistakes_.empty()) return std::move(out_);
    sort_diagnostics(mistakes_);
    return std::unexpected(std::move(mistakes_));
  }

 private:
  void complain(Span where, std::string message, std::string help) {
    mistakes_.push_back({.code = sandbox_code,
                         .where = where,
                         .message = std::move(message),
                         .help = std::move(help)});
  }

  void grant(std::string capability, Span where) {
    out_.capabilities.push_back(std::move(capability));
    out_.spans.push_back(where);
  }

  // `paths` and a boolean `network` are of the one dialect, lists and `exec` of the other: a block
  // that holds both was written for neither, and what its author expects of it is not known.
  void check_keys() {
    const auto network = block_.find("network");
    bool has_switches = network && network->is(Kind::boolean);
    bool has_lists = network && network->is(Kind::array);
    for (const Member member : block_.members()) {
      const std::string_view key = member.key.text();
      if (!contains(known_keys, key)) {
        const auto meant = closest(key, known_keys);
        mistakes_.push_back({.code = key_code,
                             .where = member.key.span(),
                             .message = format("a sandbox block has no {}", quoted(key)),
                             .help = meant ? format("did you mean {}?", *meant)
                                           : "known are: enabled, paths, network, read, write, "
                                             "exec"});
      }
      has_switches |= key == "paths";
      has_lists |= key == "read" || key == "write" || key == "exec";
    }
    if (!has_switches || !has_lists) return;
    complain(block_.span(), "a sandbox block has either paths and a network switch, or lists",
             "write {paths: [PATH], network: false}, or {read: [PATH], write: [], network: "
             "[\"HOST:PORT\"], exec: false}");
  }

  void read_enabled() {
    const auto enabled = block_.find("enabled");
    if (!enabled) return;
    if (!enabled->is(Kind::boolean)) {
      complain(enabled->span(), "enabled is true or false",
               "leave it out, or write enabled: false for a server that must not start");
      return;
    }
    out_.enabled = enabled->text() == "true";
  }

  // Calls `use` for each string of the list `key`.
  template <typename Use>
  void each_text(std::string_view key, std::string_view example, Use use) {
    const auto list = block_.find(key);
    if (!list) return;
    if (!list->is(Kind::array)) {
      complain(list->span(), format("{} is a list", key),
               format("write {}: [{}], or leave it out", key, example));
      return;
    }
    for (const Value item : list->elements()) {
      if (item.is(Kind::string) && !item.text().empty() &&
          std::ranges::none_of(item.text(), is_control)) {
        use(item);
      } else {
        complain(item.span(), format("{} is a list of texts", key),
                 format("write {}: [{}]", key, example));
      }
    }
  }

  // ---- files ----------------------------------------------------------------------------------

  void read_paths(std::string_view key, FsAction action) {
    each_text(key, "~/project", [&](Value item) {
      auto path = resolve(item);
      if (!path) return mistakes_.push_back(std::move(path).error());
      const core::FsCapability fs{.actions = {action}, .path = *std::move(path)};
      if (auto allowed = check(fs); !allowed) {
        allowed.error().where = whole(item);
        return mistakes_.push_back(std::move(allowed).error());
      }
      grant(print(core::Capability(fs)), whole(item));
    });
  }

  static Span whole(Value item) { return item.locate(0, item.text().size()); }

  // PATH/ is a directory; without the slash it is a file, or a directory with everything below.
  Result<core::PathPattern> resolve(Value item) const {
    const std::string_view text = item.text();
    const auto refuse = [&](std::string message, std::string help) {
      return fail(sandbox_code, whole(item), std::move(message), std::move(help));
    };
    if (find_any(text, "*?[]{}") != std::string_view::npos) {
      return refuse("a path of a sandbox block has no globs and no variables",
                    "name the directory; patterns are for capabilities: [\"fs:read:/dir/*.md\"]");
    }
    std::string path(text);
    if (text == "~" || text.starts_with("~/")) {
      if (place_.home.empty()) {
        return refuse("the home directory is not known", "write the path in full");
      }
      path = place_.home + std::string(text.substr(1));
    } else if (text.starts_with('~')) {
      return refuse("only ~ alone is the home directory", "write the path in full");
    } else if (!text.starts_with('/')) {
      path = format("{}/{}", place_.directory, text);
    }
    auto base = core::parse_plain_path(path);
    if (!base) {
      return fail(base.error().code, whole(item), std::move(base.error().message),
                  "write the path from the root, from ~ or from this file's directory, without ..");
    }
    return core::PathPattern{.shape = text.ends_with('/') ? core::PathPattern::Shape::tree
                                                          : core::PathPattern::Shape::node,
                             .base = *std::move(base)};
  }

  // A capability may name a credential path, for everyone to see; shorthand may not.
  Result<void> check(const core::FsCapability& fs) const {
    const std::string& path = fs.path.base;
    const auto stays_hidden = [&](std::string_view what) {
      return fail(sandbox_code, Span{},
                  format("{} is {}, which a sandbox block cannot open", quoted(path), what),
                  format("leave it out; where it is really meant, write it as a capability: {}",
                         escape_for_terminal(print(core::Capability(fs)))));
    };
    if (const auto* entry = core::credential_at(path, place_.home)) {
      return stays_hidden(format("a place of credentials ({})", entry->group));
    }
    if (core::is_workspace_secret(path)) return stays_hidden("a file that usually holds secrets");
    if (core::is_writing(fs.actions) && core::startup_at(path, place_.home) != nullptr) {
      return stays_hidden("what programs of the user run later");
    }
    auto allowed = core::check_scope(fs, place_.home);
    if (!allowed && allowed.error().code == Code::cap_needs_unsafe) {
      allowed.error().help = "leave it out; a sandbox block cannot grant what is unsafe";
    }
    return allowed;
  }

  // ---- network and programs -------------------------------------------------------------------

  void read_network() {
    const auto network = block_.find("network");
    if (!network) return;
    if (!network->is(Kind::boolean)) {
      each_text("network", "\"api.example.com:443\"", [&](Value item) { read_endpoint(item); });
      return;
    }
    if (network->text() != "true") return;
    grant("net:connect:*", network->span());
    out_.notes.emplace_back(
        "network: true lets the server reach every public address (net:connect:*); private "
        "addresses stay blocked. Better name what it needs: network: [\"HOST:PORT\"]");
  }

  void read_endpoint(Value item) {
    const auto capability = read_as("net:connect:", item);
    if (!capability) return;
    const auto* net = std::get_if<core::NetConnect>(&*capability);
    if (net == nullptr || !net->endpoint.port || net->refinements != core::NetRefinements{}) {
      complain(whole(item), format("{} is not HOST:PORT", quoted(item.text())),
               "write \"api.example.com:443\"; more than that takes capabilities: [...]");
      return;
    }
    grant(print(*capability), whole(item));
  }

  void read_exec() {
    const auto exec = block_.find("exec");
    if (!exec) return;
    if (!exec->is(Kind::boolean)) {
      each_text("exec", "git", [&](Value item) { read_program(item); });
    } else if (exec->text() == "true") {
      complain(exec->span(), "exec: true does not say which programs",
               "list them: exec: [git]; each is found in the system's own directories");
    }
  }

  void read_program(Value item) {
    const auto capability = read_as("exec:spawn:", item);
    if (!capability) return;
    // Nothing beyond the name: no refinement, no quotes.
    const core::ExecCapability plain{.program = std::string(item.text())};
    if (*capability != core::Capability(plain)) {
      complain(whole(item), format("{} is not a program's name", quoted(item.text())),
               "write git; more than that takes capabilities: [...]");
      return;
    }
    grant(print(*capability), whole(item));
  }

  // The item as the end of a capability; its mistakes stand where the item does.
  std::optional<core::Capability> read_as(std::string_view prefix, Value item) {
    if (item.text().contains("${")) {
      complain(whole(item), "a sandbox block has no variables",
               "write it out, or use capabilities and variables");
      return {};
    }
    auto parsed = core::parse_capability(format("{}{}", prefix, item.text()), {});
    if (parsed) return std::move(parsed->front());
    Diagnostic mistake = std::move(parsed).error();
    const auto inside = [&](std::size_t at) {
      return std::min(at < prefix.size() ? 0 : at - prefix.size(), item.text().size());
    };
    mistake.where = item.locate(inside(mistake.where.begin), inside(mistake.where.end));
    mistakes_.push_back(std::move(mistake));
    return {};
  }

  Value block_;
  const BlockPlace& place_;
  SandboxBlock out_;
  Diagnostics mistakes_;
};

}  // namespace

Checked<SandboxBlock> read_sandbox_block(Value block, const BlockPlace& place) {
  return Reader(block, place).read();
}

}  // namespace capgate::imports
