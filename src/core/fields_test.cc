#include "core/fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace capgate::core {
namespace {

// Fields as "text@begin-end", refinements as key=value.
std::string dump(std::string_view text) {
  TextStorage storage;
  const auto fields = cut_fields(text, storage);
  if (!fields) return "malformed";
  const auto show = [](const Field& field) {
    return std::string(field.text) + "@" + std::to_string(field.where.begin) + "-" +
           std::to_string(field.where.end) + " ";
  };
  std::string out = show(fields->kind) + "| ";
  for (std::size_t i = 0; i < std::min(fields->count, Fields::most); ++i) {
    out += show(fields->items[i]);
  }
  out += "| " + std::to_string(fields->count);
  for (const Refinement& refinement : fields->refinements) {
    out += " " + std::string(refinement.key.text) + "=" + show(refinement.value);
  }
  return out;
}

TEST(Fields, AreCutAtColonsOutsideQuotesAndBrackets) {
  EXPECT_EQ(dump("fs:read:/a"), "fs@0-2 | read@3-7 /a@8-10 | 2");
  EXPECT_EQ(dump("net:connect:[::1]:443?sni=any"),
            "net@0-3 | connect@4-11 [::1]@12-17 443@18-21 | 3 sni=any@26-29 ");
  EXPECT_EQ(dump("fs:read:\"/a:b?c\""), "fs@0-2 | read@3-7 /a:b?c@9-15 | 2");
  EXPECT_EQ(dump("fs:read:\"/a\\\"b\""), "fs@0-2 | read@3-7 /a\"b@8-15 | 2");
  EXPECT_EQ(dump("x:"), "x@0-1 | @2-2 | 1");
  EXPECT_EQ(dump(":"), "@0-0 | @1-1 | 1");
  EXPECT_EQ(dump("x:1:2:3:4:5"), "x@0-1 | 1@2-3 2@4-5 3@6-7 4@8-9 | 5");
  EXPECT_EQ(dump("x:[a:b"), "x@0-1 | [a:b@2-6 | 1");
}

TEST(Fields, RefinementsAreCutAtAmpersands) {
  EXPECT_EQ(dump("x:a?k=v&l=m"), "x@0-1 | a@2-3 | 1 k=v@6-7  l=m@10-11 ");
  EXPECT_EQ(dump("x:a?k=\"v&w\"&l=a=b:c?d"), "x@0-1 | a@2-3 | 1 k=v&w@7-10  l=a=b:c?d@14-21 ");
  EXPECT_EQ(dump("x:a?k="), "x@0-1 | a@2-3 | 1 k=@6-6 ");
  EXPECT_EQ(dump("x:a?"), "malformed");
  EXPECT_EQ(dump("x:a?k"), "malformed");
  EXPECT_EQ(dump("x:a?k&l=m"), "malformed");
}

TEST(Fields, AnAssertionIsNotCut) { EXPECT_EQ(dump("assert:a:\"b?c"), "assert@0-6 | | 0"); }

TEST(Fields, PlacesInsideAFieldAreExactOnlyWhereItWasNotChanged) {
  const Field plain{.text = "abc", .where = {10, 13}};
  EXPECT_EQ(plain.locate({1, 2}), (Span{11, 12}));
  const Field changed{.text = "abc", .where = {10, 15}, .verbatim = false};
  EXPECT_EQ(changed.locate({1, 2}), (Span{10, 15}));
}

}  // namespace
}  // namespace capgate::core
