#include "seal/keyrings.h"

#include <gtest/gtest.h>

#include <ctime>
#include <optional>

#include "core/grammar.h"
#include "support/loopback.h"

namespace capgate::seal {
namespace {

constexpr std::string_view placeholder = "placeholder-0123456789abcdef";

class KeyringsTest : public testing::Test {
 protected:
  KeyringsTest() {
    const auto capability = core::parse_capability("env:inject:TOKEN?to=api.example.com:443", {});
    policy_.seals.push_back({.env = std::get<core::EnvCapability>(capability->front()),
                             .placeholder = std::string(placeholder),
                             .position = "test:1:1"});
  }
  // "TOKEN" expires in so many seconds.
  [[nodiscard]] Values values(std::int64_t seconds) {
    std::vector<secrets::Handed> handed(1);
    handed[0].name = "TOKEN";
    handed[0].value = *secrets::Secret::make("the-value");
    handed[0].expires = std::time(nullptr) + seconds;
    return {stage_.loop, std::move(handed), sys::Fd()};
  }
  // What becomes of a request with the placeholder: the field as it is sent, or why it is refused.
  static std::string sent(Keyrings& keyrings, std::string_view host, std::uint16_t port) {
    Request request{.method = "GET",
                    .target = "/",
                    .authority = std::string(host),
                    .fields = {{.name = "Authorization", .value = std::string(placeholder)}}};
    const auto swapped = keyrings.at(*core::parse_host(host), port).swap(request);
    return swapped ? request.fields[0].value : std::string(swapped.error().reason);
  }

  support::Stage stage_;
  egress::Policy policy_;
};

TEST_F(KeyringsTest, GiveAValueToItsEndpointOnly) {
  const Values valid = values(3600);
  Keyrings keyrings(policy_, valid);
  EXPECT_EQ(sent(keyrings, "api.example.com", 443), "the-value");
  EXPECT_EQ(sent(keyrings, "api.example.com", 444), "other-host");
  EXPECT_EQ(sent(keyrings, "example.com", 443), "other-host");
  EXPECT_EQ(sent(keyrings, "api.example.com", 443), "the-value");
}

TEST_F(KeyringsTest, GiveNoValueThatHasExpired) {
  const Values expired = values(-1);
  Keyrings keyrings(policy_, expired);
  EXPECT_EQ(sent(keyrings, "api.example.com", 443), "not-renewed");
}

// The keyring of an endpoint is kept, but not with a value that has expired since.
TEST_F(KeyringsTest, NoticeThatAValueHasExpired) {
  std::optional<Values> current(values(3600));
  Keyrings keyrings(policy_, *current);
  EXPECT_EQ(sent(keyrings, "api.example.com", 443), "the-value");
  current.emplace(values(-1));
  EXPECT_EQ(sent(keyrings, "api.example.com", 443), "not-renewed");
}

}  // namespace
}  // namespace capgate::seal
