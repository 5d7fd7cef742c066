#include "store/request.h"

#include <gtest/gtest.h>

namespace capgate::store {
namespace {

using Words = std::vector<std::string_view>;

TEST(Request, IsWhatRunAsksFor) {
  const auto request = parse_request(Words{"get", "--server", "--odd server", "--name", "TOKEN"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->verb, Request::Verb::get);
  EXPECT_EQ(request->place().server, "--odd server");
  EXPECT_EQ(request->place().name, "TOKEN");
}

TEST(Request, IsForAnyServerUnlessItNamesOne) {
  const auto request = parse_request(Words{"set", "--name", "A", "--key", "keyring:k"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->place().server, "*");
  EXPECT_EQ(to_text(*request->key), "keyring:k");
}

TEST(Request, RepeatsNoWordThatItRefuses) {
  for (const Words& words :
       {Words{}, Words{"hunter2"}, Words{"set"}, Words{"set", "--name"},
        Words{"set", "--name", "A", "hunter2"}, Words{"set", "--name", "A=hunter2"},
        Words{"set", "--name", "A", "--hunter2"}, Words{"get", "--name", "A", "--key", "hunter2"},
        Words{"set", "--name", "A", "--key", "hunter2"}, Words{"list", "--name", "A"},
        Words{"rotate", "--json"}, Words{"set", "--name", "A", "--server", "hunter2\n"},
        Words{"get", "--name --server", "hunter2"}, Words{"get", "", "hunter2"}}) {
    const auto request = parse_request(words);
    ASSERT_FALSE(request) << words.size();
    EXPECT_EQ(request.error().kind, Problem::Kind::usage);
    EXPECT_FALSE(request.error().message.contains("hunter2")) << request.error().message;
    EXPECT_FALSE(request.error().help.contains("hunter2"));
  }
}

}  // namespace
}  // namespace capgate::store
