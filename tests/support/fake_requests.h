// Admits and records requests for tests of the relays: a keyring, one path that no rule allows.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seal/relay.h"

namespace capgate::support {

inline constexpr std::string_view placeholder = "ghp_0123456789abcdefghijPLACEHOLDER000";
inline constexpr std::string_view secret_value = "ghp_ZYXWVUTSRQPONMLKJIHGREALVALUE00000";
static_assert(placeholder.size() == secret_value.size());

class FakeRequests final : public seal::Requests {
 public:
  explicit FakeRequests(core::SecretPlace as = {}, std::string_view value = secret_value)
      : secret_(secrets::Secret::make(value)),
        keys_({seal::Key{.name = "TOKEN",
                         .placeholder = std::string(placeholder),
                         .as = std::move(as),
                         .is_bound_here = true,
                         .value = &*secret_}}) {}

  seal::Async<std::expected<seal::Admission, seal::Refused>> admit(
      seal::Request& request) override {
    if (request.target.starts_with("/no")) {
      refusals.emplace_back("no-rule");
      co_return std::unexpected(seal::Refused{.status = 403, .text = "no rule allows it"});
    }
    const bool asks = seal::find_field(request.fields, "accept-encoding") != nullptr;
    auto swapped = keys_.swap(request);
    // The keyring asks for identity also where nothing was said; left out, tests compare heads.
    if (swapped && !asks) request.fields.pop_back();
    if (swapped) co_return seal::Admission{.secrets = *std::move(swapped)};
    refusals.emplace_back(swapped.error().reason);
    co_return std::unexpected(seal::Refused{.status = 403, .text = swapped.error().text});
  }
  [[nodiscard]] const seal::Keyring& keys() const override { return keys_; }
  seal::Refused refuse(const seal::Request& /*as_sent*/, std::string_view reason,
                       std::string_view text) override {
    refusals.emplace_back(reason);
    return {.status = 403, .text = std::string(text)};
  }
  [[nodiscard]] bool record(const seal::Request& as_sent, const seal::Admission& admission,
                            int status) override {
    used.push_back(admission.secrets);
    records.push_back(as_sent.method + " " + as_sent.target + " " + std::to_string(status));
    return can_record;
  }
  void tell_scrubbed(std::size_t count) override { scrubbed += count; }
  void count(egress::LaneName lane, std::size_t bytes) override {
    counted[static_cast<std::size_t>(lane)] += bytes;
  }

  std::vector<std::string> refusals;
  std::vector<std::string> records;
  std::vector<std::vector<std::string>> used;  // the names in each record
  std::size_t scrubbed = 0;
  std::size_t counted[2] = {};
  bool can_record = true;

 private:
  std::optional<secrets::Secret> secret_;
  seal::Keyring keys_;
};

}  // namespace capgate::support
