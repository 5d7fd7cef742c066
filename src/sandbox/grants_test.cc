#include "sandbox/grants.h"

#include <gtest/gtest.h>

namespace capgate::sandbox {
namespace {

TEST(Grants, WholeComponentsDecideWhatLiesBelowADirectory) {
  const lower::Plan plan;
  const std::vector<std::string> environment;
  const Holes holes(plan, environment);
  Grants grants(plan, holes, false);
  EXPECT_FALSE(grants.any_at_or_below("/usr/bin"));
  for (const char* other : {"/usr", "/usr/bin-old", "/usr/bin.d/x", "/usr/bin0", "/usr/lib"}) {
    grants.by_path[other];
    EXPECT_FALSE(grants.any_at_or_below("/usr/bin")) << other;
  }
  grants.by_path["/usr/bin/git"];
  EXPECT_TRUE(grants.any_at_or_below("/usr/bin"));
  EXPECT_TRUE(grants.any_at_or_below("/usr/bin/git"));
  EXPECT_FALSE(grants.any_at_or_below("/usr/bin/gi"));
}

}  // namespace
}  // namespace capgate::sandbox
