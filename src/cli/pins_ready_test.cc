// A server with a ready manifest of the catalog: the same text may grant more than was approved.
#include <gtest/gtest.h>

#include "base/format.h"
#include "cli/pins.h"
#include "core/merge.h"
#include "text/json.h"

namespace capgate::cli {
namespace {

class ReadyManifest : public testing::Test {
 protected:
  // As if the variables of one ready manifest gave it these capabilities.
  static Loaded loaded_with(const std::string& capabilities) {
    const auto document = text::parse_json(
        format(R"({{"name": "x", "version": "1", "tools": [], "serverCapabilities": [{}]}})",
               capabilities));
    Loaded out{.name = "x", .document = {}, .manifest = {}, .policy = {}, .options = {}};
    out.options.home = "/home/x";
    out.manifest =
        core::parse_manifest(*document, {{.name = "HOME", .values = {"/home/x"}}}).value();
    out.policy = core::merge(out.manifest).value();
    return out;
  }
  static Subject subject_of(const Loaded& loaded, std::string text) {
    return {.server = "x", .loaded = loaded, .command = {"a"}, .catalog_text = std::move(text)};
  }
  // What counts as a change, if one was approved and now the other is to run.
  static bool is_change(const std::string& approved, const std::string& now) {
    Output output;
    const Loaded before = loaded_with(approved);
    const Loaded after = loaded_with(now);
    const Subject subject = subject_of(after, "text");
    const auto pin = pin_of(subject_of(before, "text"), output);
    return !difference(pin.value(), pin_of(subject, output).value(), subject).is_empty();
  }
};

TEST_F(ReadyManifest, MayGrantLessThanWasApproved) {
  EXPECT_FALSE(is_change(R"("fs:read:/srv/a")", R"("fs:read:/srv/a")"));
  EXPECT_FALSE(
      is_change(R"("fs:read:/srv/a", "net:connect:a.example:443")", R"("fs:read:/srv/a")"));
}

TEST_F(ReadyManifest, MayNotGrantMoreThanWasApproved) {
  EXPECT_TRUE(is_change(R"("fs:read:/srv/a")", R"("fs:read:/srv/b")"));
  EXPECT_TRUE(is_change(R"("fs:read:/srv/a")", R"("fs:read:/srv/**")"));
  EXPECT_TRUE(is_change(R"("fs:read:/srv/a")", R"("fs:read:/srv/a", "net:connect:a.example:443")"));
}

// All of it is shown, also what it no longer grants.
TEST_F(ReadyManifest, OfAnotherTextIsAChange) {
  Output output;
  const Loaded before = loaded_with(R"("fs:read:/srv/a", "net:connect:a.example:443")");
  const Loaded after = loaded_with(R"("fs:read:/srv/a")");
  const Subject now = subject_of(after, "other text");
  const auto approved = pin_of(subject_of(before, "text"), output).value();
  const clients::PinDiff change = difference(approved, pin_of(now, output).value(), now);
  EXPECT_EQ(change.texts.size(), 1U);
  EXPECT_EQ(change.policy.removed, (std::vector<std::string>{"net:connect:a.example:443"}));
}

}  // namespace
}  // namespace capgate::cli
