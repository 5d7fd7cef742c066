// What npm and pip have in common when they install into a staging directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/install.h"
#include "clients/registry.h"
#include "clients/tool.h"

namespace capgate::clients {

// One install: `staging` is writable for the installer, `staging`/tree becomes the package.
struct Work {
  const Package& package;
  const InstallOptions& options;
  std::string staging;

  [[nodiscard]] std::string tree() const { return staging + "/tree"; }
};

struct Fetched {
  std::string version;
  std::string integrity;
  std::string runtime;
};

[[nodiscard]] Stored<Fetched> fetch_npm(const Work& work);
[[nodiscard]] Stored<Fetched> fetch_pypi(const Work& work);

// The file of a program that PATH names.
[[nodiscard]] Stored<std::string> find_tool(const Work& work, const std::string& name,
                                            std::string_view help);
// A question to a tool of the user's, outside of any sandbox: what it prints. The tool starts in
// the home directory, so that no file of a project answers.
[[nodiscard]] Stored<std::string> ask_tool(const Work& work, std::vector<std::string> words);

struct Confined {
  std::vector<std::string> capabilities;
  std::vector<std::string> command;
  std::string step;  // for the progress
};
// A command in a sandbox that holds the staging directory and these capabilities.
[[nodiscard]] Stored<ToolEnd> run_confined(const Work& work, const Confined& confined);

// "fs:read:"/a b/**""
[[nodiscard]] std::string fs_capability(std::string_view action, std::string_view directory);

// The certificates that this host trusts, and those of the files, as a file of the staging
// directory. Empty if the host has none.
[[nodiscard]] std::string write_certificates(const Work& work,
                                             const std::vector<std::string>& more);

[[nodiscard]] Stored<void> write_text(const std::string& path, std::string_view text);

// The last lines that a tool wrote, as part of a message.
[[nodiscard]] std::string last_words(std::string_view err);

// The value of a variable of the caller's, or empty.
[[nodiscard]] std::string variable_of(const Work& work, std::string_view name);

}  // namespace capgate::clients
