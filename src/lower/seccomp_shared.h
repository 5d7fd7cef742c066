// Finished filters. There are few different ones (seven questions, two architectures), and a
// compiler that runs for every manifest must not build them again each time: each is built on first
// use and then shared. The same question always has the same answer, so this is pure in effect.
//
//   shared_filter(Arch::x86_64, needs).base64   -> what an artifact carries
//   shared_docker_profile(needs).json           -> docker run --security-opt seccomp=FILE
#pragma once

#include <string>

#include "lower/bpf.h"
#include "lower/seccomp.h"

namespace capgate::lower {

struct SharedFilter {
  BpfProgram program;
  std::string base64;  // of to_bytes(program)
};
[[nodiscard]] const SharedFilter& shared_filter(Arch arch, const SeccompNeeds& needs);

// One profile serves both architectures. `needs.exec_token` must be off: see seccomp_docker.h.
struct SharedDockerProfile {
  std::string json;
  std::string base64;
};
[[nodiscard]] const SharedDockerProfile& shared_docker_profile(const SeccompNeeds& needs);

}  // namespace capgate::lower
