#include "review/lint_rules.h"

#include <algorithm>

namespace capgate::review {
namespace {

// In the order of the documentation: what tools say of themselves, network, secrets, files and
// programs, the manifest's own order, the ignore file.
constexpr Rule rules[] = {
    {"CLOSED_WORLD_NETWORK", Level::error, "a tool that says it is closed reaches the network",
     "The annotation openWorldHint: false says that a tool deals with nothing outside of the "
     "machine, and clients ask people less for such tools. net:connect to anything but this host "
     "or a private address says the opposite. Take one of the two away."},
    {"READ_ONLY_WRITES", Level::warning, "a tool that says it only reads may write",
     "The annotation readOnlyHint: true says that a tool changes nothing, and clients run such "
     "tools without asking. Here the same tool declares fs:write, fs:create or fs:delete, or HTTP "
     "methods that change something. Take the annotation away, or the capability."},
    {"NOT_DESTRUCTIVE_REMOVES", Level::warning, "a tool that says it destroys nothing may delete",
     "The annotation destructiveHint: false says that a tool only adds. fs:write and fs:delete let "
     "it remove files. Write fs:create, which lets it add and change but not remove, or take the "
     "annotation away."},
    {"NET_ANY", Level::warning, "every host can be reached",
     "net:connect:* lets whatever the server holds, and whatever a prompt makes it read, go to any "
     "host of the internet. Name the hosts. For a server whose purpose is any host, such as a web "
     "fetcher, keep files and secrets out of it, and say so in the ignore file."},
    {"NET_MULTI_TENANT", Level::warning, "a wildcard that strangers can be part of",
     "Below these domains anybody can get a name of their own (a bucket, a site, a function), or "
     "the domain belongs to a registry. A wildcard over them is as good as every host for someone "
     "who wants to take data out. Name the tenant: mybucket.s3.amazonaws.com."},
    {"NET_NO_PORT", Level::note, "a host with every port",
     "Without a port the rule holds for all of them, such as SSH and mail beside HTTPS. Add the "
     "port, as in api.example.com:443."},
    {"NET_APEX", Level::note, "a wildcard without its own domain",
     "*.example.com means the names below example.com, not example.com itself; other tools differ, "
     "and so this is often forgotten. Declare the domain too if the server uses it."},
    {"EXFILTRATION_HOST", Level::warning, "a service where anybody can leave data",
     "Paste services, request bins, file drops and tunnels take what they are sent and show it to "
     "whoever has the link, so they are where stolen data goes. Leave the host out. Messengers "
     "with bots and webhooks are honest services too and give a note only: there, name the "
     "paths= that are needed."},
    {"FILES_TO_ANYWHERE", Level::warning, "files of the host can be read and sent anywhere",
     "The server may read files of the host and reach every host, or hosts of strangers. One "
     "injected instruction in a page that it reads is enough to send them away. Take one of the "
     "two away, or make two servers of it."},
    {"SECRET_MANY_HOSTS", Level::warning, "a secret that may flow to several parties",
     "The server holds the value and can reach hosts of more than one party, or the secret is "
     "sealed to several of them: the credential of one service can end up at another. Seal it to "
     "the one host that it is for: env:inject:NAME?to=HOST:443. Names below one registered domain "
     "count as one party."},
    {"SECRET_NOT_SEALED", Level::note, "a secret that the server itself holds",
     "With env:inject:NAME?to=HOST:443 the server gets a placeholder, and the broker puts the "
     "value into requests to that host alone. What the server does not hold it cannot leak."},
    {"CREDENTIAL_PATH", Level::warning, "a place where credentials are kept",
     "The path is, or lies in, a place where keys, tokens or profiles of other programs are kept. "
     "They stay hidden inside a granted parent, but this line names them. Hand the server the one "
     "value that it needs as env:inject instead."},
    {"STARTUP_WRITE", Level::warning, "a file that is run outside of the sandbox can be written",
     "Shells, sessions and daemons run these files later, with all rights of the user. Whoever "
     "writes them has left the sandbox."},
    {"UNSAFE", Level::warning, "a grant that is marked as unsafe",
     "unsafe=true is the author's sign that the grant gives away control: of system directories, "
     "of what programs load, of an engine's socket. It deserves a reviewer's reason in the ignore "
     "file."},
    {"EXEC_SHELL", Level::warning, "a program that runs any code",
     "A shell, an interpreter or a package runner makes exec:spawn a grant for every program that "
     "they can be told to run; the sandbox bounds what that does, but no longer which program "
     "does it. Name the programs that the server really starts."},
    {"IPC_DESKTOP", Level::warning, "the whole desktop or bus",
     "A client of X11 sees every key and every window, and on a message bus a service can be asked "
     "to start programs outside of the sandbox. Leave it out, or name the one socket that is "
     "needed."},
    {"UNUSED_SERVER_GRANT", Level::note, "a grant of the whole server that no tool asks for",
     "Other lines of this kind stand at the tools that need them; this one is in "
     "serverCapabilities, and no tool declares it. Move it to the tool that needs it, or take it "
     "away."},
    {"TOOLS_NOT_TOLD_APART", Level::note, "all grants are the server's, and no tool declares any",
     "Every tool has all grants. Declared at the tools, the grants say what each of them needs, "
     "and a policy of one tool (--tool) is narrower than that of the server."},
    {"TOOL_WITHOUT_CAPABILITIES", Level::note, "a tool that declares nothing",
     "That is right for a tool that only computes. If it reads, writes or connects, it works only "
     "because other lines grant it: declare what it needs."},
    {"REDUNDANT", Level::note, "a line that another one covers",
     "The line grants nothing, since another one of the same tool or of the whole server grants "
     "it already. Remove it, or narrow the other one."},
    {"IGNORE_EXPIRED", Level::warning, "an entry of the ignore file has expired",
     "What it ignored counts again. Look at the finding once more: mend it, or give the entry a "
     "new date and a reason that still holds."},
    {"IGNORE_UNUSED", Level::note, "an entry of the ignore file matches nothing",
     "The finding is gone, or the entry names it wrongly. Remove the entry, so that it does not "
     "hide a later one."},
};

}  // namespace

std::span<const Rule> lint_rules() { return rules; }

const Rule* find_rule(std::string_view id) {
  const auto found = std::ranges::find(rules, id, &Rule::id);
  return found == std::ranges::end(rules) ? nullptr : &*found;
}

}  // namespace capgate::review
