#include "lower/seccomp_docker.h"

#include <array>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/text.h"

namespace capgate::lower {
namespace {

// The argument values of which certain bits are known: a box in the space of all arguments.
struct Box {
  std::array<std::uint32_t, 6> mask{};
  std::array<std::uint32_t, 6> value{};
};

Box box_of(const Rule& rule) {
  Box box;
  for (const ArgTest& test : rule.when) {
    CAPGATE_ASSERT(test.kind == TestKind::low_half);
    CAPGATE_ASSERT((box.mask[test.arg] & test.mask) == 0);
    box.mask[test.arg] |= test.mask;
    box.value[test.arg] |= test.value;
  }
  return box;
}

bool are_disjoint(const Box& a, const Box& b) {
  for (std::size_t arg = 0; arg < a.mask.size(); ++arg) {
    if (((a.value[arg] ^ b.value[arg]) & a.mask[arg] & b.mask[arg]) != 0) return true;
  }
  return false;
}

void fix_bits(Box& box, std::size_t arg, std::uint32_t bits, std::uint32_t value) {
  box.mask[arg] |= bits;
  box.value[arg] = (box.value[arg] & ~bits) | (value & bits);
}

std::optional<Box> intersection(Box a, const Box& b) {
  if (are_disjoint(a, b)) return std::nullopt;
  for (std::size_t arg = 0; arg < a.mask.size(); ++arg) {
    fix_bits(a, arg, b.mask[arg], b.value[arg]);
  }
  return a;
}

// `whole` without `part`, in boxes that exclude each other: each agrees with `part` in some leading
// bits and differs in the next. Highest bit first, since small numbers share their high zeros.
void append_difference(std::vector<Box>& out, Box whole, const Box& part) {
  if (are_disjoint(whole, part)) {
    out.push_back(whole);
    return;
  }
  for (std::size_t arg = 0; arg < whole.mask.size(); ++arg) {
    for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
      if ((part.mask[arg] & ~whole.mask[arg] & bit) == 0) continue;
      Box differs = whole;
      fix_bits(differs, arg, bit, ~part.value[arg]);
      out.push_back(differs);
      fix_bits(whole, arg, bit, part.value[arg]);
    }
  }
}

// A box, or with `tail_arg` all values of that argument from `tail_first` on.
struct Piece {
  Box box;
  std::optional<unsigned> tail_arg;
  std::uint32_t tail_first = 0;
};

DockerEntry entry_of(core::SyscallId call, const Action& action, const Piece& piece) {
  DockerEntry entry{.call = call, .action = action, .args = {}};
  for (unsigned arg = 0; arg < piece.box.mask.size(); ++arg) {
    if (piece.tail_arg == arg) {
      entry.args.push_back({.index = arg, .op = DockerOp::at_least, .value = piece.tail_first});
    } else if (piece.box.mask[arg] != 0) {
      entry.args.push_back(
          {.index = arg, .mask = piece.box.mask[arg], .value = piece.box.value[arg]});
    }
  }
  return entry;
}

// Whether `box` holds exactly the values of `arg` from `bit` to 2 * bit - 1.
bool is_octave(const Box& box, unsigned arg, std::uint32_t bit) {
  return box.value[arg] == bit && box.mask[arg] == ~(bit - 1);
}

// "Any other number" comes as one box per octave, from the highest bit down: 2^31 and more, 2^30 to
// 2^31 - 1, and so on. append_difference leaves them side by side; they become one "at least".
// Appends what stands for the first of `boxes` and returns for how many it does.
std::size_t append_tail(std::vector<Piece>& out, std::span<const Box> boxes) {
  for (unsigned arg = 0; arg < boxes.front().mask.size(); ++arg) {
    std::size_t count = 0;
    std::uint32_t bit = 1U << 31;
    while (count < boxes.size() && bit != 0 && is_octave(boxes[count], arg, bit)) {
      bit >>= 1;
      ++count;
    }
    if (count < 2) continue;
    out.push_back({.box = boxes.front(), .tail_arg = arg, .tail_first = 1U << (32 - count)});
    return count;
  }
  out.push_back({.box = boxes.front(), .tail_arg = {}});
  return 1;
}

std::vector<Piece> pieces_of(std::span<const Box> boxes, bool merge_tails) {
  std::vector<Piece> pieces;
  while (!boxes.empty()) {
    if (merge_tails) {
      boxes = boxes.subspan(append_tail(pieces, boxes));
    } else {
      pieces.push_back({.box = boxes.front(), .tail_arg = {}});
      boxes = boxes.subspan(1);
    }
  }
  return pieces;
}

bool looks_at_one_argument(std::span<const Rule> rules) {
  std::uint32_t seen = 0;
  for (const Rule& rule : rules) {
    for (const ArgTest& test : rule.when) {
      if (!is_always_true(test)) seen |= 1U << test.arg;
    }
  }
  return std::has_single_bit(seen);
}

// Entries that look at several arguments must leave no case open: libseccomp 2.5.4 miscompiles them
// when none matches in the inner argument. It goes on with the outer one, but may compare the inner
// one's value (seen: socket(AF_INET, SOCK_STREAM, 262) was allowed because SOCK_STREAM is the
// number of AF_UNIX, which was). Other refusals that take many entries ("any other prctl option")
// are left to the default.
bool may_be_left_out(std::span<const Rule> rules, std::size_t entries) {
  constexpr std::size_t many = 16;
  return entries > many && looks_at_one_argument(rules);
}

// runc drops entries that say the same as the default, which is ENOSYS, and EPERM for Docker 20.10:
// where no case may stay open, a refusal must be neither.
Action profile_action(std::span<const Rule> rules, const Action& action) {
  if (action != not_permitted || looks_at_one_argument(rules)) return action;
  return {.kind = ActionKind::error, .error = Errno::eacces};
}

// What one rule decides of what the rules before it left `undecided`.
std::vector<Box> take_decided(std::vector<Box>& undecided, const Rule& rule) {
  const Box applies = box_of(rule);
  std::vector<Box> decided;
  std::vector<Box> rest;
  for (const Box& box : undecided) {
    if (const auto common = intersection(box, applies)) decided.push_back(*common);
    append_difference(rest, box, applies);
  }
  undecided = std::move(rest);
  return decided;
}

// `rules` are those of one call, in order.
void append_call(std::vector<DockerEntry>& out, std::span<const Rule> rules, Precision precision) {
  std::vector<Box> undecided{Box{}};
  const bool is_plain = is_always_true(rules.front().when[0]);
  for (const Rule& rule : rules) {
    const bool shorten = precision == Precision::brief && rule.action != allow && !is_plain;
    const std::vector<Piece> pieces = pieces_of(take_decided(undecided, rule), shorten);
    if (shorten && may_be_left_out(rules, pieces.size())) continue;
    const Action action = shorten ? profile_action(rules, rule.action) : rule.action;
    for (const Piece& piece : pieces) out.push_back(entry_of(rule.call, action, piece));
  }
}

std::string_view action_name(ActionKind kind) {
  switch (kind) {
    case ActionKind::allow: return "SCMP_ACT_ALLOW";
    case ActionKind::error: return "SCMP_ACT_ERRNO";
    case ActionKind::kill_process: return "SCMP_ACT_KILL_PROCESS";
  }
  return "SCMP_ACT_KILL_PROCESS";
}

std::string action_fields(const Action& action) {
  std::string out = format("\"action\":\"{}\"", action_name(action.kind));
  if (action.kind == ActionKind::error) {
    out += format(",\"errnoRet\":{}", static_cast<unsigned>(action.error));
  }
  return out;
}

std::string arg_text(const DockerArg& arg) {
  switch (arg.op) {
    case DockerOp::masked_equal:
      return format("{{\"index\":{},\"value\":{},\"valueTwo\":{},\"op\":\"SCMP_CMP_MASKED_EQ\"}}",
                    arg.index, arg.mask, arg.value);
    case DockerOp::at_least:
      return format("{{\"index\":{},\"value\":{},\"op\":\"SCMP_CMP_GE\"}}", arg.index, arg.value);
  }
  return "";
}

std::string args_field(const DockerEntry& entry) {
  std::vector<std::string> texts;
  texts.reserve(entry.args.size());
  for (const DockerArg& arg : entry.args) {
    texts.push_back(arg_text(arg));
  }
  return format("[{}]", join(texts, ","));
}

// Calls without arguments and with the same action are one line of names.
void append_plain(std::vector<std::string>& lines, std::span<const DockerEntry> entries,
                  const Action& action) {
  std::string names;
  for (const DockerEntry& entry : entries) {
    if (!entry.args.empty() || entry.action != action) continue;
    names += format("{}\"{}\"", names.empty() ? "" : ",", core::syscall_info(entry.call).name);
  }
  if (names.empty()) return;
  lines.push_back(format("{{\"names\":[{}],{}}}", names, action_fields(action)));
}

constexpr std::string_view profile_head = R"({
  "defaultAction": "SCMP_ACT_ERRNO",
  "defaultErrnoRet": 38,
  "archMap": [
    {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
    {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []}
  ],
  "syscalls": [
)";

// Indented for its place in config.json. libseccomp kills who calls by another architecture.
constexpr char oci_head[] = R"({{
      "defaultAction": "SCMP_ACT_ERRNO",
      "defaultErrnoRet": 38,
      "architectures": ["SCMP_ARCH_{}"],
      "syscalls": [
)";

std::vector<std::string> profile_lines(const std::vector<Rule>& rules) {
  const std::vector<DockerEntry> entries = docker_entries(rules, Precision::brief);
  std::vector<std::string> lines;
  for (const Action& action : {allow, not_permitted, not_there}) {
    append_plain(lines, entries, action);
  }
  for (const DockerEntry& entry : entries) {
    if (entry.args.empty()) continue;
    lines.push_back(format("{{\"names\":[\"{}\"],{},\"args\":{}}}",
                           core::syscall_info(entry.call).name, action_fields(entry.action),
                           args_field(entry)));
  }
  return lines;
}

std::string list_of(const std::vector<std::string>& lines, std::string_view indent) {
  std::string json;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    json += format("{}{}{}\n", indent, lines[i], i + 1 < lines.size() ? "," : "");
  }
  return json;
}

}  // namespace

std::vector<DockerEntry> docker_entries(const std::vector<Rule>& rules, Precision precision) {
  std::map<core::SyscallId, std::vector<Rule>> by_call;
  for (const Rule& rule : rules) {
    by_call[rule.call].push_back(rule);
  }
  std::vector<DockerEntry> entries;
  for (const auto& [call, own_rules] : by_call) {
    append_call(entries, own_rules, precision);
  }
  return entries;
}

// defaultErrnoRet is unknown to Docker before 23, which then answers EPERM: no wider. That is why
// the ENOSYS of clone3, on which threads depend, is also an entry of its own.
std::string docker_profile_json(const std::vector<Rule>& rules) {
  return format("{}{}  ]\n}}\n", profile_head, list_of(profile_lines(rules), "    "));
}

std::string oci_seccomp_json(Arch arch, const std::vector<Rule>& rules) {
  return format("{}{}      ]\n    }}",
                format(oci_head, arch == Arch::x86_64 ? "X86_64" : "AARCH64"),
                list_of(profile_lines(rules), "        "));
}

}  // namespace capgate::lower
