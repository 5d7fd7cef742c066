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

TEST(Lacking, SaysMoreThanWhatWasSeen) {
  const Lacking lacking{.entry = "x",
                        .capabilities = {"exec:spawn:chromium?nestedSandbox=true",
                                         "fs:write:/data/**", "net:connect:a.test:443"}};
  EXPECT_EQ(as_in_entry(lacking, "exec:spawn:chromium"), "exec:spawn:chromium?nestedSandbox=true");
  EXPECT_EQ(as_in_entry(lacking, "fs:write:/data/box.db"), "fs:write:/data/**");
  EXPECT_EQ(as_in_entry(lacking, "fs:write:/data/**"), "fs:write:/data/**");
  for (const char* other : {"exec:spawn:chrom", "fs:read:/data/box.db", "fs:write:/data",
                            "fs:write:/data2/x", "net:connect:a.test:4", "clock:tzdata"}) {
    EXPECT_EQ(as_in_entry(lacking, other), other);
  }
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
