#include "review/lint_tables.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace capgate::review {
namespace {

using Use = ExfiltrationService::Use;

constexpr SharedSuffix shared[] = {
    {"*.aliyuncs.com", "a storage bucket"},
    {"*.appdomain.cloud", "a service"},
    {"*.auth0.com", "an organisation"},
    {"*.awsapprunner.com", "an application"},
    {"*.azurecontainerapps.io", "an application"},
    {"*.azurestaticapps.net", "a site"},
    {"*.backblazeb2.com", "a storage bucket"},
    {"*.cloudapp.azure.com", "a virtual machine"},
    {"*.compute.amazonaws.com", "a virtual machine"},
    {"*.digitaloceanspaces.com", "a storage bucket"},
    {"*.elasticbeanstalk.com", "an application"},
    {"*.elb.amazonaws.com", "a load balancer"},
    {"*.linodeobjects.com", "a storage bucket"},
    {"*.myqcloud.com", "a storage bucket"},
    {"*.oraclecloud.com", "a service"},
    {"*.r.appspot.com", "an application"},
    {"*.run.app", "a service"},
    {"*.scw.cloud", "a service"},
    {"*.ts.net", "a host"},
    {"*.wasabisys.com", "a storage bucket"},
    {"*.web.core.windows.net", "a storage account"},
    {"akamaized.net", "a distribution"},
    {"aliyuncs.com", "a storage bucket"},
    {"amplifyapp.com", "a site"},
    {"app.github.dev", "a forwarded port"},
    {"appdomain.cloud", "a service"},
    {"appspot.com", "an application"},
    {"atlassian.net", "an organisation"},
    {"auth0.com", "an organisation"},
    {"awsapprunner.com", "an application"},
    {"azurecontainerapps.io", "an application"},
    {"azureedge.net", "a distribution"},
    {"azurefd.net", "a distribution"},
    {"azurestaticapps.net", "a site"},
    {"azurewebsites.net", "an application"},
    {"b-cdn.net", "a distribution"},
    {"backblazeb2.com", "a storage bucket"},
    {"bitbucket.io", "a site"},
    {"blob.core.windows.net", "a storage account"},
    {"blogspot.com", "a blog"},
    {"bolt.host", "an application"},
    {"carrd.co", "a site"},
    {"cleverapps.io", "an application"},
    {"cloudapp.azure.com", "a virtual machine"},
    {"cloudapp.net", "a virtual machine"},
    {"cloudfront.net", "a distribution"},
    {"cloudfunctions.net", "a function"},
    {"codeberg.page", "a site"},
    {"codesandbox.io", "a sandbox"},
    {"compute-1.amazonaws.com", "a virtual machine"},
    {"compute.amazonaws.com", "a virtual machine"},
    {"convex.cloud", "a project"},
    {"convex.site", "a project"},
    {"csb.app", "a sandbox"},
    {"ddns.net", "a host"},
    {"deno.dev", "an application"},
    {"deno.net", "an application"},
    {"dfs.core.windows.net", "a storage account"},
    {"digitaloceanspaces.com", "a storage bucket"},
    {"duckdns.org", "a host"},
    {"dyndns.org", "a host"},
    {"dynv6.net", "a host"},
    {"edgecompute.app", "an application"},
    {"edgekey.net", "a distribution"},
    {"elasticbeanstalk.com", "an application"},
    {"elb.amazonaws.com", "a load balancer"},
    {"eu.org", "a domain"},
    {"execute-api.*.amazonaws.com", "an API gateway"},
    {"fastly.net", "a distribution"},
    {"file.core.windows.net", "a storage account"},
    {"firebaseapp.com", "a site"},
    {"firebaseio.com", "a database"},
    {"fly.dev", "an application"},
    {"force.com", "an organisation"},
    {"framer.app", "a site"},
    {"framer.website", "a site"},
    {"freeddns.org", "a host"},
    {"freshdesk.com", "an organisation"},
    {"github.io", "a site"},
    {"githubpreview.dev", "a workspace"},
    {"gitlab.io", "a site"},
    {"gitpod.io", "a workspace"},
    {"glitch.me", "an application"},
    {"hasura.app", "a project"},
    {"herokuapp.com", "an application"},
    {"hf.space", "an application"},
    {"hopto.org", "a host"},
    {"is-a.dev", "a domain"},
    {"js.org", "a domain"},
    {"lambda-url.*.on.aws", "a function"},
    {"linodeobjects.com", "a storage bucket"},
    {"lovable.app", "an application"},
    {"modal.run", "a function"},
    {"mooo.com", "a host"},
    {"my.salesforce.com", "an organisation"},
    {"my.site.com", "an organisation"},
    {"myqcloud.com", "a storage bucket"},
    {"myshopify.com", "a shop"},
    {"netlify.app", "an application"},
    {"nhost.run", "a project"},
    {"nip.io", "a host"},
    {"no-ip.org", "a host"},
    {"notion.site", "a site"},
    {"now.sh", "an application"},
    {"okta.com", "an organisation"},
    {"ondigitalocean.app", "an application"},
    {"onrender.com", "an application"},
    {"oraclecloud.com", "a service"},
    {"oraclecloudapps.com", "an application"},
    {"ovh.net", "a service"},
    {"pages.dev", "a site"},
    {"platformsh.site", "an application"},
    {"pythonanywhere.com", "an application"},
    {"queue.core.windows.net", "a storage account"},
    {"r2.cloudflarestorage.com", "a storage account"},
    {"r2.dev", "a storage bucket"},
    {"railway.app", "an application"},
    {"readthedocs.io", "a site"},
    {"repl.co", "an application"},
    {"replit.app", "an application"},
    {"replit.dev", "an application"},
    {"run.app", "a service"},
    {"s3-accelerate.amazonaws.com", "an S3 bucket"},
    {"s3-website.*.amazonaws.com", "an S3 bucket"},
    {"s3.*.amazonaws.com", "an S3 bucket"},
    {"s3.amazonaws.com", "an S3 bucket"},
    {"s3.dualstack.*.amazonaws.com", "an S3 bucket"},
    {"scw.cloud", "a service"},
    {"service-now.com", "an organisation"},
    {"sharepoint.com", "an organisation"},
    {"sourceforge.io", "a site"},
    {"squarespace.com", "a site"},
    {"sslip.io", "a host"},
    {"stackblitz.io", "a sandbox"},
    {"storage.googleapis.com", "a storage bucket"},
    {"streamlit.app", "an application"},
    {"substack.com", "a publication"},
    {"supabase.co", "a project"},
    {"supabase.in", "a project"},
    {"surge.sh", "a site"},
    {"sytes.net", "a host"},
    {"table.core.windows.net", "a storage account"},
    {"traefik.me", "a host"},
    {"trafficmanager.net", "a traffic profile"},
    {"translate.goog", "a proxied site"},
    {"ts.net", "a host"},
    {"tumblr.com", "a blog"},
    {"up.railway.app", "an application"},
    {"val.run", "a function"},
    {"vercel.app", "an application"},
    {"wasabisys.com", "a storage bucket"},
    {"web.app", "a site"},
    {"web.core.windows.net", "a storage account"},
    {"webcontainer.io", "a sandbox"},
    {"webflow.io", "a site"},
    {"weebly.com", "a site"},
    {"wixsite.com", "a site"},
    {"wordpress.com", "a blog"},
    {"workers.dev", "a worker"},
    {"wpengine.com", "a site"},
    {"xip.io", "a host"},
    {"zapto.org", "a host"},
    {"zendesk.com", "an organisation"},
};

// Countries that register below a second label, and names that are sold like countries. A single
// label is a registry's in any case.
constexpr std::string_view registries[] = {
    "ac.id",  "ac.il",  "ac.in",  "ac.jp",  "ac.kr",  "ac.nz",  "ac.uk",  "ac.za",   "ae.org",
    "br.com", "cn.com", "co.at",  "co.com", "co.cr",  "co.hu",  "co.id",  "co.il",   "co.in",
    "co.jp",  "co.ke",  "co.kr",  "co.nz",  "co.rs",  "co.th",  "co.tz",  "co.ug",   "co.uk",
    "co.za",  "co.zm",  "co.zw",  "com.ar", "com.au", "com.bd", "com.bh", "com.bo",  "com.br",
    "com.cn", "com.co", "com.cy", "com.do", "com.ec", "com.eg", "com.es", "com.gh",  "com.gr",
    "com.gt", "com.hk", "com.hr", "com.jo", "com.kh", "com.kw", "com.lb", "com.lk",  "com.mt",
    "com.mx", "com.my", "com.ng", "com.ni", "com.np", "com.om", "com.pa", "com.pe",  "com.ph",
    "com.pk", "com.pl", "com.pt", "com.py", "com.qa", "com.ro", "com.ru", "com.sa",  "com.sg",
    "com.sv", "com.tr", "com.tw", "com.ua", "com.uy", "com.ve", "com.vn", "de.com",  "edu.au",
    "edu.cn", "edu.hk", "edu.in", "edu.sg", "edu.tr", "edu.tw", "eu.com", "firm.in", "gb.net",
    "gen.in", "go.id",  "go.jp",  "go.kr",  "gob.ar", "gob.mx", "gov.au", "gov.br",  "gov.cn",
    "gov.in", "gov.tr", "gov.uk", "gov.za", "id.au",  "in.th",  "in.ua",  "jpn.com", "ltd.uk",
    "me.uk",  "ne.jp",  "ne.kr",  "net.ar", "net.au", "net.br", "net.cn", "net.co",  "net.hk",
    "net.id", "net.il", "net.in", "net.my", "net.nz", "net.ph", "net.pk", "net.pl",  "net.ru",
    "net.sg", "net.tr", "net.tw", "net.ua", "net.uk", "net.vn", "net.za", "or.at",   "or.id",
    "or.jp",  "or.ke",  "or.kr",  "or.th",  "org.ar", "org.au", "org.br", "org.cn",  "org.co",
    "org.es", "org.hk", "org.il", "org.in", "org.mx", "org.my", "org.nz", "org.ph",  "org.pk",
    "org.pl", "org.ru", "org.sg", "org.tr", "org.tw", "org.ua", "org.uk", "org.vn",  "org.za",
    "plc.uk", "ru.com", "sa.com", "uk.com", "uk.net", "us.com", "us.org", "web.id",  "za.com"};

constexpr ExfiltrationService services[] = {
    {"0x0.st", "a file drop"},
    {"anonfiles.com", "a file drop"},
    {"anonymfile.com", "a file drop"},
    {"api.telegram.org", "the bot interface of a messenger", Use::chat},
    {"bashupload.com", "a file drop"},
    {"beeceptor.com", "a request bin"},
    {"bore.pub", "a tunnel"},
    {"burpcollaborator.net", "a request bin"},
    {"canarytokens.com", "a request bin"},
    {"catbox.moe", "a file drop"},
    {"ceye.io", "a request bin"},
    {"chat.googleapis.com", "a messenger's webhooks", Use::chat},
    {"controlc.com", "a paste service"},
    {"devtunnels.ms", "a tunnel"},
    {"discord.com", "a messenger with webhooks", Use::chat},
    {"discordapp.com", "a messenger with webhooks", Use::chat},
    {"dnslog.cn", "a request bin"},
    {"docs.google.com", "forms of strangers", Use::chat},
    {"dpaste.com", "a paste service"},
    {"dpaste.org", "a paste service"},
    {"file.io", "a file drop"},
    {"filebin.net", "a file drop"},
    {"fileditch.com", "a file drop"},
    {"forms.gle", "forms of strangers", Use::chat},
    {"ghostbin.com", "a paste service"},
    {"gist.github.com", "a paste service", Use::chat},
    {"gofile.io", "a file drop"},
    {"hastebin.com", "a paste service"},
    {"hook.integromat.com", "webhooks of an automation service", Use::chat},
    {"hook.make.com", "webhooks of an automation service", Use::chat},
    {"hookbin.com", "a request bin"},
    {"hookdeck.com", "a request bin"},
    {"hooks.slack.com", "a messenger's webhooks", Use::chat},
    {"hooks.zapier.com", "webhooks of an automation service", Use::chat},
    {"interact.sh", "a request bin"},
    {"ix.io", "a paste service"},
    {"justpaste.it", "a paste service"},
    {"keep.sh", "a file drop"},
    {"lhr.life", "a tunnel"},
    {"litterbox.catbox.moe", "a file drop"},
    {"loca.lt", "a tunnel"},
    {"localhost.run", "a tunnel"},
    {"localtunnel.me", "a tunnel"},
    {"localxpose.io", "a tunnel"},
    {"loclx.io", "a tunnel"},
    {"maker.ifttt.com", "webhooks of an automation service", Use::chat},
    {"mega.nz", "a file drop"},
    {"mockbin.org", "a request bin"},
    {"ngrok-free.app", "a tunnel"},
    {"ngrok-free.dev", "a tunnel"},
    {"ngrok.app", "a tunnel"},
    {"ngrok.dev", "a tunnel"},
    {"ngrok.io", "a tunnel"},
    {"ntfy.sh", "a message relay"},
    {"oast.fun", "a request bin"},
    {"oast.live", "a request bin"},
    {"oast.me", "a request bin"},
    {"oast.online", "a request bin"},
    {"oast.pro", "a request bin"},
    {"oast.site", "a request bin"},
    {"oastify.com", "a request bin"},
    {"onion.ly", "a gateway to Tor"},
    {"onion.ws", "a gateway to Tor"},
    {"oshi.at", "a file drop"},
    {"pagekite.me", "a tunnel"},
    {"paste.c-net.org", "a paste service"},
    {"paste.debian.net", "a paste service"},
    {"paste.ee", "a paste service"},
    {"paste.rs", "a paste service"},
    {"pastebin.com", "a paste service"},
    {"pastebin.pl", "a paste service"},
    {"pinggy.io", "a tunnel"},
    {"pinggy.link", "a tunnel"},
    {"pipedream.net", "a request bin"},
    {"pixeldrain.com", "a file drop"},
    {"playit.gg", "a tunnel"},
    {"portmap.io", "a tunnel"},
    {"postb.in", "a request bin"},
    {"privatebin.net", "a paste service"},
    {"ptsv2.com", "a request bin"},
    {"ptsv3.com", "a request bin"},
    {"pushover.net", "a message relay"},
    {"rentry.co", "a paste service"},
    {"requestbin.com", "a request bin"},
    {"requestbin.net", "a request bin"},
    {"requestcatcher.com", "a request bin"},
    {"requestinspector.com", "a request bin"},
    {"script.google.com", "scripts of strangers", Use::chat},
    {"send.vis.ee", "a file drop"},
    {"sendspace.com", "a file drop"},
    {"serveo.net", "a tunnel"},
    {"smee.io", "a request bin"},
    {"sprunge.us", "a paste service"},
    {"telebit.io", "a tunnel"},
    {"temp.sh", "a file drop"},
    {"termbin.com", "a paste service"},
    {"tmpfiles.org", "a file drop"},
    {"tor2web.org", "a gateway to Tor"},
    {"transfer.sh", "a file drop"},
    {"trycloudflare.com", "a tunnel"},
    {"tunnelmole.net", "a tunnel"},
    {"ufile.io", "a file drop"},
    {"uguu.se", "a file drop"},
    {"webhook.cool", "a request bin"},
    {"webhook.office.com", "a messenger's webhooks", Use::chat},
    {"webhook.site", "a request bin"},
    {"wetransfer.com", "a file drop"},
    {"workupload.com", "a file drop"},
    {"x0.at", "a file drop"},
    {"zrok.io", "a tunnel"},
};

// Domains of one party that has several: what goes to the one may go to the other.
struct Alias {
  std::string_view domain;
  std::string_view party;
};
constexpr Alias aliases[] = {
    {"atlassian.com", "atlassian.net"},       {"fbcdn.net", "facebook.com"},
    {"githubusercontent.com", "github.com"},  {"googleapis.com", "google.com"},
    {"googleusercontent.com", "google.com"},  {"live.com", "microsoft.com"},
    {"microsoftonline.com", "microsoft.com"}, {"notion.com", "notion.so"},
    {"office.com", "microsoft.com"},          {"slack-edge.com", "slack.com"},
    {"slack-files.com", "slack.com"},         {"stripe.network", "stripe.com"},
};

// Shells and interpreters, what starts another program that is named in its words, package runners,
// container engines, and programs with a language or an escape to the shell of their own.
constexpr std::string_view runners[] = {"ash",         "at",        "awk",        "bash",
                                        "bun",         "bundle",    "bunx",       "busybox",
                                        "bwrap",       "cargo",     "cmd",        "cmd.exe",
                                        "crontab",     "csh",       "dash",       "deno",
                                        "doas",        "docker",    "elixir",     "emacs",
                                        "env",         "erl",       "expect",     "fish",
                                        "gawk",        "gdb",       "gem",        "go",
                                        "groovy",      "guile",     "irb",        "java",
                                        "jshell",      "julia",     "ksh",        "kubectl",
                                        "ltrace",      "lua",       "luajit",     "make",
                                        "mawk",        "mksh",      "nc",         "ncat",
                                        "nerdctl",     "netcat",    "nice",       "node",
                                        "nodejs",      "nohup",     "npm",        "npx",
                                        "nsenter",     "osascript", "parallel",   "perl",
                                        "php",         "pip",       "pipx",       "pnpm",
                                        "pnpx",        "podman",    "powershell", "powershell.exe",
                                        "psql",        "pwsh",      "py.exe",     "pypy",
                                        "python",      "r",         "rake",       "rscript",
                                        "ruby",        "sbcl",      "scala",      "screen",
                                        "script",      "setsid",    "sh",         "socat",
                                        "ssh",         "strace",    "su",         "sudo",
                                        "systemd-run", "tclsh",     "timeout",    "tmux",
                                        "ts-node",     "tsx",       "unshare",    "uv",
                                        "uvx",         "vi",        "vim",        "watch",
                                        "wish",        "xargs",     "yarn",       "zsh"};

std::string_view last_label(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string_view without_last_label(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

enum class Relation : unsigned char { apart, equal, above, below };

// How `name` stands to a suffix, label by label from the right.
Relation relate(std::string_view name, std::string_view suffix) {
  while (!name.empty() && !suffix.empty()) {
    if (last_label(suffix) != "*" && last_label(suffix) != last_label(name)) {
      return Relation::apart;
    }
    name = without_last_label(name);
    suffix = without_last_label(suffix);
  }
  if (name.empty() && suffix.empty()) return Relation::equal;
  return name.empty() ? Relation::above : Relation::below;
}

// "python3.11", "node-20" and "ruby3.1" are python, node and ruby.
std::string_view without_version(std::string_view program) {
  while (!program.empty() && (is_digit(program.back()) || program.back() == '.')) {
    program.remove_suffix(1);
  }
  if (program.ends_with('-')) program.remove_suffix(1);
  return program;
}

std::size_t count_labels(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count(name, '.')) + 1;
}

std::string_view last_labels(std::string_view name, std::size_t count) {
  std::size_t begin = name.size();
  for (; count > 0 && begin != std::string_view::npos; --count) {
    begin = begin == 0 ? std::string_view::npos : name.rfind('.', begin - 1);
  }
  return begin == std::string_view::npos ? name : name.substr(begin + 1);
}

}  // namespace

std::span<const SharedSuffix> shared_suffixes() { return shared; }
std::span<const std::string_view> registry_suffixes() { return registries; }
std::span<const ExfiltrationService> exfiltration_services() { return services; }

std::optional<std::string_view> why_shared(std::string_view name) {
  if (is_registry_suffix(name)) return "any domain";
  std::optional<std::string_view> below;
  for (const SharedSuffix& each : shared) {
    const Relation relation = relate(name, each.suffix);
    if (relation == Relation::equal) return each.what;
    if (relation == Relation::above && !below) below = each.what;
  }
  return below;
}

bool is_registry_suffix(std::string_view name) {
  return !name.contains('.') || std::ranges::binary_search(registries, name);
}

std::string_view site_of(std::string_view name) {
  std::size_t suffix = std::ranges::binary_search(registries, last_labels(name, 2)) ? 2 : 1;
  for (const SharedSuffix& each : shared) {
    const Relation relation = relate(name, each.suffix);
    if (relation == Relation::below || relation == Relation::equal) {
      suffix = std::max(suffix, count_labels(each.suffix));
    }
  }
  const std::string_view site = last_labels(name, suffix + 1);
  const auto alias = std::ranges::find(aliases, site, &Alias::domain);
  return alias == std::ranges::end(aliases) ? site : alias->party;
}

const ExfiltrationService* exfiltration_service(std::string_view name) {
  for (std::string_view rest = name; !rest.empty();) {
    const auto found = std::ranges::lower_bound(services, rest, {}, &ExfiltrationService::host);
    if (found != std::ranges::end(services) && found->host == rest) return &*found;
    const std::size_t dot = rest.find('.');
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return nullptr;
}

bool runs_any_code(std::string_view program) {
  const std::string name = to_lower(program.substr(program.rfind('/') + 1));
  return std::ranges::binary_search(runners, std::string_view(name)) ||
         std::ranges::binary_search(runners, without_version(name));
}

}  // namespace capgate::review
