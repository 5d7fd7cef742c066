// What the tests of providers share: a directory of their own and an environment.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "secrets/provider.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::secrets {

class ProviderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/capgate-secrets-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string file(const std::string& name, std::string_view text, mode_t mode = 0600) const {
    const sys::Fd made(::open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    EXPECT_TRUE(sys::write_all(made.get(), text));
    EXPECT_EQ(::fchmod(made.get(), mode), 0);
    return path(name);
  }

  // An executable with these lines.
  std::string script(const std::string& name, const std::string& lines) const {
    return file(name, "#!/bin/sh\n" + lines, 0700);
  }

  [[nodiscard]] Context context() const {
    return {.environment = environment_,
            .server = "box",
            .store_program = path("capgate-store"),
            .command_limit = std::chrono::seconds(20)};
  }

  [[nodiscard]] std::expected<Resolved, Problem> resolved(const std::string& binding) const {
    return resolve(*parse_binding("TOKEN=" + binding), context());
  }

  // The message of the refusal.
  [[nodiscard]] std::string refusal(const std::string& binding) const {
    const auto out = resolved(binding);
    EXPECT_FALSE(out) << binding;
    if (out) return "";
    EXPECT_FALSE(out.error().help.empty()) << binding;
    return out.error().message;
  }

  std::string directory_;
  std::vector<std::string> environment_ = {"PATH=/usr/bin:/bin", "TOKEN=of-the-launcher",
                                           "TOKENS=other", "EMPTY="};
};

}  // namespace capgate::secrets
