#include "core/rights.h"

#include <gtest/gtest.h>

namespace capgate::core {
namespace {

using enum FsAction;

static_assert(rights_of({read}).bits == FileRights::read);
static_assert(rights_of({create}).bits == (FileRights::read | FileRights::modify));
static_assert(rights_of({remove}).bits == (FileRights::read | FileRights::remove));
static_assert(rights_of({write}).bits ==
              (FileRights::read | FileRights::modify | FileRights::remove));
static_assert(rights_of({create, remove}) == rights_of({write}));

TEST(Rights, OneActionStandsForEachUnion) {
  for (const FsAction a : {read, create, write, remove}) {
    for (const FsAction b : {read, create, write, remove}) {
      const FileRights both = rights_of({a}) | rights_of({b});
      EXPECT_EQ(rights_of(actions_for(both)), both);
      EXPECT_EQ(both, rights_of({a, b}));
    }
  }
}

TEST(Rights, CoveringIsBeingASubset) {
  EXPECT_TRUE(rights_of({write}).covers(rights_of({create})));
  EXPECT_TRUE(rights_of({create}).covers(rights_of({read})));
  EXPECT_FALSE(rights_of({create}).covers(rights_of({remove})));
  EXPECT_FALSE(rights_of({remove}).covers(rights_of({write})));
  EXPECT_TRUE(rights_of({read}).covers({}));
}

}  // namespace
}  // namespace capgate::core
