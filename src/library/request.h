// What a caller of the C interface asks for.
//
//   {"operation": "compile", "manifest": "...", "target": "docker", "options": {"seal": true}}
#pragma once

#include <string>
#include <string_view>

#include "library/state.h"

namespace capgate::v0 {

enum class Operation : unsigned char { compile, check, parse, targets };

struct Request {
  Operation operation = Operation::compile;
  std::string manifest = {};
  std::string name = ParseOptions{}.name;
  std::string target = {};  // empty: the default
  bool pretty = false;
  CompileOptions compile = {};
  LowerOptions lower = {};
};

// Every mistake of a request, each at its place. May throw when there is no memory.
[[nodiscard]] Expected<Request> read_request(std::string_view json);

}  // namespace capgate::v0
