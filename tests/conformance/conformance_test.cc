// The earlier implementation as a witness: what it accepted, refused, merged and hashed. Where
// capgate answers differently, differences.tsv says so, with the reason; a difference that is not
// listed there, and a listed one that no longer exists, are failures.
//
// The jsonl files hold inputs, verdicts and hashes that were recorded from it, nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "core/grammar.h"
#include "core/provenance.h"
#include "core/scope.h"
#include "support/files.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

using support::Strings;

// One recorded answer and ours. Both are codes, "accept", or the fs grants of a policy.
struct Case {
  std::string input;
  std::string earlier;
  std::string ours;
};

struct Difference {
  std::string earlier;
  std::string ours;
  std::string reason;
};

std::vector<text::Document> read_cases(std::string_view path) {
  std::vector<text::Document> cases;
  for (const std::string& line : support::read_lines(path)) {
    cases.push_back(support::json_document(line));
  }
  return cases;
}

// Four columns: the case, the earlier verdict, ours, the reason.
std::map<std::string, Difference> read_differences() {
  std::map<std::string, Difference> out;
  for (const std::string& line : support::read_lines("tests/conformance/differences.tsv")) {
    const auto columns = split(line, '\t');
    if (columns.size() != 4) {
      ADD_FAILURE() << "not four columns: " << line;
      continue;
    }
    const bool added = out.emplace(columns[0], Difference{.earlier = std::string(columns[1]),
                                                          .ours = std::string(columns[2]),
                                                          .reason = std::string(columns[3])})
                           .second;
    EXPECT_TRUE(added) << "listed twice: " << line;
  }
  return out;
}

std::string verdict(std::string_view capability) {
  const auto parsed = parse_capability(capability, {});
  if (!parsed) return std::string(code_name(parsed.error().code));
  const auto allowed = check_scope(parsed->front(), "");
  return allowed ? "accept" : std::string(code_name(allowed.error().code));
}

std::vector<Case> grammar_cases() {
  std::vector<Case> out;
  for (const text::Document& document : read_cases("tests/conformance/grammar_cases.jsonl")) {
    const text::Value row = document.root();
    const std::string input(row.find("in")->text());
    const auto code = row.find("code");
    out.push_back({.input = input,
                   .earlier = code ? std::string(code->text()) : "accept",
                   .ours = verdict(input)});
  }
  return out;
}

Strings texts_of(text::Value list) {
  Strings out;
  for (const text::Value item : list.elements()) out.emplace_back(item.text());
  return out;
}

// The earlier grants in our words: write, create or delete made a mount writable, which is write.
std::string earlier_grants(text::Value list) {
  Strings lines;
  for (const text::Value grant : list.elements()) {
    const Strings actions = texts_of(*grant.find("actions"));
    const bool writable = std::ranges::find(actions, "write") != actions.end();
    lines.push_back(print(FsCapability{
        .actions = {writable ? FsAction::write : FsAction::read},
        .path = {.base = std::string(grant.find("path")->text())},
    }));
  }
  return lines.empty() ? "accept" : join(lines, " ");
}

std::string our_grants(const Strings& capabilities) {
  const auto policy = support::try_merge(capabilities);
  if (!policy) return std::string(code_name(policy.error().front().code));
  Strings lines;
  for (const auto& grant : policy->files) lines.push_back(print(Capability(grant.capability)));
  return lines.empty() ? "accept" : join(lines, " ");
}

std::vector<Case> merge_cases() {
  std::vector<Case> out;
  for (const text::Document& document : read_cases("tests/conformance/merge_cases.jsonl")) {
    const text::Value row = document.root();
    const Strings capabilities = texts_of(*row.find("caps"));
    out.push_back({.input = "merge " + join(capabilities, " "),
                   .earlier = earlier_grants(*row.find("fs")),
                   .ours = our_grants(capabilities)});
  }
  return out;
}

TEST(Conformance, EveryDifferenceIsListedAndNoListedOneIsStale) {
  const auto differences = read_differences();
  std::set<std::string> used;
  std::vector<Case> cases = grammar_cases();
  EXPECT_EQ(cases.size(), 89U);
  std::ranges::move(merge_cases(), std::back_inserter(cases));
  EXPECT_EQ(cases.size(), 89U + 27U);
  for (const Case& row : cases) {
    SCOPED_TRACE(row.input);
    const auto listed = differences.find(row.input);
    if (listed == differences.end()) {
      EXPECT_EQ(row.ours, row.earlier) << "a difference that is not listed";
      continue;
    }
    used.insert(row.input);
    EXPECT_NE(row.ours, row.earlier) << "listed, but there is no difference";
    EXPECT_EQ(row.earlier, listed->second.earlier);
    EXPECT_EQ(row.ours, listed->second.ours);
    EXPECT_FALSE(listed->second.reason.empty());
  }
  for (const auto& [input, difference] : differences) {
    EXPECT_TRUE(used.contains(input)) << "no such case: " << input;
  }
}

// A string that the earlier implementation refused is refused here too, unless the grammar grew.
TEST(Conformance, NothingRefusedBecameAcceptedButBracketedIpv6) {
  for (const Case& row : grammar_cases()) {
    if (row.earlier == "accept" || row.ours != "accept") continue;
    EXPECT_EQ(row.input, "net:connect:[::1]:443");
  }
}

TEST(Conformance, MergeCasesHaveTheirManifestHash) {
  std::size_t count = 0;
  for (const text::Document& document : read_cases("tests/conformance/merge_cases.jsonl")) {
    const text::Value row = document.root();
    const Strings capabilities = texts_of(*row.find("caps"));
    const auto manifest = support::json_document(support::manifest_json({capabilities}));
    EXPECT_EQ(manifest_hash(manifest.root()), row.find("hash")->text()) << join(capabilities, " ");
    ++count;
  }
  EXPECT_EQ(count, 27U);
}

TEST(Conformance, KnownManifestsHaveTheirHashAndCompile) {
  std::size_t count = 0;
  for (const text::Document& document : read_cases("tests/conformance/manifest_cases.jsonl")) {
    const text::Value row = document.root();
    const Span span = row.find("manifest")->span();
    const std::string source(document.source().substr(span.begin, span.end - span.begin));
    SCOPED_TRACE(source);
    const auto manifest = support::read_manifest(source);
    ASSERT_TRUE(manifest);
    EXPECT_EQ(manifest->hash, row.find("hash")->text());
    EXPECT_TRUE(merge(*manifest));
    ++count;
  }
  EXPECT_EQ(count, 10U);
}

// What the earlier implementation documented keeps its meaning under its own version number too.
TEST(Conformance, KnownManifestsAreGrammar00) {
  for (const text::Document& document : read_cases("tests/conformance/manifest_cases.jsonl")) {
    const Span span = document.root().find("manifest")->span();
    std::string source(document.source().substr(span.begin, span.end - span.begin));
    source.insert(1, R"("grammar":"0.0",)");
    EXPECT_TRUE(support::read_manifest(source)) << source;
  }
}

}  // namespace
}  // namespace capgate::core
