// How functions fail. Two error types, because two different people must act:
//   Result<T>   the author of the input can fix it       (one Diagnostic)
//   Checked<T>  the same, with every mistake found       (several Diagnostics)
// What the machine refused is sys::SysError, in src/sys.
//
//   Result<Host> host = parse_host(text);
//   const Port port = TRY(parse_port(text));   // returns the error to the caller
#pragma once

#include <expected>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace capgate {

template <typename T>
using Result = std::expected<T, Diagnostic>;

using Diagnostics = std::vector<Diagnostic>;

template <typename T>
using Checked = std::expected<T, Diagnostics>;

// A refusal, ready to be returned from a Result.
[[nodiscard]] inline std::unexpected<Diagnostic> fail(Code code, Span where, std::string message,
                                                      std::string help) {
  return std::unexpected(Diagnostic{
      .code = code, .where = where, .message = std::move(message), .help = std::move(help)});
}

namespace detail {
// Only rvalues: TRY on a named result would move out of it behind the reader's back.
template <typename T>
concept Temporary = !std::is_lvalue_reference_v<T>;
}  // namespace detail

}  // namespace capgate

// The only control-flow macro. Use it as `x = TRY(f())`, `return TRY(f())`, a statement, or a plain
// call argument. Do not nest it, and not inside `new` (the compiler leaks there).
#define TRY(expression)                                                                           \
  __extension__({                                                                                 \
    auto&& try_result = (expression);                                                             \
    static_assert(::capgate::detail::Temporary<decltype((expression))>, "TRY takes a temporary"); \
    if (!try_result) return std::unexpected(std::move(try_result).error());                       \
    *std::move(try_result);                                                                       \
  })
