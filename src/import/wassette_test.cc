#include "import/wassette.h"

#include <gtest/gtest.h>

#include "import/cidr.h"
#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::outcome;
using support::read_yaml;

TEST(Wassette, IsReadAsItSays) {
  const support::ImportCase cases[] = {
      {"{storage: {allow: [{uri: 'fs:///srv/a/**', access: [read, write]}]}}",
       "fs:write:/srv/a/**"},
      {"{storage: {allow: [{uri: 'fs://a/b', access: [read]}]}}", "fs:read:/srv/project/a/b"},
      {"{storage: {allow: [{uri: 'fs:///srv/a', access: [read]}], deny: [{uri: 'fs:///srv/a/b', "
       "access: [write]}]}}",
       "fs:read:/srv/a"},
      {"{network: {allow: [{host: a.example.com}, {host: '*.b.example.com'}, {cidr: "
       "192.0.2.1/32}]}}",
       "net:connect:*.b.example.com net:connect:192.0.2.1 net:connect:a.example.com"},
      {"{network: {allow: [{host: a.example.com}], deny: [{cidr: 10.0.0.0/8}]}}",
       "net:connect:a.example.com"},
      {"{network: {allow: [{cidr: 10.0.0.0/8}]}}", ""},
      {"{environment: {allow: [{key: A}, {key: B}], deny: [{key: B}]}}", "env:read:A"},
      {"{resources: {limits: {cpu: 500m, memory: 512Mi}}}", "limit:cpu:50% limit:memory:512M"},
      {"{resources: {cpu: 1.5, memory: 256}}", "limit:cpu:150% limit:memory:256M"},
      {"{resources: {limits: {cpu: '2', memory: 1Gi}}}", "limit:cpu:200% limit:memory:1G"},
  };
  for (const auto& [permissions, expected] : cases) {
    const std::string text = format("{{version: '1.0', permissions: {}}}", permissions);
    EXPECT_EQ(outcome(read_yaml(read_wassette, text), text), expected) << text;
  }
}

TEST(Wassette, WhatItCannotMeanIsAMistakeWithItsPlace) {
  const support::ImportCase cases[] = {
      {"{storage: {allow: [{uri: 's3://x', access: [read]}]}}", "IMPORT_SHAPE ''s3://x''"},
      {"{storage: {allow: [{uri: 'fs:///srv', access: [execute]}]}}", "IMPORT_SHAPE"},
      {"{storage: {allow: [{uri: 'fs:///srv'}]}}", "IMPORT_SHAPE"},
      {"{storage: {allow: [{uri: 'fs:///', access: [read]}]}}", "CAP_SCOPE_REFUSED 'fs:///'"},
      {"{storage: {allow: [{uri: 'fs:///srv/**', access: [read]}], deny: [{uri: 'fs:///srv/k', "
       "access: [read]}]}}",
       "IMPORT_REFUSED 'fs:///srv/k': storage.deny denies a part of"},
      {"{network: {allow: [{host: '*.example.com'}], deny: [{host: a.example.com}]}}",
       "IMPORT_REFUSED 'a.example.com'"},
      {"{network: {allow: [{host: a.example.com}], deny: [{cidr: 0.0.0.0/0}]}}",
       "IMPORT_REFUSED '{cidr: 0.0.0.0/0}'"},
      {"{network: {allow: [{host: 10.1.2.3}], deny: [{cidr: 10.0.0.0/8}]}}",
       "IMPORT_REFUSED '{cidr: 10.0.0.0/8}'"},
      {"{network: {allow: [{port: 1}]}}", "IMPORT_SHAPE"},
      {"{environment: {allow: [{key: 'A*'}]}}", "CAP_ENV_NAME 'A*'"},
      {"{environment: {allow: [{key: AWS_KEY}], deny: [{key: 'AWS_*'}]}}",
       "IMPORT_REFUSED 'AWS_*'"},
      {"{environment: {deny: [{name: A}]}}", "IMPORT_SHAPE"},
      {"{environment: {deny: [{key: A, value: B}]}}", "IMPORT_SHAPE 'value'"},
      {"{environment: {deny: [{key: 1}]}}", "IMPORT_SHAPE"},
      {"{environment: {deny: [A]}}", "IMPORT_SHAPE 'A'"},
      {"{resources: {io: 5}}", "IMPORT_REFUSED '5'"},
      {"{resources: {limits: {memory: 0}}}", "IMPORT_SHAPE '0'"},
      {"{resources: {limits: {memory: 99999999999Ti}}}", "IMPORT_SHAPE '99999999999Ti'"},
      {"{resources: {limits: {cpu: -1}}}", "IMPORT_SHAPE '-1'"},
      {"{runtime: {docker: {security: {privileged: true}}}}", "IMPORT_REFUSED 'true'"},
      {"{gpu: {}}", "IMPORT_SHAPE 'gpu': permissions has no \"gpu\""},
  };
  for (const auto& [permissions, expected] : cases) {
    const std::string text = format("{{version: '1.0', permissions: {}}}", permissions);
    EXPECT_TRUE(outcome(read_yaml(read_wassette, text), text).starts_with(expected))
        << text << "\n"
        << outcome(read_yaml(read_wassette, text), text);
  }
  for (const std::string text : {"{version: '2.0', permissions: {}}",
                                 "{version: 1.0, permissions: {}}", "{permissions: {}}"}) {
    EXPECT_TRUE(outcome(read_yaml(read_wassette, text), text).starts_with("IMPORT_VERSION"))
        << text;
  }
}

TEST(Wassette, BlocksOfAddresses) {
  EXPECT_EQ(print(*parse_block("10.1.2.3/8")), "10.0.0.0/8");
  EXPECT_EQ(print(*parse_block("192.0.2.1")), "192.0.2.1/32");
  EXPECT_EQ(print(*parse_block("fd00::1/7")), "fc00::/7");
  for (const std::string_view bad :
       {"", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "a.b/8", "*"}) {
    EXPECT_FALSE(parse_block(bad)) << bad;
  }
  EXPECT_TRUE(is_private(*parse_block("10.5.0.0/16")));
  EXPECT_FALSE(is_private(*parse_block("0.0.0.0/0")));
}

}  // namespace
}  // namespace capgate::imports
