// DNS messages for tests: queries written as a client would, replies read as a client would. Knows
// nothing of src/egress, so that the two cannot share a mistake.
//
//   const auto reply = support::read_dns_reply(bytes);  // none: no client could read it
//   reply->answers[0].data
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::support {

using DnsBytes = std::vector<std::uint8_t>;

inline void append_word(DnsBytes& out, unsigned value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8U));
  out.push_back(static_cast<std::uint8_t>(value));
}

// "a.test" -> 1 a 4 t e s t 0. Labels are not checked.
[[nodiscard]] inline DnsBytes dns_name(std::string_view text) {
  DnsBytes out;
  while (!text.empty()) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    out.push_back(static_cast<std::uint8_t>(dot));
    out.insert(out.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(dot));
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  out.push_back(0);
  return out;
}

// An OPT record as dig sends it.
[[nodiscard]] inline DnsBytes dns_opt(std::uint8_t version = 0, const DnsBytes& options = {}) {
  DnsBytes out = {0, 0, 41, 0x10, 0, 0, version, 0x80, 0};
  append_word(out, static_cast<unsigned>(options.size()));
  out.insert(out.end(), options.begin(), options.end());
  return out;
}

struct DnsQuestion {
  DnsBytes name;
  unsigned type = 1;
  unsigned class_number = 1;
  unsigned flags = 0x0100;  // RD
  std::vector<DnsBytes> additional = {};

  [[nodiscard]] DnsBytes bytes() const {
    DnsBytes out;
    append_word(out, 0xbeef);
    append_word(out, flags);
    append_word(out, 1);
    append_word(out, 0);
    append_word(out, 0);
    append_word(out, static_cast<unsigned>(additional.size()));
    out.insert(out.end(), name.begin(), name.end());
    append_word(out, type);
    append_word(out, class_number);
    for (const DnsBytes& record : additional) out.insert(out.end(), record.begin(), record.end());
    return out;
  }
};

struct DnsRecord {
  std::string name;
  unsigned type = 0;
  unsigned class_number = 0;
  std::uint32_t seconds = 0;
  DnsBytes data;
};

struct DnsMessage {
  unsigned id = 0;
  unsigned flags = 0;
  std::vector<DnsRecord> questions;
  std::vector<DnsRecord> answers;
  std::vector<DnsRecord> authorities;
  std::vector<DnsRecord> additionals;

  [[nodiscard]] unsigned rcode() const {
    unsigned code = flags & 0xfU;
    for (const DnsRecord& record : additionals) {
      if (record.type == 41) code |= record.seconds >> 24U << 4U;
    }
    return code;
  }
};

class DnsReader {
 public:
  explicit DnsReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::optional<DnsMessage> message() {
    DnsMessage out{.id = number(2), .flags = number(2)};
    unsigned counts[4] = {};
    for (unsigned& count : counts) count = number(2);
    records(out.questions, counts[0], true);
    records(out.answers, counts[1], false);
    records(out.authorities, counts[2], false);
    records(out.additionals, counts[3], false);
    if (failed_ || at_ != bytes_.size()) return {};
    return out;
  }

  // The labels with dots between them, case kept; pointers are followed backwards only.
  std::string name() {
    std::string out;
    std::optional<std::size_t> back;  // where to go on after pointers
    while (!failed_) {
      const std::size_t start = at_;
      const unsigned length = number(1);
      if (length == 0) break;
      if (length >= 0xc0) {
        const std::size_t target = (length & 0x3fU) << 8U | number(1);
        if (!back) back = at_;
        if (target >= start) failed_ = true;
        at_ = target;
        continue;
      }
      if (length > 63 || out.size() > 255) failed_ = true;
      if (!out.empty()) out += '.';
      for (unsigned i = 0; i < length && !failed_; ++i) out += static_cast<char>(number(1));
    }
    if (back) at_ = *back;
    return out;
  }

 private:
  std::uint32_t number(unsigned size) {
    std::uint32_t out = 0;
    for (; size != 0; --size) {
      if (at_ >= bytes_.size()) {
        failed_ = true;
        return 0;
      }
      out = out << 8U | bytes_[at_++];
    }
    return out;
  }

  void records(std::vector<DnsRecord>& out, unsigned count, bool are_questions) {
    for (; count != 0 && !failed_; --count) {
      DnsRecord record{.name = name(), .type = number(2), .class_number = number(2)};
      if (!are_questions) {
        record.seconds = number(4);
        for (unsigned left = number(2); left != 0 && !failed_; --left) {
          record.data.push_back(static_cast<std::uint8_t>(number(1)));
        }
      }
      out.push_back(std::move(record));
    }
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

[[nodiscard]] inline std::optional<DnsMessage> read_dns_reply(std::span<const std::uint8_t> bytes) {
  return DnsReader(bytes).message();
}

}  // namespace capgate::support
