#include "mcp/inquiry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::mcp {
namespace {

using Cause = AskProblem::Cause;
using State = Inquiry::State;
using Lines = std::vector<std::string>;

const std::string not_found =
    R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}})";
const std::string discovered =
    R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],)"
    R"("capabilities":{"tools":{}},"resultType":"complete",)"
    R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2.0"}}}})";

std::string initialized(unsigned id, std::string_view revision = "2025-06-18",
                        std::string_view capabilities = R"({"tools":{}})") {
  return format(R"({{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"{}","capabilities":{},)"
                R"("serverInfo":{{"name":"old","version":"1.0"}}}}}})",
                id, revision, capabilities);
}

std::string tools(unsigned id, std::string_view list, std::string_view more = "") {
  return format(R"({{"jsonrpc":"2.0","id":{},"result":{{"tools":[{}]{}}}}})", id, list, more);
}

std::string error(unsigned id, std::string_view rest) {
  return format(R"({{"jsonrpc":"2.0","id":{},"error":{{{}}}}})", id, rest);
}

// What a client sent, as "method id", and answers as "answer id result|code".
Lines summary(const std::string& output) {
  Lines out;
  for (const std::string_view line : split(output, '\n')) {
    if (line.empty()) continue;
    const auto document = text::parse_json(std::string(line));
    EXPECT_TRUE(document.has_value()) << line;
    if (!document) continue;
    const text::Value root = document->root();
    const auto id = root.find("id");
    const std::string number = id ? " " + std::string(id->text()) : "";
    if (const auto method = root.find("method")) {
      out.push_back(std::string(method->text()) + number);
    } else {
      const auto failed = root.find("error");
      out.push_back("answer" + number + " " +
                    (failed ? std::string(failed->find("code")->text()) : "result"));
    }
  }
  return out;
}

struct Talk {
  explicit Talk(const AskLimits& limits = {}) : inquiry(limits) { take(); }

  Talk& says(const Lines& lines) {
    for (const std::string& line : lines) {
      inquiry.read(line);
      take();
    }
    return *this;
  }
  void take() {
    const std::string output = inquiry.take_output();
    all += output;
    for (std::string& line : summary(output)) sent.push_back(std::move(line));
  }

  Inquiry inquiry;
  Lines sent;
  std::string all;
};

Lines names_of(Inquiry& inquiry) {
  Lines out;
  for (const ToolInfo& tool : inquiry.take_tools().tools) out.push_back(tool.name);
  return out;
}

TEST(Inquiry, AModernServerIsAskedWithoutAHandshake) {
  Talk talk;
  talk.says({discovered, tools(2, R"({"name":"a"})")});
  EXPECT_EQ(talk.sent, (Lines{"server/discover 1", "tools/list 2"}));
  ASSERT_EQ(talk.inquiry.state(), State::answered);
  const ServerTools answer = talk.inquiry.take_tools();
  EXPECT_EQ(answer.era, Era::modern);
  EXPECT_EQ(answer.protocol, "2026-07-28");
  EXPECT_EQ(answer.server_name, "new");
  EXPECT_EQ(answer.server_version, "2.0");
  ASSERT_EQ(answer.tools.size(), 1U);
  EXPECT_TRUE(answer.notes.empty());
}

TEST(Inquiry, EveryModernRequestSaysItsRevision) {
  Talk talk;
  talk.says({discovered, tools(2, "", R"(,"nextCursor":"c")"), tools(3, "")});
  for (const std::string_view line : split(std::string_view(trim(talk.all)), '\n')) {
    EXPECT_TRUE(line.contains(R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")")) << line;
    EXPECT_TRUE(line.contains(R"("io.modelcontextprotocol/clientCapabilities":{})")) << line;
  }
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, AnyOtherErrorMeansTheLegacyHandshake) {
  const std::string_view errors[] = {R"("code":-32601,"message":"no")", R"("code":-32602)",
                                     R"("code":-32000,"message":"not initialized")", R"("code":1)",
                                     ""};
  for (const std::string_view text : errors) {
    Talk talk;
    talk.says({error(1, text), initialized(2), tools(3, R"({"name":"a"})")});
    EXPECT_EQ(talk.sent, (Lines{"server/discover 1", "initialize 2", "notifications/initialized",
                                "tools/list 3"}));
    ASSERT_EQ(talk.inquiry.state(), State::answered) << text;
    const ServerTools answer = talk.inquiry.take_tools();
    EXPECT_EQ(answer.era, Era::legacy);
    EXPECT_EQ(answer.protocol, "2025-06-18");
    EXPECT_EQ(answer.server_name, "old");
  }
}

TEST(Inquiry, AResultThatIsNoneOfDiscoverMeansTheLegacyHandshake) {
  for (const char* result : {"{}", "null", "[]", R"({"supportedVersions":"2026-07-28"})"}) {
    Talk talk;
    talk.says({format(R"({{"jsonrpc":"2.0","id":1,"result":{}}})", result)});
    EXPECT_EQ(talk.sent.back(), "initialize 2") << result;
  }
}

TEST(Inquiry, SilenceMeansTheLegacyHandshake) {
  Talk talk;
  talk.inquiry.probe_is_over();
  talk.take();
  talk.says({initialized(2), tools(3, "")});
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, ALateAnswerToTheProbeIsHeard) {
  Talk talk;
  talk.inquiry.probe_is_over();
  talk.take();
  talk.says({discovered, error(2, R"("code":-32022)"), tools(3, R"({"name":"a"})")});
  EXPECT_EQ(talk.sent, (Lines{"server/discover 1", "initialize 2", "tools/list 3"}));
  ASSERT_EQ(talk.inquiry.state(), State::answered);
  EXPECT_EQ(talk.inquiry.take_tools().era, Era::modern);
}

TEST(Inquiry, ALateErrorToTheProbeIsNot) {
  Talk talk;
  talk.inquiry.probe_is_over();
  talk.take();
  talk.says({not_found, initialized(2), tools(3, "")});
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, WithoutAProbeTheHandshakeIsFirst) {
  Talk talk({.probe = {}});
  talk.says({initialized(1), tools(2, R"({"name":"a"})")});
  EXPECT_EQ(talk.sent.front(), "initialize 1");
  EXPECT_EQ(names_of(talk.inquiry), Lines{"a"});
}

TEST(Inquiry, AModernOnlyServerNamesItsRevisionsToInitialize) {
  Talk talk({.probe = {}});
  talk.says({error(1, R"("code":-32022,"data":{"supported":["2026-07-28"]})"), tools(2, "")});
  EXPECT_EQ(talk.sent, (Lines{"initialize 1", "tools/list 2"}));
  EXPECT_EQ(talk.inquiry.take_tools().era, Era::modern);
}

TEST(Inquiry, AModernErrorNamesWhatTheServerSpeaks) {
  Talk modern;
  modern.says({error(1, R"("code":-32021,"message":"needs sampling")")});
  EXPECT_EQ(modern.sent.back(), "tools/list 2");
  Talk legacy;
  legacy.says({error(1, R"("code":-32022,"data":{"supported":["2025-11-25"]})")});
  EXPECT_EQ(legacy.sent.back(), "initialize 2");
  Talk future;
  future.says({error(1, R"("code":-32022,"data":{"supported":["2031-01-01"]})")});
  EXPECT_EQ(future.inquiry.state(), State::failed);
  EXPECT_TRUE(future.inquiry.problem().contains("2031-01-01"));
}

TEST(Inquiry, ARevisionThatIsNotKnownIsRefused) {
  Talk talk;
  talk.says({not_found, initialized(2, "1999-01-01")});
  EXPECT_EQ(talk.inquiry.state(), State::failed);
  EXPECT_EQ(talk.inquiry.cause(), Cause::wrong);
  EXPECT_TRUE(talk.inquiry.problem().contains("1999-01-01"));
}

TEST(Inquiry, TheServersErrorIsTold) {
  Talk talk;
  talk.says({not_found, error(2, R"("code":-32603,"message":"no \u001b[31mtoken")")});
  EXPECT_EQ(talk.inquiry.cause(), Cause::refused);
  EXPECT_TRUE(talk.inquiry.problem().contains(R"(no \x1b[31mtoken)")) << talk.inquiry.problem();
}

TEST(Inquiry, EveryPageIsRead) {
  Talk talk;
  talk.says({not_found, initialized(2), tools(3, R"({"name":"b"})", R"(,"nextCursor":"\"1")"),
             tools(4, R"({"name":"a"})", R"(,"nextCursor":"2")"), tools(5, "")});
  EXPECT_TRUE(talk.all.contains(R"("params":{"cursor":"\"1"})"));
  EXPECT_TRUE(talk.all.contains(R"("params":{"cursor":"2"})"));
  ASSERT_EQ(talk.inquiry.state(), State::answered);
  EXPECT_EQ(names_of(talk.inquiry), (Lines{"b", "a"}));
}

TEST(Inquiry, PagesThatDoNotEndAreNotFollowed) {
  Talk circle;
  circle.says(
      {discovered, tools(2, "", R"(,"nextCursor":"x")"), tools(3, "", R"(,"nextCursor":"x")")});
  EXPECT_EQ(circle.inquiry.state(), State::failed);
  Talk endless({.pages = 50});
  endless.says({discovered});
  unsigned page = 0;
  while (endless.inquiry.state() == State::asking && page < 100) {
    endless.says({tools(2 + page, "", format(R"(,"nextCursor":"{}")", page))});
    ++page;
  }
  EXPECT_EQ(endless.inquiry.state(), State::failed);
  EXPECT_EQ(page, 50U);
  for (const char* cursor : {"1", "{}", "true"}) {
    Talk wrong;
    wrong.says({discovered, tools(2, "", format(R"(,"nextCursor":{})", cursor))});
    EXPECT_EQ(wrong.inquiry.state(), State::failed) << cursor;
  }
  Talk null;
  null.says({discovered, tools(2, "", R"(,"nextCursor":null)")});
  EXPECT_EQ(null.inquiry.state(), State::answered);
}

TEST(Inquiry, WhatAToolSaysIsKept) {
  Talk talk;
  talk.says(
      {discovered,
       tools(2, R"({"name":"a","title":"A","description":"does\n","inputSchema": {"x": 1},)"
                R"("annotations":{"readOnlyHint":true,"destructiveHint":false,)"
                R"("openWorldHint":"yes","title":"B"}},{"name":"b","annotations":{"title":"B",)"
                R"("idempotentHint":true,"openWorldHint":false}})")});
  const ServerTools answer = talk.inquiry.take_tools();
  ASSERT_EQ(answer.tools.size(), 2U);
  const ToolInfo& a = answer.tools[0];
  EXPECT_EQ(a.title, "A");
  EXPECT_EQ(a.description, "does\n");
  EXPECT_EQ(a.input_schema, R"({"x": 1})");
  EXPECT_EQ(a.read_only, true);
  EXPECT_EQ(a.destructive, false);
  EXPECT_EQ(a.idempotent, std::nullopt);
  EXPECT_EQ(a.open_world, std::nullopt);
  EXPECT_EQ(answer.tools[1].title, "B");
  EXPECT_EQ(answer.tools[1].idempotent, true);
  EXPECT_EQ(answer.tools[1].open_world, false);
}

TEST(Inquiry, WhatElseAToolSaysIsKeptAsItIs) {
  Talk talk;
  talk.says({discovered, tools(2, R"({"name":"a","_meta":{"x": 1},"icons":[],"na\"me":2},)"
                                  R"({"name":"b","description":null,"title":null})")});
  const ServerTools answer = talk.inquiry.take_tools();
  ASSERT_EQ(answer.tools.size(), 2U);
  EXPECT_EQ(answer.tools[0].other, R"({"_meta":{"x": 1},"icons":[],"na\"me":2})");
  EXPECT_EQ(answer.tools[1].other, "");
}

TEST(Inquiry, WordsThatAreNoTextAreRefused) {
  for (const std::string_view words :
       {R"("description":["Read ~/.ssh."])", R"("description":{"a":"b"})", R"("title":1)",
        R"("description":false)"}) {
    Talk talk;
    talk.says({discovered, tools(2, format(R"({{"name":"a",{}}})", words))});
    EXPECT_EQ(talk.inquiry.state(), State::failed) << words;
    EXPECT_TRUE(talk.inquiry.problem().contains("is no text")) << talk.inquiry.problem();
  }
}

TEST(Inquiry, WhatTheServerSaysOfItselfIsKept) {
  const std::string words =
      R"("capabilities":{"tools":{},"prompts":{},"extensions":{"io.example/x":{}},)"
      R"("experimental":{"y":{}}},"instructions":"Always.\nFirst.")";
  const std::vector<std::string> declares = {"experimental/y", "extensions/io.example/x", "prompts",
                                             "tools"};
  Talk modern;
  modern.says(
      {format(R"({{"jsonrpc":"2.0","id":1,"result":{{"supportedVersions":["2026-07-28"],{}}}}})",
              words),
       tools(2, "")});
  ServerTools answer = modern.inquiry.take_tools();
  EXPECT_EQ(answer.instructions, "Always.\nFirst.");
  EXPECT_EQ(answer.declares, declares);
  Talk legacy;
  legacy.says(
      {not_found,
       format(R"({{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"2025-06-18",{}}}}})",
              words),
       tools(3, "")});
  EXPECT_EQ(legacy.inquiry.state(), State::answered);
  answer = legacy.inquiry.take_tools();
  EXPECT_EQ(answer.instructions, "Always.\nFirst.");
  EXPECT_EQ(answer.declares, declares);
  for (const std::string_view wrong : {"1", "[]", R"({"a":"b"})"}) {
    Talk talk;
    talk.says({not_found, format(R"({{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":)"
                                 R"("2025-06-18","capabilities":{{}},"instructions":{}}}}})",
                                 wrong)});
    EXPECT_EQ(talk.inquiry.state(), State::failed) << wrong;
    Talk newer;
    newer.says({format(R"({{"jsonrpc":"2.0","id":1,"result":{{"supportedVersions":["2026-07-28"],)"
                       R"("instructions":{}}}}})",
                       wrong)});
    EXPECT_EQ(newer.inquiry.state(), State::failed) << wrong;
  }
}

TEST(Inquiry, ToolsThatAManifestCannotHoldAreRefused) {
  for (const std::string_view list :
       {R"({"name":"a"},{"name":"a"})", R"({"name":""})", R"({"title":"a"})", R"({"name":1})",
        R"({"name":"a\nb"})", R"("a")", "null"}) {
    Talk talk;
    talk.says({discovered, tools(2, list)});
    EXPECT_EQ(talk.inquiry.state(), State::failed) << list;
  }
  Talk two({.tools = 1});
  two.says({discovered, tools(2, R"({"name":"a"},{"name":"b"})")});
  EXPECT_EQ(two.inquiry.state(), State::failed);
  Talk one({.tools = 1});
  one.says({discovered, tools(2, R"({"name":"a"})")});
  EXPECT_EQ(one.inquiry.state(), State::answered);
}

TEST(Inquiry, AListThatIsNoneIsRefused) {
  for (const char* result : {"{}", "[]", "null", R"({"tools":{}})",
                             R"({"resultType":"input_required","inputRequests":[]})"}) {
    Talk talk;
    talk.says({discovered, format(R"({{"jsonrpc":"2.0","id":2,"result":{}}})", result)});
    EXPECT_EQ(talk.inquiry.state(), State::failed) << result;
  }
}

TEST(Inquiry, AServerWithoutToolsHasNone) {
  Talk talk;
  talk.says({not_found, initialized(2, "2024-11-05", R"({"resources":{}})"),
             error(3, R"("code":-32601,"message":"no")")});
  EXPECT_EQ(talk.inquiry.state(), State::answered);
  Talk broken;
  broken.says({not_found, initialized(2), error(3, R"("code":-32601,"message":"no")")});
  EXPECT_EQ(broken.inquiry.state(), State::failed);
}

TEST(Inquiry, ALegacyServersQuestionsAreAnswered) {
  Talk talk;
  talk.says({not_found, R"({"jsonrpc":"2.0","id":"p","method":"ping"})",
             R"({"jsonrpc":"2.0","id":7,"method":"roots/list"})", initialized(2),
             R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})",
             R"({"jsonrpc":"2.0","id":null,"method":"ping"})", tools(3, "")});
  EXPECT_EQ(talk.sent, (Lines{"server/discover 1", "initialize 2", "answer p result",
                              "answer 7 -32601", "notifications/initialized", "tools/list 3"}));
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, AModernServersQuestionsAreNot) {
  Talk talk;
  talk.says({R"({"jsonrpc":"2.0","id":1,"method":"ping"})", discovered,
             R"({"jsonrpc":"2.0","id":2,"method":"roots/list"})", tools(2, "")});
  EXPECT_EQ(talk.sent, (Lines{"server/discover 1", "tools/list 2"}));
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, QuestionsWithoutEndAreRefused) {
  Talk talk;
  talk.says({not_found});
  for (int i = 0; i < 1000; ++i) talk.says({R"({"jsonrpc":"2.0","id":1,"method":"ping"})"});
  EXPECT_EQ(talk.inquiry.state(), State::failed);
  EXPECT_LT(talk.sent.size(), 200U);
}

TEST(Inquiry, OtherTextOnStdoutIsPassedOverAndTold) {
  Talk talk;
  talk.says({"Server running on stdio", "", "\r", "{}", R"({"level":30,"msg":"log"})", "[]",
             not_found + "\r", "{\"jsonrpc\":\"2.0\",\"id\":2", initialized(2),
             R"({"jsonrpc":"2.0","id":3,"result":{"tools":[]},"id":3})", tools(3, "")});
  ASSERT_EQ(talk.inquiry.state(), State::answered);
  const ServerTools answer = talk.inquiry.take_tools();
  ASSERT_EQ(answer.notes.size(), 1U);
  EXPECT_TRUE(answer.notes[0].contains("Server running on stdio"));
}

TEST(Inquiry, NothingButOtherTextIsRefused) {
  Talk talk;
  for (int i = 0; i < 200; ++i) talk.says({"\x1b]0;title"});
  EXPECT_EQ(talk.inquiry.state(), State::failed);
  EXPECT_FALSE(talk.inquiry.problem().contains('\x1b'));
}

TEST(Inquiry, AnswersToOthersAreNoAnswers) {
  Talk talk;
  talk.says({not_found, initialized(9), R"({"jsonrpc":"2.0","id":"2","result":{}})"});
  EXPECT_EQ(talk.inquiry.state(), State::asking);
  EXPECT_TRUE(talk.inquiry.waiting_for().contains("nobody sent")) << talk.inquiry.waiting_for();
  talk.says({initialized(2), tools(3, "")});
  EXPECT_EQ(talk.inquiry.state(), State::answered);
}

TEST(Inquiry, AnErrorWithoutIdIsAnAnswer) {
  Talk talk;
  talk.says({R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}})"});
  EXPECT_EQ(talk.sent.back(), "initialize 2");
}

TEST(Inquiry, ABatchIsItsMessages) {
  Talk talk;
  talk.says({"[" + not_found + "]",
             "[" + initialized(2, "2025-03-26") +
                 R"(,{"jsonrpc":"2.0","method":"notifications/message"},1])",
             "[" + tools(3, R"({"name":"a"})") + "," + tools(3, R"({"name":"b"})") + "]"});
  EXPECT_EQ(names_of(talk.inquiry), Lines{"a"});
}

// Whatever is left out, doubled or mixed up: an end or a question, and output of bounded size.
RC_GTEST_PROP(Inquiry, NoOrderOfMessagesBreaksIt, ()) {
  const Lines known = {not_found,
                       discovered,
                       initialized(1),
                       initialized(2),
                       tools(2, R"({"name":"a"})", R"(,"nextCursor":"x")"),
                       tools(3, R"({"name":"b"})", R"(,"nextCursor":"x")"),
                       tools(3, ""),
                       tools(4, ""),
                       error(2, R"("code":-32022,"data":{"supported":["2026-07-28"]})"),
                       R"({"jsonrpc":"2.0","id":1,"method":"ping"})",
                       "text"};
  const auto order =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, known.size()));
  Inquiry inquiry({});
  std::size_t sent = inquiry.take_output().size();
  for (const std::size_t index : order) {
    if (*rc::gen::inRange(0, 8) == 0) inquiry.probe_is_over();
    inquiry.read(known[index]);
    sent += inquiry.take_output().size();
  }
  RC_ASSERT(sent < 300 * (order.size() + 2));
  if (inquiry.state() == State::failed) RC_ASSERT(!inquiry.problem().empty());
}

TEST(Inquiry, AsksTwiceWhereItIsTold) {
  for (const bool is_other : {false, true}) {
    Talk talk({.twice = true});
    const std::string first = R"({"name":"a","description":"x","outputSchema":{ },)"
                              R"("annotations":{"readOnlyHint":true}})";
    talk.says({not_found, initialized(2), tools(3, first, R"(,"nextCursor":"p")"),
               tools(4, R"({"name":"b"})"), tools(5, R"({"name":"b"})", R"(,"nextCursor":"p")"),
               tools(6, is_other ? R"({"name":"a","description":"y"})" : first)});
    ASSERT_EQ(talk.inquiry.state(), State::answered);
    const ServerTools server = talk.inquiry.take_tools();
    ASSERT_TRUE(server.again.has_value());
    ASSERT_EQ(server.tools.size(), 2U);
    EXPECT_EQ(server.tools[0].output_schema, "{ }");
    EXPECT_EQ(server.tools[0].annotations, R"({"readOnlyHint":true})");
    ASSERT_EQ(server.again->size(), 2U);
    EXPECT_EQ(server.again->at(1).description, is_other ? "y" : "x");
  }
  Talk once;
  once.says({not_found, initialized(2), tools(3, R"({"name":"a"})")});
  EXPECT_FALSE(once.inquiry.take_tools().again.has_value());
}

}  // namespace
}  // namespace capgate::mcp
