#include "review/report_held.h"

#include "base/format.h"
#include "base/text.h"

namespace capgate::review {
namespace {

// What an artifact holds besides the policy changes nothing about what it keeps: a stand-in lets
// every target answer.
lower::Options with_stand_ins(const lower::Target& target, lower::Options options) {
  using Holds = lower::Target::Holds;
  if (target.holds == Holds::image) {
    options.image = "server";
    options.broker_image = "capgate";
  }
  if (target.holds == Holds::command) options.command = {"/server"};
  return options;
}

// What the refusal of each grant names first, with the grant: "net:listen:80: ".
using Starts = std::map<std::string, std::string>;

Starts starts_of(const core::Policy& policy) {
  Starts out;
  for (std::string& grant : core::policy_lines(policy)) {
    out.emplace(format("{}: ", escape_for_terminal(grant)), grant);
  }
  return out;
}

// "docker cannot enforce net:listen:80: why": the grant with the reason, if the refusal is of one.
// The start of a text is right before it in the order of texts.
bool take_refusal(const Diagnostic& refusal, const Starts& starts, HeldBy& out) {
  constexpr std::string_view verb = " cannot enforce ";
  const std::size_t found = refusal.message.find(verb);
  if (found == std::string::npos) return false;
  const std::string said = refusal.message.substr(found + verb.size());
  auto next = starts.upper_bound(said);
  if (next == starts.begin()) return false;
  const auto& [start, grant] = *--next;
  if (!said.starts_with(start)) return false;
  out.refused.emplace(grant, said.substr(start.size()));
  return true;
}

std::vector<std::string> accepted_of(const HeldBy& held) {
  std::vector<std::string> out;
  out.reserve(held.refused.size());
  for (const auto& [grant, reason] : held.refused) out.push_back(grant);
  return out;
}

}  // namespace

HeldBy ask_target(const lower::Target& target, const lower::Input& input) {
  HeldBy out;
  lower::Options options = with_stand_ins(target, input.options);
  const Starts starts = starts_of(input.policy);
  // A target may look at some grants only when others are settled, so what it refuses is accepted,
  // and it is asked again until it has nothing new to say.
  while (true) {
    options.accepted = accepted_of(out);
    const auto artifact = lower_to(target, {input.manifest, input.policy, options, input.source});
    if (artifact) {
      out.notes = artifact->notes;
      out.problems.clear();
      for (const std::string& grant : artifact->not_covered) {
        out.refused.emplace(grant, "this target is a part of a sandbox, and not this part");
      }
      return out;
    }
    const std::size_t known = out.refused.size();
    out.problems.clear();
    for (const Diagnostic& refusal : artifact.error()) {
      if (refusal.code == Code::accept_unused) continue;
      if (!take_refusal(refusal, starts, out)) out.problems.push_back(refusal.message);
    }
    if (out.refused.size() == known) return out;
  }
}

}  // namespace capgate::review
