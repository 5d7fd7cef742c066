#include "core/grammar_detail.h"

namespace capgate::core::grammar {
namespace {

// Spaces around an action are a matter of taste; control characters are not.
std::string_view trim_spaces(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (const auto best = closest(word, candidates)) return format("did you mean {}?", *best);
  std::string known;
  for (const std::string_view candidate : candidates) {
    known += format("{}{}", known.empty() ? "" : ", ", candidate);
  }
  return format("known are: {}", known);
}

Result<Actions> parse_actions(const Field& field, std::string_view kind,
                              std::span<const std::string_view> known) {
  if (field.text.empty()) {
    return fail(Code::cap_actions_empty, field.where, format("{} needs an action", kind),
                format("write {}:{}:...", kind, known.front()));
  }
  Actions actions;
  std::size_t offset = 0;
  for (const std::string_view part : EachPart(field.text, ',')) {
    const std::string_view action = trim_spaces(part);
    const auto found = std::ranges::find(known, action);
    if (found == known.end()) {
      const Span where = field.locate(Span::at(offset, offset + part.size()));
      return fail(Code::cap_action_unknown, where,
                  format("{} has no action {}", kind, quoted(action)), did_you_mean(action, known));
    }
    actions.set(static_cast<std::size_t>(found - known.begin()));
    offset += part.size() + 1;
  }
  return actions;
}

Result<void> check_shape(const Fields& fields, std::size_t least, std::size_t most, Code code,
                         std::string_view form) {
  if (fields.count >= least && fields.count <= most) return {};
  std::string help = "add what is missing";
  if (fields.count > most) {
    help = fields.kind.text == "fs" || fields.kind.text == "ipc"
               ? "a scope that holds ':' stands in double quotes"
               : "remove what does not belong to it; an IPv6 address stands in brackets";
  }
  return fail(code, fields.rest.where, format("{} is written {}", fields.kind.text, form),
              std::move(help));
}

Result<void> RefinementReader::check(std::string_view repeatable) const {
  for (const Refinement& refinement : fields_.refinements) {
    const std::string_view key = refinement.key.text;
    if (!contains(known_, key)) {
      return fail(Code::cap_refinement, refinement.key.where,
                  format("{} has no refinement {}", fields_.kind.text, quoted(key)),
                  known_.empty() ? "remove it" : did_you_mean(key, known_));
    }
    if (key != repeatable && find(key) != &refinement) {
      return fail(Code::cap_refinement, refinement.key.where,
                  format("refinement {} is given twice", key), "keep one of them");
    }
  }
  return {};
}

const Refinement* RefinementReader::find(std::string_view key) const {
  const auto it =
      std::ranges::find(fields_.refinements, key, [](const Refinement& r) { return r.key.text; });
  return it == fields_.refinements.end() ? nullptr : &*it;
}

Result<bool> RefinementReader::flag(std::string_view key) const {
  const Refinement* refinement = find(key);
  if (refinement == nullptr) return false;
  if (refinement->value.text == "true") return true;
  return fail(Code::cap_refinement, refinement->value.where, format("{} is true or absent", key),
              format("write {}=true, or remove it", key));
}

Result<std::optional<std::size_t>> RefinementReader::choice(
    std::string_view key, std::span<const std::string_view> choices) const {
  const Refinement* refinement = find(key);
  if (refinement == nullptr) return std::nullopt;
  const auto it = std::ranges::find(choices, refinement->value.text);
  if (it == choices.end()) {
    return fail(Code::cap_refinement, refinement->value.where,
                format("{} cannot be {}", key, quoted(refinement->value.text)),
                did_you_mean(refinement->value.text, choices));
  }
  return static_cast<std::size_t>(it - choices.begin());
}

}  // namespace capgate::core::grammar
