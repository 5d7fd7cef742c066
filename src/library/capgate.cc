// The public C++ interface: the steps, with nothing thrown across it.
#include "core/version.h"
#include "library/state.h"
#include "lower/targets.h"

namespace capgate::v0 {
namespace {

std::vector<Target> list_targets() {
  std::vector<Target> all;
  all.reserve(lower::targets().size());
  for (const lower::Target& target : lower::targets()) all.push_back({target.name, target.summary});
  return all;
}

}  // namespace

const std::string& Manifest::name() const noexcept { return state_->outline.name; }
const std::string& Manifest::version() const noexcept { return state_->outline.version; }
const std::vector<std::string>& Manifest::tools() const noexcept { return state_->tools; }
const std::vector<std::string>& Manifest::variables() const noexcept { return state_->variables; }

const std::string& Policy::hash() const noexcept { return state_->policy.hash; }
const std::vector<std::string>& Policy::capabilities() const noexcept {
  return state_->capabilities;
}

Expected<Manifest> parse(std::string_view text, const ParseOptions& options) noexcept {
  return without_exceptions([&]() -> Expected<Manifest> {
    auto document = read_document(text, options.name);
    if (!document) return document.error();
    return outline(*std::move(document));
  });
}

Expected<Policy> compile(const Manifest& manifest, const CompileOptions& options) noexcept {
  return without_exceptions(
      [&] { return compile_document(Access::state(manifest).text, options); });
}

Expected<Artifact> lower(const Policy& policy, std::string_view target,
                         const LowerOptions& options) noexcept {
  return without_exceptions([&] { return lower_policy(policy, target, options); });
}

const std::vector<Target>& targets() noexcept {
  try {
    static const std::vector<Target> all = list_targets();
    return all;
  } catch (...) {
    static const std::vector<Target> none;
    return none;
  }
}

std::string_view version() noexcept { return core::version; }

}  // namespace capgate::v0
