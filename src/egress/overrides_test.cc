#include "egress/overrides.h"

#include <gtest/gtest.h>

namespace capgate::egress {
namespace {

TEST(Overrides, AreKnownInAnyCaseAndWithUnderscores) {
  for (const std::string_view name :
       {"X-HTTP-Method-Override", "x-http-method-override", "X_HTTP_METHOD_OVERRIDE",
        "X-Http_Method-Override", "X-Original-URL", "X-Rewrite-Url", "Destination"}) {
    EXPECT_TRUE(is_override_field(name)) << name;
  }
}

TEST(Overrides, OtherFieldsAreNone) {
  for (const std::string_view name : {"", "Host", "X-Forwarded-For", "X-Original",
                                      "X-Original-URLs", "X-Request-Id", "X-HTTP-Method-Overrid"}) {
    EXPECT_FALSE(is_override_field(name)) << name;
  }
}

}  // namespace
}  // namespace capgate::egress
