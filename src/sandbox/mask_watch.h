// Covers lie on entries of the host's directories. When the host puts something else there (editors
// and git replace files by renaming), a cover falls off: the sandbox must stop.
//
//   MaskWatch watch(bound.masked, bound.ways);   before the launch, so that nothing is missed
//   poll(watch.fd()) ... watch.replaced()   the path that is no longer what was covered
#pragma once

#include <string>
#include <vector>

#include "sandbox/bind.h"
#include "sys/fd.h"

namespace capgate::sandbox {

class MaskWatch {
 public:
  MaskWatch(const std::vector<Masked>& masked, const std::vector<Masked>& ways);

  [[nodiscard]] int fd() const { return events_.get(); }  // -1: nothing to watch

  // Reads what happened and looks at every entry again: an event says only that there is reason to.
  // Empty if all of them are covered still.
  [[nodiscard]] std::string replaced();

 private:
  const std::vector<Masked>& masked_;
  const std::vector<Masked>& ways_;
  sys::Fd events_;
  bool is_blind_ = false;  // a directory could not be watched
};

}  // namespace capgate::sandbox
