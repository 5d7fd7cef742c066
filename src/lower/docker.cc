#include "lower/docker.h"

#include "base/format.h"
#include "lower/container.h"
#include "lower/container_flags.h"

namespace capgate::lower {
namespace {

// --mount takes comma-separated fields in the syntax of CSV: a field with a comma or a quote stands
// in quotes, with inner quotes doubled. So no path can add a field of its own.
std::string csv_field(std::string_view key, std::string_view value) {
  std::string field = format("{}={}", key, value);
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted_field = "\"";
  for (const char c : field) {
    if (c == '"') quoted_field += '"';
    quoted_field += c;
  }
  return quoted_field + '"';
}

// --mount, not --volume: --volume makes a missing source as an empty directory of root, and cannot
// name a path that holds ':'. Docker does not make mounts below a read-only one read-only, so they
// are left out.
std::string bind_mount(const ContainerMount& mount) {
  std::string words = format("type=bind,{},{}", csv_field("source", mount.source),
                             csv_field("target", mount.target));
  if (mount.access == ContainerMount::Access::read_only) {
    words += ",readonly,bind-nonrecursive=true";
  }
  return words;
}

constexpr ContainerEngine docker{
    .name = "docker",
    .bind_mount = bind_mount,
    .tmpfs_options = "",
};

}  // namespace

Checked<Artifact> lower_to_docker(const Input& input) {
  Support support("docker", input);
  const Container container = container_of(input, CallersProxies::must_be_overwritten, support);
  Artifact artifact = container_flags(docker, container, input);
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
