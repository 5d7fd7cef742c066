// capgate schema as a whole command. tests/e2e/schema_test.py asks validators and editors.
#include <gtest/gtest.h>

#include "support/cli.h"

namespace capgate::cli {
namespace {

using support::has;
using support::joined;
using support::Ran;
using support::Words;

class SchemaCommand : public support::CliTest {};

TEST_F(SchemaCommand, TheDefaultIsTheManifestOfDraft2020) {
  const Ran done = run({"schema"});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_EQ(done.err, "");
  EXPECT_TRUE(has(done.out, "draft/2020-12"));
  EXPECT_EQ(done.out, run({"schema", "manifest", "--draft=2020-12"}).out);
}

TEST_F(SchemaCommand, UnknownWordsAreRefused) {
  for (const Words& words :
       {Words{"manifests"}, Words{"--draft", "04"}, Words{"manifest", "config"}}) {
    const Ran done = run(joined({"schema"}, words));
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_EQ(done.out, "");
  }
}

TEST_F(SchemaCommand, TheDocumentationHoldsWhatIsPrinted) {
  for (const auto& [subject, name] :
       {std::pair("manifest", "manifest"), std::pair("config", "capgate-yaml")}) {
    for (const auto& [draft, middle] : {std::pair("2020-12", ""), std::pair("07", ".draft-07")}) {
      EXPECT_EQ(support::read_text(std::string("docs/") + name + middle + ".schema.json"),
                run({"schema", subject, "--draft", draft}).out)
          << "tools/write-docs renews it";
    }
  }
}

}  // namespace
}  // namespace capgate::cli
