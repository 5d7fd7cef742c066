// What the tests of `capgate diff` share: a manifest, the words that each target needs, and how to
// compare.
#pragma once

#include <algorithm>
#include <map>

#include "support/cli.h"

namespace capgate::support {

// One part of an artifact, an entry or a lock that changed.
struct Part {
  std::string kind;
  std::string part;
  std::string shown;  // before, or after where there was none
  std::string cause;  // the capability, or why there is none

  friend bool operator==(const Part&, const Part&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Part& one) {
    return out << one.kind << ", " << one.part << ", " << one.shown << ", " << one.cause;
  }
};

inline const std::map<std::string, Words>& words_of_targets() {
  static const std::map<std::string, Words> all = {
      {"apparmor", {}},
      {"bwrap", {}},
      {"compose", {"--image", "server:1", "--broker-image", "capgate:1", "--", "node"}},
      {"docker", {"--user", "1001:1001"}},
      {"egress", {"--egress-target", "squid"}},
      {"firejail", {}},
      {"kubernetes",
       {"--image", "server:1", "--broker-image", "capgate:1", "--network-policy", "cilium", "--",
        "node"}},
      {"landlock", {}},
      {"oci", {"--", "/usr/bin/node"}},
      {"plan", {"--arch", "aarch64"}},
      {"podman", {"--rootful"}},
      {"seatbelt", {"--script", "--egress-port", "4000"}},
      {"seccomp", {}},
      {"systemd", {"--", "/usr/bin/node", "a b"}},
      {"worker", {}}};
  return all;
}

class DiffTest : public CliTest {
 protected:
  struct Compared {
    int code = 0;
    Json json;
  };

  DiffTest() { file("notes.json", manifest()); }

  [[nodiscard]] static Json manifest() {
    return Json::parse(R"({"name": "notes", "version": "1",
      "serverCapabilities": ["fs:read:/srv/notes/**"], "tools": [{"name": "fetch",
      "capabilities": ["net:connect:api.example.com:443", "env:inject:TOKEN",
                       "assert:data.stays:\"here\""]}]})");
  }

  [[nodiscard]] Ran diff(const Words& words, const Inherited& inherited = {}) const {
    return run(joined({"diff"}, words), inherited);
  }
  [[nodiscard]] Compared compare(const Words& words) const {
    const Ran done = diff(joined(words, {"--json"}));
    EXPECT_NE(done.out, "") << done;
    return {.code = done.code, .json = done.json()};
  }

  [[nodiscard]] Json compile(const Words& words = {}, const std::string& of = "notes.json") const {
    const Ran done = run(joined({"compile", of}, words));
    EXPECT_EQ(done.code, 0) << done;
    return done.json();
  }
  // Compiles and accepts whatever this target cannot enforce.
  [[nodiscard]] Json compile_accepting(const std::string& target, const Words& words) const {
    Words accepted;
    for (int round = 0; round < 20; ++round) {
      const Ran done = run(
          joined(joined({"compile", "notes.json", "--target", target, "--json"}, accepted), words));
      if (done.code == 0) return done.json();
      EXPECT_EQ(done.code, 4) << done;
      for (const Json& mistake : done.json()["diagnostics"].items()) {
        const std::string& help = mistake["help"].text();
        EXPECT_TRUE(has(help, "--accept-unenforced"));
        const std::size_t begin = help.find('\'') + 1;
        accepted.insert(accepted.end(), {"--accept-unenforced",
                                         help.substr(begin, help.find('\'', begin) - begin)});
      }
    }
    ADD_FAILURE() << target << " still refuses";
    return {};
  }

  // The parts of the only server, of these kinds or of every kind.
  [[nodiscard]] static std::vector<Part> parts(const Json& json, const Words& kinds = {}) {
    std::vector<Part> out;
    EXPECT_EQ(json["servers"].size(), 1U);
    for (const Json& each : json["servers"][0]["parts"].items()) {
      const std::string& kind = each["kind"].text();
      if (!kinds.empty() && std::ranges::find(kinds, kind) == kinds.end()) continue;
      out.push_back({.kind = kind,
                     .part = each["part"].text(),
                     .shown = first_text(each["before"], each["after"]),
                     .cause = first_text(each["capability"], each["why"])});
    }
    return out;
  }
  // Kind and capability of each change of a server or a tool.
  [[nodiscard]] static std::vector<std::pair<std::string, std::string>> changes(const Json& of) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Json& each : of["changes"].items()) {
      out.emplace_back(each["kind"].text(), each["capability"].text());
    }
    return out;
  }

 private:
  [[nodiscard]] static std::string first_text(const Json& one, const Json& other) {
    return one.text().empty() ? other.text() : one.text();
  }
};

}  // namespace capgate::support
