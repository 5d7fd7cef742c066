#include "cli/diff_artifact.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/diff_lock.h"
#include "cli/exit.h"
#include "cli/explain_config.h"
#include "lower/choices.h"
#include "lower/read_options.h"
#include "lower/targets.h"
#include "review/artifact_diff.h"
#include "text/json_or_yaml.h"

namespace capgate::cli {
namespace {

using text::Document;
using text::Kind;
using text::Value;

std::unexpected<int> cannot_compare(const ReadSource& source, std::string_view why,
                                    Output& output) {
  output.err += format("capgate: cannot compare {}: {}\n", escape_for_terminal(source.name), why);
  return std::unexpected(static_cast<int>(Exit::unreadable));
}

std::vector<std::string> texts_of(const Document& artifact, std::string_view key) {
  std::vector<std::string> out;
  const auto list = artifact.root().find(key);
  if (!list || !list->is(Kind::array)) return out;
  for (const Value item : list->elements()) {
    if (item.is(Kind::string)) out.emplace_back(item.text());
  }
  return out;
}

// How the host verifies assertions, which only the artifact says.
core::Validators validators_of(const Document& artifact) {
  core::Validators out;
  const auto list = artifact.root().find("assertions");
  if (!list || !list->is(Kind::array)) return out;
  for (const Value each : list->elements()) {
    if (!each.is(Kind::object)) continue;
    const auto id = each.find("id");
    const auto validator = each.find("validator");
    if (!id || !validator || !id->is(Kind::string) || !validator->is(Kind::string)) continue;
    if (!out) out.emplace();
    out->emplace(id->text(), validator->text());
  }
  return out;
}

// `compile -o` writes files elsewhere and prints their hashes.
lower::FilesAs files_as(const Document& artifact) {
  const auto files = artifact.root().find("files");
  if (!files || !files->is(Kind::array)) return lower::FilesAs::contents;
  for (const Value file : files->elements()) {
    if (file.is(Kind::object) && file.find("sha256")) return lower::FilesAs::hashes;
  }
  return lower::FilesAs::contents;
}

// What the artifact says of itself, and what a comparison therefore takes for granted.
std::vector<std::string> notes_of(const Document& artifact, const core::Validators& validators) {
  std::vector<std::string> out;
  std::vector<std::string> options = review::options_of(artifact);
  std::erase(options, format("arch {}", lower::arch_name(lower::Options().arch)));
  if (!options.empty()) {
    out.push_back(
        format("the options of the artifact are taken as they are: {}", join(options, ", ")));
  }
  const std::vector<std::string> unenforced = texts_of(artifact, "unenforced");
  if (!unenforced.empty()) {
    out.push_back(format("what the artifact leaves unenforced is taken as accepted: {}",
                         join(unenforced, ", ")));
  }
  if (validators) {
    out.emplace_back("how the host verifies assertions is taken from the artifact");
  }
  if (files_as(artifact) == lower::FilesAs::hashes) {
    out.emplace_back("files are compared by the hashes in the artifact; they were not read");
  }
  return out;
}

bool is_bound(const Arguments& arguments, std::string_view name) {
  return std::ranges::any_of(arguments.values("--set"), [&](const std::string& setting) {
    return setting.starts_with(format("{}=", name));
  });
}

// What the artifact was made with and no manifest says: which program it is for, as whom it runs,
// what of the host it sees, what nobody enforces. Only the caller knows what of it is meant.
std::vector<std::string> claims_of(const Document& artifact, const Document& again,
                                   const Arguments& arguments) {
  // They choose a form, or less of the policy.
  constexpr std::string_view forms[] = {"arch",   "egressTarget", "networkPolicy",
                                        "script", "seal",         "tool"};
  std::vector<std::string> out;
  for (std::string& option : review::options_of(artifact)) {
    const std::string_view name = std::string_view(option).substr(0, option.find(' '));
    const bool is_given = (name == "home" && is_bound(arguments, "HOME")) ||
                          (name == "runtimeDir" && is_bound(arguments, "XDG_RUNTIME_DIR"));
    if (!contains(forms, name) && !is_given) out.push_back(std::move(option));
  }
  for (const std::string& capability : texts_of(again, "unenforced")) {
    out.push_back(format("unenforced {}", capability));
  }
  return out;
}

void add_claims(const std::vector<std::string>& claims, const Arguments& arguments,
                review::ShownServer& out) {
  const std::vector<std::string> expected = arguments.values(expect_option);
  for (const std::string& claim : claims) {
    if (contains(expected, claim)) continue;
    out.add({.kind = review::ShownPart::Kind::differs,
             .part = "options",
             .before = {},
             .after = claim,
             .capability = {},
             .place = {},
             .why = "the manifest does not say it; if it is meant, repeat it with --expect"});
  }
}

class Again {
 public:
  Again(const ReadSource& manifest, const ReadSource& source, const Document& artifact,
        const Arguments& arguments)
      : manifest_(manifest), source_(source), artifact_(artifact), arguments_(arguments) {}

  // The manifest, compiled as the artifact was.
  std::expected<review::FreshArtifact, int> compile(Output& output) {
    const lower::Target* target = lower::find_target(review::provenance_of(artifact_, "target"));
    if (target == nullptr) {
      return cannot_compare(source_, "its provenance names no target that is known", output);
    }
    const auto options = artifact_.root().find("provenance")->find("options");
    if (!options) return cannot_compare(source_, "its provenance has no options", output);
    auto read = lower::read_options(*options);
    if (!read) return cannot_compare(source_, read.error(), output);
    if (auto loaded = load_manifest(*read, output); !loaded) {
      return std::unexpected(loaded.error());
    }
    read->home = std::exchange(loaded_.options.home, {});
    read->runtime_dir = std::exchange(loaded_.options.runtime_dir, {});
    read->validators = validators_of(artifact_);
    if (const auto mistake = lower::settle_options(*target, *read, "")) {
      return cannot_compare(source_, mistake->message, output);
    }
    return lower_again(*target, *std::move(read), output);
  }

  const std::string& name() const { return loaded_.manifest.name; }

 private:
  std::expected<void, int> load_manifest(const lower::Options& options, Output& output) {
    auto document = parse_document(manifest_.name, manifest_.text, arguments_, output);
    if (!document) return std::unexpected(document.error());
    if (is_config(**document) || is_lock(**document)) {
      return cannot_compare(manifest_, "an artifact is compared with one manifest", output);
    }
    auto loaded = load(arguments_,
                       {.manifest = {},
                        .home = options.home,
                        .document = *std::move(document),
                        .document_name = manifest_.name,
                        .seal = options.seal,
                        .tool = options.tool,
                        .runtime_dir = options.runtime_dir},
                       output);
    if (!loaded) return std::unexpected(loaded.error());
    loaded_ = *std::move(loaded);
    return {};
  }

  // What was accepted then may be enforced now, or be gone: that is a difference and no mistake.
  std::expected<review::FreshArtifact, int> lower_again(const lower::Target& target,
                                                        lower::Options options, Output& output) {
    options.accepted = texts_of(artifact_, "unenforced");
    const Source source = loaded_.source();
    const lower::Input input{loaded_.manifest, loaded_.policy, options, &source};
    auto artifact = lower_to(target, input);
    if (!artifact) {
      std::erase_if(options.accepted, [&](const std::string& capability) {
        const std::string said =
            format("--accept-unenforced {} accepts nothing", quoted(capability));
        return contains_message(artifact.error(), said);
      });
      artifact = lower_to(target, input);
    }
    if (!artifact) {
      output.err += format("capgate: {} cannot be compiled as {} was, for {}:\n",
                           escape_for_terminal(manifest_.name), escape_for_terminal(source_.name),
                           target.name);
      return std::unexpected(report(artifact.error(), source, arguments_, output));
    }
    return review::fresh_artifact(*artifact, input, source, files_as(artifact_));
  }

  static bool contains_message(const Diagnostics& mistakes, const std::string& message) {
    return std::ranges::any_of(
        mistakes, [&](const Diagnostic& mistake) { return mistake.message == message; });
  }

  const ReadSource& manifest_;
  const ReadSource& source_;
  const Document& artifact_;
  const Arguments& arguments_;
  Loaded loaded_;
};

ArtifactResult result_of(std::string name, const ArtifactOperand& before,
                         const ArtifactOperand& after, std::vector<review::ShownPart> parts) {
  ArtifactResult out;
  out.server.name = std::move(name);
  out.server.file = after.source.file.empty() ? before.source.file : after.source.file;
  for (review::ShownPart& part : parts) out.server.add(std::move(part));
  return out;
}

}  // namespace

std::unique_ptr<const Document> artifact_of(const ReadSource& source) {
  if (source.is_nothing) return nullptr;
  auto document = text::parse_json_or_yaml(source.name, source.text);
  if (!document || !review::is_artifact(*document)) return nullptr;
  return std::make_unique<const Document>(*std::move(document));
}

std::expected<ArtifactResult, int> compare_artifact(const ArtifactOperand& before,
                                                    const ArtifactOperand& after,
                                                    const Arguments& arguments, Output& output) {
  if (before.artifact != nullptr && after.artifact != nullptr) {
    return result_of(
        after.source.name, before, after,
        review::compare_artifacts({.document = *before.artifact}, {.document = *after.artifact}));
  }
  const bool is_before = before.artifact != nullptr;
  const ArtifactOperand& stored = is_before ? before : after;
  const ArtifactOperand& manifest = is_before ? after : before;
  if (manifest.source.is_nothing) {
    return cannot_compare(stored.source, "an artifact is compared with its manifest", output);
  }
  Again again(manifest.source, stored.source, *stored.artifact, arguments);
  const auto fresh = again.compile(output);
  if (!fresh) return std::unexpected(fresh.error());
  const review::ArtifactSide old{.document = *stored.artifact};
  const review::ArtifactSide now{.document = *fresh->document, .fresh = &*fresh};
  ArtifactResult out = result_of(
      again.name(), before, after,
      is_before ? review::compare_artifacts(old, now) : review::compare_artifacts(now, old));
  if (!is_before) {
    add_claims(claims_of(*stored.artifact, *fresh->document, arguments), arguments, out.server);
  }
  out.notes = notes_of(*stored.artifact, validators_of(*stored.artifact));
  return out;
}

}  // namespace capgate::cli
