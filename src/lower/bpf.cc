#include "lower/bpf.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "base/assert.h"

namespace capgate::lower {
namespace {

std::uint32_t answer_of(const Action& action) {
  switch (action.kind) {
    case ActionKind::allow: return bpf::answer_allow;
    case ActionKind::error: return bpf::answer_errno | static_cast<std::uint32_t>(action.error);
    case ActionKind::kill_process: return bpf::answer_kill_process;
  }
  return bpf::answer_kill_process;
}

// Where in the code that is written so far: counted from the end of the program.
using Label = std::size_t;

// Writes the program from its last instruction to its first. Jumps only go forward, so that every
// target is known when the jump to it is written, and distances never change afterwards.
class BackwardWriter {
 public:
  BackwardWriter() { reversed_.reserve(typical_size); }

  Label emit(BpfInstruction instruction) {
    reversed_.push_back(instruction);
    return reversed_.size() - 1;
  }

  // One answer serves many jumps; a new one is written when the last is out of reach.
  Label answer(std::uint32_t k) {
    const auto known = std::ranges::find(answers_, k, &std::pair<std::uint32_t, Label>::first);
    if (known != answers_.end() && distance(known->second) <= reach) return known->second;
    const Label label = emit({.code = bpf::answer, .k = k});
    if (known == answers_.end()) {
      answers_.emplace_back(k, label);
    } else {
      known->second = label;
    }
    return label;
  }

  Label branch(std::uint16_t code, std::uint32_t k, Label yes, Label no) {
    if (distance(yes) >= reach) yes = hop_to(yes);  // one less: a hop to `no` moves it away by one
    if (distance(no) > reach) no = hop_to(no);
    return emit({.code = code,
                 .jt = static_cast<std::uint8_t>(distance(yes)),
                 .jf = static_cast<std::uint8_t>(distance(no)),
                 .k = k});
  }

  // What is written next falls through to `target`.
  void continue_at(Label target) {
    if (distance(target) != 0) hop_to(target);
  }

  void mark_token_word(Label label, unsigned word) {
    token_words_.emplace_back(label, static_cast<std::uint8_t>(word));
  }

  [[nodiscard]] BpfProgram finish(Arch arch) && {
    BpfProgram program{.arch = arch, .code = {}, .token_patches = {}};
    for (const auto& [label, word] : token_words_ | std::views::reverse) {
      const auto index = static_cast<std::uint32_t>(reversed_.size() - 1 - label);
      program.token_patches.push_back({.index = index, .word = word});
    }
    std::ranges::reverse(reversed_);
    program.code = std::move(reversed_);
    CAPGATE_ASSERT(program.code.size() <= max_instructions);
    return program;
  }

 private:
  static constexpr std::size_t reach = 255;  // jt and jf have eight bits
  static constexpr std::size_t typical_size = 512;

  // What an instruction that is written now must skip to arrive at `label`.
  [[nodiscard]] std::size_t distance(Label label) const { return reversed_.size() - label - 1; }

  // A long jump, or simply the same answer again.
  Label hop_to(Label label) {
    const BpfInstruction target = reversed_[label];
    if (target.code == bpf::answer) return emit(target);
    return emit({.code = bpf::jump, .k = static_cast<std::uint32_t>(distance(label))});
  }

  std::vector<BpfInstruction> reversed_;
  std::vector<std::pair<std::uint32_t, Label>> answers_;
  std::vector<std::pair<Label, std::uint8_t>> token_words_;
};

// One rule on this architecture. Sorted by number, then by place in the list.
struct NumberedRule {
  std::uint32_t number = 0;
  const Rule* rule = nullptr;
};

// Numbers from `first` up to the next range have the same rules; none means ENOSYS.
struct Range {
  std::uint32_t first = 0;
  std::span<const NumberedRule> rules;
};

bool is_unconditional(const Rule& rule) { return is_always_true(rule.when[0]); }

// The one answer of a range, if no argument matters there.
std::optional<Action> plain_answer(std::span<const NumberedRule> rules) {
  if (rules.empty()) return not_there;
  if (is_unconditional(*rules.front().rule)) return rules.front().rule->action;
  return std::nullopt;
}

// As plain integers, number above place: sorting those takes a third of the time.
std::vector<NumberedRule> sorted_by_number(Arch arch, const std::vector<Rule>& rules) {
  std::vector<std::uint32_t> keys;
  keys.reserve(rules.size());
  for (std::uint32_t place = 0; place < rules.size(); ++place) {
    const int number = syscall_number(arch, rules[place].call);
    if (number != core::absent) keys.push_back((static_cast<std::uint32_t>(number) << 16) | place);
  }
  std::ranges::sort(keys);

  std::vector<NumberedRule> sorted;
  sorted.reserve(keys.size());
  for (const std::uint32_t key : keys) sorted.push_back({key >> 16, &rules[key & 0xffff]});
  return sorted;
}

// Neighbours with the same plain answer are one range: most of the table disappears here.
void append_merging(std::vector<Range>& ranges, Range next) {
  if (!ranges.empty()) {
    const auto answer = plain_answer(next.rules);
    if (answer && plain_answer(ranges.back().rules) == answer) return;
  }
  ranges.push_back(next);
}

std::vector<Range> find_ranges(std::span<const NumberedRule> sorted) {
  std::vector<Range> ranges;
  ranges.reserve(sorted.size());
  std::uint32_t next_number = 0;
  for (std::size_t begin = 0; begin < sorted.size();) {
    const std::uint32_t number = sorted[begin].number;
    std::size_t end = begin;
    while (end < sorted.size() && sorted[end].number == number) {
      ++end;
    }
    if (number > next_number) append_merging(ranges, {.first = next_number, .rules = {}});
    append_merging(ranges, {.first = number, .rules = sorted.subspan(begin, end - begin)});
    next_number = number + 1;
    begin = end;
  }
  append_merging(ranges, {.first = next_number, .rules = {}});
  return ranges;
}

// The code of one rule can be entered before its first test, or past the loading of its argument.
struct RuleEntry {
  const Rule* rule = nullptr;  // null: the end of the list
  Label start = 0;
  Label loaded = 0;
};

bool loads_the_same(const ArgTest& a, const ArgTest& b) {
  return a.kind == TestKind::low_half && b.kind == TestKind::low_half && a.arg == b.arg &&
         a.mask == b.mask;
}

// Where to go on when `failed` does not hold: past the rules that ask the same again, and past a
// load of what the accumulator still has. `later` is in the order of the rules.
Label after_failing(const ArgTest& failed, std::span<const RuleEntry> later) {
  const auto next = std::ranges::find_if(later, [&](const RuleEntry& entry) {
    return entry.rule == nullptr ||
           std::ranges::find(entry.rule->when, failed) == entry.rule->when.end();
  });
  const bool skip_load = next->rule != nullptr && loads_the_same(failed, next->rule->when[0]);
  return skip_load ? next->loaded : next->start;
}

// Both halves of an argument against two words of the token.
Label write_token_test(BackwardWriter& out, std::uint8_t arg, Label yes, Label no) {
  constexpr std::uint8_t first_token_arg = 3;
  const unsigned low_word = 2U * (arg - first_token_arg);
  const Label high = out.branch(bpf::jump_if_equal, 0, yes, no);
  out.mark_token_word(high, low_word + 1);
  const Label load_high = out.emit({.code = bpf::load, .k = bpf::offset_high(arg)});
  const Label low = out.branch(bpf::jump_if_equal, 0, load_high, no);
  out.mark_token_word(low, low_word);
  return out.emit({.code = bpf::load, .k = bpf::offset_low(arg)});
}

RuleEntry write_rule(BackwardWriter& out, const Rule& rule, std::span<const RuleEntry> later) {
  RuleEntry entry{.rule = &rule, .start = out.answer(answer_of(rule.action))};
  for (const ArgTest& test : rule.when | std::views::reverse) {
    if (is_always_true(test)) continue;
    const Label otherwise = after_failing(test, later);
    if (test.kind == TestKind::token) {
      entry.start = write_token_test(out, test.arg, entry.start, otherwise);
      continue;
    }
    entry.loaded = out.branch(bpf::jump_if_equal, test.value, entry.start, otherwise);
    if (test.mask != 0xffffffff) out.emit({.code = bpf::mask, .k = test.mask});
    entry.start = out.emit({.code = bpf::load, .k = bpf::offset_low(test.arg)});
  }
  return entry;
}

Label write_rules(BackwardWriter& out, std::span<const NumberedRule> rules) {
  std::vector<RuleEntry> entries(rules.size() + 1);
  entries.back().start = out.answer(answer_of(not_there));
  for (std::size_t i = rules.size(); i-- > 0;) {
    entries[i] = write_rule(out, *rules[i].rule, std::span(entries).subspan(i + 1));
  }
  return entries.front().start;
}

Label write_search(BackwardWriter& out, std::span<const Range> ranges) {
  if (ranges.size() == 1) {
    const auto answer = plain_answer(ranges[0].rules);
    return answer ? out.answer(answer_of(*answer)) : write_rules(out, ranges[0].rules);
  }
  const std::size_t middle = ranges.size() / 2;
  const Label right = write_search(out, ranges.subspan(middle));
  const Label left = write_search(out, ranges.first(middle));
  return out.branch(bpf::jump_if_at_least, ranges[middle].first, right, left);
}

// The architecture first: other ones have other numbers. x32 calls report the architecture x86_64
// and set a bit in the number, so that a range search would find them "unknown" at best.
void write_prologue(BackwardWriter& out, Arch arch, Label search) {
  const std::uint32_t kill = bpf::answer_kill_process;
  if (arch == Arch::x86_64) {
    const Label refuse_x32 = out.answer(kill);
    search = out.branch(bpf::jump_if_at_least, bpf::x32_bit, refuse_x32, search);
  }
  out.continue_at(search);
  const Label number = out.emit({.code = bpf::load, .k = bpf::offset_number});
  const Label refuse_arch = out.answer(kill);
  const std::uint32_t audit = arch == Arch::x86_64 ? bpf::audit_x86_64 : bpf::audit_aarch64;
  out.branch(bpf::jump_if_equal, audit, number, refuse_arch);
  out.emit({.code = bpf::load, .k = bpf::offset_arch});
}

void append_little_endian(std::string& out, std::uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) {
    out += static_cast<char>((value >> (8 * i)) & 0xff);
  }
}

}  // namespace

BpfProgram assemble(Arch arch, const std::vector<Rule>& rules) {
  const std::vector<NumberedRule> sorted = sorted_by_number(arch, rules);
  BackwardWriter out;
  write_prologue(out, arch, write_search(out, find_ranges(sorted)));
  return std::move(out).finish(arch);
}

BpfProgram bind_token(BpfProgram program, const ExecToken& token) {
  CAPGATE_ASSERT(token[0] != 0 && token[4] != 0);
  for (const TokenPatch& patch : program.token_patches) {
    program.code[patch.index].k = token[patch.word];
  }
  return program;
}

std::string to_bytes(const BpfProgram& program) {
  std::string bytes;
  bytes.reserve(program.code.size() * 8);
  for (const BpfInstruction& instruction : program.code) {
    append_little_endian(bytes, instruction.code, 2);
    append_little_endian(bytes, instruction.jt, 1);
    append_little_endian(bytes, instruction.jf, 1);
    append_little_endian(bytes, instruction.k, 4);
  }
  return bytes;
}

}  // namespace capgate::lower
