// The neutral form, which `capgate egress` reads.
#include "lower/egress_emit.h"
#include "lower/egress_policy.h"

namespace capgate::lower {

void emit_spec(EgressJob& job) {
  refuse_unseen_requests(job.input, job.support);
  job.artifact.files.push_back(
      {.name = "capgate-egress.yaml", .contents = egress_policy_yaml(job.input)});
}

}  // namespace capgate::lower
