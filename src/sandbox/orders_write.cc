#include "sandbox/orders_write.h"

#include <cstring>
#include <unordered_map>

#include "base/ranges.h"
#include "lower/common.h"

namespace capgate::sandbox {
namespace {

using orders::List;
using orders::Text;

class Writer {
 public:
  explicit Writer(std::size_t mounts) {
    constexpr std::size_t usual_texts = 128;  // of one mount
    constexpr std::size_t rest = 16384;
    block_.reserve(mounts * (sizeof(orders::Mount) + usual_texts) + rest);
    block_.resize(sizeof(orders::Header));
  }

  Text text(std::string_view value) {
    const auto offset = static_cast<std::uint32_t>(block_.size());
    block_ += value;
    block_ += '\0';
    return {.offset = offset, .size = static_cast<std::uint32_t>(value.size())};
  }

  // Room for a list whose items come one by one, among their texts.
  template <typename T>
  List room(std::size_t count) {
    const std::size_t offset = (block_.size() + 7) / 8 * 8;
    block_.resize(offset + count * sizeof(T));
    return {.offset = static_cast<std::uint32_t>(offset),
            .count = static_cast<std::uint32_t>(count)};
  }

  template <typename T>
  void put(List list, std::size_t index, const T& item) {
    std::memcpy(block_.data() + list.offset + index * sizeof(T), &item, sizeof(T));
  }

  template <typename T>
  List list(const std::vector<T>& items) {
    const List out = room<T>(items.size());
    if (!items.empty()) {
      std::memcpy(block_.data() + out.offset, items.data(), items.size() * sizeof(T));
    }
    return out;
  }

  List texts(const std::vector<std::string>& values) {
    std::vector<Text> out;
    out.reserve(values.size());
    for (const std::string& value : values) out.push_back(text(value));
    return list(out);
  }

  // The last that is written: with room for it all, so that no block with a secret in it is left
  // behind when the next one is larger.
  List environment(const Bound& bound, std::span<const InjectedSecret> secrets) {
    constexpr std::size_t rest = sizeof(Text) + 2;  // of each, with '=' and NUL
    std::size_t size = sizeof(std::uint64_t);
    for (const std::string& entry : bound.environment) size += entry.size() + rest;
    for (const InjectedSecret& secret : secrets) {
      size += secret.name.size() + secret.value.view().size() + rest;
    }
    block_.reserve(block_.size() + size);
    std::vector<Text> out;
    out.reserve(bound.environment.size() + secrets.size());
    for (const std::string& entry : bound.environment) out.push_back(text(entry));
    for (const InjectedSecret& secret : secrets) {
      if (!contains(bound.injected, secret.name)) continue;
      Text entry{.offset = static_cast<std::uint32_t>(block_.size())};
      block_.append(secret.name).append("=").append(secret.value.view());
      entry.size = static_cast<std::uint32_t>(block_.size()) - entry.offset;
      block_ += '\0';
      out.push_back(entry);
    }
    return list(out);
  }

  std::string finish(orders::Header header) && {
    header.magic = orders::magic;
    header.size = static_cast<std::uint32_t>(block_.size());
    std::memcpy(block_.data(), &header, sizeof(header));
    return std::move(block_);
  }

 private:
  std::string block_;
};

// For each mount what Landlock allows below it. init adds such a rule with the descriptor that it
// has compared and mounted, so that no path is looked up again.
struct Rules {
  std::vector<std::uint64_t> of_mounts;
  std::vector<std::size_t> of_paths;  // indexes of the other rules
};

Rules share_rules(const Bound& bound) {
  Rules out{.of_mounts = std::vector<std::uint64_t>(bound.mounts.size()), .of_paths = {}};
  std::unordered_map<std::string_view, std::size_t> on_top;  // what is mounted last at a path
  on_top.reserve(bound.mounts.size());
  for (std::size_t i = 0; i < bound.mounts.size(); ++i) {
    if (bound.mounts[i].kind != orders::MountKind::attributes) on_top[bound.mounts[i].target] = i;
  }
  for (std::size_t i = 0; i < bound.landlock.size(); ++i) {
    const BoundRule& rule = bound.landlock[i];
    if (rule.access == 0) continue;
    const auto mount = on_top.find(rule.path);
    if (mount != on_top.end() && bound.mounts[mount->second].kind == orders::MountKind::bind) {
      out.of_mounts[mount->second] |= rule.access;
    } else {
      out.of_paths.push_back(i);
    }
  }
  return out;
}

List write_mounts(Writer& writer, const Bound& bound, const Launch& launch, const Rules& rules) {
  const List out = writer.room<orders::Mount>(bound.mounts.size());
  for (std::size_t i = 0; i < bound.mounts.size(); ++i) {
    const BoundMount& mount = bound.mounts[i];
    const int tree = launch.trees.empty() ? -1 : launch.trees[i];
    const Text target = writer.text(mount.target);
    const bool in_place = mount.source == mount.target;
    const orders::Mount order{.kind = tree >= 0 ? orders::MountKind::tree : mount.kind,
                              .mode = mount.mode | mount.identity.type,
                              .target = target,
                              .source = in_place ? target : writer.text(mount.source),
                              .device = mount.identity.device,
                              .inode = mount.identity.inode,
                              .size = mount.size,
                              .attributes = mount.attributes,
                              .fd = tree,
                              .flags = (mount.optional ? orders::optional : 0U) |
                                       (mount.in_private ? orders::in_private : 0U),
                              .access = rules.of_mounts[i]};
    writer.put(out, i, order);
  }
  return out;
}

List write_rules(Writer& writer, const Bound& bound, const Rules& rules) {
  std::vector<orders::LandlockRule> out;
  out.reserve(rules.of_paths.size());
  for (const std::size_t i : rules.of_paths) {
    const BoundRule& rule = bound.landlock[i];
    out.push_back({.path = writer.text(rule.path),
                   .access = rule.access,
                   .index = static_cast<std::uint32_t>(i)});
  }
  return writer.list(out);
}

List write_limits(Writer& writer, const Launch& launch) {
  std::vector<orders::Limit> out;
  out.reserve(launch.limits.size());
  for (const BoundLimit& limit : launch.limits) {
    out.push_back({.resource = limit.resource, .value = limit.value});
  }
  return writer.list(out);
}

List write_messages(Writer& writer, const Capture& capture) {
  std::vector<orders::NetlinkMessage> out;
  out.reserve(capture.messages.size());
  for (const CaptureMessage& message : capture.messages) {
    out.push_back({.protocol = message.protocol,
                   .flags = message.flags,
                   .bytes = writer.text(message.bytes)});
  }
  return writer.list(out);
}

List write_sockets(Writer& writer, const Capture& capture) {
  std::vector<orders::Socket> out;
  out.reserve(capture.sockets.size());
  for (const CaptureSocket& socket : capture.sockets) {
    out.push_back({.domain = socket.domain,
                   .type = socket.type,
                   .protocol = socket.protocol,
                   .backlog = socket.backlog,
                   .flags = socket.flags,
                   .address = writer.text(socket.address),
                   .options = writer.list(socket.options),
                   .filter = writer.list(socket.filter)});
  }
  return writer.list(out);
}

// Room for directories, links and small files, and for what large ones hold.
std::uint32_t root_bytes(const Bound& bound) {
  std::size_t out = std::size_t{1} << 20U;
  for (const BoundMount& mount : bound.mounts) {
    constexpr std::size_t page = 4096;
    if (mount.kind == orders::MountKind::file) out += mount.source.size() / page * page;
  }
  return static_cast<std::uint32_t>(out);
}

}  // namespace

std::string write_orders(const Bound& bound, const Launch& launch) {
  Writer writer(bound.mounts.size());
  const Rules rules = share_rules(bound);
  const lower::ExecToken& token = launch.token;
  const auto pair = [&](std::size_t low) {
    return std::uint64_t{token[low]} | (std::uint64_t{token[low + 1]} << 32U);
  };
  // The root holds one inode for each directory, file and link, and few more.
  constexpr std::uint32_t spare_inodes = 64;
  orders::Header header{
      .fail_step = static_cast<std::uint32_t>(launch.fail_step),
      .mounts = write_mounts(writer, bound, launch, rules),
      .landlock_rules = write_rules(writer, bound, rules),
      .limits = write_limits(writer, launch),
      .arguments = writer.texts(bound.arguments),
      .environment = {},
      .filter = writer.list(launch.filter.code),
      .netlink = write_messages(writer, bound.capture),
      .sockets = write_sockets(writer, bound.capture),
      .program = writer.text(bound.program),
      .program_device = bound.program_identity.device,
      .program_inode = bound.program_identity.inode,
      .directory = writer.text(bound.directory),
      .host_name = writer.text(lower::sandbox_hostname),
      .uid = bound.uid,
      .gid = bound.uid,
      .drop_groups = launch.drop_groups ? 1U : 0U,
      .root_inodes = static_cast<std::uint32_t>(bound.mounts.size()) + spare_inodes,
      .root_bytes = root_bytes(bound),
      .listen = launch.listen ? 1U : 0U,
      .has_network = bound.capture.is_needed() ? 1U : 0U,
      .inner_sockets = bound.capture.inner_sockets ? 1U : 0U,
      .landlock_attribute_size = bound.landlock_attribute_size,
      .sends_covers = bound.watched.is_needed() ? 1U : 0U,
      .bound_buffers = launch.bound_buffers ? 1U : 0U,
      .landlock_handled = bound.landlock_handled,
      .landlock_scoped = bound.landlock_scoped,
      .token = {pair(0), pair(2), pair(4)}};
  header.environment = writer.environment(bound, launch.injected);
  return std::move(writer).finish(header);
}

}  // namespace capgate::sandbox
