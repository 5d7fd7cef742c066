#include "cli/approve_show.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "clients/profile_file.h"
#include "clients/schema_texts.h"
#include "core/describe.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using text::JsonWriter;

std::string shown_policy(const Candidate& candidate) {
  std::string out = format("{}: {} may\n", escape_for_terminal(candidate.file), candidate.server);
  bool any = false;
  core::for_each_grant(candidate.loaded.policy,
                       [&](const core::Capability& capability, const core::Origins&) {
                         any = true;
                         out += format("  - {}\n      {}\n", describe(capability),
                                       escape_for_terminal(print(capability)));
                       });
  out += any ? "and nothing else.\n" : "  do nothing but compute and talk to its client.\n";
  for (const std::string& note : candidate.notes) out += format("note: {}\n", note);
  if (candidate.beyond.empty()) return out;
  out += "Beyond your own configuration:\n";
  for (const std::string& line : candidate.beyond) {
    out += format("  + {}\n", escape_for_terminal(line));
  }
  return out;
}

std::string shown_start(const clients::Pin& pin) {
  std::string out;
  if (!pin.command.empty()) {
    out += format("It is started by: {}\n", clients::print_command(pin.command));
  } else {
    out += "Its entry has no command: neither package nor tools are known, nor compared later.\n";
  }
  if (!pin.interpreter.empty()) {
    out += format("Its first line has it run by: {}\n", escape_for_terminal(pin.interpreter));
  }
  if (pin.package) {
    out +=
        format("Its package: {}:{} {}, {}, run by {}\n", pin.package->registry, pin.package->name,
               pin.package->version, escape_for_terminal(pin.package->integrity),
               escape_for_terminal(pin.package->runtime));
  }
  return out;
}

// All of it is approved, so all of it is shown: a model reads a schema like a description.
std::string shown_tool(const clients::PinnedTool& tool) {
  constexpr std::string_view indent = "      ";
  std::string out = format("  {}\n", quoted(tool.name));
  const auto add = [&](std::string_view what, const std::string& text) {
    if (!text.empty()) out += format("    its {}:\n{}", what, text);
  };
  const auto text_of = [&](const std::string& text) {
    return text.empty() ? "" : clients::shown_text(text, indent);
  };
  out += tool.description.empty() ? std::string("      (no description)\n")
                                  : text_of(tool.description);
  add("title", text_of(tool.title));
  add("parameters", clients::schema_texts(tool.input_schema, indent));
  add("results", clients::schema_texts(tool.output_schema, indent));
  add("annotations", text_of(tool.annotations));
  add("other words", text_of(tool.other));
  return out;
}

std::string shown_tools(const clients::Pin& pin) {
  const std::vector<clients::PinnedTool>& tools = *pin.tools;
  std::string out;
  if (pin.instructions && !pin.instructions->empty()) {
    out += "It says to the model:\n" + clients::shown_text(*pin.instructions, "      ");
  }
  if (pin.declares && !pin.declares->empty()) {
    out += "It declares to have:";
    for (const std::string& name : *pin.declares) out += " " + quoted(name);
    out += "\n";
  }
  out += format("It lists {} tool{}{}\n", tools.size(), tools.size() == 1 ? "" : "s",
                tools.empty() ? "." : ":");
  for (const clients::PinnedTool& tool : tools) out += shown_tool(tool);
  return out;
}

void write_strings(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

}  // namespace

std::string shown(const Review& review) {
  std::string out = shown_policy(review.candidate) + shown_start(review.now);
  // What a lock says nobody may have looked at here.
  const bool saw_tools = std::ranges::any_of(review.before, [](const Before& before) {
    return before.is_own_record && before.pin.tools.has_value();
  });
  if (review.now.tools && !saw_tools) out += shown_tools(review.now);
  if (!review.now.tools && !review.now.command.empty()) {
    out += "Its tools were not asked for: a change of them is not noticed.\n";
  }
  for (const Before& before : review.before) {
    out += before.change.is_empty()
               ? format("The same as {}.\n", before.name)
               : format("Compared with {}, this changed:\n{}", before.name, print(before.change));
  }
  return out;
}

std::string review_json(const Review& review, bool is_approved) {
  const Candidate& candidate = review.candidate;
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("server").string(candidate.server).key("directory").string(candidate.scope);
  json.key("file").string(candidate.file).key("hash").string(candidate.hash);
  json.key("approved").boolean(is_approved);
  write_strings(json.key("policy"), core::policy_lines(candidate.loaded.policy));
  write_strings(json.key("beyond"), candidate.beyond);
  if (!review.lock.empty()) json.key("lock").string(review.lock);
  if (!review.before.empty()) {
    json.key("changed").boolean(std::ranges::any_of(
        review.before, [](const Before& before) { return !before.change.is_empty(); }));
    write_json(review.before.front().change, json.key("change"));
  }
  if (review.before.size() > 1) write_json(review.before[1].change, json.key("lockChange"));
  write_pin(review.now, json.key("pin"));
  json.end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::cli
