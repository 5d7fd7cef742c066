#include "egress/overrides.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace capgate::egress {
namespace {

// Lower case, sorted.
constexpr auto override_fields = std::to_array<std::string_view>({
    "destination",             // WebDAV: the second path of COPY and MOVE
    "http-method-override",    //
    "x-envoy-original-path",   // Envoy
    "x-forwarded-method",      // authorising proxies
    "x-forwarded-path",        //
    "x-forwarded-prefix",      // Spring, ASP.NET
    "x-forwarded-uri",         //
    "x-http-destinationurl",   //
    "x-http-method",           // Microsoft's OData
    "x-http-method-override",  // Google, Rails, Symfony, Express
    "x-http-path-override",    //
    "x-method",                //
    "x-method-override",       // IBM
    "x-original-method",       //
    "x-original-uri",          //
    "x-original-url",          // IIS, Symfony, Laminas
    "x-override-url",          //
    "x-proxy-url",             //
    "x-request-uri",           //
    "x-rewrite-url",           // IIS, Laminas
});
static_assert(std::ranges::is_sorted(override_fields));

constexpr char folded(char c) { return c == '_' ? '-' : to_lower(c); }

}  // namespace

bool is_override_field(std::string_view name) {
  return std::ranges::any_of(override_fields, [&](std::string_view known) {
    return std::ranges::equal(name, known, {}, folded);
  });
}

}  // namespace capgate::egress
