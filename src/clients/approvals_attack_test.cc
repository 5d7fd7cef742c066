// Approvals that were copied, linked or edited instead of given.
#include <gtest/gtest.h>

#include <fstream>

#include "clients/approvals.h"
#include "support/temp_directory.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

class ApprovalsAttack : public testing::Test {
 protected:
  static Approval approval() {
    return {.directory = "/srv/project",
            .server = "x",
            .hash = "sha256:0",
            .policy = {"fs:read:/a"},
            .date = "2026-11-15T12:00:00Z",
            .pin = Pin{.server = "x",
                       .manifest_hash = "sha256:" + std::string(64, 'a'),
                       .policy = {"fs:read:/a"},
                       .shared = {},
                       .grants = {},
                       .command = {"a"},
                       .package = {},
                       .protocol = "",
                       .tools = {}}};
  }
  void SetUp() override {
    ASSERT_TRUE(approvals_.keep(approval()));
    ASSERT_EQ(approvals_.find("/srv/project", "x")->value(), approval());
  }
  [[nodiscard]] std::string file() const { return approvals_.file_of("/srv/project", "x"); }
  // The kept approval with one text in it changed.
  void change(std::string_view from, std::string_view to, std::size_t after = 0) const {
    std::string text = sys::read_file(file(), 65536).value();
    const std::size_t at = text.find(from, after);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(file()) << text.replace(at, from.size(), to);
  }
  [[nodiscard]] std::string problem() const {
    const auto found = approvals_.find("/srv/project", "x");
    return found ? "none" : found.error();
  }

  const test::TempDirectory directory_;
  const Approvals approvals_{directory_.path("approved")};
};

TEST_F(ApprovalsAttack, ACopyForAnotherServerIsNone) {
  std::filesystem::copy(file(), approvals_.file_of("/srv/project", "y"));
  const auto found = approvals_.find("/srv/project", "y");
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().contains("of another project")) << found.error();
}

TEST_F(ApprovalsAttack, ALinkIsNotFollowed) {
  std::filesystem::rename(file(), directory_.path("elsewhere"));
  directory_.link(std::filesystem::path(file()).lexically_relative(directory_.path()).string(),
                  directory_.path("elsewhere"));
  EXPECT_TRUE(problem().contains("cannot read")) << problem();
}

TEST_F(ApprovalsAttack, AMarkIsNotReadThroughALink) {
  approvals_.keep_mark("/tree", "a mark");
  ASSERT_EQ(approvals_.mark_of("/tree"), "a mark");
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path("approved"))) {
    if (entry.path().extension() != ".mark") continue;
    std::filesystem::rename(entry.path(), directory_.path("elsewhere"));
    std::filesystem::create_symlink(directory_.path("elsewhere"), entry.path());
    break;
  }
  EXPECT_EQ(approvals_.mark_of("/tree"), "");
}

TEST_F(ApprovalsAttack, APinOfAnotherServerIsNone) {
  const std::size_t pin = sys::read_file(file(), 65536)->find("\"pin\"");
  change(R"("server": "x")", R"("server": "y")", pin);
  EXPECT_TRUE(problem().contains("is no approval")) << problem();
}

// A version that does not know pins would take an approval without one for the whole.
TEST_F(ApprovalsAttack, APinHasItsVersion) {
  change(R"("schemaVersion": 2)", R"("schemaVersion": 1)");
  EXPECT_TRUE(problem().contains("is no approval")) << problem();
}

TEST_F(ApprovalsAttack, AVersionHasItsPin) {
  Approval without = approval();
  without.pin.reset();
  ASSERT_TRUE(approvals_.keep(without));
  change(R"("schemaVersion": 1)", R"("schemaVersion": 2)");
  EXPECT_TRUE(problem().contains("is no approval")) << problem();
}

}  // namespace
}  // namespace capgate::clients
