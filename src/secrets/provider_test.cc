#include "secrets/provider.h"

#include <gtest/gtest.h>

namespace capgate::secrets {
namespace {

using Provider = Binding::Provider;
using Words = std::vector<std::string>;

TEST(ParseBinding, EachProvider) {
  const struct {
    const char* text;
    Provider provider;
    const char* reference;
  } cases[] = {
      {"TOKEN=env:OTHER", Provider::env, "OTHER"},
      {"TOKEN=file:/run/a=b:c", Provider::file, "/run/a=b:c"},
      {"TOKEN=cmd:pass show a", Provider::cmd, "pass show a"},
      {"TOKEN=systemd-credential:github", Provider::systemd_credential, "github"},
      {"TOKEN=keyring:github:token", Provider::keyring, "github:token"},
      {"TOKEN=store:GITHUB", Provider::store, "GITHUB"},
  };
  for (const auto& each : cases) {
    const auto binding = parse_binding(each.text);
    ASSERT_TRUE(binding) << each.text;
    EXPECT_EQ(binding->name, "TOKEN");
    EXPECT_EQ(binding->provider, each.provider) << each.text;
    EXPECT_EQ(binding->reference, each.reference);
    EXPECT_FALSE(binding->expires());
  }
}

TEST(ParseBinding, WordsOfACommand) {
  EXPECT_EQ(parse_binding("T=cmd:sh -c 'a | b' '|' x|y")->command,
            (Words{"sh", "-c", "a | b", "|", "x|y"}));
  EXPECT_EQ(parse_binding("T=cmd:op read 'op://a b/c' \"d 'e\"f  g")->command,
            (Words{"op", "read", "op://a b/c", "d 'ef", "g"}));
  EXPECT_EQ(parse_binding("T=cmd:echo '' $HOME;ls")->command, (Words{"echo", "", "$HOME;ls"}));
}

TEST(ParseBinding, CommandsThatExpire) {
  const auto ttl = parse_binding("T=cmd?ttl=600:vault read x");
  ASSERT_TRUE(ttl);
  EXPECT_EQ(ttl->ttl, 600U);
  EXPECT_TRUE(ttl->expires());
  const auto json = parse_binding("T=cmd?json:vault read x");
  ASSERT_TRUE(json);
  EXPECT_TRUE(json->is_json && json->expires());
  EXPECT_EQ(json->command.front(), "vault");
}

TEST(ParseBinding, MistakesSayWhatToWrite) {
  const struct {
    const char* text;
    Span where;
    const char* said;
  } cases[] = {
      {"", {0, 0}, "NAME=PROVIDER:REF"},
      {"TOKEN", {0, 5}, "NAME=PROVIDER:REF"},
      {"TOKEN=hidden", {0, 12}, "NAME=PROVIDER:REF"},
      {"TOKEN=hidden:word", {6, 12}, "no such provider"},
      {"token=env:A", {0, 5}, "not a variable name"},
      {"A?unsafe=env:A", {0, 8}, "not a variable name"},
      {"1A=env:A", {0, 2}, "not a variable name"},
      {"=env:A", {0, 0}, "not a variable name"},
      {"T=fiel:/a", {2, 6}, "no such provider"},
      {"T=env:", {6, 6}, "names no secret"},
      {"T=file:", {7, 7}, "names no secret"},
      {"T=store:../a", {8, 12}, "names no secret"},
      {"T=store:--server", {8, 16}, "names no secret"},
      {"T=systemd-credential:a/b", {21, 24}, "names no secret"},
      {"T=cmd:  ", {6, 8}, "names no program"},
      {"T=cmd:'' a", {6, 10}, "names no program"},
      {"T=cmd:pass 'a", {11, 13}, "without its other one"},
      {"T=cmd:pass show a | head -1", {18, 19}, "is the shell's"},
      {"T=cmd:pass a &&", {13, 15}, "is the shell's"},
      {"T=cmd?ttl=0:a", {2, 11}, "cmd has no"},
      {"T=cmd?ttl=99999999999:a", {2, 21}, "cmd has no"},
      {"T=cmd?yaml:a", {2, 10}, "cmd has no"},
      {"T=file?json:a", {2, 11}, "takes no refinement"},
  };
  for (const auto& each : cases) {
    const auto binding = parse_binding(each.text);
    ASSERT_FALSE(binding) << each.text;
    EXPECT_TRUE(binding.error().message.contains(each.said))
        << each.text << ": " << binding.error().message;
    EXPECT_EQ(binding.error().where, each.where) << each.text;
    EXPECT_FALSE(binding.error().help.empty()) << each.text;
    EXPECT_FALSE(binding.error().message.contains("hidden"));
  }
  EXPECT_TRUE(parse_binding("T=fiel:/a").error().help.contains("did you mean file:"));
}

}  // namespace
}  // namespace capgate::secrets
