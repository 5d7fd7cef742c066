#include "cli/diff_lock.h"

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "clients/pin_diff.h"
#include "clients/profile_file.h"
#include "core/holdings.h"

namespace capgate::cli {
namespace {

using clients::Pin;
using review::ShownPart;
using text::Kind;

bool is_covered(const core::Capability& capability, const core::Holdings& held) {
  const core::Holdings* layers[] = {&held};
  if (const auto* limit = std::get_if<core::LimitCapability>(&capability)) {
    return core::limit_of(layers, limit->kind) == *limit;
  }
  if (const auto* assertion = std::get_if<core::AssertCapability>(&capability)) {
    return core::assertion_of(layers, assertion->id) != nullptr;
  }
  return core::covers(layers, capability);
}

// The policy is the whole of what all tools and single ones have. What stands in it alone is
// everybody's, so that nothing in it is overlooked.
std::expected<Loaded, int> load_pin(const Pin& pin, const ReadSource& source,
                                    const Arguments& arguments, core::Symbols& symbols,
                                    Output& output) {
  const std::string name = format("{}, server {}", source.name, pin.server);
  const auto load_one = [&](const Pin& each) -> std::expected<Loaded, int> {
    auto document =
        parse_document(name, text::share(clients::manifest_of(each)), arguments, output);
    if (!document) return std::unexpected(document.error());
    return load_symbolic(arguments,
                         {.manifest = {}, .document = *std::move(document), .document_name = name},
                         symbols, output);
  };
  auto loaded = load_one(pin);
  if (!loaded) return loaded;
  Pin whole = pin;
  whole.shared = pin.policy;
  whole.grants.clear();
  auto stated = load_one(whole);
  if (!stated) return stated;
  const core::Holdings held(loaded->policy, loaded->manifest.home);
  for (const core::Declared& declared : stated->manifest.declared) {
    if (!is_covered(declared.capability, held)) loaded->manifest.declared.push_back(declared);
  }
  return loaded;
}

std::string words_of(const std::optional<clients::PinnedPackage>& package) {
  if (!package) return "";
  return format("{}:{} {} {}", package->registry, package->name, package->version,
                package->integrity);
}

constexpr const char* words_of_model = "what a model reads of it is another text";

class Parts {
 public:
  explicit Parts(review::ShownServer& out) : out_(out) {}

  void add(const clients::TextChange& text) {
    if (text.what == "manifest") {
      tell(text, "its text is another one; what it grants is compared here", false);
    } else if (text.what == "protocol") {
      tell(text, "", false);
    } else if (text.what == "pinned tools") {
      tell(text, text.after.empty() ? "a change of them is not noticed any more" : "", true);
    } else if (text.what == "instructions") {
      tell(text, words_of_model, true);
    } else {
      tell(text, "what runs with these permissions is another program", true);
    }
  }

  void add(const clients::ToolPinChange& tool) {
    using enum clients::ToolPinChange::Kind;
    const std::string name = format("tool {}", quoted(tool.tool));
    if (tool.kind == removed) {
      tell({.what = name, .before = "listed", .after = ""}, "the server does not list it any more",
           false);
      return;
    }
    if (tool.kind == added) {
      tell({.what = name, .before = "", .after = "listed"}, "the server lists it besides", true);
    }
    for (const clients::TextChange& text : tool.texts) {
      tell({.what = format("{}, {}", name, text.what), .before = text.before, .after = text.after},
           words_of_model, true);
    }
  }

  void tell(const clients::TextChange& text, std::string why, bool is_strict) {
    out_.add({.kind = ShownPart::Kind::told,
              .part = text.what,
              .before = text.before,
              .after = text.after,
              .capability = {},
              .place = {},
              .why = std::move(why),
              .is_strict = is_strict});
  }

 private:
  review::ShownServer& out_;
};

// Of a server that only one side has: what it is.
void add_whole(const Pin* before, const Pin* after, Parts& parts) {
  const Pin none;
  const Pin& old = before != nullptr ? *before : none;
  const Pin& now = after != nullptr ? *after : none;
  const bool is_new = after != nullptr;
  const auto tell = [&](std::string what, std::string was, std::string is) {
    if (was.empty() && is.empty()) return;
    parts.tell({.what = std::move(what), .before = std::move(was), .after = std::move(is)}, "",
               is_new);
  };
  tell("command", clients::print_command(old.command), clients::print_command(now.command));
  tell("package", words_of(old.package), words_of(now.package));
  tell("instructions", old.instructions.value_or(""), now.instructions.value_or(""));
  const std::vector<clients::PinnedTool> no_tools;
  for (const auto& tool :
       clients::diff_tools(old.tools.value_or(no_tools), now.tools.value_or(no_tools))) {
    parts.add(tool);
  }
}

}  // namespace

bool is_lock(const text::Document& document) {
  const text::Value root = document.root();
  if (!root.is(Kind::object) || root.find("tools") || !root.find("schemaVersion")) return false;
  const auto servers = root.find("servers");
  return (servers && !servers->is(Kind::object)) || root.find("packages");
}

std::expected<std::vector<DiffServer>, int> lock_servers(const ReadSource& source,
                                                         const Arguments& arguments,
                                                         core::Symbols& symbols, Output& output) {
  auto pins = clients::parse_pins(*source.text);
  if (!pins) {
    (void)usage_error(format("{} cannot be read: {}", escape_for_terminal(source.name),
                             escape_for_terminal(pins.error())),
                      "a lock is written by capgate approve NAME --lock FILE", output);
    return std::unexpected(Exit::unreadable);
  }
  std::vector<DiffServer> out;
  for (Pin& pin : *pins) {
    auto loaded = load_pin(pin, source, arguments, symbols, output);
    if (!loaded) return std::unexpected(loaded.error());
    out.push_back({.name = pin.server,
                   .file = source.file,
                   .loaded = *std::move(loaded),
                   .has_places = false,
                   .pin = std::move(pin)});
  }
  return out;
}

void add_lock_parts(const DiffServer* before, const DiffServer* after, review::ShownServer& out) {
  const Pin* old = before != nullptr && before->pin ? &*before->pin : nullptr;
  const Pin* now = after != nullptr && after->pin ? &*after->pin : nullptr;
  // The other side says nothing of these.
  if ((before != nullptr && old == nullptr) || (after != nullptr && now == nullptr)) return;
  Parts parts(out);
  if (old == nullptr || now == nullptr) {
    add_whole(old, now, parts);
    return;
  }
  const clients::PinDiff change = diff(*old, *now);
  for (const clients::TextChange& text : change.texts) parts.add(text);
  for (const std::string& name : change.declares.added) {
    parts.tell({.what = "declares", .before = "", .after = name}, "the server offers it besides",
               true);
  }
  for (const std::string& name : change.declares.removed) {
    parts.tell({.what = "declares", .before = name, .after = ""}, "", false);
  }
  for (const clients::ToolPinChange& tool : change.tools) parts.add(tool);
}

}  // namespace capgate::cli
