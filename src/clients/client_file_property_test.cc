// unwrap(wrap(file)) == file, however the file is written and whatever is changed in between.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "clients/client_file.h"
#include "support/client_files.h"

namespace capgate::clients {
namespace {

// Decisions from random bytes, so that a failing case shrinks to few of them.
class Choices {
 public:
  explicit Choices(std::vector<unsigned char> bytes) : bytes_(std::move(bytes)) {}

  std::size_t below(std::size_t count) {
    if (bytes_.empty()) return 0;
    return bytes_[at_++ % bytes_.size()] % count;
  }
  std::string one_of(std::initializer_list<std::string_view> options) {
    return std::string(options.begin()[below(options.size())]);
  }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
};

void shuffle(std::vector<std::string>& parts, Choices& choices) {
  for (std::size_t i = parts.size(); i > 1; --i) {
    std::swap(parts[i - 1], parts[choices.below(i)]);
  }
}

std::string json_gap(Choices& c) {
  return c.one_of({"", " ", "\n  ", "\t", "\r\n", " /* note */ ", "// note\n", " \n\n"});
}

std::string json_word(Choices& c) {
  return c.one_of({R"("npx")", R"("-y")", R"("a b")", R"("\u0061\n")", R"("")", R"("run")",
                   R"("--")", R"("//")", R"("\ud83d")", "\"\xc3\xa9\""});
}

std::string json_list(Choices& c) {
  std::string out = "[" + json_gap(c);
  const std::size_t count = c.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    out += json_word(c) + json_gap(c);
    if (i + 1 < count || c.below(3) == 0) out += "," + json_gap(c);
  }
  return out + "]";
}

std::string json_file(Choices& c) {
  std::string out = c.one_of({"", "\xef\xbb\xbf"}) + "{\"mcpServers\": {/*first*/";
  const std::size_t servers = c.below(4);
  for (std::size_t i = 0; i < servers; ++i) {
    const std::string key = "\"command\"" + json_gap(c) + ":" + json_gap(c);
    std::vector<std::string> members = {key + (c.below(5) == 0 ? json_list(c) : json_word(c))};
    if (c.below(3) != 0) members.push_back("\"args\"" + json_gap(c) + ":" + json_list(c));
    if (c.below(3) == 0) members.push_back("\"env\": {\"A\": \"b\",}");
    shuffle(members, c);
    out += json_gap(c) + "\"s" + std::to_string(i) + "\":" + json_gap(c) + "{" + json_gap(c);
    for (const std::string& member : members) {
      out += member + json_gap(c) + "," + json_gap(c);
    }
    out += "}," + json_gap(c);
  }
  return out + "}}" + json_gap(c);
}

std::string toml_word(Choices& c) {
  return c.one_of({R"("npx")", R"("-y")", R"('a b')", R"("\u0061\n")", R"("")", R"("run")",
                   R"("--")", R"('C:\x')", R"("""x"y""")", "'''#'''"});
}

std::string toml_gap(Choices& c) {
  return c.one_of({"", " ", "\n  ", "\t", "\r\n", " # note\n", "# note\n"});
}

std::string toml_list(Choices& c) {
  std::string out = "[" + toml_gap(c);
  const std::size_t count = c.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    out += toml_word(c) + toml_gap(c);
    if (i + 1 < count || c.below(3) == 0) out += "," + toml_gap(c);
  }
  return out + "]";
}

std::string toml_file(Choices& c) {
  std::string out = c.one_of({"", "\xef\xbb\xbf"}) + "#first\n";
  const std::string line = c.one_of({"\n", "\r\n", " # note\n"});
  const bool dotted = c.below(2) == 0;
  const std::size_t servers = c.below(4);
  for (std::size_t i = 0; i < servers; ++i) {
    const std::string name = "mcp_servers" + c.one_of({".", " . "}) + "s" + std::to_string(i);
    const std::string path = c.one_of({"", "  ", "\t"}) + (dotted ? name + "." : "");
    const std::string equals = c.one_of({"=", " = ", "\t="});
    std::vector<std::string> members = {path + "command" + equals +
                                        (c.below(5) == 0 ? toml_list(c) : toml_word(c))};
    if (c.below(3) != 0) members.push_back(path + "args" + equals + toml_list(c));
    if (c.below(3) == 0) members.push_back(path + "env" + equals + "{A = 'b'}");
    shuffle(members, c);
    if (!dotted) out += "[" + name + "]" + line;
    for (const std::string& member : members) {
      out += member + line;
    }
  }
  if (c.below(2) == 0 && out.ends_with('\n')) out.pop_back();
  return out.ends_with('\r') ? out + "\n" : out;
}

std::string yaml_word(Choices& c) {
  return c.one_of({"npx", "-y", "a b", "'it''s'", "\"\\x41 b\"", "run", "--", "'a, [b'", "/a/{b}",
                   "a,b", "x:y", "yes"});
}

std::string yaml_args(Choices& c, const std::string& indent, const std::string& line) {
  const std::size_t count = c.below(4);
  if (count == 0 || c.below(2) == 0) {
    std::string out = "args: [";
    for (std::size_t i = 0; i < count; ++i) {
      out += c.one_of({"", " "}) + c.one_of({"npx", "-y", "'a, b'", "\"c\"", "x y"});
      if (i + 1 < count || c.below(3) == 0) out += c.one_of({", ", " , ", ",\n"});
      if (out.ends_with('\n')) out += indent + " ";
    }
    return out + "]";
  }
  std::string out = "args:";
  const std::string inner = indent + c.one_of({"", "  "});
  for (std::size_t i = 0; i < count; ++i) {
    out += line + inner + c.one_of({"- ", "-   "}) + yaml_word(c);
  }
  return out;
}

std::string yaml_file(Choices& c) {
  std::string out = c.one_of({"", "\xef\xbb\xbf"}) + "#first\nmcpServers:\n";
  const std::string line = c.one_of({"\n", "\r\n", " # note\n", "\n\n"});
  const bool is_list = c.below(2) == 0;
  const std::size_t servers = 1 + c.below(3);
  for (std::size_t i = 0; i < servers; ++i) {
    const std::string indent = "    ";
    std::vector<std::string> members = {"command: " + yaml_word(c)};
    if (is_list) members.push_back("name: s" + std::to_string(i));
    if (c.below(3) != 0) members.push_back(yaml_args(c, indent, line));
    if (c.below(3) == 0) members.push_back("env: {A: b}");
    shuffle(members, c);
    out += is_list ? "  - " : "  s" + std::to_string(i) + ":" + line + indent;
    for (std::size_t m = 0; m < members.size(); ++m) {
      out += (m > 0 ? indent : "") + members[m] + line;
    }
  }
  return out;
}

// A server more, and every comment another one.
std::string edited(std::string text, std::string_view mark, std::string_view added) {
  if (const std::size_t at = text.find(mark); at != text.npos) text.insert(at + mark.size(), added);
  for (std::size_t at = 0; (at = text.find("note", at)) != text.npos; at += 4) {
    text.replace(at, 4, "another");
  }
  return text;
}

ClientFile read(const std::string& text, const Shape& shape) {
  auto file = read_client_file(text, shape);
  if (!file) RC_LOG() << file.error().front().message << " in\n" << text << "\n";
  RC_ASSERT(file.has_value());
  return *std::move(file);
}

std::string changed(const ClientFile& file, const std::vector<Change>& changes) {
  auto text = clients::apply(file, changes);
  if (!text) RC_LOG() << text.error().message << " in\n" << file.text << "\n";
  RC_ASSERT(text.has_value());
  return *std::move(text);
}

struct Addition {
  std::string_view mark;
  std::string_view text;
  std::size_t servers;  // that it puts before the others
};

void check(const std::string& text, const Shape& shape, const Addition& addition) {
  const ClientFile file = read(text, shape);
  const auto wrap = support::wrap_changes(file);
  const std::string wrapped = changed(file, wrap);
  const ClientFile again = read(wrapped, shape);
  RC_ASSERT(changed(again, wrap) == wrapped);
  RC_ASSERT(changed(again, support::undone(wrap)) == text);
  auto unwrap = support::undone(wrap);
  for (Change& change : unwrap) {
    change.server += addition.servers;
  }
  const ClientFile later = read(edited(wrapped, addition.mark, addition.text), shape);
  RC_ASSERT(changed(later, unwrap) == edited(text, addition.mark, addition.text));
}

using Bytes = std::vector<unsigned char>;

RC_GTEST_PROP(ClientFileProperty, JsonComesBack, (const Bytes& bytes)) {
  Choices choices(bytes);
  check(json_file(choices), {.paths = {{"mcpServers"}}},
        {.mark = "/*first*/", .text = R"("new": {"command": "q"},)", .servers = 1});
}

RC_GTEST_PROP(ClientFileProperty, TomlComesBack, (const Bytes& bytes)) {
  Choices choices(bytes);
  check(toml_file(choices), {.syntax = Syntax::toml, .paths = {{"mcp_servers"}}},
        {.mark = "#first\n", .text = "mcp_servers.new.command = 'q'\n", .servers = 1});
}

RC_GTEST_PROP(ClientFileProperty, YamlComesBack, (const Bytes& bytes)) {
  Choices choices(bytes);
  check(yaml_file(choices), {.syntax = Syntax::yaml, .paths = {{"mcpServers"}}},
        {.mark = "#first\n", .text = "other: {command: q}\n", .servers = 0});
}

}  // namespace
}  // namespace capgate::clients
