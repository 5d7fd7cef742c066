#include "text/yaml_write.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/yaml.h"

namespace capgate::text {
namespace {

std::string map_of(std::string_view text) {
  YamlWriter yaml;
  yaml.begin_map().key("k").string(text).end_map();
  return std::move(yaml).take();
}

TEST(YamlWriter, NestsMapsAndLists) {
  YamlWriter yaml;
  yaml.begin_map().key("name").string("server");
  yaml.key("ports").begin_list().number(443).string("443").end_list();
  yaml.key("mounts").begin_list();
  yaml.begin_map().key("path").string("/w").key("ro").boolean(true).end_map();
  yaml.begin_list().string("a").string("b").end_list();
  yaml.end_list();
  yaml.key("none").begin_map().end_map().key("nothing").begin_list().end_list();
  yaml.comment("why\nport: 1");
  yaml.key("script").block("#!/bin/sh\n\nexit 0\n");
  yaml.key("deep").begin_map().comment("inside").key("x").begin_map().end_map().end_map().end_map();
  EXPECT_EQ(std::move(yaml).take(),
            "name: server\n"
            "ports:\n  - 443\n  - \"443\"\n"
            "mounts:\n  - path: /w\n    ro: true\n  - - a\n    - b\n"
            "none: {}\nnothing: []\n"
            "# why?port: 1\n"
            "script: |\n  #!/bin/sh\n\n  exit 0\n"
            "deep:\n  # inside\n  x: {}\n");
}

TEST(YamlWriter, QuotesWhatAReaderCouldTakeForSomethingElse) {
  for (const std::string_view text :
       {"",     "yes",  "No",         "ON",   "null", "true", "~",  "1",    "1e3",
        "0x1f", "1:30", "-",          ".inf", "*a",   "&a",   "!t", "a: b", "a #b",
        " a",   "a ",   "2001-01-01", "{",    "a,b",  "a\nb", "<<", "="}) {
    EXPECT_TRUE(map_of(text).starts_with("k: \"")) << text;
  }
  for (const std::string_view text : {"a", "/usr/bin", "node-22", "v1.2", "a@b", "Always"}) {
    EXPECT_EQ(map_of(text), "k: " + std::string(text) + "\n");
  }
}

TEST(YamlWriter, KeepsDocumentsApart) {
  YamlWriter yaml;
  yaml.begin_map().key("a").number(1).end_map().next_document();
  yaml.begin_map().key("b").number(2).end_map();
  EXPECT_EQ(std::move(yaml).take(), "a: 1\n---\nb: 2\n");
}

RC_GTEST_PROP(YamlWriter, IsReadBackAsItWasWritten, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::inRange<char>(1, 127), rc::gen::element('\n', ' ', '#', ':', '-')));
  const auto document = parse_yaml(map_of(text));
  RC_ASSERT(document.has_value());
  RC_ASSERT(document->root().find("k").has_value());
  RC_ASSERT(document->root().find("k")->text() == text);
}

RC_GTEST_PROP(YamlWriter, BlocksAreReadBackAsTheyWereWritten, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::inRange<char>(32, 127), rc::gen::element('\n', ' ', '#', '"')));
  YamlWriter yaml;
  yaml.begin_map().key("k").block(text).key("after").number(1).end_map();
  const auto document = parse_yaml(std::move(yaml).take());
  RC_ASSERT(document.has_value());
  RC_ASSERT(document->root().find("k")->text() == text);
}

}  // namespace
}  // namespace capgate::text
