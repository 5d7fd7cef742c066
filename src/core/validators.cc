#include "core/validators.h"

#include "base/format.h"
#include "base/text.h"
#include "core/built_in.h"

namespace capgate::core {
namespace {

using text::Kind;

void complain(Diagnostics& mistakes, Span where, std::string message) {
  mistakes.push_back(
      {.code = Code::validators_shape,
       .where = where,
       .message = std::move(message),
       .help = "write {\"validators\": {\"assertion.id\": \"how it is verified\"}}"});
}

}  // namespace

Checked<Validators> parse_validators(const text::Document& document) {
  Diagnostics mistakes;
  const text::Value root = document.root();
  const auto list = root.is(Kind::object) ? root.find("validators") : std::nullopt;
  if (!list || !list->is(Kind::object) || root.count() != 1) {
    complain(mistakes, root.span(), "a validators file is an object with the one key validators");
    return std::unexpected(std::move(mistakes));
  }
  std::map<std::string, std::string, std::less<>> out;
  for (const text::Member member : list->members()) {
    if (!member.value.is(Kind::string) || member.value.text().empty()) {
      complain(mistakes, member.value.span(),
               format("{} does not say how it is verified", quoted(member.key.text())));
    }
    out.emplace(member.key.text(), member.value.text());
  }
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes));
  return Validators(std::move(out));
}

std::string_view validator_of(const AssertCapability& assertion, const Validators& validators) {
  if (const auto built_in = built_in_validator(assertion.id); !built_in.empty()) return built_in;
  if (!validators) return {};
  const auto found = validators->find(assertion.id);
  return found == validators->end() ? std::string_view() : std::string_view(found->second);
}

Diagnostics check_assertions(const Policy& policy, const Manifest& manifest,
                             const Validators& validators) {
  Diagnostics mistakes;
  if (!validators) return mistakes;
  for (const auto& grant : policy.assertions) {
    if (!validator_of(grant.capability, validators).empty()) continue;
    mistakes.push_back(
        {.code = Code::assert_unrecognized,
         .where = manifest.declared[grant.origins.front()].where,
         .message = format("no validator covers the assertion {}", grant.capability.id),
         .help = "add it to the validators file with the way in which the host verifies it"});
  }
  return mistakes;
}

}  // namespace capgate::core
