#include "mcp/starter.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "base/text.h"

namespace capgate::mcp {
namespace {

constexpr std::size_t longest_comment = 90;

using Words = std::span<const std::string_view>;

constexpr std::string_view file_words[] = {"directory", "dir",  "file", "files",
                                           "folder",    "path", "read"};
constexpr std::string_view write_words[] = {"append", "create", "delete", "edit",
                                            "insert", "move",   "remove", "rename",
                                            "save",   "update", "write"};
constexpr std::string_view net_words[] = {"api",  "browse", "crawl",  "download", "fetch",
                                          "http", "search", "upload", "url",      "web"};
constexpr std::string_view exec_words[] = {"bash",  "command", "exec",     "execute",
                                           "shell", "spawn",   "terminal", "run"};
constexpr std::string_view time_words[] = {"clock", "date", "time", "timezone"};

// The words of a name, however they are joined: read_file, read-file, readFile.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  for (const char c : name) {
    if (!is_alnum(c) || (is_upper(c) && !out.back().empty())) out.emplace_back();
    if (is_alnum(c)) out.back() += to_lower(c);
  }
  return out;
}

bool have_one_of(const std::vector<std::string>& words, Words wanted) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::find(wanted, word) != wanted.end();
  });
}

std::string read_reason(const ToolInfo& tool) {
  return tool.read_only == true ? "if it reads files; it says that it changes nothing"
                                : "if it reads files";
}

std::string write_reason(const ToolInfo& tool) {
  if (tool.destructive == false) return "if it changes files; it says that it only adds";
  return tool.destructive == true ? "if it changes files; it says that it may overwrite or delete"
                                  : "if it changes files; it may overwrite or delete";
}

std::string net_reason(const ToolInfo& tool) {
  if (tool.open_world == false) {
    return "its name suggests the network, but it says that its world is closed";
  }
  return tool.open_world == true ? "one line for each host; it says that it reaches others"
                                 : "one line for each host, if it reaches others";
}

char32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  char32_t out = byte(0) & (sequence.size() == 1 ? 0xffU : 0x7fU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) out = (out << 6) | (byte(i) & 0x3fU);
  return out;
}

// A double-quoted scalar in ASCII: readers of YAML differ in what a line break is.
std::string yaml_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(utf8_length(text), 1));
    const char c = sequence.front();
    if (c == '"' || c == '\\') out += '\\';
    if (is_printable_ascii(c)) {
      out += c;
    } else {
      out += format("\\U{:08x}", static_cast<std::uint32_t>(code_point(sequence)));
    }
    text.remove_prefix(sequence.size());
  }
  return out + '"';
}

// Line breaks of YAML and what its readers refuse, beyond what a terminal must not see.
constexpr std::string_view breaks_in_yaml[] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf",
                                               "\xef\xbf\xbe", "\xef\xbf\xbf"};

bool is_unsafe_in_yaml(std::string_view sequence) {
  const bool is_c1 = sequence.size() == 2 && sequence[0] == '\xc2' &&
                     static_cast<unsigned char>(sequence[1]) < 0xa0;
  return is_c1 || std::ranges::find(breaks_in_yaml, sequence) != std::end(breaks_in_yaml);
}

std::string head(const Starter& starter) {
  const std::string file = comment_text(starter.file);
  return format(
      "# What this server may do. Written by capgate init from what the server said of itself\n"
      "# (protocol {}): every tool starts with nothing. Replace [] by what the tool needs, and\n"
      "# take no hint for granted. It is denied whatever is not written here.\n"
      "#\n"
      "#   capgate run -m {} --trace - -- COMMAND   what is refused, and what would allow it\n"
      "#   capgate check {}                         is it right?\n"
      "#   capgate explain {}                       what it grants, in words\n",
      comment_text(starter.server.protocol), file, file, file);
}

std::string tool_yaml(const ToolInfo& tool) {
  std::string out;
  const std::string about = comment_text(tool.description.empty() ? tool.title : tool.description);
  out += format("  - name: {}\n", yaml_string(tool.name));
  if (!about.empty()) out += format("    # {}\n", about);
  out += "    capabilities: []\n";
  for (const Suggestion& suggestion : suggest(tool)) {
    out += format("    #  - {:<32} # {}\n", suggestion.capability, suggestion.reason);
  }
  return out;
}

}  // namespace

std::vector<Suggestion> suggest(const ToolInfo& tool) {
  const std::vector<std::string> words = words_of(tool.name);
  std::vector<Suggestion> out;
  const bool names_files = have_one_of(words, file_words);
  if (tool.read_only == true || names_files) {
    out.push_back({"fs:read:/DIRECTORY/**", read_reason(tool)});
  }
  if (tool.read_only != true || have_one_of(words, write_words)) {
    out.push_back({"fs:write:/DIRECTORY/**", write_reason(tool)});
  }
  if (tool.open_world != false || have_one_of(words, net_words)) {
    out.push_back({"net:connect:HOST:443", net_reason(tool)});
  }
  if (have_one_of(words, exec_words)) {
    out.push_back({"exec:spawn:PROGRAM", "one line for each program, if it starts any"});
  }
  if (std::ranges::find(words, "git") != words.end()) {
    out.push_back({"exec:spawn:git", "if it starts git"});
  }
  if (have_one_of(words, time_words)) {
    out.push_back({"clock:tzdata", "if it converts between time zones"});
  }
  return out;
}

std::string comment_text(std::string_view text) {
  text = trim(text);
  text = text.substr(0, text.find('\n'));
  std::string out;
  while (!text.empty() && out.size() < longest_comment) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const std::string_view sequence = text.substr(0, length);
    if (sequence == "\t" || sequence == "\r") {
      out += ' ';
    } else {
      out += is_unsafe_in_yaml(sequence) ? "?" : escape_for_terminal(sequence);
    }
    text.remove_prefix(length);
  }
  if (!text.empty()) out += "...";
  return std::string(trim(out));
}

std::string starter_yaml(const Starter& starter) {
  std::string out = head(starter);
  out += format("name: {}\nversion: {}\n", yaml_string(starter.name), yaml_string(starter.version));
  out +=
      "# What the server needs whichever tool is called, to start for example:\n"
      "serverCapabilities: []\n"
      "#  - env:inject:NAME                  # a variable of yours, such as a token\n";
  out += starter.server.tools.empty() ? "tools: []\n" : "tools:\n";
  for (const ToolInfo& tool : starter.server.tools) out += tool_yaml(tool);
  return out;
}

void write_starter(const Starter& starter, text::JsonWriter& json) {
  json.begin_object().key("name").string(starter.name).key("version").string(starter.version);
  json.key("serverCapabilities").begin_array().end_array().key("tools").begin_array();
  for (const ToolInfo& tool : starter.server.tools) {
    json.begin_object().key("name").string(tool.name);
    json.key("capabilities").begin_array().end_array().end_object();
  }
  json.end_array().end_object();
}

std::string starter_json(const Starter& starter) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  write_starter(starter, json);
  return std::move(json).take() + "\n";
}

}  // namespace capgate::mcp
