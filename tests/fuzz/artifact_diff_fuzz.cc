// Any two texts as artifacts of `compile`, separated by a zero byte. A comparison of an artifact
// with itself is empty; one of two artifacts that say different things is not; no pair is narrower
// in both directions; and everything that is printed about them is safe to print.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "fuzz/mistakes.h"
#include "review/artifact_diff.h"
#include "review/diff_print.h"
#include "text/json.h"
#include "text/json_or_yaml.h"
#include "text/json_write.h"

namespace {

using namespace capgate;
using review::ShownPart;
using review::Verdict;
using text::Document;
using text::Kind;
using text::Member;
using text::Value;

std::optional<Document> read_artifact(std::string_view source) {
  auto document = text::parse_json_or_yaml("fuzz", text::share(std::string(source)));
  if (!document || !review::is_artifact(*document)) return std::nullopt;
  return *std::move(document);
}

// ---- what an artifact says, apart from its provenance and from places in a manifest ----

// "{network rules []" for an item of plan.network.rules.
bool is_rule(std::string_view path) {
  return path == "{plan{network{rules[" || path == "{plan{seals[";
}

std::string meaning(Value value, const std::string& path) {
  std::vector<std::string> parts;
  if (value.is(Kind::array)) {
    for (const Value item : value.elements()) parts.push_back(meaning(item, path + "["));
    if (path == "{notes") std::ranges::sort(parts);
    return format("[{}]", join(parts, ","));
  }
  if (!value.is(Kind::object)) {
    return format("{}:{}:{}", static_cast<int>(value.kind()), value.text().size(), value.text());
  }
  for (const Member member : value.members()) {
    const std::string key(member.key.text());
    if (path.empty() && key == "provenance") continue;
    if (is_rule(path) && key == "at" && member.value.is(Kind::string)) continue;
    // Keys of an artifact cannot pretend to be a path: "{" in a key is written twice.
    std::string inner = path + "{";
    for (const char c : key) inner.append(c == '{' || c == '[' ? 2 : 1, c);
    parts.push_back(format("{}:{}={}", key.size(), key, meaning(member.value, inner)));
  }
  std::ranges::sort(parts);
  return format("{{{}}}", join(parts, ","));
}

// Words that hold the hash of the policy are compared without it.
bool has_hash(const Document& artifact) {
  return review::provenance_of(artifact, "policyHash").starts_with("sha256:");
}

// ---- properties ----

void check_printed(const review::ShownServer& server) {
  const std::array servers{server};
  fuzz::check_terminal_text(review::diff_text(servers, Colour::off));
  CAPGATE_ASSERT(text::parse_json(review::diff_json(servers, {})).has_value());
  const std::string markdown = review::diff_markdown(servers, {});
  CAPGATE_ASSERT(markdown.starts_with(review::markdown_marker));
  CAPGATE_ASSERT(markdown.find(review::markdown_marker, 1) == std::string::npos);
}

review::ShownServer compared(const Document& before, const Document& after) {
  review::ShownServer server{.name = "fuzz", .file = "fuzz.json"};
  for (ShownPart& part : review::compare_artifacts({.document = before}, {.document = after})) {
    server.add(std::move(part));
  }
  check_printed(server);
  return server;
}

void check_pair(const Document& a, const Document& b) {
  const review::ShownServer forth = compared(a, b);
  const review::ShownServer back = compared(b, a);
  CAPGATE_ASSERT(forth.parts.empty() == back.parts.empty());
  CAPGATE_ASSERT(forth.verdict != Verdict::less || review::may_widen(back.verdict));
  if (has_hash(a) || has_hash(b)) return;
  CAPGATE_ASSERT(!forth.parts.empty() || meaning(a.root(), "") == meaning(b.root(), ""));
}

// The same text with one character changed: mostly still an artifact.
std::string with_change(std::string_view text) {
  std::string out(text);
  const std::size_t at = out.size() / 2;
  if (!out.empty()) out[at] = out[at] == '1' ? '2' : '1';
  return out;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = std::min(input.find('\0'), size);
  const std::string first(input.substr(0, zero));
  const auto a = read_artifact(first);
  if (!a) return 0;
  CAPGATE_ASSERT(review::compare_artifacts({.document = *a}, {.document = *a}).empty());
  const auto b = read_artifact(zero < size ? input.substr(zero + 1) : with_change(first));
  if (b) check_pair(*a, *b);
  return 0;
}
