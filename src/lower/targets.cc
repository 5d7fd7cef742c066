#include "lower/targets.h"

#include <algorithm>

#include "lower/bwrap.h"
#include "lower/docker.h"
#include "lower/to_plan.h"

namespace capgate::lower {
namespace {

constexpr Target table[] = {
    {"bwrap", "flags for bubblewrap, ready for execFile", lower_to_bwrap},
    {"docker", "flags for docker run", lower_to_docker},
    {"plan", "what capgate's own engine carries out", lower_to_plan},
};

}  // namespace

std::span<const Target> targets() { return table; }

const Target* find_target(std::string_view name) {
  const auto* target = std::ranges::find(table, name, &Target::name);
  return target == std::end(table) ? nullptr : target;
}

}  // namespace capgate::lower
