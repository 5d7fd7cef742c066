// The C interface: every request has an answer, and nothing brings it down.
#include <capgate/capgate_c.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/version.h"
#include "text/json.h"

namespace capgate {
namespace {

const std::string manifest = R"("{\"name\":\"s\",\"version\":\"1\",\"tools\":[{\"name\":\"look\",)"
                             R"(\"capabilities\":[\"fs:read:${ROOT}/**\"]}]}")";
const std::string request = R"({"manifest":)" + manifest +
                            R"(,"name":"m.json","target":"docker","pretty":false,"options":{)"
                            R"("tool":"look","variables":{"ROOT":["/a","/b"],"HOME":"/home/me"},)"
                            R"("seal":false,"validators":{"x":"y"},"programs":[],)"
                            R"("acceptUnenforced":[],"user":"7:7","writableRoot":true,)"
                            R"("arch":"aarch64"}})";

std::string call(std::string_view json) {
  std::size_t length = 0;
  char* answer = capgate_call(json.data(), json.size(), &length);
  std::string copy(answer, length);
  EXPECT_EQ(std::strlen(answer), length);
  capgate_free(answer);
  EXPECT_TRUE(text::parse_json(copy)) << copy;
  EXPECT_TRUE(copy.starts_with(R"({"ok":)") || copy.starts_with("{\n  \"ok\": ")) << copy;
  return copy;
}

// "CODE line:column" of the first diagnostic, or "ok".
std::string verdict(std::string_view json) {
  const auto answer = text::parse_json(call(json));
  if (answer->root().find("ok")->text() == "true") return "ok";
  for (const text::Value one : answer->root().find("diagnostics")->elements()) {
    std::string out(one.find("code")->text());
    for (const std::string_view key : {"message", "help", "file"})
      EXPECT_TRUE(one.find(key)) << key;
    if (const auto line = one.find("line")) {
      out += " " + std::string(line->text()) + ":" + std::string(one.find("column")->text());
    }
    return out;
  }
  return "no diagnostic";
}

TEST(CInterface, AnswersEveryOperation) {
  EXPECT_TRUE(call(request).starts_with(R"({"ok":true,"artifact":{"argv":["--rm")"));
  EXPECT_EQ(call(R"({"operation":"parse","manifest":)" + manifest + "}"),
            R"({"ok":true,"manifest":{"name":"s","version":"1","tools":["look"],)"
            R"("variables":["ROOT"]}})");
  EXPECT_TRUE(call(R"({"operation":"check","options":{"variables":{"ROOT":"/a"}},"manifest":)" +
                   manifest + "}")
                  .ends_with(R"("capabilities":["fs:read:/a/**"]}})"));
  EXPECT_TRUE(call(R"({"operation":"targets"})")
                  .starts_with(R"({"ok":true,"targets":[{"name":"apparmor","summary":")"));
  EXPECT_EQ(capgate_version(), core::version);
}

TEST(CInterface, OptionsReachTheArtifact) {
  const std::string answer = call(request);
  EXPECT_NE(answer.find(R"("options":{"arch":"aarch64","home":"/home/me","tool":"look",)"
                        R"("user":"7:7","writableRoot":true})"),
            std::string::npos)
      << answer;
}

TEST(CInterface, PrettyIsTheSameDocument) {
  std::string pretty = request;
  pretty.replace(pretty.find(R"("pretty":false)"), 14, R"("pretty": true)");
  const std::string answer = call(pretty);
  EXPECT_TRUE(
      answer.starts_with("{\n  \"ok\": true,\n  \"artifact\": {\n    \"argv\": [\n      \""))
      << answer.substr(0, 80);
  EXPECT_TRUE(answer.ends_with("\n    }\n  }\n}")) << answer.substr(answer.size() - 40);
}

TEST(CInterface, NullsAreAllowed) {
  EXPECT_EQ(verdict(""), "DOC_SYNTAX 1:1");
  char* answer = capgate_call(nullptr, 100, nullptr);
  ASSERT_NE(answer, nullptr);
  EXPECT_NE(std::string(answer).find("DOC_SYNTAX"), std::string::npos);
  capgate_free(answer);
  capgate_free(nullptr);
}

TEST(CInterface, EveryPartOfARequestHasAnAnswer) {
  EXPECT_EQ(verdict(request), "ok");
  for (std::size_t length = 0; length < request.size(); ++length) {
    // In memory of its own, so that a byte too many is noticed.
    const std::vector<char> part(request.begin(), request.begin() + std::ptrdiff_t(length));
    EXPECT_TRUE(verdict({part.data(), part.size()}).starts_with("DOC_SYNTAX")) << length;
  }
}

TEST(CInterface, MistakesInARequestHaveTheirPlace) {
  EXPECT_EQ(verdict("[]"), "REQUEST_INVALID 1:1");
  EXPECT_EQ(verdict("{}"), "REQUEST_INVALID 1:1");
  EXPECT_EQ(verdict(R"({"operation":"targets","optoins":{}})"), "REQUEST_INVALID 1:24");
  EXPECT_EQ(verdict(R"({"operation":"run"})"), "REQUEST_INVALID 1:14");
  EXPECT_EQ(verdict(R"({"operation":null})"), "REQUEST_INVALID 1:14");
  EXPECT_EQ(verdict(R"({"manifest":7})"), "REQUEST_INVALID 1:13");
  EXPECT_EQ(verdict(R"({"manifest":"{}","options":[]})"), "REQUEST_INVALID 1:28");
  for (const char* options :
       {R"("tool":1)", R"("variables":[])", R"("variables":{"A":1})", R"("variables":{"A":[1]})",
        R"("seal":1)", R"("validators":[])", R"("validators":{"a":1})", R"("programs":"/a")",
        R"("acceptUnenforced":[[]])", R"("user":1)", R"("writableRoot":"yes")", R"("arch":"vax")",
        R"("arch":1)", R"("unknown":1)"}) {
    EXPECT_TRUE(verdict(R"({"manifest":"{}","options":{)" + std::string(options) + "}}")
                    .starts_with("REQUEST_INVALID 1:"))
        << options;
  }
  EXPECT_EQ(verdict(R"({"manifest":"{}","manifest":"{}"})"), "DOC_DUPLICATE_KEY 1:18");
  EXPECT_EQ(verdict(R"({"manifest":"{","name":"m.json"})"), "DOC_SYNTAX 1:2");
}

TEST(CInterface, HostileBytesAreRefused) {
  EXPECT_TRUE(verdict("{\"manifest\":\"\xff\xfe\"}").starts_with("DOC_ENCODING"));
  EXPECT_TRUE(verdict(std::string_view("{\"manifest\":\"\0\"}", 16)).starts_with("DOC_"));
  EXPECT_TRUE(verdict(std::string(100, '\0')).starts_with("DOC_"));
  EXPECT_TRUE(verdict(std::string(100000, '[')).starts_with("DOC_DEPTH"));
}

TEST(CInterface, LargeRequestsAreAnswered) {
  const std::size_t ten_million = 10'000'000;
  EXPECT_TRUE(verdict(R"({"manifest":")" + std::string(ten_million, 'a') + R"("})")
                  .starts_with("MANIFEST_SHAPE"));
  EXPECT_TRUE(verdict(R"({"name":"m.json","manifest":")" + std::string(ten_million, '[') + R"("})")
                  .starts_with("DOC_DEPTH"));
  EXPECT_TRUE(verdict(std::string(2 * ten_million, ' ')).starts_with("DOC_SIZE"));
}

TEST(CInterface, ThreadsGetTheAnswersThatOneGets) {
  const std::string expected = call(request);
  std::vector<std::string> answers(8);
  std::vector<std::thread> threads;
  threads.reserve(answers.size());
  for (std::string& answer : answers) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::size_t length = 0;
        char* raw = capgate_call(request.data(), request.size(), &length);
        answer.assign(raw, length);
        capgate_free(raw);
        if (answer != expected) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, expected);
}

}  // namespace
}  // namespace capgate
