#include "sandbox/lacking.h"

#include <gtest/gtest.h>

namespace capgate::sandbox {
namespace {

const Lacking git{.entry = "git-npm",
                  .capabilities = {"net:connect:github.com:443", "exec:spawn:git"}};

TEST(Lacking, IsSortedByKind) {
  EXPECT_EQ(of_kind(git, "exec:spawn:"), std::vector<std::string>{"exec:spawn:git"});
  EXPECT_EQ(of_kind(git, "fs:"), std::vector<std::string>{});
}

TEST(Lacking, IsNamedLineByLine) {
  EXPECT_EQ(explain_status(git, 3),
            "capgate: the server ended with status 3, and its policy lacks what git-npm of the "
            "catalog has:\n"
            "  net:connect:github.com:443\n"
            "  exec:spawn:git\n");
}

TEST(Lacking, NothingIsSaidWhereNothingIs) { EXPECT_EQ(explain_status({}, 1), ""); }

// A directory of the command line may have any name.
TEST(Lacking, IsEscaped) {
  const Lacking lacking{.entry = "x", .capabilities = {"fs:read:/a\x1b[2J"}};
  EXPECT_EQ(explain_status(lacking, 1).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace capgate::sandbox
