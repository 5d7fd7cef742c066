// The broker gives up what it does not need before it sees the first hostile byte: it can make no
// process, run no program, signal nobody and open nothing but the directories of resolv.conf and
// hosts and what it needs beyond, for reading. What is open already (the audit log) stays usable.
#pragma once

#include <string>
#include <vector>

namespace capgate::broker {

// What a broker needs beyond the rest.
struct Needs {
  std::vector<std::string> readable;  // directories with all below, or files
  bool locked_memory = false;
};

// What failed, or empty. There is no half of it: a broker that is not confined must not start.
[[nodiscard]] std::string confine(const Needs& needs);

}  // namespace capgate::broker
