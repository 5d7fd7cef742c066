#include "review/schema_patterns.h"

#include "base/format.h"
#include "base/text.h"

namespace capgate::review {
namespace {

// ---- pieces -----------------------------------------------------------------------------------

constexpr std::string_view name_of_variable = "[A-Z_][A-Z0-9_]*";
constexpr std::string_view variable = R"(\$\{[A-Z_][A-Z0-9_]*\})";
constexpr std::string_view control = R"(\x00-\x1f\x7f)";
constexpr std::string_view program_name = "[A-Za-z0-9][A-Za-z0-9._+-]{0,254}";

std::string any_of(std::initializer_list<std::string_view> choices) {
  std::string out = "(?:";
  for (const std::string_view choice : choices) {
    if (out.size() > 3) out += '|';
    out += choice;
  }
  return out + ")";
}

// Text of the class with at least one variable in it. The class has no '$', so that there is one
// way only to read it.
std::string with_variable(std::string_view characters) {
  return format("{0}*{1}(?:{0}|{1})*", characters, variable);
}

// A part of which it does not matter whether it stands in quotes. That there are two of them is
// checked apart (`open_quote`).
std::string quotable(std::string_view part) { return format("\"?{}\"?", part); }

std::string value(std::string_view exact, std::string_view characters) {
  return quotable(any_of({exact, with_variable(characters)}));
}

std::string actions(std::string_view choices) {
  return quotable(format(" *(?:{0}) *(?:, *(?:{0}) *)*", choices));
}

std::string flag(std::string_view key) { return format("{}={}", key, value("true", "[a-z]")); }

// ---- hosts ------------------------------------------------------------------------------------

std::string port() {
  return "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
}

// The last label is no number: some resolver would read an address.
std::string host_name() {
  return R"((?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*)"
         R"([0-9]*(?:[A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?|[0-9]-[A-Za-z0-9_-]*[A-Za-z0-9_])\.?)";
}

std::string ipv4() {
  constexpr std::string_view part = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return format(R"({0}(?:\.{0}){{3}})", part);
}

std::string ipv6() {
  constexpr std::string_view group = "[0-9A-Fa-f]{1,4}";
  return format("(?:(?:{0}:){{7}}{0}|(?:(?:{0}:){{1,7}}|:):(?:{0}(?::{0}){{0,6}})?)", group);
}

std::string plain_host() {
  const std::string address = ipv6();
  return any_of({R"(\*)", R"((?:\*\.)?)" + host_name(), ipv4(), format(R"(\[{}\])", address)});
}

std::string host() {
  return any_of({quotable(plain_host()), format("\"{}\"", ipv6()),
                 format(R"("?\*?{}\]?"?)", with_variable("[A-Za-z0-9_.-]")),
                 format(R"("?\[{}\]?"?)", with_variable("[0-9A-Fa-f:.]")),
                 format(R"("{}")", with_variable(R"([A-Za-z0-9_.:\[\]-])"))});
}

// ---- paths ------------------------------------------------------------------------------------

// After the first character, which is '/' or starts a variable.
std::string path_rest() {
  return format(R"((?:[^{}:?"\[\]{{}}$]|\$(?:\{{{}\}})?)*)", control, name_of_variable);
}

std::string quoted_path_rest() {
  return format(R"((?:[^{}"\\\[\]{{}}$]|\\["\\]|\$(?:\{{{}\}})?)*)", control, name_of_variable);
}

std::string path() {
  return format(R"((?:(?:/|{0}){1}|"(?:/|{0}){2}"))", variable, path_rest(), quoted_path_rest());
}

// A string of the kind whose whole path is this, bare or in quotes.
std::string whole_path(std::string_view what) {
  return format(R"(^fs:[^:]*:(?:{0}(?:\?|$)|"{0}"))", what);
}

Mistake open_quote(std::string_view kind) {
  return {
      .pattern = format(R"(^{}:[^"]*"[^"]*(?:"[^"]*"[^"]*)*$)", kind),
      .message = "A quote is not closed: a field stands in double quotes wholly or not at all."};
}

// `key` twice among the refinements.
Mistake twice(std::string_view key) {
  return {.pattern = format(R"(^[^?]*\?(?:[^&]*&)*{0}=[^&]*&(?:[^&]*&)*{0}=)", key),
          .message = "A refinement is given twice: keep one of them."};
}

// What fs and the sockets of ipc have in common.
std::vector<Mistake> path_mistakes(std::string_view kind) {
  return {
      {.pattern = format(R"(^{0}:[^:]*:[^"]*/\.\.(?:[/?]|$)|^{0}:.*/\.\.[/"])", kind),
       .message = "'..' cannot stand in a path: write the path that is meant."},
      {.pattern = format(R"(^{}:[^$]*(?:\$[^A-Za-z_$]*)*\$[A-Za-z_])", kind),
       .message = "Variables are written with braces: ${NAME}."},
      {.pattern = format(R"(^{0}:[^:]*:[^"]* (?:/\.?)*(?:\?|$)|^{0}:[^:]*:.* (?:/\.?)*")", kind),
       .message = "A path cannot end with a blank."},
      {.pattern = format(R"(^{}:(?:[^/]*/)+[^/?"$\\]{{256}})", kind),
       .message = "No file can have a name longer than 255 bytes."},
  };
}

// ---- kinds ------------------------------------------------------------------------------------

std::vector<Mistake> fs_mistakes() {
  // "//" and "/./" are "/"; a glob at the end is for entries of the directory before it.
  constexpr std::string_view root = R"(/(?:\.?/)*)";
  constexpr std::string_view end = R"((?:/(?:\.|\*+)?)*)";
  std::vector<Mistake> out = path_mistakes("fs");
  out.push_back({.pattern = R"(^fs:[^:]*:"?[^/$"])",
                 .message = "The path is not absolute: write it as the server sees it, for example "
                            "fs:read:/workspace/**."});
  out.push_back({.pattern = R"(^fs:[^*]*\*[^/?]*(?:/\.?)*/(?:[^/.?"$]|\.[^/?"$]))",
                 .message = "A glob can only be the last component: /dir/** or /dir/*.md."});
  out.push_back({.pattern = R"(^fs:[^*]*(?:[^*/}]\*\*|\*\*[^/?"$]|\*[^/*]+\*\*))",
                 .message = "'**' must be a component of its own: /dir/** or /dir/*.ext."});
  out.push_back({.pattern = format(R"(^fs:[^:]*:"?{}(?:proc|sys|dev)(?:/|$))", root),
                 .message = "/proc, /sys and /dev are the sandbox's own and cannot be granted."});
  const std::string directories =
      format(R"((?:etc|run|var{0}run|root|(?:home|Users)(?:{0}[^/.*?"$][^/*?"$]*)?))", root);
  out.push_back({.pattern = whole_path(format("{}{}{}", root, directories, end)),
                 .message =
                     "This holds the secrets of the machine or a whole home directory: grant "
                     "what the server needs below it."});
  out.push_back({.pattern = whole_path(R"((?:/(?:\.|\*+)?)+)"),
                 .message = "/ is the whole machine: grant what the server needs below it."});
  return out;
}

KindPattern fs() {
  return {.name = "fs",
          .selector = "^fs:",
          .pattern = format(R"(^fs:{}:{}(?:\?{})?$)", actions("read|write|create|delete"), path(),
                            flag("unsafe")),
          .form =
              "Write fs:ACTIONS:/PATH, with actions read, write, create, delete; the path is "
              "absolute, and one that holds ':' or '?' stands in double quotes.",
          .mistakes = fs_mistakes()};
}

KindPattern net_connect() {
  constexpr std::string_view url_characters = R"([!'-+\--;=@A-Z\[\]_a-z~])";
  const std::string url_path =
      format(R"((?:/|{0})(?:{1}|\$(?:\{{{2}\}})?)*)", variable, url_characters, name_of_variable);
  const std::string refinement =
      any_of({"sni=" + value("(?:match|any|strict)", "[a-z]"),
              "proto=" + value("(?:detect|tcp|tls|http)", "[a-z]"),
              "methods=" + value("[A-Z-]+(?:,[A-Z-]+)*", "[A-Z,-]"),
              "paths=" + quotable(format("{0}(?:,{0})*", url_path)), flag("private")});
  return {
      .name = "net-connect",
      .selector = "^net:",
      .except = "^net:\"? *listen",
      .pattern = format(R"(^net:{0}:{1}(?::{2})?(?:\?{3}(?:&{3}){{0,4}})?$)", actions("connect"),
                        host(), value(port(), "[0-9]"), refinement),
      .form =
          "Write net:connect:HOST:PORT, where HOST is a name, *.name, *, an IPv4 address or "
          "[IPv6]; refinements are sni=, proto=, methods=, paths= and private=true.",
      .mistakes = {
          open_quote("net"),
          twice("sni"),
          twice("proto"),
          twice("methods"),
          twice("paths"),
          twice("private"),
          {.pattern = R"(^net:[^:]*:"?(?:[^:?"]*\.)?0[xX][0-9A-Fa-f]*\.?"?(?:[:?]|$))",
           .message = "A host that ends in a number is ambiguous: write four decimal numbers."},
          {.pattern = R"(^net:[^:]*:[^:?$]*[A-Za-z0-9_-]{64})",
           .message = "No label of a host name is longer than 63 characters."},
          {.pattern = R"(^net:[^:]*:"?(?:\*\.)?[A-Za-z0-9_.-]{255})",
           .message = "No host name is longer than 253 characters."},
          {.pattern = R"~(^net:[^:]*:"?(?:\*|[0-9.]+|\[[^\]]*\]|(?:[^:?"]*\.)?localhost\.?)"?)~"
                      R"~((?::[^?]*)?\?(?:[^&]*&)*private=)~",
           .message = "private=true is for names: '*' is every name, an address names itself, and "
                      "localhost leads nowhere else."},
      }};
}

KindPattern net_listen() {
  return {.name = "net-listen",
          .selector = "^net:\"? *listen",
          .pattern = format("^net:{}:{}$", actions("listen"), value(port(), "[0-9]")),
          .form = "Write net:listen:PORT, with one number from 1 to 65535.",
          .mistakes = {open_quote("net")}};
}

KindPattern exec() {
  return {.name = "exec",
          .selector = "^exec:",
          .pattern = format(R"(^exec:{}:{}(?:\?{})?$)", actions("spawn"),
                            value(program_name, "[A-Za-z0-9._+-]"), flag("nestedSandbox")),
          .form = "Write exec:spawn:NAME: one program, by its name, without a path or a wildcard.",
          .mistakes = {open_quote("exec"),
                       {.pattern = R"(^exec:[^:]*:[^?$]*/)",
                        .message = "A program is named, not given by its path: exec:spawn:git."}}};
}

KindPattern env() {
  const std::string refinement = any_of(
      {format("to={}", value(format("{}:{}", host_name(), port()), "[A-Za-z0-9_.:-]")),
       format("as={}", value("(?:header:[A-Za-z0-9_-]+|basic|query|path|body)", "[A-Za-z0-9_:-]")),
       flag("unsafe")});
  return {.name = "env",
          .selector = "^env:",
          .pattern = format(R"(^env:{0}:{1}(?:\?{2}(?:&{2})*)?$)", actions("read|inject"),
                            value(name_of_variable, "[A-Z0-9_]"), refinement),
          .form =
              "Write env:read:NAME, env:inject:NAME or env:inject:NAME?to=HOST:PORT; a name has "
              "upper-case letters, digits and underscores.",
          .mistakes = {
              open_quote("env"),
              twice("as"),
              twice("unsafe"),
              {.pattern = R"(^[^?]*\?(?:(?:[^&at]|a[^&s]|as[^&=]|t[^&o]|to[^&=])[^&]*&)*as=[^&]*)"
                          R"((?:&(?:[^&t]|t[^&o]|to[^&=])[^&]*)*$)",
               .message = "as= needs to=: name the endpoint that receives the value."},
              {.pattern = R"(^env:"? *read *(?:, *read *)*"?:[^?]*\?(?:[^&]*&)*to=)",
               .message = "Only env:inject has to=."},
          }};
}

KindPattern ipc() {
  const std::string unix_path = format(R"((?:/{0}|"/{1}"))", path_rest(), quoted_path_rest());
  const std::string endpoint =
      any_of({quotable("(?:netlink-route|self|x11)"), R"~("?dbus"?:"?(?:session|system)"?)~",
              format(R"~("?unix"?:{})~", unix_path), format(R"("unix:/{}")", quoted_path_rest()),
              format(R"~([^$?]*{}(?:[^?]*|.*"))~", variable)});
  std::vector<Mistake> mistakes = path_mistakes("ipc");
  mistakes.push_back(
      {.pattern = R"(^ipc:[^*]*\*)", .message = "A socket is named by one path, without globs."});
  mistakes.push_back({.pattern = R"(^ipc:[^:]*:(?:unix:(?:/\.?)+(?:\?|$)|"unix:(?:/\.?)+"))",
                      .message = "/ is no socket: write \"unix:/run/app.sock\"."});
  return {
      .name = "ipc",
      .selector = "^ipc:",
      .pattern = format(R"(^ipc:{}:{}(?:\?{})?$)", actions("connect"), endpoint, flag("unsafe")),
      .form =
          "Write ipc:connect:ENDPOINT: dbus:session, dbus:system, netlink-route, self, "
          "unix:/path or x11.",
      .mistakes = std::move(mistakes)};
}

KindPattern clock() {
  return {.name = "clock",
          .selector = "^clock:",
          .pattern = format("^clock:{}$", quotable("(?:system|tzdata)")),
          .form = "Write clock:system or clock:tzdata.",
          .mistakes = {open_quote("clock")}};
}

KindPattern limit() {
  constexpr std::string_view characters = "[0-9A-Za-z%]";
  constexpr std::string_view bytes = "[1-9](?:[0-9]{0,15}|[0-9]{0,12}K|[0-9]{0,9}M|[0-9]{0,6}G)";
  const auto row = [&](std::string_view name, std::string_view exact) {
    return format("{}:{}", quotable(name), value(exact, characters));
  };
  return {.name = "limit",
          .selector = "^limit:",
          .pattern = format(
              "^limit:{}$",
              any_of({row("cpu", "(?:[1-9][0-9]{0,4}|100000)%"), row("(?:disk|memory)", bytes),
                      row("files", "(?:[1-9][0-9]{0,5}|1000000)"),
                      row("pids", "(?:[1-9][0-9]{0,5}|[1-3][0-9]{6}|4000000)"),
                      row("time", "[1-9](?:[0-9]{0,7}s|[0-9]{0,5}m|[0-9]{0,3}h)")})),
          .form =
              "Write limit:cpu:150%, limit:disk:1G, limit:files:1024, limit:memory:512M, "
              "limit:pids:256 or limit:time:30s.",
          .mistakes = {open_quote("limit")}};
}

KindPattern assertion() {
  return {.name = "assert",
          .selector = "^assert:",
          .pattern = format(R"(^assert:[A-Za-z0-9._/-]+(?::(?:[^"{0}][^{0}]*|)"
                            R"("(?:[^"\\{0}]|\\["\\])*")?)?$)",
                            control),
          .form =
              "Write assert:ID or assert:ID:\"text\"; an id has letters, digits, '.', '_', "
              "'-' and '/'.",
          .mistakes = {}};
}

}  // namespace

std::vector<KindPattern> kind_patterns() {
  return {fs(), net_connect(), net_listen(), exec(), env(), ipc(), clock(), limit(), assertion()};
}

std::vector<Mistake> beyond_grammar_0_0() {
  return {
      {.pattern = format("^(?:fs|net|exec|env|ipc):[^$]*(?:\\$[^{{$]+)*{}", variable),
       .message = "Variables are not part of grammar 0.0."},
      {.pattern = R"(^(?:fs|env|ipc):[^:]*:[^"?]*\?(?:[^&]*&)*unsafe=)",
       .message = "?unsafe=true is not part of grammar 0.0."},
      {.pattern = R"(^net:[^:]*:"?(?:\*\.|\[))",
       .message = "Wildcard names and bracketed addresses are not part of grammar 0.0."},
      {.pattern = R"(^net:[^?]*\?(?:[^&]*&)*(?:methods|paths|private|sni="?[as]|proto="?[th]))",
       .message = "Refinements of net are not part of grammar 0.0."},
      {.pattern = R"(^net:"? *listen)", .message = "net:listen is not part of grammar 0.0."},
      {.pattern = R"(^env:[^?]*\?(?:[^&]*&)*to=)",
       .message = "Sealed variables are not part of grammar 0.0."},
      {.pattern = R"(^ipc:[^:]*:"?(?:self|netlink-route)|^ipc:[^":]*:[dnsu][^"]*$)",
       .message = "In grammar 0.0 an endpoint is x11, \"dbus:session\", \"dbus:system\" or "
                  "\"unix:/path\", in quotes."},
      {.pattern = "^limit:", .message = "limit is not part of grammar 0.0."},
  };
}

namespace pattern {

std::string text() { return format("^[^{}]+$", control); }

std::string variable_name() { return format("^{}$", name_of_variable); }

std::string program() { return format("^{}$", program_name); }

// As the end of net:connect: a refinement that changes nothing is accepted there, too.
std::string endpoint() {
  constexpr std::string_view default_value = R"((?:sni="?match"?|proto="?detect"?))";
  return format(R"(^{0}:{1}(?:\?{2}(?:&{2})?)?$)",
                any_of({quotable(plain_host()), format("\"{}\"", ipv6())}), quotable(port()),
                default_value);
}

std::string slips_of(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    const std::string_view before = word.substr(0, i);
    out += format("{}{}[!-~]{}", out.empty() ? "" : "|", before, word.substr(i));
    if (i < word.size()) out += format("|{}[!-~]?{}", before, word.substr(i + 1));
  }
  return out;
}

}  // namespace pattern
}  // namespace capgate::review
