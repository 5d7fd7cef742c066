#include <algorithm>

#include "base/format.h"
#include "lower/bpf.h"

namespace capgate::lower {
namespace {

std::string describe_field(std::uint32_t offset) {
  if (offset == bpf::offset_number) return "call number";
  if (offset == bpf::offset_arch) return "architecture";
  const std::uint32_t argument = (offset - bpf::offset_low(0)) / 8;
  return format("argument {}, {} half", argument, offset % 8 == 0 ? "low" : "high");
}

std::string describe_number(Arch arch, std::uint32_t number) {
  if (number == bpf::x32_bit) return "x32 calls";
  for (const core::Syscall& entry : core::syscalls()) {
    const std::int16_t own = arch == Arch::x86_64 ? entry.x86_64 : entry.aarch64;
    if (own >= 0 && static_cast<std::uint32_t>(own) == number) return std::string(entry.name);
  }
  return "beyond the table";
}

std::string describe_answer(std::uint32_t k) {
  if (k == bpf::answer_allow) return describe(allow);
  if (k == bpf::answer_kill_process) return describe(kill_process);
  return describe(Action{ActionKind::error, static_cast<Errno>(k & 0xffff)});
}

std::string describe_value(const BpfProgram& program, std::size_t index) {
  const std::uint32_t k = program.code[index].k;
  const auto patch = std::ranges::find(program.token_patches, index, &TokenPatch::index);
  if (patch != program.token_patches.end()) return format("token word {}", patch->word);
  if (k == bpf::audit_x86_64) return "x86_64";
  if (k == bpf::audit_aarch64) return "aarch64";
  return "";
}

struct Line {
  std::string operation;
  std::string comment;
};

Line describe_line(const BpfProgram& program, std::size_t index) {
  const auto& [code, jt, jf, k] = program.code[index];
  const std::size_t next = index + 1;
  switch (code) {
    case bpf::load: return {format("load [{}]", k), describe_field(k)};
    case bpf::mask: return {format("and {:#x}", k), ""};
    case bpf::jump: return {format("jump {}", next + k), ""};
    case bpf::answer: return {format("return {:#x}", k), describe_answer(k)};
    case bpf::jump_if_equal:
      return {format("if == {:#x} then {} else {}", k, next + jt, next + jf),
              describe_value(program, index)};
    case bpf::jump_if_at_least:
      return {format("if >= {} then {} else {}", k, next + jt, next + jf),
              describe_number(program.arch, k)};
    default: return {format("code {:#x} k {:#x}", code, k), "not one of ours"};
  }
}

}  // namespace

std::string dump(const BpfProgram& program) {
  std::string out;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const auto [operation, comment] = describe_line(program, i);
    out += comment.empty() ? format("{:4}  {}\n", i, operation)
                           : format("{:4}  {:<36}  ; {}\n", i, operation, comment);
  }
  return out;
}

}  // namespace capgate::lower
