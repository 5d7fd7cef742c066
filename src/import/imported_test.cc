#include "import/imported.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "core/grammar.h"
#include "core/manifest.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

const ImportPlace place{
    .file = "dir/github.json", .directory = "/srv/project", .home = "/home/me", .server = ""};

// Every variable bound, so that the whole manifest is read.
Checked<core::Manifest> parse(const Imported& imported) {
  auto document = text::parse_json(print_manifest(imported));
  if (!document) return std::unexpected(std::move(document).error());
  core::Bindings bindings;
  for (const std::string& name : imported.variables) {
    bindings.push_back({.name = name, .values = {"/srv/bound"}});
  }
  return core::parse_manifest(*document, bindings);
}

std::string losses(const Imported& imported) {
  std::string out;
  for (const Loss& loss : imported.losses) {
    out += std::string(kind_name(loss.kind)) + " " + loss.subject + ": " + loss.message + "\n";
  }
  return out;
}

Imported finish(Collector collector) {
  collector.name("s");
  collector.version("1");
  return std::move(collector).take();
}

using Texts = std::vector<std::string>;

TEST(Imported, CapabilitiesAreCanonicalSortedAndDistinct) {
  Collector out("x", place);
  EXPECT_TRUE(out.grant("net:connect:API.GitHub.com:443", "a"));
  EXPECT_TRUE(out.grant("fs:write,read:/srv//b/./**", "a"));
  EXPECT_TRUE(out.grant("net:connect:api.github.com:443", "b"));
  const Imported imported = finish(std::move(out));
  EXPECT_EQ(imported.capabilities,
            (Texts{"fs:read,write:/srv/b/**", "net:connect:api.github.com:443"}));
  EXPECT_EQ(losses(imported), "");
  EXPECT_TRUE(parse(imported));
}

TEST(Imported, PathsStartAtTheRootAtHomeOrAtTheFile) {
  Collector out("x", place);
  out.grant_path(Access::read, "/opt/data/", "p");
  out.grant_path(Access::write, "~/notes", "p");
  out.grant_path(Access::read_write, "./out", "p");
  out.grant_path(Access::read, "/opt/with space:colon", "p");
  EXPECT_EQ(finish(std::move(out)).capabilities,
            (Texts{"fs:read,write:/srv/project/out", "fs:read:\"/opt/with space:colon\"",
                   "fs:read:/opt/data/**", "fs:write:/home/me/notes"}));
}

TEST(Imported, AHostWithoutAPortIsEveryPortAndSaidSo) {
  Collector out("x", place);
  EXPECT_TRUE(out.grant_host("api.github.com", "hosts"));
  EXPECT_TRUE(out.grant_host("files.example.org:443", "hosts"));
  EXPECT_TRUE(out.grant_host("*.example.com", "hosts"));
  const Imported imported = finish(std::move(out));
  EXPECT_EQ(imported.capabilities, (Texts{"net:connect:*.example.com", "net:connect:api.github.com",
                                          "net:connect:files.example.org:443"}));
  ASSERT_EQ(imported.losses.size(), 2U);
  EXPECT_TRUE(losses(imported).starts_with(
      "assumed hosts: \"api.github.com\" has no port, so every port of it may be reached; write "
      "net:connect:api.github.com:443"))
      << losses(imported);
}

TEST(Imported, WhatCannotBeGrantedIsDroppedAndSaidSo) {
  Collector out("x", place);
  EXPECT_FALSE(out.grant_path(Access::read, "/", "read"));
  EXPECT_FALSE(out.grant_path(Access::read, "/a/../etc", "read"));
  EXPECT_FALSE(out.grant_path(Access::read, "/a/${HOME}", "read"));
  EXPECT_FALSE(out.grant_path(Access::write, "/usr/lib", "write"));
  EXPECT_FALSE(out.grant_host("https://x.example/y", "hosts"));
  EXPECT_FALSE(out.grant_host("x.example:443?private=true", "hosts"));
  EXPECT_FALSE(out.grant_host("${HOST}", "hosts"));
  EXPECT_FALSE(out.grant_env(core::EnvCapability::Action::inject, "LD_PRELOAD", "env"));
  EXPECT_FALSE(out.grant_env(core::EnvCapability::Action::inject, "A?unsafe=true", "env"));
  EXPECT_FALSE(out.grant_env(core::EnvCapability::Action::inject, "", "env"));
  EXPECT_FALSE(out.grant_program("git?nestedSandbox=true", "run"));
  EXPECT_FALSE(out.grant_program("/bin/sh", "run"));
  const Imported imported = finish(std::move(out));
  EXPECT_EQ(imported.capabilities, Texts{});
  EXPECT_EQ(imported.losses.size(), 12U) << losses(imported);
  EXPECT_TRUE(std::ranges::all_of(
      imported.losses, [](const Loss& loss) { return loss.kind == Loss::Kind::dropped; }));
}

TEST(Imported, VariablesAreNamedAfterTheirKeys) {
  Collector out("x", place);
  EXPECT_EQ(out.variable("allowed-dirs"), "ALLOWED_DIRS");
  EXPECT_EQ(out.variable("allowed_dirs"), "ALLOWED_DIRS_2");
  EXPECT_EQ(out.variable("allowed-dirs"), "ALLOWED_DIRS");
  EXPECT_EQ(out.variable("allowed.dirs"), "ALLOWED_DIRS_3");
  EXPECT_EQ(out.variable("allowed_dirs_4"), "ALLOWED_DIRS_4");
  EXPECT_EQ(out.variable("allowed/dirs"), "ALLOWED_DIRS_5");
  EXPECT_EQ(out.variable("home"), "USER_HOME");
  out.reserve("BUNDLE");
  EXPECT_EQ(out.variable("bundle"), "BUNDLE_2");
  EXPECT_EQ(out.variable("1st"), "_1ST");
  out.grant("fs:read:${ALLOWED_DIRS}/**", "user_config.allowed-dirs");
  const Imported imported = finish(std::move(out));
  EXPECT_EQ(imported.variables, Texts{"ALLOWED_DIRS"});
  EXPECT_TRUE(parse(imported));
}

TEST(Imported, ToolsKeepTheirOwn) {
  Collector out("x", place);
  out.tool("read", "Reads.");
  out.grant("fs:read:/srv/a", "tools.read");
  out.tool("write", "");
  out.tool("read", "Reads again.");
  out.grant("fs:read:/srv/b", "tools.read");
  out.tool("bad\nname", "");
  const Imported imported = finish(std::move(out));
  ASSERT_EQ(imported.tools.size(), 2U);
  EXPECT_EQ(imported.tools[0].capabilities, (Texts{"fs:read:/srv/a", "fs:read:/srv/b"}));
  EXPECT_EQ(imported.tools[0].description, "Reads.");
  EXPECT_EQ(imported.losses.size(), 2U) << losses(imported);
}

TEST(Imported, WhatHasNoNameIsCalledAfterItsFile) {
  const Imported imported = Collector("x", place).take();
  EXPECT_EQ(imported.name, "github");
  EXPECT_EQ(imported.version, "0.0.0");
  EXPECT_EQ(imported.losses.size(), 2U);
  EXPECT_EQ(name_of_file("-"), "imported-server");
  EXPECT_EQ(name_of_file("a/.hidden"), ".hidden");
  EXPECT_EQ(name_of_file("a/b.tar.json"), "b.tar");
  EXPECT_EQ(name_of_file("a\n.json"), "imported-server");
}

// Whatever a source says, the manifest parses, and holds nothing that was not granted.
RC_GTEST_PROP(ImportedProperty, EveryManifestParses, ()) {
  Collector out("x", place);
  out.name(*rc::gen::arbitrary<std::string>());
  out.version(*rc::gen::arbitrary<std::string>());
  const auto piece = rc::gen::element<std::string>(
      "/", "..", "a", "srv", "~", "$", "{", "}", "HOME", "*", "?", "unsafe=true", "\"", "\\", ":",
      "443", "example.com", " ", "\n", "[", "]", "\xff", "_");
  const auto text = rc::gen::map(rc::gen::container<Texts>(piece),
                                 [](const Texts& pieces) { return join(pieces, ""); });
  const int steps = *rc::gen::inRange(0, 20);
  for (int i = 0; i < steps; ++i) {
    const std::string said = *text;
    switch (*rc::gen::inRange(0, 7)) {
      case 0: out.grant_path(Access::read, said, "p"); break;
      case 1: out.grant_path(Access::read_write, "/srv/" + said, "p"); break;
      case 2: out.grant_host(said, "h"); break;
      case 3: out.grant_env(core::EnvCapability::Action::inject, said, "e"); break;
      case 4: out.grant_program(said, "x"); break;
      case 5: out.tool(said, said); break;
      default: out.grant("fs:read:${" + out.variable(said) + "}", "v"); break;
    }
  }
  const Imported imported = std::move(out).take();
  const auto manifest = parse(imported);
  RC_ASSERT(manifest.has_value());
  RC_ASSERT(std::ranges::is_sorted(imported.capabilities));
  RC_ASSERT(manifest->tools.size() == imported.tools.size());
}

}  // namespace
}  // namespace capgate::imports
