#include "sandbox/orders_write.h"

#include <cstring>

#include "lower/common.h"

namespace capgate::sandbox {
namespace {

using orders::List;
using orders::Text;

class Writer {
 public:
  Writer() { block_.resize(sizeof(orders::Header)); }

  Text text(std::string_view value) {
    const auto offset = static_cast<std::uint32_t>(block_.size());
    block_ += value;
    block_ += '\0';
    return {.offset = offset, .size = static_cast<std::uint32_t>(value.size())};
  }

  template <typename T>
  List list(const std::vector<T>& items) {
    block_.resize((block_.size() + 7) / 8 * 8);
    const List out{.offset = static_cast<std::uint32_t>(block_.size()),
                   .count = static_cast<std::uint32_t>(items.size())};
    block_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    return out;
  }

  List texts(const std::vector<std::string>& values) {
    std::vector<Text> out;
    out.reserve(values.size());
    for (const std::string& value : values) out.push_back(text(value));
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

List write_mounts(Writer& writer, const Bound& bound, const Launch& launch) {
  std::vector<orders::Mount> out;
  out.reserve(bound.mounts.size());
  for (std::size_t i = 0; i < bound.mounts.size(); ++i) {
    const BoundMount& mount = bound.mounts[i];
    const int tree = launch.trees.empty() ? -1 : launch.trees[i];
    out.push_back({.kind = tree >= 0 ? orders::MountKind::tree : mount.kind,
                   .mode = mount.mode | mount.identity.type,
                   .target = writer.text(mount.target),
                   .source = writer.text(mount.source),
                   .device = mount.identity.device,
                   .inode = mount.identity.inode,
                   .size = mount.size,
                   .attributes = mount.attributes,
                   .fd = tree,
                   .flags = (mount.optional ? orders::optional : 0U) |
                            (mount.in_private ? orders::in_private : 0U)});
  }
  return writer.list(out);
}

List write_rules(Writer& writer, const Bound& bound) {
  std::vector<orders::LandlockRule> out;
  out.reserve(bound.landlock.size());
  for (const BoundRule& rule : bound.landlock) {
    if (rule.access != 0) out.push_back({.path = writer.text(rule.path), .access = rule.access});
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

}  // namespace

std::string write_orders(const Bound& bound, const Launch& launch) {
  Writer writer;
  const lower::ExecToken& token = launch.token;
  const auto pair = [&](std::size_t low) {
    return std::uint64_t{token[low]} | (std::uint64_t{token[low + 1]} << 32U);
  };
  // The root holds one inode for each directory, file and link, and few more.
  constexpr std::uint32_t spare_inodes = 64;
  return std::move(writer).finish(
      {.fail_step = static_cast<std::uint32_t>(launch.fail_step),
       .mounts = write_mounts(writer, bound, launch),
       .landlock_rules = write_rules(writer, bound),
       .limits = write_limits(writer, launch),
       .arguments = writer.texts(bound.arguments),
       .environment = writer.texts(bound.environment),
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
       .listen = launch.listen ? 1U : 0U,
       .has_network = bound.capture.is_needed() ? 1U : 0U,
       .inner_sockets = bound.capture.inner_sockets ? 1U : 0U,
       .landlock_attribute_size = bound.landlock_attribute_size,
       .landlock_handled = bound.landlock_handled,
       .landlock_scoped = bound.landlock_scoped,
       .token = {pair(0), pair(2), pair(4)}});
}

}  // namespace capgate::sandbox
