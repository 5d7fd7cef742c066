#include "clients/package.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/text.h"

namespace capgate::clients {
namespace {

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> out;
  for (const std::string_view word : split(line, ' ')) out.emplace_back(word);
  return out;
}

// "npm:name@range (executable) argument argument", or "-".
std::string read(std::string_view line) {
  const auto command = package_of(words(line));
  if (!command) return "-";
  std::string out = print(command->package);
  if (!command->executable.empty()) out += format(" ({})", command->executable);
  for (const std::string& argument : command->arguments) out += " " + argument;
  return out;
}

TEST(PackageOf, FindsThePackageOfEachRunner) {
  const std::pair<std::string_view, std::string_view> table[] = {
      {"npx -y @scope/server@1.2 /srv", "npm:@scope/server@1.2 /srv"},
      {"/usr/bin/npx server --flag -y", "npm:server --flag -y"},
      {"npx --yes -- server -- x", "npm:server -- x"},
      {"npx -y server@latest", "npm:server@latest"},
      {"npx -p server@^1 other x", "npm:server@^1 (other) x"},
      {"npx --package=@a/b -- tool", "npm:@a/b (tool)"},
      {"npm exec -- server --flag", "npm:server --flag"},
      {"npm exec server -- --flag", "npm:server --flag"},
      {"npm x -y server /srv", "npm:server /srv"},
      {"npm exec --package=server -- tool x", "npm:server (tool) x"},
      {"pnpm dlx server x", "npm:server x"},
      {"bunx --bun server", "npm:server"},
      {"uvx mcp-server-git --repository /srv", "pypi:mcp-server-git --repository /srv"},
      {"uvx MCP_Server.Git@2025.1", "pypi:mcp-server-git==2025.1"},
      {"uvx mcp-server-git@latest", "pypi:mcp-server-git"},
      {"uvx --python 3.12 --from mcp-x>=1,<2 mcp-y a", "pypi:mcp-x>=1,<2 (mcp-y) a"},
      {"uv tool run mcp-x a", "pypi:mcp-x a"},
      {"pipx run --spec mcp-x==1.0 tool", "pypi:mcp-x==1.0 (tool)"},
      {"pipx run mcp-x", "pypi:mcp-x"},
  };
  for (const auto& [line, expected] : table) EXPECT_EQ(read(line), expected) << line;
}

TEST(PackageOf, GuessesNothing) {
  for (const std::string_view line : {"node server.js",
                                      "npx",
                                      "npx -y",
                                      "npx -c server",
                                      "npx --call=x server",
                                      "npx --registry=https://x server",
                                      "npx ./server",
                                      "npx .",
                                      "npx ../x",
                                      "npx /x/y",
                                      "npx github:user/x",
                                      "npx user/repo",
                                      "npx server@npm:other",
                                      "npx server@file:../x",
                                      "npx server@https://x/y.tgz",
                                      "npx https://x/y.tgz",
                                      "npx -p a -p b tool",
                                      "npx -p server ./tool",
                                      "npx -p",
                                      "npx -- -x",
                                      "npm exec server --flag",
                                      "npm exec server x -- y",
                                      "npm run x",
                                      "npm",
                                      "uvx --with x y",
                                      "uvx --index-url=x y",
                                      "uvx git+https://x/y",
                                      "uvx --from . x",
                                      "uvx mcp-x[cli]",
                                      "uv run x",
                                      "uv tool x",
                                      "pipx run --index-url x y",
                                      "pipx run https://x/y.py",
                                      "NPX server"}) {
    EXPECT_EQ(read(line), "-") << line;
  }
  EXPECT_FALSE(package_of({}));
}

TEST(ParsePackage, PrintsWhatItReads) {
  for (const std::string_view text :
       {"npm:server", "npm:@a/b", "npm:@a/b.c_d~e@>=1.2 <3 || 5.x", "npm:a@next", "npm:1-x@*",
        "pypi:a", "pypi:a-b>=1.2,<2", "pypi:a==1.*"}) {
    const auto package = parse_package(text);
    ASSERT_TRUE(package) << text;
    EXPECT_EQ(print(*package), text);
  }
}

TEST(ParsePackage, RefusesWhatNoRegistryHas) {
  for (const std::string_view text : {"",
                                      "server",
                                      "npm:",
                                      "pypi:",
                                      "npm:-x",
                                      "npm:--yes",
                                      "npm:.x",
                                      "npm:_x",
                                      "npm:@a",
                                      "npm:@/b",
                                      "npm:@a/",
                                      "npm:@a/-b",
                                      "npm:@a/b/c",
                                      "npm:a/b",
                                      "npm:../x",
                                      "npm:A",
                                      "npm:a b",
                                      "npm:a@",
                                      "npm:a@../x",
                                      "npm:a@1/2",
                                      "npm:a@x:y",
                                      "npm:a@-x",
                                      "npm:a@b@c",
                                      "npm:node_modules",
                                      "npm:a%2fb",
                                      "npm:a\n",
                                      "npm:\xc3\xa4",
                                      "pypi:-a",
                                      "pypi:a-",
                                      "pypi:a/b",
                                      "pypi:a[b]",
                                      "pypi:a==",
                                      "pypi:a@x",
                                      "pypi:a @ https://x",
                                      "pypi:a;os",
                                      "cargo:a"}) {
    EXPECT_FALSE(parse_package(text)) << text;
  }
  EXPECT_FALSE(parse_package("npm:" + std::string(215, 'a')));
}

}  // namespace
}  // namespace capgate::clients
