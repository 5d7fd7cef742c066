// A directory of its own for one test, removed with everything in it at the end.
//
//   const TempDirectory directory;
//   directory.file("bin/tool", "#!/bin/sh\n", 0755)  -> its absolute path; parents are made
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace capgate::test {

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = testing::TempDir() + "capgate-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    // Where /tmp itself is a link, tests about links must not meet it.
    path_ = std::filesystem::canonical(pattern).string();
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  std::string directory(std::string_view name) const {
    std::filesystem::create_directories(path(name));
    return path(name);
  }
  std::string file(std::string_view name, std::string_view text, mode_t mode = 0644) const {
    const std::string full = path(name);
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text;
    ::chmod(full.c_str(), mode);
    return full;
  }
  std::string link(std::string_view name, std::string_view target) const {
    std::filesystem::create_symlink(target, path(name));
    return path(name);
  }

 private:
  std::string path_;
};

}  // namespace capgate::test
