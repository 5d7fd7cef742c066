#include "import/srt.h"

#include <gtest/gtest.h>

#include <chrono>

#include "import/vscode.h"
#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::has_loss;
using support::outcome;
using support::read_json;

std::string files(std::string_view members) {
  return format(R"({{"filesystem": {{{}}}}})", members);
}
std::string network(std::string_view members) {
  return format(R"({{"network": {{{}}}}})", members);
}

TEST(Srt, PathsThatMayBeWrittenAndReadAgain) {
  const support::ImportCase cases[] = {
      // Where srt is started is not where its settings are.
      {R"("allowWrite": [".", "out", "./x/", "/srv/a/**"])",
       "fs:write:${WORKING_DIRECTORY} fs:write:${WORKING_DIRECTORY}/out "
       "fs:write:${WORKING_DIRECTORY}/x/** fs:write:/srv/a/**"},
      {R"("allowRead": ["/srv/a"])", "fs:read:/srv/a"},
      // Outside of what is granted a deny says nothing new.
      {R"("allowWrite": ["/srv/a"], "denyRead": ["/srv/b", "/srv/ab"], "denyWrite": ["/opt"])",
       "fs:write:/srv/a"},
      // What is readable again stays readable; what is denied within it does not import.
      {R"("allowRead": ["/srv/a"], "denyRead": ["/srv"])", "fs:read:/srv/a"},
      {R"("allowRead": ["/srv/a"], "allowWrite": ["/srv/a/w"], "denyRead": ["/srv"])",
       "fs:read:/srv/a fs:write:/srv/a/w"},
      // Denied and not readable again: falls.
      {R"("allowRead": ["/srv/*.md"], "allowWrite": ["/srv/w"], "denyRead": ["/srv"])",
       "fs:read:/srv/*.md"},
      {R"("allowWrite": ["/srv/a"], "denyRead": ["/srv"])", ""},
      // Only writing falls.
      {R"("allowWrite": ["/srv/a"], "denyWrite": ["/srv"])", "fs:read:/srv/a"},
      {R"("allowWrite": ["/srv/a"], "denyWrite": ["/srv/a"])", "fs:read:/srv/a"},
      // Credentials are hidden inside whatever is granted.
      {R"("allowWrite": ["/home/me/.config"], "denyRead": ["~/.config/gcloud"])",
       "fs:write:/home/me/.config"},
      // So is what every sandbox keeps at the root of a grant.
      {R"("allowWrite": ["."], "denyRead": [".env"], "denyWrite": [".env", ".git/hooks"])",
       "fs:write:${WORKING_DIRECTORY}"},
      // A grant around a home, or around what is right below /, is none.
      {R"("allowRead": ["."], "denyRead": ["/"])", "fs:read:${WORKING_DIRECTORY}"},
      {R"("allowRead": ["."], "denyRead": ["~"])", "fs:read:${WORKING_DIRECTORY}"},
      {R"("allowRead": ["."], "denyRead": ["/srv", "/home"])", "fs:read:${WORKING_DIRECTORY}"},
      {R"("allowWrite": ["."], "denyWrite": ["~/.bashrc"])", "fs:write:${WORKING_DIRECTORY}"},
      {R"("allowWrite": ["/home/me/x"], "denyWrite": ["~/.bashrc"])", "fs:write:/home/me/x"},
      // The system, its time zone and the runtime's socket are no grants of files.
      {R"("denyRead": ["/"], "allowRead": ["/usr", "/etc/ssl/certs", "/tmp/claude-http-*.sock",
          "/etc/localtime", "/usr/share/x"])",
       "clock:tzdata fs:read:/usr/share/x"},
      {R"("allowWrite": [{"path": "/srv/a", "literal": true}])", "fs:write:/srv/a"},
      {R"("allowWrite": ["/srv/*.log"], "denyWrite": ["/srv/key.pem"])", "fs:write:/srv/*.log"},
  };
  for (const auto& [members, expected] : cases) {
    const std::string text = files(members);
    EXPECT_EQ(outcome(read_json(read_srt, text), text), expected) << text;
  }
}

// Whichever deny comes first: what loses its writing is not readable again by that.
TEST(Srt, ADenyOfWritingOpensNothing) {
  const std::string text =
      R"({"filesystem": {"allowWrite": ["/srv/k"], "denyWrite": ["/srv/k"]},
          "credentials": {"files": [{"path": "/srv/k", "mode": "deny"}]}})";
  EXPECT_EQ(outcome(read_json(read_srt, text), text), "");
}

// A thousand grants below a deny, a thousand times; each is readable again by its own rule.
TEST(Srt, ManyRulesAreWeighedQuickly) {
  std::string around = "/srv";
  for (int i = 0; i < 10; ++i) around += "/" + std::string(200, 'x');
  std::string allows;
  std::string denies;
  for (int i = 0; i < 1024; ++i) {
    allows += format("{}\"{}/{}\"", i == 0 ? "" : ", ", around, i);
    denies += format("{}\"/srv\"", i == 0 ? "" : ", ");
  }
  const std::string text = files(format(R"("allowRead": [{}], "denyRead": [{}])", allows, denies));
  const auto begin = std::chrono::steady_clock::now();
  const auto read = read_json(read_srt, text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->capabilities.size(), 1024U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Srt, ADenyInsideOfWhatIsAllowedIsRefused) {
  const support::ImportCase cases[] = {
      {R"("allowWrite": ["."], "denyWrite": ["x.md"])", "IMPORT_REFUSED 'x.md': denyWrite denies"},
      // A relative deny may be anywhere, and so may be a relative grant.
      {R"("allowWrite": ["/srv/a"], "denyRead": ["secrets"])",
       "IMPORT_REFUSED 'secrets': denyRead denies a part of \"/srv/a\", which allowWrite allows, "
       "perhaps: a relative path starts where srt is started"},
      {R"("allowWrite": ["/srv/a"], "denyWrite": ["infra"])", "IMPORT_REFUSED 'infra'"},
      {R"("allowWrite": ["/srv/a"], "denyRead": ["**/*.key"])", "IMPORT_REFUSED '**/*.key'"},
      {R"("allowWrite": ["/srv/a"], "denyRead": [".env"])", "IMPORT_REFUSED '.env'"},
      {R"("allowRead": ["/srv/a"], "denyRead": ["."])", "IMPORT_REFUSED '.'"},
      {R"("allowWrite": ["."], "denyRead": ["/srv/a"])", "IMPORT_REFUSED '/srv/a'"},
      {R"("allowRead": ["."], "denyRead": ["/srv/a/b"])", "IMPORT_REFUSED '/srv/a/b'"},
      // The two may be one grant, whose root is elsewhere.
      {R"("allowWrite": ["/srv/a", "."], "denyRead": ["/srv/a/.env"])",
       "IMPORT_REFUSED '/srv/a/.env'"},
      // Only at the root of a grant, and only what no other rule opens.
      {R"("allowWrite": ["/srv/a"], "denyRead": ["/srv/a/b/.env"])",
       "IMPORT_REFUSED '/srv/a/b/.env'"},
      {R"("allowWrite": ["/srv/a", "/srv/a/b"], "denyRead": ["/srv/a/b/.env"])",
       "IMPORT_REFUSED '/srv/a/b/.env'"},
      {R"("allowWrite": ["/srv/a"], "allowRead": ["/srv/a/.env/x"], "denyRead": ["/srv/a/.env"])",
       "IMPORT_REFUSED '/srv/a/.env'"},
      {R"("allowRead": ["/srv/a"], "denyRead": ["/srv/a/.git/hooks"])",
       "IMPORT_REFUSED '/srv/a/.git/hooks'"},
      {R"("allowRead": ["/usr"], "denyRead": ["/", "/usr/local/x"])",
       "IMPORT_REFUSED '/usr/local/x'"},
      {R"("allowWrite": ["."], "denyRead": ["**/.env"])",
       "IMPORT_REFUSED '**/.env': denyRead denies"},
      {R"("allowWrite": ["/srv/a"], "denyRead": ["/srv/*/x"])", "IMPORT_REFUSED '/srv/*/x'"},
      {R"("allowWrite": ["/srv/a"], "denyRead": ["/srv/a/b/**"])", "IMPORT_REFUSED '/srv/a/b/**'"},
      {R"("allowRead": ["/srv/a"], "denyRead": ["/srv/a/b"])", "IMPORT_REFUSED '/srv/a/b'"},
      {R"("allowWrite": ["/srv/*.log"], "denyWrite": ["/srv/x.log"])",
       "IMPORT_REFUSED '/srv/x.log'"},
      {R"("allowWrite": ["/home/me/.config", "/home/me/.config/gcloud/x"],
          "denyRead": ["~/.config/gcloud"])",
       "IMPORT_REFUSED '~/.config/gcloud'"},
      {R"("disabled": true)", "IMPORT_REFUSED 'true': without rules for files"},
      {R"("allowWrite": ["/"])", "CAP_SCOPE_REFUSED '/'"},
      {R"("allowWrite": ["~"])", "CAP_SCOPE_REFUSED '~'"},
      {R"("allowWrite": ["/etc/x"])", "CAP_NEEDS_UNSAFE '/etc/x'"},
      {R"("allowWrite": ["../x"])", "CAP_FS_PATH '../x'"},
      {R"("allowWrite": ["/srv/**/x"])", "CAP_FS_GLOB '/srv/**/x'"},
      {R"("allowWrite": ["${HOME}/x"])", "IMPORT_SHAPE '${HOME}/x': allowWrite has no variables"},
      {R"("allowWrite": [{"path": "/srv/a"}])", "IMPORT_SHAPE '{\"path\": \"/srv/a\"}'"},
      {R"("allowWrite": [{"path": "/srv/*", "literal": true}])", "IMPORT_SHAPE '\"/srv/*\"'"},
      {R"("allowExecute": [])", "IMPORT_SHAPE '\"allowExecute\"': filesystem has no"},
  };
  for (const auto& [members, expected] : cases) {
    const std::string text = files(members);
    EXPECT_TRUE(outcome(read_json(read_srt, text), text).starts_with(expected))
        << text << "\n"
        << outcome(read_json(read_srt, text), text);
  }
}

TEST(Srt, CredentialsWinOverWhatMayBeRead) {
  const auto with = [](std::string_view files, std::string_view credential) {
    return format(R"({{"filesystem": {{{}}}, "credentials": {{"files": [{{"path": "{}", "mode":
        "deny"}}]}}}})",
                  files, credential);
  };
  const std::pair<std::string, std::string_view> cases[] = {
      {with(R"("allowRead": ["/srv/a"])", "/srv/a"), ""},
      {with(R"("allowRead": ["/srv/a/key", "/srv/b"])", "/srv/a"), "fs:read:/srv/b"},
      {with(R"("allowRead": ["/srv/a"], "allowWrite": ["/srv/a/w"])", "/srv"), ""},
      {with(R"("allowRead": ["/srv/a"])", "/srv/a/key"), "IMPORT_REFUSED '/srv/a/key'"},
      {with(R"("allowRead": ["."])", "/srv"), "IMPORT_REFUSED '/srv'"},
      {with(R"("allowRead": ["/srv/a"])", "key"), "IMPORT_REFUSED 'key'"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string got = outcome(read_json(read_srt, text), text);
    EXPECT_TRUE(expected.empty() ? got.empty() : got.starts_with(expected)) << text << "\n" << got;
  }
  EXPECT_TRUE(
      has_loss(read_json(read_srt, cases[0].first), Loss::Kind::assumed, "credentials.files"));
}

TEST(Srt, WhereRelativePathsStartIsALoss) {
  const auto read = read_json(read_srt, files(R"("allowWrite": ["."])"));
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "allowWrite"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->variables, std::vector<std::string>{"WORKING_DIRECTORY"});
  EXPECT_FALSE(has_loss(read_json(read_srt, files(R"("allowWrite": ["/srv/a"])")),
                        Loss::Kind::assumed, "allowWrite"));
}

TEST(Srt, Domains) {
  const support::ImportCase cases[] = {
      {R"("allowedDomains": ["A.example.com:443", "*.example.net", "[::1]:8080"])",
       "net:connect:*.example.net net:connect:[::1]:8080 net:connect:a.example.com:443"},
      {R"("allowedDomains": ["a.example.com"], "deniedDomains": ["b.example.com", "10.0.0.1"])",
       "net:connect:a.example.com"},
      {R"("allowedDomains": ["a.example.com", "b.example.com"], "deniedDomains": ["*.example.com"])",
       ""},
      {R"("allowedDomains": ["a.example.com:443"], "deniedDomains": ["*"])", ""},
      {R"("allowedDomains": ["a.example.com:443"], "deniedDomains": ["*:22"])",
       "net:connect:a.example.com:443"},
      {R"("allowedDomains": ["a.example.com"], "deniedDomains": ["*:22"])",
       "IMPORT_REFUSED '*:22': network.deniedDomains denies a part of \"a.example.com\", which "
       "network.allowedDomains allows"},
      {R"("allowedDomains": ["*.example.com"], "deniedDomains": ["a.example.com"])",
       "IMPORT_REFUSED 'a.example.com': network.deniedDomains denies a part of \"*.example.com\", "
       "which network.allowedDomains allows"},
      {R"("allowedDomains": ["a.example.com"], "deniedDomains": ["8.8.8.8"])",
       "IMPORT_REFUSED '8.8.8.8': network.deniedDomains denies a part of \"a.example.com\", which "
       "network.allowedDomains allows"},
      {R"("allowedDomains": ["*"])", "IMPORT_REFUSED '*': every host is allowed"},
      {R"("refuseOpaqueTunnels": true)",
       "IMPORT_REFUSED 'true': refuseOpaqueTunnels restricts what passes, and a manifest cannot "
       "say it"},
      {R"("stripResponseHeaders": [])", ""},
      {R"("deniedResolvedAddresses": ["10.0.0.0/8", "169.254.169.254"])", ""},
      {R"("deniedResolvedAddresses": ["8.8.8.0/24"])",
       "IMPORT_REFUSED '\"8.8.8.0/24\"': 8.8.8.0/24 is public, and a manifest cannot deny "
       "addresses "
       "to names"},
      {R"("deniedResolvedAddresses": ["10.0.0.0/33"])",
       "IMPORT_SHAPE '\"10.0.0.0/33\"': deniedResolvedAddresses is a list of addresses and their "
       "blocks"},
  };
  for (const auto& [members, expected] : cases) {
    const std::string text = network(members);
    EXPECT_EQ(outcome(read_json(read_srt, text), text), expected) << text;
  }
}

TEST(Srt, ReadingEverythingIsALoss) {
  const auto read = read_json(read_srt, files(R"("allowWrite": ["/srv/a"])"));
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "filesystem"));
  EXPECT_TRUE(has_loss(read_json(read_srt, R"({"network": {"allowLocalBinding": true}})"),
                       Loss::Kind::dropped, "network.allowLocalBinding"));
}

TEST(Vscode, TheSandboxOfTheFile) {
  const std::string text = R"({
    // comments are fine
    "servers": {"a": {"command": "a", "sandboxEnabled": true}, "b": {"command": "b"}},
    "sandbox": {"filesystem": {"allowWrite": ["${workspaceFolder}/x", "${userHome}/y"]}},
  })";
  EXPECT_TRUE(
      outcome(read_json(read_vscode, text), text).ends_with("there are 2 of them: \"a\", \"b\""));
  const auto read = read_json(read_vscode, text, "a");
  EXPECT_EQ(outcome(read, text), "fs:write:${WORKSPACE_FOLDER}/x fs:write:/home/me/y");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "a");
  EXPECT_EQ(read->variables, std::vector<std::string>{"WORKSPACE_FOLDER"});
  EXPECT_FALSE(has_loss(read, Loss::Kind::assumed, "sandboxEnabled"));
  EXPECT_TRUE(has_loss(read_json(read_vscode, text, "b"), Loss::Kind::assumed, "sandboxEnabled"));
  EXPECT_TRUE(
      outcome(read_json(read_vscode, text, "c"), text).ends_with("there is no server \"c\""));
}

// Two places are two variables, whatever they are called.
TEST(Vscode, VariablesOfSeveralKindsAreSeveral) {
  const std::string text = R"({
    "servers": {"a": {"command": "a", "sandboxEnabled": true,
                      "env": {"K": "x ${input:key}", "L": "${input:other}"}}},
    "inputs": [{"id": "key", "type": "promptString", "password": true}],
    "sandbox": {"filesystem": {"allowWrite": [
      "${env:DATA}/a", "${input:DATA}/b", "${env:DATA}/c", "${workspaceFolder}/d",
      "${input:workspace-folder}/e", "${workspaceFolder:workspace-folder}/f"]}}})";
  const auto read = read_json(read_vscode, text);
  EXPECT_EQ(outcome(read, text),
            "env:inject:K env:read:L fs:write:${DATA_2}/b fs:write:${DATA}/a fs:write:${DATA}/c "
            "fs:write:${WORKSPACE_FOLDER_2}/e fs:write:${WORKSPACE_FOLDER_3}/f "
            "fs:write:${WORKSPACE_FOLDER}/d");
}

TEST(Vscode, AValueOfTheFileIsNoSecretOfTheCaller) {
  const std::string text = R"({"servers": {"a": {"command": "a", "sandboxEnabled": true, "env": {
      "AWS_SECRET_ACCESS_KEY": "unused", "API_TOKEN": "${env:HOME}", "REGION": "eu",
      "OWN_TOKEN": "${env:OWN_TOKEN}", "PORT": 80, "ASKED": "${input:x}"}}}})";
  const auto read = read_json(read_vscode, text);
  EXPECT_EQ(outcome(read, text), "env:read:ASKED env:read:OWN_TOKEN env:read:PORT env:read:REGION");
  EXPECT_TRUE(has_loss(read, Loss::Kind::dropped, "env"));
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "env"));
}

TEST(Vscode, WhatItCannotMeanIsAMistake) {
  const auto with = [](std::string_view server, std::string_view sandbox) {
    return format(R"({{"servers": {{"a": {{{}}}}}, "sandbox": {{{}}}}})", server, sandbox);
  };
  const std::pair<std::string, std::string_view> cases[] = {
      {with(R"("url": "https://x.example.com")", ""),
       "IMPORT_REFUSED '\"https://x.example.com\"': the server runs elsewhere"},
      {with(R"("comand": "x")", ""), "IMPORT_SHAPE '\"comand\"': a server has no \"comand\""},
      {with("", R"("process": {})"), "IMPORT_SHAPE '\"process\"': sandbox has no \"process\""},
      {with("", R"("filesystem": {"allowWrite": ["/a/${workspaceFolder}"]})"),
       "IMPORT_SHAPE '/a/${workspaceFolder}': a variable stands at the start"},
      {with("", R"("filesystem": {"allowWrite": ["${config:x}/y"]})"),
       "IMPORT_SHAPE '${config:x}/y': the variable \"config:x\" is not known"},
      // A variable may stand for a directory with the denied one in it.
      {with("", R"("filesystem": {"allowWrite": ["${workspaceFolder}"], "denyRead": ["/srv/x"]})"),
       "IMPORT_REFUSED '/srv/x': denyRead denies a part of"},
      {with("", R"("filesystem": {"allowRead": ["${workspaceFolder}"],
                   "denyRead": ["/home/me/p/private"]})"),
       "IMPORT_REFUSED '/home/me/p/private': denyRead denies a part of"},
      {with("", R"("filesystem": {"allowRead": ["${workspaceFolder}"],
                   "denyRead": ["${workspaceFolder:other}"]})"),
       "IMPORT_REFUSED '${workspaceFolder:other}': denyRead denies a part of"},
      {with("", R"("filesystem": {"allowRead": ["/srv/a"], "denyRead": ["${env:X}"]})"),
       "IMPORT_REFUSED '${env:X}': denyRead denies a part of"},
      {with("", R"("filesystem": {"allowRead": ["${workspaceFolder}"], "denyRead": ["/"]})"),
       "fs:read:${WORKSPACE_FOLDER}"},
      {with("", R"("filesystem": {"allowRead": ["${workspaceFolder}/a"],
                   "denyRead": ["${workspaceFolder}"]})"),
       "fs:read:${WORKSPACE_FOLDER}/a"},
      // The server's directory is no other one's, whatever that is called.
      {with("", R"("filesystem": {"allowWrite": ["x", "${env:WORKING_DIRECTORY}/y"]})"),
       "fs:write:${WORKING_DIRECTORY_2}/y fs:write:${WORKING_DIRECTORY}/x"},
      {with("", R"("filesystem": {"allowWrite": ["/srv/a"], "denyRead": ["x"]})"),
       "IMPORT_REFUSED 'x': denyRead denies a part of \"/srv/a\", which allowWrite allows, "
       "perhaps: a relative path starts where the server is started"},
      {with("", R"("filesystem": {"allowWrite": ["${workspaceFolder}"],
                   "denyWrite": ["${workspaceFolder}/x"]})"),
       "IMPORT_REFUSED '${workspaceFolder}/x': denyWrite denies a part of"},
      {with("", R"("filesystem": {"allowWrite": ["${workspaceFolder}"],
                   "denyWrite": ["${workspaceFolder}/.env"]})"),
       "fs:write:${WORKSPACE_FOLDER}"},
      {with("", R"("filesystem": {"allowWrite": ["${workspaceFolder}"], "denyRead": ["~/.ssh"]})"),
       "fs:write:${WORKSPACE_FOLDER}"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(outcome(read_json(read_vscode, text), text).starts_with(expected))
        << text << "\n"
        << outcome(read_json(read_vscode, text), text);
  }
}

}  // namespace
}  // namespace capgate::imports
