// run --trace: what the Plan refuses, one line each with the capability that would allow it.
//
//   denied read /home/alice/.netrc: fs:read:/home/alice/.netrc
//
// In a traced sandbox some calls become questions to the supervisor. Where the filter would refuse,
// the answer is that very errno; every other call goes on to the kernel, where mounts, namespaces
// and Landlock decide as ever. So tracing only observes, and if the supervisor goes away the
// questions fail. Nor does it look at the host while the server waits: see trace_writer.h.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lower/bpf.h"
#include "lower/seccomp.h"
#include "sandbox/bind.h"
#include "sandbox/lacking.h"
#include "sandbox/trace_writer.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// The filter of `rules` with questions for the calls that name a path, a program or a socket.
[[nodiscard]] lower::BpfProgram traced_filter(lower::Arch arch,
                                              const std::vector<lower::Rule>& rules);

// Which argument of a call is a path, and which is the directory that it counts from.
struct PathCall {
  core::SyscallId call;
  int path = 0;
  int directory = -1;   // none: the current one
  bool writes = false;  // changes an entry of a directory
};

class Tracer {
 public:
  Tracer(lower::Arch arch, std::vector<lower::Rule> rules, const lower::ExecToken& token,
         const TraceWriter::Known& known, TraceWriter writer)
      : arch_(arch),
        rules_(std::move(rules)),
        token_(token),
        bound_(known.bound),
        lacking_(known.lacking),
        writer_(std::move(writer)) {}

  void listen(sys::Fd listener) { listener_ = std::move(listener); }
  [[nodiscard]] int fd() const { return listener_.get(); }
  // Answers one question.
  void step();

 private:
  struct Question;
  [[nodiscard]] lower::Action decide(const seccomp_data& call) const;
  void observe(const seccomp_notif& question, const lower::Action& action);
  void observe_call(const Question& question, const PathCall& path);
  void observe_path(const Question& question, std::uint64_t pointer, int directory, bool writes,
                    bool changes_entry);
  void observe_program(const Question& question, std::uint64_t pointer);
  void observe_connect(const Question& question);
  void say_lacking(std::string_view what, std::string_view subject, std::string_view kind,
                   const std::string& example);
  void say(std::string_view what, std::string_view subject, const std::string& capability);
  void notice(TraceNote note);

  lower::Arch arch_;
  std::vector<lower::Rule> rules_;
  lower::ExecToken token_;
  const Bound& bound_;
  const Lacking& lacking_;
  TraceWriter writer_;
  sys::Fd listener_;
  std::uint64_t asked_ = 0;  // the question at hand
};

}  // namespace capgate::sandbox
