#include "base/codes.h"

#include <algorithm>

#include "base/assert.h"

namespace capgate {
namespace {

// In the order of the enumeration; codes_test.cc checks that none is missing or out of place.
constexpr CodeInfo table[] = {
    {Code::doc_syntax, "DOC_SYNTAX", "the document is not well-formed JSON or YAML",
     "capgate reads JSON exactly as RFC 8259 defines it: no comments, no trailing commas, double "
     "quotes only, one value and nothing after it. YAML manifests must be one well-formed "
     "document.",
     R"({"name": "x",})", R"({"name": "x"})"},
    {Code::doc_encoding, "DOC_ENCODING", "the document is not clean UTF-8",
     "A byte order mark, invalid UTF-8 or half of a surrogate pair can be read differently by "
     "different programs, and then the text that was reviewed is not the text that runs.",
     R"({"name": "\ud800"})", R"({"name": "\ud83d\ude00"})"},
    {Code::doc_duplicate_key, "DOC_DUPLICATE_KEY", "a key is given twice in one object",
     "Which of the two counts differs between parsers. A reviewer could read one and the sandbox "
     "enforce the other, so capgate refuses both.",
     R"({"tools": [], "tools": [{"name": "t", "capabilities": []}]})", R"({"tools": []})"},
    {Code::doc_depth, "DOC_DEPTH", "the document is nested too deeply",
     "More than 128 levels of arrays and objects. No manifest needs that, and deep nesting is a "
     "common way to exhaust a parser's stack.",
     "[[[[ ... 129 levels ... ]]]]", R"({"tools": []})"},
    {Code::doc_size, "DOC_SIZE", "the document is too large",
     "A manifest may have at most 16 MiB. Leave out what a policy does not need, or split the "
     "server.",
     "a file of 17 MiB", "a file of at most 16 MiB"},
    {Code::yaml_feature, "YAML_FEATURE", "a YAML feature that can hide what a manifest says",
     "Anchors, aliases, tags, merge keys, directives and several documents in one file make the "
     "text that a reviewer reads different from the values that a program gets. Write every value "
     "where it is used.",
     "tools: &all []", "tools: []"},
    {Code::manifest_shape, "MANIFEST_SHAPE", "the manifest does not have the expected shape",
     "A manifest is an object with a name, a version and a list of tools; each tool has a name and "
     "a "
     "list of capability strings. serverCapabilities, grammar and seal are optional.",
     R"({"name": "x", "tools": {}})",
     R"({"name": "x", "version": "1.0.0", "tools": [{"name": "t", "capabilities": []}]})"},
    {Code::manifest_unknown_key, "MANIFEST_UNKNOWN_KEY",
     "an unknown key that looks like a known one",
     "A misspelt key would silently drop what it holds, for example all capabilities of a tool. "
     "Keys "
     "that resemble no known key are only noted.",
     R"({"name": "t", "capabilites": ["fs:read:/w/**"]})",
     R"({"name": "t", "capabilities": ["fs:read:/w/**"]})"},
    {Code::manifest_duplicate_tool, "MANIFEST_DUPLICATE_TOOL", "two tools share a name",
     "Capabilities are reviewed and enforced per tool, so a name must mean one tool.",
     R"("tools": [{"name": "t", ...}, {"name": "t", ...}])",
     R"("tools": [{"name": "t", ...}, {"name": "u", ...}])"},
    {Code::grammar_version_mismatch, "GRAMMAR_VERSION_MISMATCH", "the grammar version is not known",
     "This capgate knows grammar 0.1, which is also the default, and the earlier 0.0. A manifest "
     "for "
     "a newer grammar needs a newer capgate.",
     R"("grammar": "9.9")", R"("grammar": "0.1")"},
    {Code::grammar_feature, "GRAMMAR_FEATURE", "a capability needs a newer grammar than declared",
     "The manifest says grammar 0.0 and uses something that 0.1 added, such as limits, net:listen "
     "or "
     "variables. An older implementation would read it differently or not at all.",
     R"("grammar": "0.0" with "limit:memory:512M")",
     R"("grammar": "0.1" with "limit:memory:512M")"},
    {Code::cap_malformed, "CAP_MALFORMED", "the string is not a capability",
     "A capability is <kind>:<actions>:<scope>, with refinements after '?'. Quotes open at the "
     "start "
     "of a field and close at its end; inside them \\\" and \\\\ are the escapes.",
     "fs", "fs:read:/workspace/**"},
    {Code::cap_unknown_kind, "CAP_UNKNOWN_KIND", "there is no such kind of capability",
     "The kinds are fs, net, exec, env, ipc, clock, limit and assert, in lower case.",
     "gpu:access:nvidia0", "ipc:connect:x11"},
    {Code::cap_actions_empty, "CAP_ACTIONS_EMPTY", "the actions are missing",
     "The field between the kind and the scope names at least one action.", "fs::/workspace",
     "fs:read:/workspace"},
    {Code::cap_action_unknown, "CAP_ACTION_UNKNOWN", "the kind has no such action",
     "fs: read, write, create, delete. net: connect, listen. exec: spawn. env: read, inject. ipc: "
     "connect. Several actions are separated by commas.",
     "fs:execute:/workspace", "fs:read,write:/workspace"},
    {Code::cap_refinement, "CAP_REFINEMENT",
     "a refinement is unknown, repeated, malformed or useless",
     "Refinements follow '?' as key=value, joined with '&'. Each kind has its own: fs unsafe; net "
     "sni, proto, methods, paths, private; exec nestedSandbox; env to, as, unsafe; ipc unsafe. "
     "Anything else is refused, because a refinement that is ignored is a promise that is not "
     "kept.",
     "fs:read:/x?nestedSandbox=true", "exec:spawn:chromium?nestedSandbox=true"},
    {Code::cap_variable, "CAP_VARIABLE",
     "a variable is unbound, malformed or has an unusable value",
     "${NAME} in a scope stands for what --set NAME=VALUE gives; repeat --set for several values. "
     "A "
     "value is plain text: it cannot hold '*', and it never adds an action or a refinement.",
     "fs:read:/srv/$ROOT/**", "fs:read:/srv/${ROOT}/** with --set ROOT=data"},
    {Code::cap_fs_shape, "CAP_FS_SHAPE", "fs is written fs:<actions>:<path>",
     "A path that holds ':' or '?' stands in double quotes.", "fs:read:/a:b", "fs:read:\"/a:b\""},
    {Code::cap_fs_relative, "CAP_FS_RELATIVE", "the path is not absolute",
     "A relative path would depend on where the server is started. '~' and '$HOME' are not "
     "expanded; "
     "use a variable.",
     "fs:read:workspace/**", "fs:read:/workspace/**"},
    {Code::cap_fs_path, "CAP_FS_PATH", "the path cannot be used",
     "'..' components, control characters, white space at the end and names that no file system "
     "can "
     "hold are refused. '//' and '.' are read as if they were not there.",
     "fs:read:/workspace/../etc", "fs:read:/workspace"},
    {Code::cap_fs_glob, "CAP_FS_GLOB", "the glob is not supported",
     "A path names a file or a directory with everything below; /dir/** is a directory; /dir/* and "
     "/dir/*.md are direct entries, looked up when the sandbox starts. Other globs cannot be "
     "enforced by a kernel and are refused instead of being widened.",
     "fs:read:/src/**/*.ts", "fs:read:/src/**"},
    {Code::cap_scope_refused, "CAP_SCOPE_REFUSED", "the scope is never granted as a whole",
     "/, /etc, /run, /var/run, everything in /proc, /sys and /dev, and a home directory or "
     "anything "
     "above one cannot be granted: they hold credentials, sockets and the sandbox's own mounts. "
     "Name "
     "the directory or file below that the server needs.",
     "fs:read:/home/alice", "fs:read:/home/alice/projects/site/**"},
    {Code::cap_needs_unsafe, "CAP_NEEDS_UNSAFE", "the grant hands over control of the host",
     "Writes below /usr or /etc, variables that decide what code a program loads, and sockets that "
     "control a container engine or service manager let a server leave its sandbox. They are "
     "possible "
     "only with ?unsafe=true, and stand in the notes of every artifact.",
     "ipc:connect:\"unix:/run/docker.sock\"", "ipc:connect:\"unix:/run/docker.sock\"?unsafe=true"},
    {Code::cap_net_shape, "CAP_NET_SHAPE",
     "net is written net:connect:HOST[:PORT] or net:listen:PORT",
     "An IPv6 address stands in brackets. No port means every port.", "net:connect:::1:443",
     "net:connect:[::1]:443"},
    {Code::cap_net_host, "CAP_NET_HOST", "the host is not a name, a wildcard or an address",
     "A host is a DNS name in its ASCII form, *.name (one or more labels, not the name itself), * "
     "for "
     "every public host, an IPv4 address as four decimal numbers, or an IPv6 address in brackets. "
     "Spellings that programs read differently, such as 127.1 or 0x7f000001, are refused.",
     "net:connect:api.github.com/repos:443", "net:connect:api.github.com:443"},
    {Code::cap_net_port, "CAP_NET_PORT", "the port is not a number from 1 to 65535",
     "Digits only, without sign, space or leading zero. Ranges and lists are several capabilities.",
     "net:connect:example.com:80,443",
     "net:connect:example.com:80 and net:connect:example.com:443"},
    {Code::cap_exec_shape, "CAP_EXEC_SHAPE", "exec is written exec:spawn:NAME",
     "One program for each capability.", "exec:spawn:git:status", "exec:spawn:git"},
    {Code::cap_exec_path, "CAP_EXEC_PATH", "a program is named, not given by path",
     "The name is looked up in the program directories of the sandbox, so that the same manifest "
     "works on every distribution.",
     "exec:spawn:/usr/bin/git", "exec:spawn:git"},
    {Code::cap_exec_name, "CAP_EXEC_NAME", "the program name cannot be used",
     "A name has letters, digits, '.', '_', '+' and '-'. There is no wildcard and no command line: "
     "each program that the server starts is declared.",
     "exec:spawn:*", "exec:spawn:git"},
    {Code::cap_env_shape, "CAP_ENV_SHAPE", "env is written env:inject:NAME or env:read:NAME",
     "read takes the launcher's variable of that name; inject takes the value from a secret "
     "provider.",
     "env:inject", "env:inject:GITHUB_TOKEN"},
    {Code::cap_env_name, "CAP_ENV_NAME", "the variable name cannot be used",
     "Upper-case letters, digits and underscores, not starting with a digit.",
     "env:inject:github_pat", "env:inject:GITHUB_PAT"},
    {Code::cap_env_unsealable, "CAP_ENV_UNSEALABLE", "the secret cannot be sealed",
     "A sealed value replaces a placeholder in requests, so it must be something that is sent: a "
     "token, a key, a password. A secret that signs requests is computed with and never sent, a "
     "name of a file only leads to the secret, and a database login is not HTTP; capgate knows "
     "such variables by name. Let the server hold the value, or use a credential of another kind.",
     "env:inject:AWS_SECRET_ACCESS_KEY?to=s3.amazonaws.com:443",
     "env:inject:AWS_SECRET_ACCESS_KEY"},
    {Code::cap_ipc_shape, "CAP_IPC_SHAPE", "ipc is written ipc:connect:ENDPOINT",
     "Endpoints: x11, dbus:session, dbus:system, \"unix:/path\", self, netlink-route.",
     "ipc:connect", "ipc:connect:x11"},
    {Code::cap_ipc_endpoint, "CAP_IPC_ENDPOINT", "there is no such endpoint",
     "Endpoints: x11, dbus:session, dbus:system, \"unix:/path\" with an absolute path, self (the "
     "server's own Unix sockets), netlink-route (reading the network configuration).",
     "ipc:connect:wayland", "ipc:connect:x11"},
    {Code::cap_clock_shape, "CAP_CLOCK_SHAPE", "clock is written clock:system or clock:tzdata",
     "clock has no actions and no refinements.", "clock:tzdata:x", "clock:tzdata"},
    {Code::cap_clock_source, "CAP_CLOCK_SOURCE", "there is no such clock source",
     "system says that the server uses the time, which cannot be withheld; tzdata adds the time "
     "zone "
     "files and the host's own zone.",
     "clock:TZDATA", "clock:tzdata"},
    {Code::cap_limit_shape, "CAP_LIMIT_SHAPE", "limit is written limit:NAME:VALUE",
     "Limits: memory, disk, pids, files, cpu, time.", "limit:ram:512M", "limit:memory:512M"},
    {Code::cap_limit_value, "CAP_LIMIT_VALUE", "the value does not fit the limit",
     "memory and disk take bytes with K, M or G (powers of 1024); pids and files a count; cpu a "
     "percentage of one processor; time s, m or h. Zero is not a limit.",
     "limit:memory:512MB", "limit:memory:512M"},
    {Code::cap_assert_shape, "CAP_ASSERT_SHAPE", "assert is written assert:ID:\"text\"",
     "The id has letters, digits, '.', '_', '-' and '/'; the text is one line and may hold any "
     "other "
     "character. Without a text the id stands for it.",
     "assert::must be read-only", "assert:db.read_only:\"must be read-only\""},
    {Code::policy_conflict, "POLICY_CONFLICT", "two tools contradict each other",
     "Two texts for one assertion, one variable that is sealed by one tool and held by another, or "
     "assert:fetch.block_rfc1918 and a net:connect that names a private endpoint: no union of the "
     "two keeps both promises.",
     "assert:a:\"x\" and assert:a:\"y\"", "assert:a:\"x\""},
    {Code::seal_ambiguous, "SEAL_AMBIGUOUS", "--seal cannot tell where a secret goes",
     "--seal and \"seal\": true seal every env:inject. Where a value goes must follow from the "
     "manifest: the tools with the variable, or else all of them together, declare one host and "
     "port with TLS. Otherwise say it in the capability. What is no secret is env:read.",
     "env:inject:TOKEN with net:connect:a.com:443 and net:connect:b.com:443",
     "env:inject:TOKEN?to=a.com:443 with net:connect:a.com:443 and net:connect:b.com:443"},
    {Code::seal_unusable, "SEAL_UNUSABLE", "a sealed secret could never be used",
     "The broker puts the value into requests inside TLS to the endpoint of to=. So a net:connect "
     "must cover that endpoint, and one that lets the broker terminate TLS: not proto=http or port "
     "80, where anybody on the way would read the value, not proto=tcp, which is passed unread, "
     "not sni=any.",
     "env:inject:TOKEN?to=a.com:80 with net:connect:a.com:80",
     "env:inject:TOKEN?to=a.com:443 with net:connect:a.com:443"},
    {Code::assert_unrecognized, "ASSERT_UNRECOGNIZED", "no validator covers the assertion",
     "With --validators FILE the host states which assertions it verifies and how. An assertion "
     "that "
     "nobody verifies is then an error, not a comment.",
     "assert:db.read_only:\"...\" with a validators file that does not list db.read_only",
     R"({"validators": {"db.read_only": "the role has no write grants"}})"},
    {Code::validators_shape, "VALIDATORS_SHAPE",
     "the validators file does not have the expected shape",
     "The file is JSON or YAML: an object with the key validators, which maps assertion ids to a "
     "text "
     "that says how the host verifies them.",
     R"({"validators": ["db.read_only"]})",
     R"({"validators": {"db.read_only": "the role has no write grants"}})"},
    {Code::config_shape, "CONFIG_SHAPE", "capgate.yaml does not have the expected shape",
     "The file is a mapping with the key servers, which maps names to entries. An entry has a "
     "command (a list of words) or a url, at most one of manifest, capabilities and sandbox, and "
     "variables, secrets and seal.",
     R"({servers: {notes: {command: notes-server /srv}}})",
     R"({servers: {notes: {command: [notes-server, /srv]}}})"},
    {Code::config_unknown_key, "CONFIG_UNKNOWN_KEY", "an unknown key in capgate.yaml",
     "A key that is not known would silently drop what it holds, and a policy would be read that "
     "nobody meant. There are no comments in keys: YAML has its own.",
     R"({servers: {notes: {command: [notes-server], capability: []}}})",
     R"({servers: {notes: {command: [notes-server], capabilities: []}}})"},
    {Code::config_sandbox, "CONFIG_SANDBOX", "a sandbox block that does not say what it grants",
     "The shorthand names paths, endpoints and programs, each for itself. What would grant more "
     "than its words show (exec: true, a glob, a place of credentials), what mixes its two forms "
     "and what is not one of its forms is refused; capabilities can say all of it.",
     R"({servers: {notes: {command: [notes-server], sandbox: {exec: true}}}})",
     R"({servers: {notes: {command: [notes-server], sandbox: {exec: [git]}}}})"},
    {Code::import_format, "IMPORT_FORMAT", "what format this is cannot be told",
     "capgate import finds out by itself which format a file has, but only where exactly one fits. "
     "Guessing wrong would make a manifest that nobody meant.",
     "capgate import settings.json", "capgate import --from srt settings.json"},
    {Code::import_version, "IMPORT_VERSION", "this version of the format is not known",
     "A version that this capgate does not know may grant things with keys that it does not know "
     "either, so nothing of such a file is read.",
     R"("manifest_version": "9.9")", R"("manifest_version": "0.3")"},
    {Code::import_shape, "IMPORT_SHAPE", "the source does not have the shape of its format",
     "What stands there is not what the format defines at this place. A reader that guessed what "
     "was meant would grant by guessing.",
     R"("server": "node index.js")", R"("server": {"type": "node", ...})"},
    {Code::import_bundle, "IMPORT_BUNDLE", "the bundle cannot be read safely",
     "A bundle is a zip archive with one manifest.json at its root. An archive that two programs "
     "could read differently (two such entries, entries that overlap, names that differ by their "
     "case, sizes that disagree) is refused: what was reviewed must be what is installed.",
     "a bundle with manifest.json and MANIFEST.JSON", "a bundle with one manifest.json"},
    {Code::import_refused, "IMPORT_REFUSED", "no manifest can say this without granting more",
     "The source denies a part of what it allows, or allows everything. The capability language "
     "has neither: a manifest without the deny would be wider than its source, and all rights are "
     "no manifest. Nothing is written, rather than something that looks the same and is not.",
     R"("allowWrite": ["/srv"], "denyWrite": ["/srv/keys"])", R"("allowWrite": ["/srv/data"])"},
    {Code::tool_unknown, "TOOL_UNKNOWN", "the manifest has no such tool",
     "--tool NAME prints the policy of one tool: serverCapabilities and its own capabilities.",
     "--tool serch_code", "--tool search_code"},
    {Code::adapter_unsupported, "ADAPTER_UNSUPPORTED", "the target cannot enforce the capability",
     "An artifact is closed exactly as printed. What a target cannot express is refused, unless "
     "you "
     "name that capability with --accept-unenforced; it then stands under `unenforced` in the "
     "artifact, for every reviewer to see.",
     "limit:memory:512M for --target bwrap",
     "--target docker, or --accept-unenforced limit:memory:512M"},
    {Code::accept_unused, "ACCEPT_UNUSED", "an accepted capability is not one that needs accepting",
     "--accept-unenforced names a capability exactly as the diagnostic prints it. One that the "
     "policy "
     "does not hold, or that the target enforces, is refused: it would hide a later change.",
     "--accept-unenforced exec:spawn:gti", "--accept-unenforced exec:spawn:git"},
};

}  // namespace

std::span<const CodeInfo> all_codes() { return table; }

const CodeInfo& code_info(Code code) {
  const auto index = static_cast<std::size_t>(code);
  CAPGATE_ASSERT(index < std::size(table) && table[index].code == code);
  return table[index];
}

std::string_view code_name(Code code) { return code_info(code).name; }

std::optional<Code> find_code(std::string_view name) {
  const auto* info = std::ranges::find(table, name, &CodeInfo::name);
  if (info == std::end(table)) return {};
  return info->code;
}

bool is_document_code(Code code) { return code <= Code::yaml_feature; }

}  // namespace capgate
