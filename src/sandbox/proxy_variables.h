// The variables that tell a program of a proxy. For capgate, and for capgate-init, which has no
// library.
//
// ALL_PROXY is not among them: Python's clients fail on it with a SOCKS address (docs/adr/0014).
#pragma once

namespace capgate::sandbox {

inline constexpr const char* proxy_names[] = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
                                              "https_proxy"};
inline constexpr const char* no_proxy_names[] = {"NO_PROXY", "no_proxy"};
inline constexpr const char* no_proxy_places = "localhost,127.0.0.1,::1";

}  // namespace capgate::sandbox
