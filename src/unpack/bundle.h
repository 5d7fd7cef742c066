// manifest.json of a bundle, read by a confined process of its own.
//
//   const sys::Fd program = TRY(find_reader());
//   const auto found = read_bundle({.bundle = file, .program = program});
//   found->manifest
//
// The bytes of a bundle never meet a parser in this process: what comes back over a pipe is the
// text of one file, of at most 1 MiB. The reader has little time and ends with this function,
// whatever happens.
#pragma once

#include <chrono>
#include <expected>
#include <string>

#include "sandbox/host_path.h"
#include "sys/fd.h"
#include "unpack/zip.h"

namespace capgate::unpack {

struct Reader {
  const sys::Fd& bundle;   // a regular file, open for reading
  const sys::Fd& program;  // find_reader()
  std::chrono::milliseconds longest{20000};
};

struct BundleProblem {
  enum class Cause : unsigned char {
    refused,  // the bundle: no archive, or one that is not read
    machine,  // the reader could not be started, confined or waited for
  };
  Cause cause = Cause::refused;
  std::string message;  // for `refused` it goes on from "the bundle ..."
};

[[nodiscard]] std::expected<sys::Fd, sandbox::Refusal> find_reader();

[[nodiscard]] std::expected<Found, BundleProblem> read_bundle(const Reader& reader);

}  // namespace capgate::unpack
