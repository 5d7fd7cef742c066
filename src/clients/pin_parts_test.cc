// Every part of a pin that differs is named: what is not named is not asked about.
#include <gtest/gtest.h>

#include "clients/pin_diff.h"

namespace capgate::clients {
namespace {

Pin pin() {
  return {.server = "x",
          .manifest_hash = "sha256:0",
          .policy = {},
          .shared = {},
          .grants = {},
          .command = {"a"},
          .package = PinnedPackage{.registry = "npm",
                                   .name = "tool",
                                   .version = "1.2.3",
                                   .integrity = "sha512-a",
                                   .tree = "sha256:a"},
          .protocol = "2025-06-18",
          .tools = std::vector<PinnedTool>{{.name = "t"}}};
}

std::vector<std::string> names_of(const std::vector<TextChange>& texts) {
  std::vector<std::string> out;
  for (const TextChange& text : texts) out.push_back(text.what);
  return out;
}

using Names = std::vector<std::string>;

TEST(PinParts, OfAPackageAreNamed) {
  const std::pair<std::string PinnedPackage::*, const char*> parts[] = {
      {&PinnedPackage::name, "package"},
      {&PinnedPackage::version, "version of the package"},
      {&PinnedPackage::integrity, "integrity of the package"},
      {&PinnedPackage::tree, "files of the package"}};
  EXPECT_TRUE(diff(pin(), pin()).is_empty());
  for (const auto& [part, name] : parts) {
    Pin after = pin();
    (*after.package).*part += "b";
    EXPECT_EQ(names_of(diff(pin(), after).texts), Names{name});
  }
}

TEST(PinParts, OfAToolAreNamed) {
  const std::pair<std::string PinnedTool::*, const char*> parts[] = {
      {&PinnedTool::title, "title"},
      {&PinnedTool::description, "description"},
      {&PinnedTool::input_schema, "input schema"},
      {&PinnedTool::output_schema, "output schema"},
      {&PinnedTool::annotations, "annotations"},
      {&PinnedTool::other, "other words"}};
  for (const auto& [part, name] : parts) {
    Pin after = pin();
    after.tools->front().*part = "1";
    const PinDiff change = diff(pin(), after);
    ASSERT_EQ(change.tools.size(), 1U) << name;
    EXPECT_EQ(names_of(change.tools[0].texts), Names{name});
  }
}

}  // namespace
}  // namespace capgate::clients
