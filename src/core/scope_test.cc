// Which well-formed capabilities may be granted. The tables behind it are in sensitive_test.cc.
#include "core/scope.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/grammar.h"

namespace capgate::core {
namespace {

// "ok", or the code.
std::string_view verdict(std::string_view text, std::string_view home = "") {
  const auto parsed = parse_capability(text, {});
  EXPECT_TRUE(parsed) << text;
  if (!parsed) return "not parsed";
  const auto allowed = check_scope(parsed->front(), home);
  if (allowed) return "ok";
  EXPECT_FALSE(allowed.error().message.empty());
  EXPECT_FALSE(allowed.error().help.empty());
  return code_name(allowed.error().code);
}

TEST(Scope, D5RefusesWhatIsNeverGrantedAsAWhole) {
  for (const std::string_view text : {"fs:read:/",
                                      "fs:read:/**",
                                      "fs:read:/*",
                                      "fs:write:/",
                                      "fs:read:/proc",
                                      "fs:read:/proc/1",
                                      "fs:read:/sys",
                                      "fs:read:/sys/kernel",
                                      "fs:read:/dev",
                                      "fs:read:/dev/mem",
                                      "fs:read:/etc",
                                      "fs:read:/etc/**",
                                      "fs:read:/run",
                                      "fs:read:/var/run",
                                      "fs:read:/home",
                                      "fs:read:/home/alice",
                                      "fs:read:/home/alice/**",
                                      "fs:read:/root",
                                      "fs:read:/Users/bob",
                                      "fs:read:/home/alice/*"}) {
    EXPECT_EQ(verdict(text), "CAP_SCOPE_REFUSED") << text;
  }
}

TEST(Scope, D5NoOverrideForARefusedScope) {
  EXPECT_EQ(verdict("fs:read:/?unsafe=true"), "CAP_SCOPE_REFUSED");
  EXPECT_EQ(verdict("fs:write:/etc?unsafe=true"), "CAP_SCOPE_REFUSED");
}

TEST(Scope, TheCallersHomeIsRefusedToo) {
  EXPECT_EQ(verdict("fs:read:/data/alice"), "ok");
  EXPECT_EQ(verdict("fs:read:/data/alice", "/data/alice"), "CAP_SCOPE_REFUSED");
  EXPECT_EQ(verdict("fs:read:/data", "/data/alice"), "CAP_SCOPE_REFUSED");
  EXPECT_EQ(verdict("fs:read:/data/alice/w", "/data/alice"), "ok");
}

TEST(Scope, D5WritesToTheSystemNeedUnsafe) {
  for (const std::string_view actions : {"write", "create", "delete", "read,write"}) {
    const std::string text = "fs:" + std::string(actions) + ":/usr/local/x";
    EXPECT_EQ(verdict(text), "CAP_NEEDS_UNSAFE") << text;
    EXPECT_EQ(verdict(text + "?unsafe=true"), "ok") << text;
  }
  EXPECT_EQ(verdict("fs:write:/etc/hosts.allow"), "CAP_NEEDS_UNSAFE");
  EXPECT_EQ(verdict("fs:write:/bin/x"), "CAP_NEEDS_UNSAFE");
  EXPECT_EQ(verdict("fs:read:/usr/share"), "ok");
  EXPECT_EQ(verdict("fs:read:/etc/ssl/certs"), "ok");
}

TEST(Scope, UnsafeStaysASignOfDanger) {
  EXPECT_EQ(verdict("fs:read:/usr?unsafe=true"), "CAP_REFINEMENT");
  EXPECT_EQ(verdict("fs:write:/workspace?unsafe=true"), "CAP_REFINEMENT");
  EXPECT_EQ(verdict("env:read:TOKEN?unsafe=true"), "CAP_REFINEMENT");
  EXPECT_EQ(verdict("ipc:connect:x11?unsafe=true"), "CAP_REFINEMENT");
}

TEST(Scope, ThePrivateTmpHasNoEntriesToLookUp) {
  EXPECT_EQ(verdict("fs:read:/tmp"), "ok");
  EXPECT_EQ(verdict("fs:write:/tmp/**"), "ok");
  EXPECT_EQ(verdict("fs:read:/tmp/shared/*"), "ok");
  EXPECT_EQ(verdict("fs:read:/tmp/*"), "CAP_SCOPE_REFUSED");
  EXPECT_EQ(verdict("fs:read:/tmp/*.md"), "CAP_SCOPE_REFUSED");
}

TEST(Scope, KnowsWhatWrites) {
  using enum FsAction;
  EXPECT_FALSE(is_writing({read}));
  EXPECT_TRUE(is_writing({write}));
  EXPECT_TRUE(is_writing({create}));
  EXPECT_TRUE(is_writing({read, remove}));
}

TEST(Scope, OtherKindsHaveNoScopeToRefuse) {
  for (const std::string_view text : {"net:connect:*", "net:listen:80", "exec:spawn:sh",
                                      "clock:tzdata", "limit:pids:5", "assert:x"}) {
    EXPECT_EQ(verdict(text), "ok") << text;
  }
}

}  // namespace
}  // namespace capgate::core
