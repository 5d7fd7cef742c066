// An artifact of compile that was changed afterwards, and how `capgate diff` judges it.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "support/diff_cli.h"

namespace capgate::support {

class ChangedArtifactTest : public DiffTest {
 protected:
  struct Made {
    Json artifact;
    Words expected;  // the words with which diff takes the options of the artifact as they are
  };
  struct Judged {
    int code = 0;
    std::vector<Part> parts;  // none where diff printed no comparison
  };

  [[nodiscard]] Made made(const std::string& target, const Words& words) const {
    // Compiling is most of the cost of these tests, and the same input gives the same artifact.
    static std::map<std::string, Made> all;
    const std::string key = manifest_ + "\n" + target + "\n" + join(words, "\n");
    const auto [found, is_new] = all.try_emplace(key);
    if (is_new) found->second = make(target, words);
    return found->second;
  }
  [[nodiscard]] Made made(const std::string& target) const {
    return made(target, words_of_targets().at(target));
  }

  [[nodiscard]] Judged judge(const Json& artifact, const Words& expected) const {
    file("changed.json", artifact);
    const Ran done = diff(joined(joined({"notes.json", "changed.json"}, expected), {"--json"}));
    Judged out{.code = done.code, .parts = {}};
    if (done.out.find("\"servers\"") == std::string::npos) return out;
    out.parts = parts(done.json());
    return out;
  }

  // Replaces notes.json.
  void write_manifest(const Json& manifest) {
    manifest_ = manifest.dump();
    file("notes.json", manifest);
  }

  // The change is seen, and counts as wider.
  void expect_found(const Made& changed) const {
    const Judged judged = judge(changed.artifact, changed.expected);
    EXPECT_EQ(judged.code, 5);
    EXPECT_TRUE(std::ranges::any_of(judged.parts, [](const Part& part) {
      return part.kind == "widened" || part.kind == "differs";
    }));
  }

 private:
  [[nodiscard]] Made make(const std::string& target, const Words& words) const {
    Made out{.artifact = compile_accepting(target, words), .expected = {}};
    file("artifact.json", out.artifact);
    for (const Part& part : parts(compare({"notes.json", "artifact.json"}).json)) {
      EXPECT_EQ(part.kind, "differs") << part.shown;
      EXPECT_EQ(part.part, "options") << part.shown;
      out.expected.insert(out.expected.end(), {"--expect", part.shown});
    }
    EXPECT_EQ(diff(joined({"notes.json", "artifact.json"}, out.expected)).code, 0) << target;
    return out;
  }

  std::string manifest_;  // empty: the one of DiffTest
};

// The lines of a file's contents, without the empty rest after the last line feed.
[[nodiscard]] inline Words lines_of(const Json& contents) {
  Words out;
  for (const std::string_view line : split(contents.text(), '\n')) out.emplace_back(line);
  out.pop_back();
  return out;
}

[[nodiscard]] inline std::string text_of(const Words& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace capgate::support
