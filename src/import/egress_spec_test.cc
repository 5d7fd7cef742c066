#include "import/egress_spec.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/merge.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::imports {
namespace {

const std::string hash = "sha256:" + std::string(64, 'a');

// What a spec declares, one capability a line; or each mistake as "CODE at TEXT: message".
std::string read(const std::string& yaml) {
  const auto document = text::parse_yaml(yaml);
  if (!document) return "not YAML";
  const auto spec = read_egress_spec(*document);
  std::string out;
  const auto text_at = [&](Span where) {
    EXPECT_LE(where.end, yaml.size());
    return yaml.substr(where.begin, where.end - where.begin);
  };
  if (!spec) {
    for (const Diagnostic& mistake : spec.error()) {
      EXPECT_FALSE(mistake.help.empty()) << mistake.message;
      out += format("{} at {}: {}\n", code_name(mistake.code), text_at(mistake.where),
                    mistake.message);
    }
    return out;
  }
  for (const core::Declared& declared : spec->declared) {
    out += format("{} from {}\n", print(declared.capability), text_at(declared.where));
  }
  return out;
}

std::string with_rule(std::string_view rule) {
  return format("capgateEgress: 1\nserver: s\npolicyHash: {}\nrules:\n  - {}\n", hash, rule);
}
std::string read_rule(std::string_view rule) { return read(with_rule(rule)); }

TEST(EgressSpec, SaysWhatMayBeReached) {
  const std::string yaml = format(
      "capgateEgress: 1\n"
      "server: github\n"
      "policyHash: {}\n"
      "rules:\n"
      "  - connect: api.github.com:443\n"
      "    blockPrivate: true\n"
      "  - connect: plain.example.com:80\n"
      "    proto: http\n"
      "    methods: [POST, GET]\n"
      "    paths: [/repos/**]\n"
      "  - {{connect: '*.corp.example.com', private: true, sni: any}}\n"
      "  - {{connect: 'localhost:5432', blockPrivate: false}}\n"
      "  - connect: '[2001:db8::1]:443'\n"
      "listen: [8080]\n"
      "publicOnly: false\n",
      hash);
  EXPECT_EQ(read(yaml),
            "net:connect:api.github.com:443 from api.github.com:443\n"
            "net:connect:plain.example.com:80?methods=GET,POST&paths=/repos/**&proto=http from "
            "plain.example.com:80\n"
            "net:connect:*.corp.example.com?private=true&sni=any from '*.corp.example.com'\n"
            "net:connect:localhost:5432 from 'localhost:5432'\n"
            "net:connect:[2001:db8::1]:443 from '[2001:db8::1]:443'\n"
            "net:listen:8080 from 8080\n");
  const auto document = text::parse_yaml(yaml);
  ASSERT_TRUE(document && is_egress_spec(*document));
  const auto spec = read_egress_spec(*document);
  EXPECT_EQ(spec->server, "github");
  EXPECT_EQ(spec->policy_hash, hash);
  const auto policy = core::merge(spec->manifest());
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->connect.size(), 5U);
}

TEST(EgressSpec, IsJsonToo) {
  const auto document = text::parse_json(
      R"({"capgateEgress": 1, "server": "s", "rules": [], "policyHash": ")" + hash + "\"}");
  ASSERT_TRUE(document && is_egress_spec(*document));
  EXPECT_TRUE(read_egress_spec(*document));
  EXPECT_FALSE(is_egress_spec(*text::parse_json(R"({"name": "s"})")));
  EXPECT_FALSE(is_egress_spec(*text::parse_json("[1]")));
}

TEST(EgressSpec, PublicOnlyContradictsAPrivateRule) {
  const std::string yaml = with_rule("connect: 10.0.0.5:5432") + "publicOnly: true\n";
  const auto spec = read_egress_spec(*text::parse_yaml(yaml));
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->declared.back().capability,
            core::parse_capability("assert:fetch.block_rfc1918", {})->front());
  EXPECT_FALSE(core::merge(spec->manifest()));
}

TEST(EgressSpec, EveryMistakeIsToldWhereItIs) {
  EXPECT_EQ(read("capgateEgress: 2\nserver: ''\npolicyHash: x\nrules: {}\nlisten: [0]\nmore: 1\n"),
            "MANIFEST_SHAPE at 2: this form of egress specs is not known\n"
            "MANIFEST_SHAPE at '': server is a name\n"
            "MANIFEST_SHAPE at x: policyHash is sha256: and 64 hexadecimal digits\n"
            "MANIFEST_SHAPE at {}: rules is a list\n"
            "MANIFEST_SHAPE at 0: a port is a number from 1 to 65535\n"
            "MANIFEST_UNKNOWN_KEY at more: a spec of egress has no \"more\"\n");
  EXPECT_EQ(read("[]"), "MANIFEST_SHAPE at []: a spec of egress is a mapping\n");
  EXPECT_TRUE(read("capgateEgress: 1\n").contains("rules is missing"));
  EXPECT_TRUE(read("capgateEgress: '1'\n").contains("is not known"));
}

TEST(EgressSpec, ARuleIsWhatItLooksLike) {
  EXPECT_EQ(read_rule("{connect: 'a.example.com:443', method: [GET]}"),
            "MANIFEST_UNKNOWN_KEY at method: a rule has no \"method\"\n");
  EXPECT_EQ(read_rule("{}"), "MANIFEST_SHAPE at {}: connect is missing\n");
  const std::string wrong_places[] = {"connect: 'a.example.com:443?private=true'",
                                      "connect: 'a.example.com:443?'",
                                      "connect: '${HOST}:443'",
                                      "connect: 'a.example.com:99999'",
                                      "connect: 'https://a.example.com'",
                                      "connect: 'a..com:443'",
                                      "connect: ''",
                                      "connect: [a.example.com]",
                                      "connect: \"a.example.com:443\\n\""};
  for (const std::string& rule : wrong_places) {
    EXPECT_FALSE(read_egress_spec(*text::parse_yaml(with_rule(rule)))) << rule;
  }
  EXPECT_TRUE(read_rule("connect: 'a.example.com:99999'").contains(" at 99999: "));
}

TEST(EgressSpec, RefinementsAreReadByTheGrammar) {
  const std::string wrong[] = {"sni: some",
                               "sni: [any]",
                               "sni: 'any&private=true'",
                               "proto: udp",
                               "proto: ''",
                               "methods: GET",
                               "methods: []",
                               "methods: ['GET,POST']",
                               "methods: [get]",
                               "methods: ['${M}']",
                               "paths: [repos]",
                               "paths: ['/a?b']",
                               "private: yes please",
                               "private: 1",
                               "blockPrivate: maybe",
                               "methods: ['GET\"&private=true&sni=\"any']"};
  for (const std::string& refinement : wrong) {
    const std::string rule = "{connect: 'a.example.com:80', " + refinement + "}";
    const auto document = text::parse_yaml(with_rule(rule));
    ASSERT_TRUE(document) << rule;
    EXPECT_FALSE(read_egress_spec(*document)) << rule;
  }
  EXPECT_TRUE(read_rule("{connect: '10.0.0.1', private: true}").contains("private=true is for"));
}

TEST(EgressSpec, BlockPrivateSaysWhatHolds) {
  EXPECT_TRUE(read_rule("{connect: 'a.example.com', blockPrivate: false}").contains(" at false: "));
  EXPECT_TRUE(read_rule("{connect: 10.0.0.5, blockPrivate: true}").contains(" at true: "));
  EXPECT_TRUE(read_rule("{connect: 10.0.0.5, blockPrivate: false}").starts_with("net:connect:"));
}

}  // namespace
}  // namespace capgate::imports
