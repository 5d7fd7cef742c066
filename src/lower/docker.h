// Lowering to docker: flags for `docker run FLAGS IMAGE COMMAND`, closed as printed.
//
//   --rm --cap-drop ALL --security-opt no-new-privileges ... --network none --user 1000:1000 ...
//
// The image brings the programs. Declared egress will travel over a socket of capgate's broker;
// until then the container has no network at all. Tried with Docker 20.10 in tests/e2e.
#pragma once

#include "lower/artifact.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_docker(const Input& input);

}  // namespace capgate::lower
