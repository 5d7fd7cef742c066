// Any bytes at all: read_audit_line gives a record that is safe to print, or a place in the line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "egress/audit_read.h"

namespace {

using namespace capgate;

void check_record(const egress::AuditRecord& record, std::string_view line) {
  for (const std::string* text :
       {&record.time, &record.sandbox, &record.server, &record.host, &record.address,
        &record.server_name, &record.protocol, &record.rule, &record.position, &record.reason,
        &record.text, &record.remedy, &record.previous}) {
    CAPGATE_ASSERT(escape_for_terminal(*text) == *text);
  }
  CAPGATE_ASSERT(egress::parse_audit_time(record.time).has_value());
  CAPGATE_ASSERT(record.port.value_or(1) >= 1 && record.port.value_or(1) <= 65535);
  // There is one spelling of a line: another byte in it is another record, or none.
  std::string other(line);
  other[line.size() / 2] ^= 1;
  const auto changed = egress::read_audit_line(other);
  CAPGATE_ASSERT(!changed || *changed != record);
}

}  // namespace

// Each line is read alone, and all of them as a chain.
// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  egress::AuditChain chain;
  unsigned faults = 0;
  std::uint64_t lines = 0;
  for (const std::string_view line : EachPart(input, '\n')) {
    ++lines;
    if (const auto read = egress::read_audit_line(line)) {
      check_record(*read, line);
    } else {
      CAPGATE_ASSERT(read.error().offset <= line.size() && !read.error().message.empty());
    }
    if (const auto fault = chain.feed(line)) {
      ++faults;
      CAPGATE_ASSERT(fault->line >= 1 && fault->line <= lines);
      CAPGATE_ASSERT(escape_for_terminal(fault->message) == fault->message);
    }
  }
  if (chain.finish(size % 2 == 0)) ++faults;
  CAPGATE_ASSERT(faults <= 1 && chain.lines() == lines && chain.runs() <= lines);
  return 0;
}
