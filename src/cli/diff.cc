// capgate diff: what a change lets a server do that it could not do before.
#include "core/diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/diff_artifact.h"
#include "cli/diff_config.h"
#include "cli/diff_lock.h"
#include "cli/diff_shape.h"
#include "cli/diff_sources.h"
#include "cli/exit.h"
#include "review/diff_print.h"
#include "review/sarif.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {
    set_option,
    {.name = "--if-policy", .help = "exit 0 in silence where neither side grants anything"},
    {.name = expect_option,
     .value = "OPTION",
     .help = "what an artifact may be made with, as it is shown: 'user 0:0'",
     .repeatable = true},
    {.name = "--strict",
     .help = "exit 5 also for what moved between tools, and another program, package or tool text"},
    json_option,
    {.name = "--markdown", .help = "the text of a pull request comment, on stdout"},
    {.name = "--sarif", .help = "SARIF 2.1.0 on stdout, for code scanning"},
};

Colour stdout_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return Colour::off;
  if (term == nullptr || std::string_view(term) == "dumb") return Colour::off;
  return sys::is_terminal(1) ? Colour::on : Colour::off;
}

using Servers = std::vector<DiffServer>;

struct Pair {
  const DiffServer* before = nullptr;
  const DiffServer* after = nullptr;
};

// By name; two manifests are the same server, even under another name, and two entries are not.
std::vector<Pair> pair_up(const Servers& before, const Servers& after) {
  if (before.size() == 1 && after.size() == 1 &&
      !(before.front().is_entry() && after.front().is_entry())) {
    return {{&before.front(), &after.front()}};
  }
  std::vector<Pair> out;
  const auto by_name = [](const Servers& side) {
    std::unordered_map<std::string_view, const DiffServer*> found;
    for (const DiffServer& server : side) found.emplace(server.name, &server);
    return found;
  };
  const auto old = by_name(before);
  const auto now = by_name(after);
  for (const DiffServer& server : before) {
    const auto it = now.find(server.name);
    out.push_back({&server, it == now.end() ? nullptr : it->second});
  }
  for (const DiffServer& server : after) {
    if (!old.contains(server.name)) out.push_back({nullptr, &server});
  }
  std::ranges::sort(out, {}, [](const Pair& pair) {
    return std::string_view((pair.after != nullptr ? pair.after : pair.before)->name);
  });
  return out;
}

// A server that is gone does nothing, so a bound that went with it lets nothing more happen.
void forget_wider(core::ManifestDiff& change) {
  const auto is_wider = [](const core::GrantChange& each) {
    return each.kind == core::GrantChange::Kind::widened;
  };
  std::erase_if(change.server, is_wider);
  for (core::ToolChange& tool : change.tools) std::erase_if(tool.changes, is_wider);
  std::erase_if(change.tools, [](const core::ToolChange& tool) {
    return tool.presence == core::ToolChange::Presence::every && tool.changes.empty();
  });
}

class Comparer {
 public:
  Comparer(const Arguments& arguments, const core::Symbols& symbols, Output& output)
      : arguments_(arguments), symbols_(symbols), output_(output) {}

  std::expected<review::ShownServer, int> compare(const Pair& pair) {
    const core::Manifest nothing;
    const core::Manifest& before = pair.before ? pair.before->loaded.manifest : nothing;
    const core::Manifest& after = pair.after ? pair.after->loaded.manifest : nothing;
    auto change = core::diff(before, after);
    if (!change) {  // each was merged when it was read
      const bool is_after = change.error().side == core::GrantChange::Side::after;
      const Loaded& loaded = (is_after ? pair.after : pair.before)->loaded;
      return std::unexpected(report(change.error().mistakes, loaded.source(), arguments_, output_));
    }
    if (pair.after == nullptr) forget_wider(*change);
    review::ShownServer out = review::show({.name = (pair.after ? pair.after : pair.before)->name,
                                            .before = side(pair.before),
                                            .after = side(pair.after),
                                            .diff = *std::move(change),
                                            .symbols = &symbols_});
    add_entry_parts(pair.before, pair.after, out);
    add_lock_parts(pair.before, pair.after, out);
    return out;
  }

 private:
  review::DiffSide side(const DiffServer* server) {
    if (server == nullptr) return {};
    const Source* source = server->has_places ? &source_of(server->loaded) : nullptr;
    return {.manifest = &server->loaded.manifest, .source = source, .file = server->file};
  }

  // The entries of a config stand in one text, whose lines are counted once.
  const Source& source_of(const Loaded& loaded) {
    const Key key(loaded.document->source().data(), loaded.name);
    auto it = sources_.find(key);
    if (it == sources_.end()) it = sources_.emplace(key, loaded.source()).first;
    return it->second;
  }

  using Key = std::pair<const char*, std::string>;
  const Arguments& arguments_;
  const core::Symbols& symbols_;
  Output& output_;
  std::map<Key, Source> sources_;
};

std::vector<std::string> used_variables(const Servers& before, const Servers& after) {
  std::vector<std::string> used;
  for (const Servers* side : {&before, &after}) {
    for (const DiffServer& server : *side) {
      const auto& names = server.loaded.manifest.used_variables;
      used.insert(used.end(), names.begin(), names.end());
    }
  }
  sort_and_deduplicate(used);
  return used;
}

int finish(std::span<const review::ShownServer> servers, const review::DiffFacts& facts,
           const Arguments& arguments, Output& output) {
  if (arguments.has("--json")) {
    output.out += review::diff_json(servers, facts);
  } else if (arguments.has("--markdown")) {
    output.out += review::diff_markdown(servers, facts);
  } else if (arguments.has("--sarif")) {
    output.out += review::print_sarif({.rules = review::diff_rules(),
                                       .findings = review::diff_findings(servers),
                                       .suppressed = {}});
  } else {
    output.out += review::diff_text(servers, stdout_colour());
    for (const std::string& name : facts.unbound) {
      output.err +=
          format("note: ${{{}}} is compared by its name; --set {}=VALUE binds it\n", name, name);
    }
  }
  if (!arguments.has("--json") && !arguments.has("--markdown")) {
    for (const std::string& note : facts.notes) {
      output.err += format("note: {}\n", escape_for_terminal(note));
    }
  }
  const bool strict = arguments.has("--strict");
  const bool fails = std::ranges::any_of(servers, [&](const review::ShownServer& server) {
    return review::may_widen(server.verdict) ||
           (strict && (server.verdict == review::Verdict::moved ||
                       std::ranges::any_of(server.parts, &review::ShownPart::is_strict)));
  });
  return fails ? Exit::widened : Exit::ok;
}

std::expected<void, int> check_words(const Arguments& arguments, Output& output) {
  const auto formats =
      std::ranges::count_if(std::to_array<std::string_view>({"--json", "--markdown", "--sarif"}),
                            [&](std::string_view name) { return arguments.has(name); });
  if (formats > 1) {
    return std::unexpected(usage_error("--json, --markdown and --sarif are three formats",
                                       "give one of them", output));
  }
  if (arguments.operands[0] == "-" && arguments.operands[1] == "-") {
    return std::unexpected(
        usage_error("both sides are standard input", "name a file for one of them", output));
  }
  return {};
}

int compare_servers(const ReadSource& before, const ReadSource& after, const Arguments& arguments,
                    Output& output) {
  core::Symbols symbols;
  Servers sides[2];
  const ReadSource* sources[2] = {&before, &after};
  for (std::size_t i = 0; i < 2; ++i) {
    auto servers = read_servers(*sources[i], arguments, symbols, output);
    if (!servers) return servers.error();
    sides[i] = *std::move(servers);
  }
  const std::vector<std::string> used = used_variables(sides[0], sides[1]);
  // Of many files, each uses some.
  if (!arguments.has("--if-policy")) {
    if (const auto checked = check_bindings(arguments, used, output); !checked) {
      return checked.error();
    }
  }
  std::vector<review::ShownServer> shown;
  Comparer comparer(arguments, symbols, output);
  for (const Pair& pair : pair_up(sides[0], sides[1])) {
    auto server = comparer.compare(pair);
    if (!server) return server.error();
    shown.push_back(*std::move(server));
  }
  return finish(shown, {.unbound = symbols.names_among(used), .notes = {}}, arguments, output);
}

int run(const Arguments& arguments, Output& output) {
  if (const auto checked = check_words(arguments, output); !checked) return checked.error();
  const auto before = read_source(arguments.operands[0], output);
  if (!before) return before.error();
  const auto after = read_source(arguments.operands[1], output);
  if (!after) return after.error();
  if (arguments.has("--if-policy") && !is_policy(*before) && !is_policy(*after)) return Exit::ok;
  for (const ReadSource* source : {&*before, &*after}) {
    if (!source->unread.empty()) return cannot_read(source->name, source->unread, output).error();
  }
  const auto old = artifact_of(*before);
  const auto now = artifact_of(*after);
  if (arguments.has(expect_option) && (old != nullptr || now == nullptr)) {
    return usage_error("--expect is for what compile printed, beside its manifest",
                       "write capgate diff MANIFEST ARTIFACT --expect OPTION", output);
  }
  if (!old && !now) return compare_servers(*before, *after, arguments, output);
  // An artifact that is gone grants nothing; without the option, its manifest was forgotten.
  if (arguments.has("--if-policy") && old && after->is_nothing) return Exit::ok;
  auto compared = compare_artifact({.source = *before, .artifact = old.get()},
                                   {.source = *after, .artifact = now.get()}, arguments, output);
  if (!compared) return compared.error();
  const review::ShownServer servers[] = {std::move(compared->server)};
  return finish(servers, {.unbound = {}, .notes = std::move(compared->notes)}, arguments, output);
}

}  // namespace

Command diff_command() {
  return {
      .name = "diff",
      .operands = "OLD NEW",
      .summary = "Say what a change of a manifest lets a server do that it could not do before.",
      .least_operands = 2,
      .most_operands = 2,
      .options = options,
      .details =
          "OLD and NEW are manifests (JSON or YAML; - is standard input), files of a git revision\n"
          "(REV:path, REV:./path from here, :path as staged), a capgate.yaml, a capgate.lock, or\n"
          "what compile printed: then the manifest on the other side is compiled again. /dev/null\n"
          "is no manifest. What is compared is what they allow, not their text. ${NAME} that "
          "--set\n"
          "does not bind is compared by its name. A file whose name has a colon: ./a:b.json.\n"
          "--if-policy is for files of which nobody knows what they are: only a manifest, a\n"
          "capgate.yaml, a capgate.lock or an artifact is compared, by what it looks like; with a\n"
          "mistake in it, it still is one. A --set that neither side uses is no mistake then.\n"
          "Exit: 0 nothing widened, 2 usage, 3 unreadable, 4 mistakes, 5 the server may do more.",
      .examples =
          "  capgate diff old.json new.json\n"
          "  capgate diff main:github.json github.json --markdown\n"
          "  capgate diff HEAD:./github.json github.json --sarif\n"
          "  capgate diff main:capgate.yaml capgate.yaml\n"
          "  capgate diff github.json artifact.json\n"
          "  capgate diff /dev/null github.json --json",
      .run = run};
}

}  // namespace capgate::cli
