#include "review/artifact_words.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/ranges.h"
#include "base/text.h"

namespace capgate::review {
namespace {

enum class Says : unsigned char {
  bind,    // SOURCE TARGET
  covers,  // TARGET is something new
  volume,  // in its own words
  grant,
  restraint,
  drop,     // a restraint with the name of a capability
  remount,  // a restraint with a path
  nothing,  // it can be either by its value or its place
};

struct OptionFacts {
  std::string_view name;
  std::size_t operands;
  Says says = Says::nothing;
};

// A restraint holds wherever it stands. --seccomp does not: the last one wins. --clearenv neither:
// what it clears stands before it.
constexpr OptionFacts bwrap_options[] = {
    {"--args", 1},
    {"--as-pid-1", 0},
    {"--bind", 2, Says::bind},
    {"--bind-try", 2, Says::bind},
    {"--cap-add", 1, Says::grant},
    {"--cap-drop", 1, Says::drop},
    {"--chdir", 1},
    {"--clearenv", 0},
    {"--dev", 1, Says::covers},
    {"--dev-bind", 2, Says::bind},
    {"--dev-bind-try", 2, Says::bind},
    {"--die-with-parent", 0, Says::restraint},
    {"--disable-userns", 0, Says::restraint},
    {"--gid", 1},
    {"--hostname", 1},
    {"--new-session", 0, Says::restraint},
    {"--proc", 1, Says::covers},
    {"--remount-ro", 1, Says::remount},
    {"--ro-bind", 2, Says::bind},
    {"--ro-bind-data", 2},
    {"--ro-bind-try", 2, Says::bind},
    {"--seccomp", 1},
    {"--setenv", 2},
    {"--share-net", 0, Says::grant},
    {"--symlink", 2},
    {"--tmpfs", 1, Says::covers},
    {"--uid", 1},
    {"--unshare-cgroup", 0, Says::restraint},
    {"--unshare-ipc", 0, Says::restraint},
    {"--unshare-net", 0, Says::restraint},
    {"--unshare-pid", 0, Says::restraint},
    {"--unshare-user", 0, Says::restraint},
    {"--unshare-uts", 0, Says::restraint},
};

constexpr OptionFacts container_options[] = {
    {"--cap-add", 1, Says::grant},
    {"--cap-drop", 1, Says::drop},
    {"--cgroupns", 1},
    {"--cpus", 1},
    {"--device", 1, Says::grant},
    {"--entrypoint", 1},
    {"--env", 1},
    {"--hostname", 1},
    {"--init", 0},
    {"--ipc", 1},
    {"--memory", 1},
    {"--memory-swap", 1},
    {"--mount", 1},
    {"--network", 1},
    {"--pids-limit", 1},
    {"--privileged", 0, Says::grant},
    {"--publish", 1, Says::grant},
    {"--read-only", 0, Says::restraint},
    {"--rm", 0},
    {"--security-opt", 1},
    {"--tmpfs", 1},
    {"--ulimit", 1},
    {"--user", 1},
    {"--userns", 1},
    {"--volume", 1, Says::volume},
    {"-i", 0},
    {"-p", 1, Says::grant},
    {"-v", 1, Says::volume},
};

bool is_container(std::string_view target) { return target == "docker" || target == "podman"; }

const OptionFacts* find_option(std::string_view target, std::string_view name) {
  std::span<const OptionFacts> options;
  if (target == "bwrap") options = bwrap_options;
  if (is_container(target)) options = container_options;
  const auto it = std::ranges::find(options, name, &OptionFacts::name);
  return it == options.end() ? nullptr : &*it;
}

bool is_capability_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_upper(c) || c == '_'; });
}

// What shows the same path inside as outside only grants. Something else in a place may hide what
// would be there.
Judgement judge_bind(std::string_view source, std::string_view target) {
  if (!is_plain_path(target) || source != target) {
    return {.tendency = Tendency::grants, .mount = std::string(target), .may_hide = true};
  }
  return {.tendency = Tendency::grants, .mount = std::string(target)};
}

Judgement judge_cover(std::string_view target) {
  if (!is_plain_path(target) || target == "/") return {};
  return {.tendency = Tendency::unknown, .mount = std::string(target)};
}

// type=bind,source=/srv,target=/srv,readonly
Judgement judge_mount(std::string_view value) {
  std::string_view source;
  std::string_view target;
  std::size_t fields = 0;
  constexpr std::array flags =
      std::to_array<std::string_view>({"readonly", "bind-nonrecursive=true"});
  for (const std::string_view field : EachPart(value, ',')) {
    const std::size_t index = fields++;
    if (index == 0 && field == "type=bind") continue;
    if (index == 1 && field.starts_with("source=")) {
      source = field.substr(7);
    } else if (index == 2 && field.starts_with("target=")) {
      target = field.substr(7);
    } else if (index < 3 || !contains(flags, field)) {
      return {};
    }
  }
  return fields < 3 ? Judgement{} : judge_bind(source, target);
}

Judgement judge_container_option(std::span<const std::string> words) {
  if (words[0] == "--mount") return judge_mount(words[1]);
  if (words[0] == "--tmpfs") {
    const std::string_view value = words[1];
    return judge_cover(value.substr(0, value.find(':')));
  }
  return {};
}

// `"/srv/**" mr,` and nothing else: no second rule, no comment that swallows the comma.
bool is_one_path_rule(std::string_view rule) {
  if (!rule.starts_with('"') || !rule.ends_with(',')) return false;
  const std::size_t end = rule.find('"', 1);
  if (end == std::string_view::npos || end < 2 || rule[end - 1] == '\\') return false;
  const std::string_view path = rule.substr(1, end - 1);
  if (std::ranges::any_of(path, [](char c) { return is_control(c); })) return false;
  std::string_view access = rule.substr(end + 1);
  if (!access.starts_with(' ')) return false;
  access = access.substr(1, access.size() - 2);
  return !access.empty() && std::ranges::all_of(access, [](char c) { return is_alpha(c); });
}

Judgement judge_apparmor(std::string_view line) {
  constexpr std::string_view margin = "  ";
  constexpr std::string_view denies = "deny ";
  if (!line.starts_with(margin)) return {};
  std::string_view rule = line.substr(margin.size());
  const bool is_denied = rule.starts_with(denies);
  if (is_denied) rule.remove_prefix(denies.size());
  if (!is_one_path_rule(rule)) return {};
  return {.tendency = is_denied ? Tendency::restrains : Tendency::grants};
}

// BindPaths="/srv":"/srv"
Judgement judge_unit(std::string_view line) {
  const std::size_t equals = line.find('=');
  const std::string_view key = line.substr(0, equals);
  if (key != "BindPaths" && key != "BindReadOnlyPaths") return {};
  const std::vector<std::string_view> parts = split(line.substr(equals + 1), '"');
  if (parts.size() != 5 || !parts[0].empty() || parts[2] != ":" || !parts[4].empty()) return {};
  if (parts[1].contains('\\') || parts[3].contains('\\')) return {};
  return judge_bind(parts[1], parts[3]);
}

}  // namespace

bool is_plain_path(std::string_view path) {
  if (path == "/") return true;
  if (!path.starts_with('/')) return false;
  for (const std::string_view part : EachPart(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

std::optional<std::size_t> option_length(std::string_view target,
                                         std::span<const std::string> words) {
  const std::string& name = words.front();
  // It is of the mount that follows.
  if (target == "bwrap" && name == "--size") {
    if (words.size() < 4 || words[2] != "--tmpfs") return std::nullopt;
    return 4;
  }
  if (is_container(target) && name.starts_with("--") && name.contains('=')) return 1;
  const OptionFacts* facts = find_option(target, name);
  if (facts == nullptr || words.size() <= facts->operands) return std::nullopt;
  return 1 + facts->operands;
}

Judgement judge_option(std::string_view target, std::span<const std::string> words) {
  if (option_length(target, words) != words.size()) return {};
  if (words[0] == "--size") return judge_cover(words[3]);
  const OptionFacts* facts = find_option(target, words[0]);
  if (facts == nullptr) return {};
  const auto restrains_if = [](bool is_one) {
    return is_one ? Judgement{.tendency = Tendency::restrains} : Judgement{};
  };
  switch (facts->says) {
    case Says::bind: return judge_bind(words[1], words[2]);
    case Says::covers: return judge_cover(words[1]);
    case Says::volume: return {.tendency = Tendency::grants, .may_hide = true};
    case Says::grant: return {.tendency = Tendency::grants};
    case Says::restraint: return restrains_if(true);
    case Says::drop: return restrains_if(is_capability_name(words[1]));
    case Says::remount: return restrains_if(is_plain_path(words[1]));
    case Says::nothing: break;
  }
  return is_container(target) ? judge_container_option(words) : Judgement{};
}

Judgement judge_line(std::string_view file, std::string_view line) {
  if (file.ends_with(".apparmor")) return judge_apparmor(line);
  if (file.ends_with(".service")) return judge_unit(line);
  return {};
}

}  // namespace capgate::review
