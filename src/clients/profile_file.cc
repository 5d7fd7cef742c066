#include "clients/profile_file.h"

#include <algorithm>

#include "base/digest.h"
#include "base/format.h"
#include "base/shell.h"
#include "base/text.h"

namespace capgate::clients {
namespace {

constexpr std::size_t longest_name = 64;  // of --profile

bool is_name_character(char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; }

// Characters that YAML refuses, folds or takes for the end of a line: controls, NEL, LS, PS, a byte
// order mark, and what is no character.
bool is_special(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0xa0) || (c >= 0x2028 && c <= 0x2029) || c == 0xfeff ||
         (c & 0xfffe) == 0xfffe;
}

struct Character {
  char32_t code = 0;
  std::size_t size = 1;
};

Character first_character(std::string_view text) {
  const std::size_t size = utf8_length(text);
  if (size == 0) return {.code = 0xfffd, .size = 1};
  constexpr unsigned masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = static_cast<unsigned char>(text[0]) & masks[size];
  for (std::size_t i = 1; i < size; ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  return {.code = code, .size = size};
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.code == '"' || c.code == '\\') {
      out += '\\';
      out += text[0];
    } else if (is_special(c.code)) {
      out += format("\\U{:08X}", static_cast<std::uint32_t>(c.code));
    } else {
      append_utf8(out, c.code);
    }
    text.remove_prefix(c.size);
  }
  return out + '"';
}

// In a comment nothing may end the line.
std::string in_comment(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_character(text);
    if (is_special(c.code)) {
      out += format("\\u{{{:X}}}", static_cast<std::uint32_t>(c.code));
    } else {
      append_utf8(out, c.code);
    }
    text.remove_prefix(c.size);
  }
  return out;
}

std::string comment(std::string_view indent, std::string_view text) {
  return format("{}# {}\n", indent, in_comment(text));
}

// Plain where YAML cannot take it for anything else.
std::string key(std::string_view text) {
  constexpr std::string_view taken[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
  const bool is_plain = !text.empty() && is_alpha(text.front()) &&
                        std::ranges::all_of(text, is_name_character) &&
                        std::ranges::find(taken, to_lower(text)) == std::end(taken);
  return is_plain ? std::string(text) : quote(text);
}

std::string list(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const std::string& word : words) {
    if (out.size() > 1) out += ", ";
    out += quote(word);
  }
  return out + "]";
}

// The only line that names the client.
std::string made_for(const Profile& profile) {
  return comment("", format("Written by `capgate wrap` for {}, read by `capgate run --profile {}`.",
                            profile.client, profile.name));
}

std::string opening(const Profile& profile) {
  std::string out = comment("", format("What the MCP server \"{}\" may do.", profile.server));
  out += made_for(profile);
  out += comment("", "It is yours: what you change here, `wrap` leaves as it is.");
  return out;
}

std::string known_policy(const Profile& profile) {
  std::string out = comment("    ", "A manifest that comes with capgate. It grants:");
  for (const std::string& line : profile.policy) out += comment("    ", "  " + line);
  for (const std::string& note : profile.notes) out += comment("    ", note);
  out += comment("    ", "For another policy write `capabilities: [...]` instead of it.");
  out += format("    manifest: {}\n", quote(profile.manifest));
  if (profile.variables.empty()) return out;
  out += comment("    ", "What ${NAME} stands for in it.");
  out += "    variables:\n";
  for (const core::Binding& binding : profile.variables) {
    out += format("      {}: {}\n", key(binding.name),
                  binding.values.size() == 1 ? quote(binding.values[0]) : list(binding.values));
  }
  return out;
}

std::string empty_policy(const Profile& profile) {
  std::string out =
      comment("    ", "Nothing: capgate does not know this server. See what it needs:");
  out += comment("    ", format("  capgate run --profile {} --trace -", profile.name));
  out += comment("    ", "and write down what you want to allow, one line each, for example");
  out += comment("    ", "  - \"fs:read:/srv/data/**\"");
  out += comment("    ", "  - \"net:connect:api.example.com:443\"");
  return out + "    capabilities: []\n";
}

std::string secrets_part(const Profile& profile) {
  std::string out;
  if (!profile.secrets.empty()) {
    out +=
        comment("    ", format("Kept encrypted: `capgate secret list --server {}`.", profile.name));
    out += "    secrets:\n";
    for (const std::string& name : profile.secrets) {
      out += format("      {}: {}\n", key(name), quote("store:" + name));
    }
  }
  if (profile.seal) {
    out += comment("    ", "The server gets a placeholder; the value goes to its service alone.");
    out += "    seal: true\n";
  }
  if (profile.unused_secrets.empty()) return out;
  out += comment("    ",
                 "Kept encrypted too, but this policy gives them to nobody. For each that the");
  out += comment("    ", "server needs, add env:inject:NAME to the capabilities, and here:");
  for (const std::string& name : profile.unused_secrets) {
    out += comment("    ", format("secrets: {{{}: {}}}", key(name), quote("store:" + name)));
  }
  return out;
}

constexpr std::string_view mark_start = "# As written by capgate: sha256:";

std::string mark_of(std::string_view text) {
  return format("{}{}\n", mark_start, sha256_hex(text));
}

// With its end; empty if there is none.
std::string_view line_after_first(std::string_view text) {
  const std::size_t begin = text.find('\n');
  const std::size_t end = begin == text.npos ? text.npos : text.find('\n', begin + 1);
  return end == text.npos ? std::string_view() : text.substr(begin + 1, end - begin);
}

}  // namespace

bool Profile::says_the_same(const Profile& other) const {
  const auto same_binding = [](const core::Binding& a, const core::Binding& b) {
    return a.name == b.name && a.values == b.values;
  };
  return command == other.command && manifest == other.manifest && secrets == other.secrets &&
         unused_secrets == other.unused_secrets && seal == other.seal &&
         std::ranges::equal(variables, other.variables, same_binding);
}

std::string print_profile(const Profile& profile) {
  std::string out = opening(profile);
  out += format("servers:\n  {}:\n", key(profile.name));
  out += format("    command: {}\n", list(profile.command));
  out += profile.manifest.empty() ? empty_policy(profile) : known_policy(profile);
  out += secrets_part(profile);
  return out + mark_of(out);
}

bool is_as_printed(std::string_view text) {
  const std::size_t mark = text.rfind(mark_start);
  return mark != std::string_view::npos && text.substr(mark) == mark_of(text.substr(0, mark));
}

bool is_for_client_of(std::string_view text, const Profile& profile) {
  return line_after_first(text) == made_for(profile);
}

bool prints_the_same(std::string_view text, const Profile& profile) {
  const std::string other = print_profile(profile);
  const auto without = [](std::string_view all) {
    const std::string_view line = line_after_first(all);
    std::string out(all.substr(0, std::min(all.rfind(mark_start), all.size())));
    if (!line.empty()) out.erase(static_cast<std::size_t>(line.data() - all.data()), line.size());
    return out;
  };
  return without(text) == without(other);
}

std::string profile_name(std::string_view server) {
  std::string out;
  for (const char c : server) {
    const bool is_kept = is_name_character(c) && !(out.empty() && (c == '.' || c == '-'));
    if (is_kept) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  if (out.size() > longest_name) out.resize(longest_name);
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "server" : out;
}

std::string print_command(const std::vector<std::string>& command) {
  std::string out;
  for (const std::string& word : command) {
    if (!out.empty()) out += ' ';
    out += shell_word(word);
  }
  return out;
}

}  // namespace capgate::clients
