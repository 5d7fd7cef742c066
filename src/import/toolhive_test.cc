#include "import/toolhive.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::has_loss;
using support::outcome;
using support::read_json;

TEST(Toolhive, IsReadAsItSays) {
  const support::ImportCase cases[] = {
      {R"({"read": ["/srv/a"], "write": ["/srv/b/"], "name": "x"})",
       "fs:read:/srv/a fs:write:/srv/b/**"},
      {R"({"read": ["data"], "write": ["~/notes"]})",
       "fs:read:${WORKING_DIRECTORY}/data fs:write:/home/me/notes"},
      {R"({"network": {"outbound": {"allow_host": ["a.example.com"], "allow_port": [443],
          "allow_transport": ["udp"]}}})",
       ""},
      {R"({"network": {"outbound": {"insecure_allow_all": true, "allow_transport": ["UDP"]}}})",
       ""},
      {R"({"network": {"outbound": {"allow_host": ["a.example.com"], "allow_port": [443],
          "allow_transport": ["udp", "TCP"]}}})",
       "net:connect:a.example.com:443"},
      {R"({"network": {"outbound": {"allow_host": ["a.example.com"], "allow_port": [443],
          "allow_transport": []}}})",
       "net:connect:a.example.com:443"},
      {R"({"read": ["/srv/a:/b"]})", "fs:read:/srv/a"},
      {R"({"write": ["volume://x:/y"]})", ""},
      {R"({"network": {"outbound": {"allow_host": ["a.example.com", "b.example.com"],
          "allow_port": [443, 80]}}})",
       "net:connect:a.example.com:443 net:connect:a.example.com:80 net:connect:b.example.com:443 "
       "net:connect:b.example.com:80"},
      {R"({"network": {"outbound": {"allow_host": [".example.com"], "allow_port": [443]}}})",
       "net:connect:*.example.com:443 net:connect:example.com:443"},
      {R"({"network": {"outbound": {"allow_host": ["a.example.com"]}}})",
       "net:connect:a.example.com"},
      {R"({"network": {"outbound": {"insecure_allow_all": true}}})", "net:connect:*"},
      {R"({"network": {"outbound": {"allow_host": [], "allow_port": []}}})", ""},
      {R"({"network": {"outbound": {"allow_port": [443]}}})", "net:connect:*:443"},
      {R"({"network": {"outbound": {"allow_host": ["localhost", "127.0.0.1"], "allow_port": [80]}}})",
       ""},
      {R"({"network": {"mode": "none", "outbound": {"insecure_allow_all": true}}})", ""},
      {R"({"network": null, "read": null})", ""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(outcome(read_json(read_toolhive, text), text), expected) << text;
  }
}

TEST(Toolhive, ABooleanOfYamlIsOneHoweverItIsSpelt) {
  for (const std::string_view on : {"true", "True", "TRUE"}) {
    const std::string privileged = "privileged: " + std::string(on) + "\n";
    EXPECT_EQ(outcome(support::read_yaml(read_toolhive, privileged), privileged),
              "IMPORT_REFUSED '" + std::string(on) +
                  "': a privileged container has every right on the host");
    const std::string all = "network: {outbound: {insecure_allow_all: " + std::string(on) + "}}\n";
    EXPECT_EQ(outcome(support::read_yaml(read_toolhive, all), all), "net:connect:*");
  }
}

TEST(Toolhive, WhatItCannotMeanIsAMistakeWithItsPlace) {
  const support::ImportCase cases[] = {
      {"[]", "IMPORT_SHAPE '[]': a permission profile is a mapping"},
      {R"({"privileged": true})",
       "IMPORT_REFUSED 'true': a privileged container has every right on the host"},
      {R"({"reads": []})", "IMPORT_SHAPE '\"reads\"': a permission profile has no \"reads\""},
      {R"({"read": "/srv"})", "IMPORT_SHAPE '\"/srv\"': read is a list"},
      {R"({"read": [1]})", "IMPORT_SHAPE '1': read is a list of texts"},
      {R"({"read": ["/"]})", "CAP_SCOPE_REFUSED '/': / cannot be granted: / is the whole machine"},
      {R"({"read": ["/srv/${X}"]})", "IMPORT_SHAPE '/srv/${X}': read has no variables"},
      {R"({"read": ["/a:/b:/c"]})",
       "IMPORT_SHAPE '/a:/b:/c': a mount has one colon, between host and container"},
      {R"({"read": ["/a/*"]})", "IMPORT_SHAPE '/a/*': a mount has no wildcards"},
      {R"({"network": {"mode": "host"}})",
       "IMPORT_REFUSED '\"host\"': the host's own network has no rules: everything could be "
       "reached"},
      {R"({"network": {"outbound": {"allow_port": [0]}}})",
       "IMPORT_SHAPE '0': allow_port is a list of ports"},
      {R"({"network": {"outbound": {"allow_port": ["443"]}}})",
       "IMPORT_SHAPE '\"443\"': allow_port is a list of ports"},
      {R"({"network": {"outbound": {"allow_host": ["*.example.com"]}}})",
       "IMPORT_SHAPE '*.example.com': a host has no wildcards here"},
      {R"({"network": {"outbound": {"deny_host": ["x"]}}})",
       "IMPORT_SHAPE '\"deny_host\"': outbound has no \"deny_host\""},
      {R"({"network": {"outbound": {"allow_transport": ["icmp"]}}})",
       "IMPORT_SHAPE 'icmp': \"icmp\" is no transport"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(outcome(read_json(read_toolhive, text), text).starts_with(expected.substr(0, 60)))
        << text << "\n"
        << outcome(read_json(read_toolhive, text), text);
  }
}

TEST(Toolhive, LossesAreTold) {
  const auto read = read_json(read_toolhive, R"({"network": {"outbound": {
      "allow_host": ["a.example.com", "b.example.com"], "allow_port": [443, 80]}}})");
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "network.outbound"));
  EXPECT_TRUE(has_loss(read, Loss::Kind::unsaid, "exec"));
  EXPECT_TRUE(
      has_loss(read_json(read_toolhive, R"({"network": {"outbound": {"allow_port": [1]}}})"),
               Loss::Kind::assumed, "network.outbound.allow_port"));
}

TEST(Toolhive, WithoutTcpNoHostIsGranted) {
  const auto read = read_json(read_toolhive, R"({"network": {"outbound": {
      "allow_host": ["a.example.com"], "allow_transport": ["udp"]}}})");
  ASSERT_TRUE(read);
  const auto said =
      std::ranges::find(read->losses, "network.outbound.allow_transport", &Loss::subject);
  ASSERT_NE(said, read->losses.end());
  EXPECT_TRUE(said->message.ends_with("no host is granted")) << said->message;
}

TEST(Toolhive, ACrossProductHasAnEnd) {
  std::string hosts;
  for (int i = 0; i < 100; ++i) hosts += format("{}\"h{}.example.com\"", i ? "," : "", i);
  std::string ports;
  for (int i = 1; i < 100; ++i) ports += format("{}{}", i > 1 ? "," : "", i);
  const std::string text = format(
      R"({{"network": {{"outbound": {{"allow_host": [{}], "allow_port": [{}]}}}}}})", hosts, ports);
  EXPECT_TRUE(outcome(read_json(read_toolhive, text), text).starts_with("IMPORT_REFUSED"));
}

}  // namespace
}  // namespace capgate::imports
