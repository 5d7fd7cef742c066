#include "lower/exports.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "core/grammar.h"
#include "core/merge.h"
#include "core/provenance.h"
#include "core/sensitive.h"
#include "support/manifests.h"
#include "text/json.h"

namespace capgate::lower {
namespace {

using support::Strings;

// Capabilities in a format, in one step.
class Exported {
 public:
  Exported(std::string_view format, const Strings& capabilities, Options options = {})
      : document_(*text::parse_json(support::manifest_json({capabilities}))),
        options_(std::move(options)) {
    core::Bindings bindings;
    if (!options_.home.empty()) bindings.push_back({.name = "HOME", .values = {options_.home}});
    auto manifest = core::parse_manifest(document_, bindings);
    EXPECT_TRUE(manifest) << manifest.error().front().message;
    manifest_ = *std::move(manifest);
    policy_ = *core::merge(manifest_);
    result_ = export_to(*find_exporter(format), {manifest_, policy_, options_}, document_.root());
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;
  ~Exported() = default;

  [[nodiscard]] std::string verdict() const {
    if (result_) return "ok";
    std::string out;
    for (const Diagnostic& mistake : result_.error()) {
      out += capgate::format("{}{}", out.empty() ? "" : " ", code_name(mistake.code));
    }
    return out;
  }
  [[nodiscard]] const Artifact& artifact() const { return *result_; }
  [[nodiscard]] const std::string& text() const { return result_->files.front().contents; }
  [[nodiscard]] text::Document file() const { return *text::parse_json(text()); }
  [[nodiscard]] const core::Manifest& manifest() const { return manifest_; }

  // "filesystem", "denyRead" -> its strings
  [[nodiscard]] Strings list(const Strings& keys) const {
    const text::Document document = file();
    text::Value value = document.root();
    for (const std::string& key : keys) {
      const auto found = value.find(key);
      if (!found) return {"none"};
      value = *found;
    }
    Strings out;
    for (const text::Value item : value.elements()) out.emplace_back(item.text());
    return out;
  }
  [[nodiscard]] bool has(const Strings& keys, const std::string& item) const {
    return contains(list(keys), item);
  }

 private:
  text::Document document_;
  Options options_;
  core::Manifest manifest_;
  core::Policy policy_;
  Checked<Artifact> result_;
};

Options accepting(const Strings& capabilities) {
  Options options;
  for (const std::string& text : capabilities) {
    options.accepted.push_back(print(core::parse_capability(text, {})->front()));
  }
  return options;
}

const Strings allowed{"network", "allowedDomains"};
const Strings deny_read{"filesystem", "denyRead"};
const Strings allow_read{"filesystem", "allowRead"};
const Strings allow_write{"filesystem", "allowWrite"};
const Strings deny_write{"filesystem", "denyWrite"};
const Strings hosts{"network", "outbound", "allow_host"};
const Strings ports{"network", "outbound", "allow_port"};

// Of each kind one that is refused where the table says that the kind is not kept.
TEST(Exports, KeepWhatTheirTableSays) {
  const std::pair<std::size_t, std::string> samples[] = {
      {2, "net:listen:8080"},   {3, "exec:spawn:git"},   {4, "env:inject:API_KEY"},
      {6, "ipc:connect:x11"},   {7, "clock:system"},     {7, "clock:tzdata"},
      {8, "limit:memory:512M"}, {9, "assert:a.b:\"c\""},
  };
  for (const Exporter& exporter : exporters()) {
    const auto covers = columns_of(*exporter.coverage);
    for (const auto& [column, capability] : samples) {
      const Exported got(exporter.name, {capability});
      const Cover::Level level = covers[column].level;
      if (level == Cover::Level::enforced) {
        EXPECT_EQ(got.verdict(), "ok") << exporter.name << " " << capability;
      } else {
        EXPECT_EQ(got.verdict(), "ADAPTER_UNSUPPORTED") << exporter.name << " " << capability;
        const Exported forced(exporter.name, {capability}, accepting({capability}));
        ASSERT_EQ(forced.verdict(), "ok") << exporter.name << " " << capability;
        EXPECT_EQ(forced.artifact().unenforced, Strings{capability});
      }
    }
  }
}

TEST(Exports, KindsThatAFormatDoesNotKnowAreListedWhateverThePolicyHolds) {
  const Exported srt("srt", {});
  EXPECT_EQ(srt.artifact().not_covered,
            (Strings{"net:listen", "exec", "env", "env sealed", "ipc", "limit"}));
  const Exported vscode("vscode", {});
  EXPECT_EQ(vscode.artifact().not_covered,
            (Strings{"fs:read", "net:listen", "exec", "env", "env sealed", "ipc", "limit"}));
  EXPECT_EQ(Exported("toolhive", {}).artifact().not_covered,
            (Strings{"net:listen", "exec", "env sealed", "limit"}));
  EXPECT_TRUE(Exported("mcpb-meta", {}).artifact().not_covered.empty());
}

TEST(Exports, WhatIsAcceptedInVainIsRefused) {
  for (const Exporter& exporter : exporters()) {
    EXPECT_EQ(Exported(exporter.name, {}, accepting({"clock:system"})).verdict(), "ACCEPT_UNUSED");
  }
}

TEST(Exports, SealedVariablesAreRefusedWhereTheServerWouldHoldThem) {
  const std::string sealed = "env:inject:KEY?to=api.example.com:443";
  const std::string host = "net:connect:api.example.com:443";
  EXPECT_EQ(Exported("srt", {sealed, host}).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Exported("toolhive", {sealed, host}).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Exported("mcpb-meta", {sealed, host}).verdict(), "ok");
}

TEST(Srt, IsClosedWithoutAnyCapability) {
  const Exported srt("srt", {});
  EXPECT_EQ(srt.list(allowed), Strings{});
  EXPECT_EQ(srt.list(deny_read), (Strings{"/", "/sys"}));
  EXPECT_EQ(srt.list(allow_write), Strings{});
  EXPECT_EQ(srt.list(deny_write), Strings{"/tmp/claude"});
  EXPECT_TRUE(srt.has({"network", "deniedResolvedAddresses"}, "10.0.0.0/8"));
  for (const std::string& path : srt.list(allow_read)) {
    EXPECT_TRUE(path.starts_with("/usr") || path.starts_with("/etc/") || path.starts_with("/lib") ||
                path == "/bin" || path == "/sbin")
        << path;
  }
}

TEST(Srt, HostsKeepTheirPorts) {
  const Exported srt("srt", {"net:connect:api.example.com:443", "net:connect:*.example.org:8443",
                             "net:connect:203.0.113.7", "net:connect:[2001:db8::1]:22",
                             "net:connect:localhost:5432"});
  ASSERT_EQ(srt.verdict(), "ok");
  for (const std::string item : {"api.example.com:443", "*.example.org:8443", "203.0.113.7",
                                 "[2001:db8::1]:22", "localhost:5432"}) {
    EXPECT_TRUE(srt.has(allowed, item)) << item;
  }
  EXPECT_TRUE(srt.has(allow_read, "/tmp/claude-http-*.sock"));
}

TEST(Srt, TheProxysSocketIsWhereItsTmpdirIs) {
  const Exported srt("srt", {"net:connect:api.example.com:443"}, {.runtime_dir = "/run/user/1000"});
  EXPECT_TRUE(srt.has(allow_read, "/run/user/1000/claude-http-*.sock"));
  EXPECT_FALSE(srt.has(allow_read, "/tmp/claude-http-*.sock"));
}

TEST(Srt, HostsThatItDoesNotTakeAreLeftOut) {
  for (const std::string host : {"net:connect:*", "net:connect:*:443", "net:connect:*.dev:443",
                                 "net:connect:registry:5000"}) {
    EXPECT_EQ(Exported("srt", {host}).verdict(), "ADAPTER_UNSUPPORTED") << host;
    EXPECT_EQ(Exported("srt", {host}, accepting({host})).list(allowed), Strings{}) << host;
  }
}

TEST(Srt, RequestsAreNotLookedAt) {
  for (const std::string host :
       {"net:connect:a.example:80?methods=GET", "net:connect:a.example:443?sni=strict",
        "net:connect:a.example:443?proto=tls"}) {
    EXPECT_EQ(Exported("srt", {host}).verdict(), "ADAPTER_UNSUPPORTED") << host;
  }
  EXPECT_EQ(Exported("srt", {"net:connect:a.example:443?sni=any"}).verdict(), "ok");
}

TEST(Srt, PrivateAddressesAreOpenForAllNamesOrForNone) {
  const Strings closed{"network", "deniedResolvedAddresses"};
  const std::string open = "net:connect:db.corp.example:5432?private=true";
  const Exported alone("srt", {open, "net:connect:203.0.113.7:443"});
  ASSERT_EQ(alone.verdict(), "ok");
  EXPECT_FALSE(alone.has(closed, "10.0.0.0/8"));
  EXPECT_TRUE(alone.has(closed, "127.0.0.0/8"));
  EXPECT_TRUE(alone.has(closed, "169.254.0.0/16"));
  const Strings both{open, "net:connect:a.example:443"};
  EXPECT_EQ(Exported("srt", both).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_TRUE(Exported("srt", both, accepting({open})).has(closed, "10.0.0.0/8"));
}

// Node takes every IPv4 address for one of ::ffff:0:0/96, so that ::/8 would close all of them.
TEST(Srt, NoBlockHoldsTheMappedAddresses) {
  const Exported srt("srt", {});
  const Strings blocks = srt.list({"network", "deniedResolvedAddresses"});
  EXPECT_FALSE(contains(blocks, "::/8"));
  EXPECT_TRUE(contains(blocks, "::/81"));
  EXPECT_TRUE(contains(blocks, "::fffe:0:0/96"));
  EXPECT_FALSE(contains(blocks, "::ffff:0:0/96"));
}

TEST(Srt, FilesAreAnAllowlist) {
  const Exported srt("srt", {"fs:read:/srv/data/**", "fs:read:/srv/notes", "fs:write:/w/**"});
  ASSERT_EQ(srt.verdict(), "ok");
  EXPECT_TRUE(srt.has(allow_read, "/srv/data"));
  EXPECT_TRUE(srt.has(allow_read, "/srv/notes"));
  EXPECT_EQ(srt.list(allow_write), Strings{"/w"});
  EXPECT_TRUE(srt.has(allow_read, "/w"));  // `/` is denied
  EXPECT_TRUE(srt.has(deny_write, "/w/.git/hooks"));
  EXPECT_TRUE(srt.has(deny_read, "/w/.env"));
  EXPECT_FALSE(srt.has(allow_read, "/tmp/claude-http-*.sock"));
}

TEST(Srt, WhatIsGrantedByNameIsNotHidden) {
  const Exported srt(
      "srt", {"fs:write:/w/**", "fs:write:/w/.vscode/**", "fs:read:/w2/**", "fs:read:/w2/.env"});
  EXPECT_FALSE(srt.has(deny_write, "/w/.vscode"));
  EXPECT_FALSE(srt.has(deny_read, "/w2/.env"));
  EXPECT_TRUE(srt.has(deny_read, "/w2/id_rsa"));
}

TEST(Srt, CredentialsStayHidden) {
  const Exported srt("srt", {"fs:read:/home/u/.local/share/**"}, {.home = "/home/u"});
  EXPECT_TRUE(srt.has(deny_read, "/home/u/.local/share/keyrings"));
}

TEST(Srt, ThePrivateTmpNeedsNoWords) {
  const Exported srt("srt", {"fs:write:/tmp/**"});
  ASSERT_EQ(srt.verdict(), "ok");
  EXPECT_EQ(srt.list(allow_write), Strings{});
}

TEST(Srt, RefusesWhatItCannotSayOfFiles) {
  for (const Strings& capabilities :
       {Strings{"fs:create:/w/**"}, Strings{"fs:delete:/w/**"}, Strings{"fs:write:/w/*.md"},
        Strings{"fs:read:/w/*.md"}, Strings{"fs:read:/w/**", "fs:write:/w/out/**"}}) {
    EXPECT_EQ(Exported("srt", capabilities).verdict(), "ADAPTER_UNSUPPORTED")
        << capabilities.front();
  }
}

TEST(Srt, ProgramsStayVisible) {
  const Exported srt("srt", {}, {.programs = {"/opt/srt"}});
  EXPECT_TRUE(srt.has(allow_read, "/opt/srt"));
}

TEST(VsCode, PortsAndReadsMustBeAccepted) {
  EXPECT_EQ(Exported("vscode", {"net:connect:a.example:443"}).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Exported("vscode", {"fs:read:/w/**"}).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Exported("vscode", {"fs:write:/tmp/**"}).verdict(), "ADAPTER_UNSUPPORTED");
  const Exported vscode("vscode", {"fs:write:/w/**", "net:connect:a.example"},
                        {.command = {"node", "server.js"}});
  ASSERT_EQ(vscode.verdict(), "ok");
  EXPECT_EQ(vscode.list({"sandbox", "network", "allowedDomains"}), Strings{"a.example"});
  EXPECT_EQ(vscode.list({"sandbox", "filesystem", "allowWrite"}), Strings{"/w"});
  EXPECT_TRUE(vscode.has({"sandbox", "filesystem", "denyWrite"}, "/w/.vscode"));
  EXPECT_TRUE(vscode.has({"sandbox", "filesystem", "denyRead"}, "~/.ssh"));
  EXPECT_NE(vscode.text().find("\"sandboxEnabled\": true"), std::string::npos);
  EXPECT_NE(vscode.text().find("\"command\": \"node\""), std::string::npos);
}

TEST(VsCode, SaysThatItAsksNobody) {
  const Exported vscode("vscode", {});
  EXPECT_TRUE(std::ranges::any_of(vscode.artifact().notes, [](const std::string& note) {
    return note.contains("asks nobody before it calls a tool");
  }));
}

TEST(ToolHive, HostsWithTheSamePortsAreExact) {
  const Exported toolhive("toolhive", {"net:connect:a.example:443", "net:connect:b.example:443",
                                       "net:connect:a.example:80", "net:connect:b.example:80"});
  ASSERT_EQ(toolhive.verdict(), "ok");
  EXPECT_EQ(toolhive.list(hosts), (Strings{"a.example", "b.example"}));
  EXPECT_EQ(toolhive.list(ports), (Strings{"80", "443"}));
}

TEST(ToolHive, HostsThatWouldGetMorePortsAreRefused) {
  const Strings pairs{"net:connect:a.example:443", "net:connect:b.example:443",
                      "net:connect:b.example:80"};
  EXPECT_EQ(Exported("toolhive", pairs).verdict(), "ADAPTER_UNSUPPORTED");
  const Exported forced("toolhive", pairs, accepting({"net:connect:a.example:443"}));
  ASSERT_EQ(forced.verdict(), "ok");
  EXPECT_EQ(forced.artifact().unenforced, Strings{"net:connect:a.example:443"});
  const Strings every{"net:connect:a.example:443", "net:connect:b.example"};
  const Exported open("toolhive", every, accepting({"net:connect:a.example:443"}));
  ASSERT_EQ(open.verdict(), "ok");
  EXPECT_EQ(open.list(ports), Strings{});
}

TEST(ToolHive, AWildcardHoldsItsApexThere) {
  const std::string below = "net:connect:*.example.com:443";
  EXPECT_EQ(Exported("toolhive", {below}).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Exported("toolhive", {below}, accepting({below})).list(hosts), Strings{".example.com"});
}

TEST(ToolHive, EveryHostIsAllOrAnEmptyList) {
  const Exported all("toolhive", {"net:connect:*"}, accepting({"net:connect:*"}));
  EXPECT_NE(all.text().find("\"insecure_allow_all\": true"), std::string::npos);
  const Exported port("toolhive", {"net:connect:*:443"}, accepting({"net:connect:*:443"}));
  EXPECT_NE(port.text().find("\"insecure_allow_all\": false"), std::string::npos);
  EXPECT_EQ(port.list(hosts), Strings{});
  EXPECT_EQ(port.list(ports), Strings{"443"});
  const Strings mixed{"net:connect:*:443", "net:connect:a.example:80"};
  EXPECT_EQ(Exported("toolhive", mixed).verdict(), "ADAPTER_UNSUPPORTED ADAPTER_UNSUPPORTED");
}

TEST(ToolHive, LocalhostIsTheProxysOwn) {
  for (const std::string host : {"net:connect:localhost:5432", "net:connect:127.0.0.1:80"}) {
    EXPECT_EQ(Exported("toolhive", {host}).verdict(), "ADAPTER_UNSUPPORTED");
    const Exported forced("toolhive", {host}, accepting({host}));
    EXPECT_EQ(forced.list(hosts), Strings{});
    EXPECT_EQ(forced.list(ports), Strings{}) << "ports without hosts would be every host";
  }
}

TEST(ToolHive, GrantsAreMounts) {
  const Exported toolhive("toolhive", {"fs:read:/srv/data/**", "fs:write:/w", "env:inject:KEY"});
  ASSERT_EQ(toolhive.verdict(), "ok");
  EXPECT_EQ(toolhive.list({"read"}), Strings{"/srv/data"});
  EXPECT_EQ(toolhive.list({"write"}), Strings{"/w"});
  EXPECT_EQ(toolhive.artifact().env_injections, Strings{"KEY"});
  EXPECT_NE(toolhive.text().find("\"privileged\": false"), std::string::npos);
  for (const std::string path : {"fs:read:\"/a:b\"", "fs:read:/w/*.md", "fs:create:/w/**"}) {
    EXPECT_EQ(Exported("toolhive", {path}).verdict(), "ADAPTER_UNSUPPORTED") << path;
  }
}

TEST(ToolHive, WhatASandboxHidesInsideOfAMountIsNamed) {
  const auto noted = [](const Exported& exported) {
    const Strings notes = exported.artifact().notes;
    const auto found = std::ranges::find_if(
        notes, [](const std::string& note) { return note.starts_with("fs: a mount hides"); });
    return found == notes.end() ? std::string() : *found;
  };
  const std::string open = noted(Exported("toolhive", {"fs:read:/srv/a/**"}));
  for (const std::string_view name : core::workspace_secret_names()) {
    EXPECT_TRUE(open.contains(name)) << name;
  }
  const std::string named =
      noted(Exported("toolhive", {"fs:read:/srv/a/**", "fs:read:/srv/a/id_rsa"}));
  EXPECT_TRUE(named.contains(".env,")) << named;
  EXPECT_EQ(noted(Exported("toolhive", {"net:connect:a.example:443", "fs:write:/tmp/**"})), "");
}

TEST(Meta, CarriesTheManifestWithItsHash) {
  const Exported meta("mcpb-meta",
                      {"fs:read:/srv/**", "net:connect:*.example.com:443", "limit:memory:1G",
                       "env:inject:KEY?to=api.example.com:443", "net:connect:api.example.com:443"});
  ASSERT_EQ(meta.verdict(), "ok");
  EXPECT_TRUE(meta.artifact().unenforced.empty());
  const text::Document document = meta.file();
  const auto own = document.root().find("dev.capgate/permissions");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->find("schemaVersion")->text(), "1");
  EXPECT_EQ(core::manifest_hash(*own->find("manifest")), meta.manifest().hash);
}

}  // namespace
}  // namespace capgate::lower
