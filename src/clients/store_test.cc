#include "clients/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/format.h"
#include "clients/entry_point.h"
#include "clients/names.h"
#include "clients/registry.h"
#include "clients/tree.h"

namespace capgate::clients {
namespace {

namespace fs = std::filesystem;

const std::string tree_hash = "sha256:" + std::string(64, 'a');

LockedPackage locked(std::string name, std::string range = "", std::string version = "1.2.3") {
  return {.package = {.registry = Package::Registry::npm,
                      .name = std::move(name),
                      .range = std::move(range)},
          .version = std::move(version),
          .integrity = "sha512-abc",
          .tree = tree_hash,
          .runtime = "/usr/bin/node"};
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = fs::temp_directory_path() / "capgate-store-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~StoreTest() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) {
    const std::string path = root_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  [[nodiscard]] std::string hash() const { return hash_tree(root_).value(); }

  std::string root_;
};

// ---- the lock -----------------------------------------------------------------------------------

TEST(Lock, PrintsWhatItReads) {
  const Lock lock{
      .packages = {locked("@scope/name", "^1"), locked("@scope/name", "^2"), locked("time-mcp")}};
  const std::string text = print(lock);
  const auto again = parse_lock(text);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, lock);
  EXPECT_EQ(print(*again), text);
}

TEST(Lock, IsSortedHoweverItWasMade) {
  EXPECT_EQ(print(Lock{.packages = {locked("b"), locked("a")}}),
            print(Lock{.packages = {locked("a"), locked("b")}}));
}

TEST(Lock, RefusesWhatCapgateDidNotWrite) {
  const std::string good = print(Lock{.packages = {locked("a"), locked("b")}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return parse_lock(text).has_value();
  };
  EXPECT_TRUE(with("1.2.3", "1.2.4"));
  EXPECT_FALSE(with("\"schemaVersion\": 1", "\"schemaVersion\": 2"));
  EXPECT_FALSE(with("\"name\": \"a\"", "\"name\": \"b\""));  // twice
  EXPECT_FALSE(with("\"name\": \"a\"", "\"name\": \"c\""));  // not sorted
  EXPECT_FALSE(with("\"name\": \"a\"", "\"name\": \"../a\""));
  EXPECT_FALSE(with("\"name\": \"a\"", "\"name\": \"\""));
  EXPECT_FALSE(with("\"npm\"", "\"deb\""));
  EXPECT_FALSE(with("\"1.2.3\"", "\"../1\""));
  EXPECT_FALSE(with("sha256:a", "sha256:A"));
  EXPECT_FALSE(with("sha512-abc", "md5-abc"));
  EXPECT_FALSE(with("/usr/bin/node", "node"));
  EXPECT_FALSE(with("\"scripts\": false", "\"scripts\": 0"));
  EXPECT_FALSE(with("\"scripts\"", "\"script\""));
  for (const char* const text : {"", "[]", "{}", "{\"schemaVersion\": 1}"}) {
    EXPECT_FALSE(parse_lock(text).has_value()) << text;
  }
}

TEST(Lock, FindsTheVeryRequestElseTheNewestInRange) {
  const Lock lock{.packages = {locked("a", "^1", "1.9.0"), locked("a", "~1.10", "1.10.0"),
                               locked("a", "^2", "2.0.0"), locked("b", "latest", "3.0.0")}};
  const auto version = [&](const char* name, const char* range) -> std::string {
    const LockedPackage* found =
        find_locked(lock, {.registry = Package::Registry::npm, .name = name, .range = range});
    return found == nullptr ? "" : found->version;
  };
  EXPECT_EQ(version("a", "^1"), "1.9.0");
  EXPECT_EQ(version("a", "1.x"), "1.10.0");
  EXPECT_EQ(version("a", ""), "2.0.0");
  EXPECT_EQ(version("a", "latest"), "2.0.0");
  EXPECT_EQ(version("a", "^3"), "");
  EXPECT_EQ(version("b", ""), "3.0.0");
  EXPECT_EQ(version("c", ""), "");
  EXPECT_EQ(find_locked(lock, {.registry = Package::Registry::pypi, .name = "a"}), nullptr);
}

RC_GTEST_PROP(Lock, NoTextBreaksIt, (const std::string& text)) { (void)parse_lock(text); }

TEST(Names, CannotBePathsOptionsOrAddresses) {
  const auto npm = [](std::string name) { return is_name({.name = std::move(name)}); };
  EXPECT_TRUE(npm("time-mcp"));
  EXPECT_TRUE(npm("@scope/name.js"));
  for (const char* const name : {"", ".", "..", "../a", "a/b", "@a", "@/a", "@a/", "@a/b/c", "-a",
                                 "@a/..", "a b", "a\n", "git+ssh", "http:"}) {
    EXPECT_FALSE(npm(name)) << name;
  }
  EXPECT_FALSE(is_name({.registry = Package::Registry::pypi, .name = "@a/b"}));
  for (const char* const range : {"^1.2", ">=1 <2 || 3.x", "latest", "==2025.1", ">=1,<2"}) {
    EXPECT_TRUE(is_range(range)) << range;
  }
  for (const char* const range : {"git+https://x", "file:a", "npm:other", "../a", "-g", "@x"}) {
    EXPECT_FALSE(is_range(range)) << range;
  }
  EXPECT_TRUE(is_older("1.9.0", "1.10.0"));
  EXPECT_TRUE(is_older("1.0.0-beta.1", "1.0.0"));
  EXPECT_FALSE(is_older("1.0.0", "1.0.0"));
}

TEST(Registry, IsAnAddressAndNothingElse) {
  const auto capability = [](const char* url) -> std::string {
    const auto parsed = parse_registry(url);
    return parsed ? capability_for(*parsed) : "";
  };
  EXPECT_EQ(capability("https://registry.example.com/"),
            "net:connect:registry.example.com:443?private=true");
  EXPECT_EQ(capability("https://Registry.Example.com:8443/npm/"),
            "net:connect:registry.example.com:8443?private=true");
  EXPECT_EQ(capability("http://localhost:4873/"), "net:connect:localhost:4873");
  EXPECT_EQ(capability("http://127.0.0.1:4873"), "net:connect:127.0.0.1:4873");
  EXPECT_EQ(capability("http://[::1]:4873/"), "net:connect:[::1]:4873");
  for (const char* const url :
       {"", "registry.example.com", "ftp://a/", "file:///etc", "https://", "https:///a",
        "https://user:word@a/", "https://a:0/", "https://a:99999/", "https://a:b/", "https://*/",
        "https://a/?x=y", "https://a b/", "https://a\n/"}) {
    EXPECT_EQ(capability(url), "") << url;
  }
  EXPECT_FALSE(parse_registry("https://me:hunter2@a/").error().message.contains("hunter2"));
}

// ---- trees --------------------------------------------------------------------------------------

TEST_F(StoreTest, TheHashChangesWithEverythingOfATree) {
  const std::string file = write("a/b", "text");
  const std::string first = hash();
  EXPECT_TRUE(first.starts_with("sha256:"));
  EXPECT_EQ(hash(), first);
  write("a/b", "texts");
  EXPECT_NE(hash(), first) << "contents";
  write("a/b", "text");
  EXPECT_EQ(hash(), first);
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  EXPECT_NE(hash(), first) << "mode";
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  fs::rename(file, root_ + "/a/c");
  EXPECT_NE(hash(), first) << "name";
  fs::rename(root_ + "/a/c", file);
  fs::create_directory(root_ + "/empty");
  EXPECT_NE(hash(), first) << "an empty directory";
  fs::remove(root_ + "/empty");
  fs::create_symlink("b", root_ + "/a/link");
  const std::string linked = hash();
  EXPECT_NE(linked, first) << "a link";
  fs::remove(root_ + "/a/link");
  fs::create_symlink("./b", root_ + "/a/link");
  EXPECT_NE(hash(), linked) << "the target of a link";
}

TEST_F(StoreTest, WhatChangedAMomentAgoHasNoMark) {
  write("a/b", "text");
  const auto mark = mark_tree(root_);
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(*mark, "");
  EXPECT_FALSE(mark_tree(root_ + "/nothing").has_value());
}

// What nobody changes stays as it is.
TEST_F(StoreTest, AMarkStays) {
  const auto mark = mark_tree("/usr/include/linux");
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(mark->size(), std::string_view("sha256:").size() + 64);
  EXPECT_EQ(*mark_tree("/usr/include/linux"), *mark);
  EXPECT_NE(*mark_tree("/usr/include/asm-generic"), *mark);
}

TEST_F(StoreTest, SettlingClosesATreeToOthers) {
  write("dir/run.js", "x", 0777);
  write("dir/data", "x", 0666);
  ASSERT_EQ(::chmod((root_ + "/dir").c_str(), 0777), 0);
  fs::create_symlink("run.js", root_ + "/dir/link");
  fs::create_symlink("nowhere", root_ + "/dir/dangling");
  ASSERT_TRUE(settle_tree(root_).has_value());
  const auto mode = [&](const char* name) {
    struct stat info{};
    EXPECT_EQ(::lstat((root_ + "/" + name).c_str(), &info), 0);
    return info.st_mode & 07777U;
  };
  EXPECT_EQ(mode("dir"), 0700U);
  EXPECT_EQ(mode("dir/run.js"), 0700U);
  EXPECT_EQ(mode("dir/data"), 0600U);
}

// While a directory is renamed somewhere, the kernel does not know where a ".." leads.
TEST_F(StoreTest, OthersMayRenameMeanwhile) {
  write("package/run.js", "x");
  fs::create_directory(root_ + "/bin");
  for (int i = 0; i < 100; ++i) {
    fs::create_symlink("../package/run.js", format("{}/bin/link-{}", root_, i));
  }
  const std::string one = root_ + "-one";
  const std::string other = root_ + "-other";
  fs::create_directory(one);
  std::atomic<bool> is_over = false;
  std::thread renamer([&] {
    while (!is_over) {
      (void)::rename(one.c_str(), other.c_str());
      (void)::rename(other.c_str(), one.c_str());
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto settled = settle_tree(root_);
    EXPECT_TRUE(settled) << settled.error().message;
  }
  is_over = true;
  renamer.join();
  fs::remove(one);
}

TEST_F(StoreTest, HostileTreesAreRefused) {
  const auto refused = [&](const std::string& name) {
    const auto settled = settle_tree(root_);
    fs::remove(root_ + "/" + name);
    return settled ? std::string() : settled.error().message;
  };
  fs::create_directory(root_ + "/d");
  ASSERT_TRUE(settle_tree(root_).has_value());
  for (const char* const target : {"/etc/passwd", "../../etc/passwd", "..", "d/../.."}) {
    fs::create_symlink(target, root_ + "/link");
    EXPECT_TRUE(refused("link").contains("leads out")) << target;
  }
  // By its text this one stays inside.
  fs::create_symlink("..", root_ + "/d/up");
  fs::create_symlink("d/up/../x", root_ + "/link");
  EXPECT_TRUE(refused("link").contains("leads out"));
  write("root", "x", 04755);
  EXPECT_TRUE(refused("root").contains("run as its owner"));
  ASSERT_EQ(::mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(refused("pipe").contains("neither file nor directory"));
  write("a\nb", "x");
  EXPECT_FALSE(refused("a\nb").empty());
  EXPECT_TRUE(settle_tree(root_).has_value());
}

TEST_F(StoreTest, FilesOfATreeAreFoundInsideOnly) {
  write("pkg/dist/index.js", "x");
  write("outside", "x");
  const std::string package = root_ + "/pkg";
  EXPECT_EQ(file_inside(package, "./dist/../dist/index.js"), "dist/index.js");
  fs::create_symlink("../../outside", package + "/dist/out.js");
  for (const char* const path : {"", ".", "..", "../outside", "/etc/passwd", "dist", "dist/out.js",
                                 "missing", "dist/../../outside"}) {
    EXPECT_EQ(file_inside(package, path), "") << path;
  }
}

TEST_F(StoreTest, NamesOfADirectoryAreListed) {
  write("b", "x");
  write("a/c", "x");
  EXPECT_EQ(names_inside(root_, "."), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names_inside(root_, "a"), std::vector<std::string>{"c"});
  EXPECT_TRUE(names_inside(root_, "missing").empty());
}

TEST_F(StoreTest, ATreeIsRemovedHoweverDeepItIs) {
  const std::string tree = root_ + "/tree";
  fs::create_directories(tree + "/removed-0/a");
  std::ofstream(tree + "/removed-1") << "x";
  int at = ::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int level = 0; level < 3000; ++level) {
    ASSERT_EQ(::mkdirat(at, "d", 0700), 0);
    const int next = ::openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::fchmod(at, 0500), 0);
    ::close(at);
    at = next;
  }
  ::close(at);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const bool is_removed = remove_tree(tree);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_removed);
  EXPECT_FALSE(fs::exists(tree));
}

TEST_F(StoreTest, ATreeIsRemovedWithoutFollowingLinks) {
  write("keep/file", "x");
  write("tree/a/b", "x");
  fs::create_symlink(root_ + "/keep", root_ + "/tree/a/link");
  EXPECT_TRUE(remove_tree(root_ + "/tree"));
  EXPECT_FALSE(fs::exists(root_ + "/tree"));
  EXPECT_TRUE(fs::exists(root_ + "/keep/file"));
  EXPECT_TRUE(remove_tree(root_ + "/tree"));
}

// ---- entry points -------------------------------------------------------------------------------

using Words = std::vector<std::string>;

class EntryPointTest : public StoreTest {
 protected:
  Stored<Words> npm(const std::string& fields, const std::string& executable = "") {
    write("node_modules/@s/tool/package.json",
          format(R"({{"name": "@s/tool", "version": "1.2.3", {}}})", fields));
    return entry_point(root_, locked("@s/tool"), executable);
  }
  std::string file(const std::string& name, const std::string& text) {
    write("node_modules/@s/tool/" + name, text);
    return "/opt/capgate/package/node_modules/@s/tool/" + name;
  }
};

TEST_F(EntryPointTest, IsTheProgramOfThePackage) {
  const std::string one = file("dist/one.js", "#!/usr/bin/env node\n");
  const std::string two = file("two.mjs", "import 'x'\n");
  const std::string three = file("three", "#!/usr/bin/env -S node --no-warnings\n");
  file("four.sh", "#!/bin/sh -e\n");
  EXPECT_EQ(npm(R"("bin": "./dist/one.js")").value(), (Words{"/usr/bin/node", one}));
  EXPECT_EQ(npm(R"("bin": {"x": "dist/one.js"})").value(), (Words{"/usr/bin/node", one}));
  const std::string several = R"("bin": {"x": "dist/one.js", "tool": "two.mjs", "z": "three",
                                         "w": "four.sh"})";
  EXPECT_EQ(npm(several).value(), (Words{"/usr/bin/node", two}));
  EXPECT_EQ(npm(several, "x").value(), (Words{"/usr/bin/node", one}));
  EXPECT_EQ(npm(several, "z").value(), (Words{"/usr/bin/node", "--no-warnings", three}));
  EXPECT_TRUE(npm(several, "v").error().help.contains("x, tool, z, w"));
}

// A package's text chooses no program of the machine, least of all one of the caller's directory.
TEST_F(EntryPointTest, NoOtherInterpreterThanTheLockedOneIsTaken) {
  for (const char* line :
       {"#!bin/python3", "#!/home/me/project/bin/python3", "#!/bin/sh -e", "#!/usr/bin/env python3",
        "#!/usr/bin/env -S bin/sh -e", "#!node-evil", "#!/home/me/node/evil"}) {
    file("one.js", std::string(line) + "\n");
    const auto entry = npm(R"("bin": "one.js")");
    ASSERT_FALSE(entry.has_value()) << line;
    EXPECT_TRUE(entry.error().message.contains("asks to be run by")) << entry.error().message;
    EXPECT_TRUE(entry.error().help.contains("/usr/bin/node alone")) << entry.error().help;
  }
  // Any node is the locked one.
  for (const char* line : {"#!node", "#!bin/node", "#!/home/me/bin/node"}) {
    const std::string one = file("one.js", std::string(line) + "\n");
    EXPECT_EQ(npm(R"("bin": "one.js")").value(), (Words{"/usr/bin/node", one})) << line;
  }
}

TEST_F(EntryPointTest, HostileOnesAreRefused) {
  file("one.js", "#!/usr/bin/env node\n");
  file("binary",
       "\x7f"
       "ELF");
  write("node_modules/other.js", "x");
  for (const char* const bin :
       {R"("bin": "../../../../etc/passwd")", R"("bin": "/etc/passwd")",
        R"("bin": "../../other.js")", R"("bin": "..")", R"("bin": "missing.js")",
        R"("bin": "binary")", R"("bin": {})", R"("bin": {"a": "one.js", "b": "binary"})",
        R"("bin": 1)", R"("x": 1)"}) {
    EXPECT_FALSE(npm(bin).has_value()) << bin;
  }
}

TEST_F(EntryPointTest, AnotherVersionIsNotTheOneOfTheLock) {
  file("one.js", "#!/usr/bin/env node\n");
  ASSERT_TRUE(npm(R"("bin": "one.js")").has_value());
  auto other = locked("@s/tool", "", "1.2.4");
  EXPECT_TRUE(entry_point(root_, other, "").error().message.contains("not what was installed"));
}

TEST_F(EntryPointTest, OfPythonIsAFunction) {
  auto package = locked("my-tool", "", "2.0");
  package.package.registry = Package::Registry::pypi;
  package.runtime = "/usr/bin/python3";
  write("lib/My_Tool-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nVersion: 2.0\n\n");
  write("lib/My_Tool-2.0.dist-info/entry_points.txt",
        "[gui_scripts]\nmy-tool = no:no\n[console_scripts]\nmy-tool = tool.server:main [x]\n"
        "evil = os;x:main\n");
  write("launch.py", "x");
  EXPECT_EQ(entry_point(root_, package, "").value(),
            (Words{"/usr/bin/python3", "-I", "-S", "/opt/capgate/package/launch.py",
                   "tool.server:main"}));
  EXPECT_FALSE(entry_point(root_, package, "evil").has_value());
  package.version = "2.1";
  EXPECT_FALSE(entry_point(root_, package, "").has_value());
}

// ---- the store ----------------------------------------------------------------------------------

TEST_F(StoreTest, FindsWhatIsInstalledAndFits) {
  const Store store{.base = root_ + "/data"};
  const PackageCommand command{
      .package = {.name = "tool"}, .executable = "", .arguments = {"/srv"}};
  ASSERT_FALSE(find_installed(store, command).value().has_value());
  LockedPackage entry = locked("tool");
  entry.runtime = "/bin/sh";
  const std::string tree = store.directory_of(entry).substr(root_.size() + 1);
  write(tree + "/node_modules/tool/package.json",
        R"({"name": "tool", "version": "1.2.3", "bin": "a.js"})");
  write(tree + "/node_modules/tool/a.js", "#!/usr/bin/env node\n");
  write("data/capgate.lock", print(Lock{.packages = {entry}}));
  const auto found = find_installed(store, command);
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->command,
            (Words{"/bin/sh", "/opt/capgate/package/node_modules/tool/a.js", "/srv"}));
  EXPECT_FALSE(check_installed(store, entry).has_value()) << "the hash is another";
  entry.tree = hash_tree((*found)->directory).value();
  fs::rename((*found)->directory, store.directory_of(entry));
  EXPECT_TRUE(check_installed(store, entry).has_value());
  EXPECT_FALSE(find_installed(store, command).has_value()) << "its tree is gone";
  write("data/capgate.lock", print(Lock{.packages = {entry}}));
  ASSERT_TRUE(find_installed(store, command).has_value());
  ASSERT_EQ(::chmod(store.directory_of(entry).c_str(), 0777), 0);
  EXPECT_FALSE(find_installed(store, command).has_value()) << "others could have changed it";
}

}  // namespace
}  // namespace capgate::clients
