#include "review/schema_capability.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "review/schema_patterns.h"

namespace capgate::review {
namespace {

using List = SchemaValue::List;
using Object = SchemaValue::Object;

struct Sample {
  std::string_view kind;
  std::string_view text;     // a capability
  std::string_view snippet;  // the same with places to fill in
  std::string_view meaning;
};

constexpr std::array<Sample, 21> samples = {{
    {"fs", "fs:read:/workspace/**", "fs:read:${1:/workspace}/**",
     "Read and list a directory with everything below."},
    {"fs", "fs:write:/workspace/**", "fs:write:${1:/workspace}/**",
     "Read, change, create, rename and remove below a directory."},
    {"fs", "fs:create:/workspace/out/**", "fs:create:${1:/workspace/out}/**",
     "Read, add and change below a directory, but remove nothing."},
    {"fs", "fs:read:/workspace/*.md", "fs:read:${1:/workspace}/*.${2:md}",
     "Read direct entries of a directory, looked up when the sandbox starts."},
    {"net-connect", "net:connect:api.example.com:443", "net:connect:${1:api.example.com}:${2:443}",
     "Connect to one host and port."},
    {"net-connect", "net:connect:*.example.com:443", "net:connect:*.${1:example.com}:${2:443}",
     "Connect to every host below a name, not to the name itself."},
    {"net-connect", "net:connect:localhost:5432", "net:connect:localhost:${1:5432}",
     "Connect to a port of this machine's loopback."},
    {"net-connect", "net:connect:git.corp.example.com:443?private=true",
     "net:connect:${1:git.corp.example.com}:${2:443}?private=true",
     "Connect to a host whose name leads into a private network."},
    {"net-listen", "net:listen:8080", "net:listen:${1:8080}", "Accept connections on a port."},
    {"exec", "exec:spawn:git", "exec:spawn:${1:git}",
     "Start a program, found by its name in the system's own directories."},
    {"env", "env:read:LANG", "env:read:${1:LANG}",
     "Take a variable of the launcher that is no secret."},
    {"env", "env:inject:GITHUB_TOKEN?to=api.github.com:443",
     "env:inject:${1:GITHUB_TOKEN}?to=${2:api.github.com}:${3:443}",
     "A sealed secret: the server holds a placeholder, the broker sends the value to this endpoint "
     "alone."},
    {"env", "env:inject:DATABASE_URL", "env:inject:${1:DATABASE_URL}",
     "A secret that the server itself holds in its environment."},
    {"ipc", "ipc:connect:\"unix:/run/app.sock\"", "ipc:connect:\"unix:${1:/run/app.sock}\"",
     "Connect to a Unix socket."},
    {"ipc", "ipc:connect:\"dbus:session\"", "ipc:connect:\"dbus:session\"",
     "Connect to the session bus."},
    {"clock", "clock:system", "clock:system", "Read the system's clock."},
    {"clock", "clock:tzdata", "clock:tzdata", "Read the time zones."},
    {"limit", "limit:memory:512M", "limit:memory:${1:512M}", "At most so much memory."},
    {"limit", "limit:pids:64", "limit:pids:${1:64}", "At most so many processes and threads."},
    {"limit", "limit:time:30s", "limit:time:${1:30s}", "At most so much time."},
    {"assert", "assert:fetch.block_rfc1918", "assert:${1:fetch.block_rfc1918}",
     "A promise about the server; this one capgate keeps itself: no private address is reached."},
}};

struct Words {
  std::string_view kind;
  std::string_view text;
};
constexpr Words words[] = {
    {"fs",
     "Files. `fs:ACTIONS:PATH`\n\n- `read`: read and list\n- `write`: read, change, create, "
     "rename, "
     "remove\n- `create`: read, add and change, but not remove\n- `delete`: read and "
     "remove\n\n`/dir/**` is a directory with everything below, `/dir/*.md` direct entries."},
    {"net-connect",
     "Connections. `net:connect:HOST[:PORT]`\n\nHOST is a name, `*.name` (below it), `*` (every "
     "public host), an IPv4 address or `[IPv6]`. Refinements: `sni=any|strict` "
     "`proto=tcp|tls|http` `methods=GET,POST` `paths=/v1/**` `private=true`."},
    {"net-listen", "A port that the server listens on. `net:listen:PORT`"},
    {"exec", "A program that the server may start. `exec:spawn:NAME`"},
    {"env",
     "Environment. `env:read:NAME` takes a variable of the launcher; `env:inject:NAME` is a secret "
     "that the server holds; `env:inject:NAME?to=HOST:PORT` is sealed: the server never sees "
     "it.\n\n`as=header:NAME|basic|query|path|body` says where in a request the value stands."},
    {"ipc",
     "Sockets of this machine. `ipc:connect:ENDPOINT`: `dbus:session`, `dbus:system`, "
     "`netlink-route`, `self`, `unix:/path`, `x11`."},
    {"clock", "Time. `clock:system` or `clock:tzdata`"},
    {"limit", "Limits. `limit:NAME:VALUE` with cpu, disk, files, memory, pids or time."},
    {"assert", "A promise for somebody else to keep. `assert:ID[:TEXT]`"},
};

std::string_view words_of(std::string_view kind) {
  const auto* const found = std::ranges::find(words, kind, &Words::kind);
  return found == std::end(words) ? std::string_view() : found->text;
}

// Plain text for editors without Markdown.
std::string without_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '`') out += c;
  }
  return out;
}

SchemaValue definition(const KindPattern& kind) {
  const std::string_view meaning = words_of(kind.name);
  CAPGATE_ASSERT(!meaning.empty());
  Object out = {{"type", "string"},
                {"description", without_markup(meaning)},
                {"markdownDescription", meaning},
                {"pattern", kind.pattern},
                {"errorMessage", kind.form}};
  List mistakes;
  for (const Mistake& mistake : kind.mistakes)
    mistakes.push_back(refuse(mistake.pattern, mistake.message));
  if (!mistakes.empty()) out.push_back({"allOf", std::move(mistakes)});
  List examples;
  for (const Sample& sample : samples) {
    if (sample.kind == kind.name) examples.emplace_back(sample.text);
  }
  out.push_back({"examples", std::move(examples)});
  return out;
}

// The kind decides which definition holds, so that a mistake is told in the words of its kind.
SchemaValue choice(const KindPattern& kind) {
  SchemaValue condition = object({{"pattern", kind.selector}});
  if (!kind.except.empty()) {
    condition = object({{"pattern", kind.selector},
                        {"not", object({{"type", "string"}, {"pattern", kind.except}})}});
  }
  return object({{"if", std::move(condition)}, {"then", refer(kind.name)}});
}

SchemaValue snippets() {
  List out;
  for (const Sample& sample : samples) {
    out.push_back(object(
        {{"label", sample.text}, {"description", sample.meaning}, {"body", sample.snippet}}));
  }
  return out;
}

SchemaValue capability(const std::vector<KindPattern>& kinds) {
  List choices;
  for (const KindPattern& kind : kinds) choices.push_back(choice(kind));
  return object(
      {{"type", "string"},
       {"title", "capability"},
       {"description", "What the server may do: <kind>:<actions>:<scope>[?refinement=value&...]"},
       {"pattern", "^(?:fs|net|exec|env|ipc|clock|limit|assert):"},
       {"errorMessage",
        "A capability starts with its kind: fs:, net:, exec:, env:, ipc:, clock:, "
        "limit: or assert:, for example fs:read:/workspace/**."},
       {"defaultSnippets", snippets()},
       {"allOf", std::move(choices)}});
}

SchemaValue capability_of_grammar_0_0() {
  List rules;
  for (const Mistake& mistake : beyond_grammar_0_0())
    rules.push_back(refuse(mistake.pattern, mistake.message));
  return object({{"type", "string"}, {"allOf", std::move(rules)}});
}

}  // namespace

Object capability_definitions() {
  const std::vector<KindPattern> kinds = kind_patterns();
  Object out = {{"capability", capability(kinds)}, {"capability-0.0", capability_of_grammar_0_0()}};
  for (const KindPattern& kind : kinds) out.push_back({std::string(kind.name), definition(kind)});
  return out;
}

}  // namespace capgate::review
