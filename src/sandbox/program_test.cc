#include "sandbox/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_directory.h"

namespace capgate::sandbox {
namespace {

using test::TempDirectory;
using Words = std::vector<std::string>;
using Links = std::vector<std::pair<std::string, std::string>>;

constexpr mode_t runs = 0755;
// Neither a script nor an ELF file: the end of every chain.
constexpr std::string_view machine_code = "code";

class ProgramTest : public testing::Test {
 protected:
  [[nodiscard]] Caller caller() const {
    return {.path = directory_.path("opt/bin") + ":" + directory_.path("more"),
            .directory = directory_.path(),
            .home = "/home/nobody-here"};
  }

  // A program that is there, or the failure of the test.
  [[nodiscard]] Program find(const Words& command) const { return find(command, caller()); }
  static Program find(const Words& command, const Caller& caller) {
    auto found = find_program(command, caller, Shebang::any);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : Program{};
  }

  [[nodiscard]] Refusal refuse(const Words& command) const {
    auto found = find_program(command, caller(), Shebang::any);
    EXPECT_FALSE(found) << found->file;
    return found ? Refusal{.message = "", .help = "", .exit_code = 0} : found.error();
  }

  // The arguments that a script with this first line ends up with.
  [[nodiscard]] Words arguments_of(const std::string& first_line) const {
    directory_.file("script", first_line + "\n", runs);
    return find({"./script", "last"}).arguments;
  }

  std::string tool(std::string_view name, std::string_view text = machine_code) const {
    return directory_.file(name, text, runs);
  }

  TempDirectory directory_;
};

// ---- where a command is looked for
// ----------------------------------------------------------------

TEST_F(ProgramTest, PathIsSearchedInItsOrder) {
  tool("more/tool");
  EXPECT_EQ(find({"tool"}).file, directory_.path("more/tool"));
  tool("opt/bin/tool");
  const Program program = find({"tool", "a", "b"});
  EXPECT_EQ(program.file, directory_.path("opt/bin/tool"));
  EXPECT_EQ(program.arguments, (Words{"tool", "a", "b"}));
  EXPECT_EQ(program.executables, (Words{directory_.path("opt/bin/tool")}));
  EXPECT_EQ(program.identity, identify(program.file));
}

TEST_F(ProgramTest, WhatCannotBeRunIsPassedOverInPath) {
  directory_.file("opt/bin/tool", machine_code, 0644);
  tool("more/tool");
  EXPECT_EQ(find({"tool"}).file, directory_.path("more/tool"));
  directory_.directory("opt/bin/folder");
  tool("more/folder");
  EXPECT_EQ(find({"folder"}).file, directory_.path("more/folder"));
}

TEST_F(ProgramTest, ARelativeEntryOfPathIsNotUsed) {
  tool("here/tool");
  Caller relative = caller();
  relative.path = ":.:here";
  EXPECT_FALSE(find_program({"tool"}, relative));
}

TEST_F(ProgramTest, ARelativeCommandStartsAtTheCallersDirectory) {
  tool("sub/tool");
  directory_.directory("sub/x");
  EXPECT_EQ(find({"./sub/tool"}).file, directory_.path("sub/tool"));
  EXPECT_EQ(find({"sub/./x/../tool"}).file, directory_.path("sub/tool"));
  EXPECT_EQ(find({directory_.path("sub/tool")}).file, directory_.path("sub/tool"));
}

TEST_F(ProgramTest, WhatIsNotFoundIs127) {
  for (const char* command : {"nowhere", "./nowhere", "/nowhere/at/all", ""}) {
    const Refusal refusal = refuse({command});
    EXPECT_EQ(refusal.exit_code, 127) << command;
    EXPECT_FALSE(refusal.help.empty()) << command;
  }
}

TEST_F(ProgramTest, WhatCannotBeRunIs126) {
  directory_.file("opt/bin/text", "words", 0644);
  directory_.directory("folder");
  EXPECT_EQ(refuse({"text"}).exit_code, 126);
  EXPECT_EQ(refuse({"./opt/bin/text"}).exit_code, 126);
  EXPECT_EQ(refuse({"./folder"}).exit_code, 126);
}

// ---- scripts
// ----------------------------------------------------------------------------------------

TEST_F(ProgramTest, AScriptIsItsInterpreterWithTheScriptAsArgument) {
  const std::string interpreter = tool("opt/bin/tool");
  const std::string script = tool("script", "#!" + interpreter + "\nbody\n");
  const Program program = find({"./script", "a", "b"});
  EXPECT_EQ(program.file, interpreter);
  EXPECT_EQ(program.arguments, (Words{interpreter, script, "a", "b"}));
  EXPECT_EQ(program.readable, (Words{script}));
  EXPECT_EQ(program.executables, (Words{interpreter}));
}

TEST_F(ProgramTest, TheRestOfTheFirstLineIsOneWordAsTheKernelHasIt) {
  const std::string interpreter = tool("opt/bin/tool");
  const std::string script = directory_.path("script");
  EXPECT_EQ(arguments_of("#! " + interpreter + " \t-a -b  "),
            (Words{interpreter, "-a -b", script, "last"}));
}

TEST_F(ProgramTest, AScriptMayBeOneLineWithoutAnEnd) {
  const std::string interpreter = tool("opt/bin/tool");
  const std::string script = tool("script", "#!" + interpreter);
  EXPECT_EQ(find({"./script"}).arguments, (Words{interpreter, script}));
}

TEST_F(ProgramTest, EnvIsResolvedThroughPath) {
  const std::string interpreter = tool("opt/bin/tool");
  const std::string script = directory_.path("script");
  EXPECT_EQ(arguments_of("#!/usr/bin/env tool"), (Words{interpreter, script, "last"}));
  EXPECT_EQ(arguments_of("#!/bin/env tool"), (Words{interpreter, script, "last"}));
}

TEST_F(ProgramTest, EnvSplitsWhenItIsAskedTo) {
  const std::string interpreter = tool("opt/bin/tool");
  const std::string script = directory_.path("script");
  EXPECT_EQ(arguments_of("#!/usr/bin/env -S tool --one  two"),
            (Words{interpreter, "--one", "two", script, "last"}));
  EXPECT_EQ(arguments_of("#!/usr/bin/env -Stool"), (Words{interpreter, script, "last"}));
}

TEST_F(ProgramTest, EnvSplitsAtTabsToo) {
  const std::string interpreter = tool("opt/bin/tool");
  EXPECT_EQ(arguments_of("#!/usr/bin/env -S tool\t--one\ttwo"),
            (Words{interpreter, "--one", "two", directory_.path("script"), "last"}));
}

TEST_F(ProgramTest, EnvWithMoreThanAProgramIsNotUnderstood) {
  tool("opt/bin/tool");
  for (const char* line : {"#!/usr/bin/env", "#!/usr/bin/env -i tool", "#!/usr/bin/env A=1 tool",
                           "#!/usr/bin/env -S A=1 tool", "#!/usr/bin/env -S -i tool",
                           "#!/usr/bin/env tool --flag", "#!/usr/bin/env -S"}) {
    tool("script", std::string(line) + "\n");
    const Refusal refusal = refuse({"./script"});
    EXPECT_EQ(refusal.exit_code, 126) << line;
    EXPECT_NE(refusal.message.find("not understood"), std::string::npos) << refusal.message;
  }
}

// env -S has quotes, escapes, variables and comments; taken as plain text they would be wrong
// words.
TEST_F(ProgramTest, EnvWithQuotesIsNotTakenAsPlainText) {
  tool("opt/bin/tool");
  for (const char* line : {"#!/usr/bin/env -S tool 'a b'", "#!/usr/bin/env -S tool \"a b\"",
                           "#!/usr/bin/env -S tool a\\_b", "#!/usr/bin/env -S tool ${HOME}",
                           "#!/usr/bin/env -S tool # comment"}) {
    tool("script", std::string(line) + "\n");
    EXPECT_EQ(refuse({"./script"}).exit_code, 126) << line;
  }
}

TEST_F(ProgramTest, AnInterpreterMayBeAScriptItself) {
  const std::string last = tool("opt/bin/tool");
  const std::string middle = tool("middle", "#!" + last + " -m\n");
  const std::string first = tool("first", "#!" + middle + " -f\n");
  const Program program = find({"./first", "a"});
  EXPECT_EQ(program.file, last);
  EXPECT_EQ(program.arguments, (Words{last, "-m", middle, "-f", first, "a"}));
  EXPECT_EQ(program.readable, (Words{first, middle}));
  EXPECT_EQ(program.executables, (Words{last}));
}

TEST_F(ProgramTest, FourInterpretersAreFollowedAndFiveRefused) {
  std::string next = tool("opt/bin/tool");
  for (const char* name : {"s1", "s2", "s3", "s4"}) next = tool(name, "#!" + next + "\n");
  EXPECT_EQ(find({"./s4"}).readable.size(), 4U);
  tool("s5", "#!" + next + "\n");
  EXPECT_EQ(refuse({"./s5"}).exit_code, 126);
}

TEST_F(ProgramTest, LoopsAreRefused) {
  tool("self", "#!" + directory_.path("self") + "\n");
  EXPECT_EQ(refuse({"./self"}).exit_code, 126);
  tool("a", "#!" + directory_.path("b") + "\n");
  tool("b", "#!" + directory_.path("a") + "\n");
  EXPECT_EQ(refuse({"./a"}).exit_code, 126);
}

TEST_F(ProgramTest, AnInterpreterThatIsMissingIsNamed) {
  tool("script", "#!/nowhere/tool\n");
  const Refusal refusal = refuse({"./script"});
  EXPECT_NE(refusal.message.find("/nowhere/tool"), std::string::npos) << refusal.message;
  EXPECT_EQ(refusal.exit_code, 127);
}

// ---- whom a first line may name
// ------------------------------------------------------------------

TEST_F(ProgramTest, AScriptChoosesNoProgramOfTheCallersDirectories) {
  const std::string python = tool("project/bin/python3");
  directory_.directory("project/lib");
  const auto started = [&](const std::string& script, const std::string& line) {
    tool(script, line + "\n");
    return find_program({directory_.path(script)}, caller());
  };
  Caller there = caller();
  there.directory = directory_.path("project");
  for (const std::string& line : {std::string("#!project/bin/python3"), "#!" + python,
                                  "#!" + directory_.path("elsewhere/../project/bin/python3")}) {
    const auto found = started("elsewhere/server", line);
    ASSERT_FALSE(found) << line;
    EXPECT_EQ(found.error().exit_code, 126);
    EXPECT_TRUE(found.error().message.contains("neither the system's nor beside it")) << line;
    EXPECT_TRUE(found.error().help.contains("name it yourself")) << line;
  }
  tool("project/bin/relative", "#!bin/python3\n");
  EXPECT_FALSE(find_program({"bin/relative"}, there)) << "it depends on where the caller stands";
  // As those of a virtual environment are.
  EXPECT_TRUE(started("project/bin/server", "#!" + python));
  directory_.directory("more");
  directory_.link("more/link", directory_.path("project/bin/server"));
  EXPECT_TRUE(find_program({"link"}, caller()));
  EXPECT_TRUE(started("elsewhere/server", "#!/bin/sh"));
  // A chain is as good as its last part.
  tool("project/bin/wrapper", "#!" + directory_.path("elsewhere/server") + "\n");
  EXPECT_FALSE(find_program({directory_.path("project/bin/wrapper")}, caller()));
}

// ---- what a program needs around it
// --------------------------------------------------------------

TEST_F(ProgramTest, TheDirectoryAroundBinIsVisible) {
  tool("opt/bin/node");
  directory_.directory("opt/lib");
  const Program program = find({"node"});
  EXPECT_EQ(program.prefixes, (Words{directory_.path("opt")}));
  EXPECT_TRUE(program.notes.empty());
}

// Only an interpreter has a library around it: the rest of a project is not the program's.
TEST_F(ProgramTest, OtherProgramsHaveNoPrefix) {
  tool("opt/bin/tool");
  directory_.directory("opt/lib");
  EXPECT_TRUE(find({"tool"}).prefixes.empty());
  tool("opt/bin/node");
  std::filesystem::remove(directory_.path("opt/lib"));
  EXPECT_TRUE(find({"node"}).prefixes.empty());
}

TEST_F(ProgramTest, AProgramOutsideOfABinHasNoPrefix) {
  tool("more/node");
  EXPECT_TRUE(find({"node"}).prefixes.empty());
  EXPECT_TRUE(find({"node"}).notes.empty());
}

TEST_F(ProgramTest, TheHomeDirectoryIsNoPrefix) {
  const std::string file = tool("opt/bin/node");
  directory_.directory("opt/lib");
  Caller at_home = caller();
  at_home.home = directory_.path("opt");
  const Program program = find({"node"}, at_home);
  EXPECT_TRUE(program.prefixes.empty());
  ASSERT_EQ(program.notes.size(), 1U);
  EXPECT_NE(program.notes[0].find(file), std::string::npos) << program.notes[0];
}

TEST_F(ProgramTest, ADirectoryThatHoldsAHomeIsNoPrefix) {
  tool("opt/bin/node");
  directory_.directory("opt/lib");
  Caller below = caller();
  below.home = directory_.path("opt/user");
  EXPECT_TRUE(find({"node"}, below).prefixes.empty());
  EXPECT_EQ(find({"node"}, below).notes.size(), 1U);
}

TEST_F(ProgramTest, ADirectoryWithCredentialsIsNoPrefix) {
  Caller at_home = caller();
  at_home.home = directory_.path("user");
  const std::string inside = tool("user/.ssh/bin/node");
  directory_.directory("user/.ssh/lib");
  EXPECT_TRUE(find({inside}, at_home).prefixes.empty());
  const std::string above = tool("user/.config/bin/node");
  directory_.directory("user/.config/lib");
  EXPECT_TRUE(find({above}, at_home).prefixes.empty());
  const std::string beside = tool("user/.nvm/versions/node/v22/bin/node");
  directory_.directory("user/.nvm/versions/node/v22/lib");
  EXPECT_EQ(find({beside}, at_home).prefixes,
            (Words{directory_.path("user/.nvm/versions/node/v22")}));
}

TEST_F(ProgramTest, ProgramsOfTheSystemHaveNoPrefix) {
  EXPECT_TRUE(find({"/usr/bin/env"}).prefixes.empty());
  EXPECT_TRUE(find({"/bin/env"}).prefixes.empty());
}

TEST_F(ProgramTest, TheLoaderOfAnElfProgramIsExecutable) {
  const Program program = find({"/usr/bin/env"});
  ASSERT_EQ(program.executables.size(), 2U);
  EXPECT_EQ(program.executables[0], "/usr/bin/env");
  EXPECT_NE(program.executables[1].find("/ld-"), std::string::npos) << program.executables[1];
  EXPECT_EQ(std::filesystem::canonical(program.executables[1]).string(), program.executables[1]);
}

TEST_F(ProgramTest, ATruncatedElfFileHasNoLoader) {
  const std::string head = std::string("\x7f") + "ELF\x02\x01\x01";
  EXPECT_EQ(find({tool("more/short", head)}).executables.size(), 1U);
  EXPECT_EQ(find({tool("more/long", head + std::string(100, '\xff'))}).executables.size(), 1U);
}

// ---- links
// ----------------------------------------------------------------------------------------

TEST_F(ProgramTest, LinksToAProgramAreRecordedOneByOne) {
  const std::string real = tool("opt/lib/tool/bin/real");
  directory_.directory("opt/bin");
  const std::string second = directory_.link("opt/bin/second", "../lib/tool/bin/real");
  const std::string first = directory_.link("opt/bin/first", second);
  const Program program = find({"first"});
  EXPECT_EQ(program.file, first);
  EXPECT_EQ(program.executables, (Words{real}));
  EXPECT_EQ(program.links, (Links{{first, second}, {second, "../lib/tool/bin/real"}}));
  EXPECT_EQ(program.identity, identify(real));
}

TEST_F(ProgramTest, ALinkToAScriptKeepsItsNameAsTheArgument) {
  const std::string interpreter = tool("more/tool");
  const std::string script = tool("lib/cli.js", "#!" + interpreter + "\n");
  const std::string link = directory_.link("more/cli", "../lib/cli.js");
  const Program program = find({"cli"});
  EXPECT_EQ(program.arguments, (Words{interpreter, link}));
  EXPECT_EQ(program.readable, (Words{script}));
  EXPECT_EQ(program.links, (Links{{link, "../lib/cli.js"}}));
}

// /opt/current -> /opt/v22, with /opt/current/bin/tool as the command: the name must work inside.
TEST_F(ProgramTest, ALinkToADirectoryOnTheWayIsRecorded) {
  const std::string real = tool("opt/v22/bin/tool");
  const std::string link = directory_.link("opt/current", "v22");
  const Program program = find({link + "/bin/tool"});
  EXPECT_EQ(program.executables, (Words{real}));
  const bool by_its_real_name = program.file == real;
  EXPECT_TRUE(by_its_real_name || program.links == (Links{{link, "v22"}}))
      << program.file << " with " << program.links.size() << " links";
}

// By its text it would be another program than the one that the kernel runs.
TEST_F(ProgramTest, ADotDotBehindALinkIsWhereTheKernelSays) {
  const std::string wanted = tool("far/away/tool");
  tool("near/tool");
  directory_.directory("far/away/deep");
  directory_.link("near/link", directory_.path("far/away/deep"));
  EXPECT_EQ(find({"./near/link/../tool"}).identity, identify(wanted));
}

TEST_F(ProgramTest, ALoopOfLinksIsNotFound) {
  directory_.link("a", "b");
  directory_.link("b", "a");
  EXPECT_NE(refuse({"./a"}).exit_code, 0);
}

// ---- declared programs
// ----------------------------------------------------------------------------

TEST_F(ProgramTest, ADeclaredProgramIsOneOfTheSystemWhateverPathSays) {
  tool("opt/bin/env");
  const auto program = find_spawned("env", caller());
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->executables[0], "/usr/bin/env");
}

TEST_F(ProgramTest, ADeclaredProgramThatIsMissingIsRefused) {
  const auto program = find_spawned("no-such-program", caller());
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().exit_code, 125);
  EXPECT_NE(program.error().message.find("exec:spawn:no-such-program"), std::string::npos);
}

TEST_F(ProgramTest, GitBringsItsHelpers) {
  const auto git = find_spawned("git", caller());
  ASSERT_TRUE(git) << "git is one of the packages that the tests need";
  ASSERT_FALSE(git->executable_directories.empty());
  EXPECT_TRUE(git->executable_directories[0].ends_with("/git-core"));
}

}  // namespace
}  // namespace capgate::sandbox
