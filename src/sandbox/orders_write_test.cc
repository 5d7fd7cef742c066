#include "sandbox/orders_write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "sandbox/orders.h"

namespace capgate::sandbox {
namespace {

using orders::List;
using orders::Text;

// Reads a block as init does, but checks every offset first.
class Reader {
 public:
  explicit Reader(std::string block) : block_(std::move(block)) {}

  [[nodiscard]] orders::Header header() const {
    orders::Header out;
    EXPECT_GE(block_.size(), sizeof(out));
    std::memcpy(&out, block_.data(), sizeof(out));
    return out;
  }

  [[nodiscard]] std::string_view text(Text text) const {
    EXPECT_GE(text.offset, sizeof(orders::Header));
    EXPECT_LT(std::uint64_t{text.offset} + text.size, block_.size());
    EXPECT_EQ(block_[text.offset + text.size], '\0');
    return std::string_view(block_).substr(text.offset, text.size);
  }

  template <typename T>
  [[nodiscard]] std::vector<T> items(List list) const {
    EXPECT_EQ(list.offset % 8, 0U);
    EXPECT_EQ(list.offset % alignof(T), 0U);
    EXPECT_GE(list.offset, sizeof(orders::Header));
    EXPECT_LE(list.offset + std::uint64_t{list.count} * sizeof(T), block_.size());
    std::vector<T> out(list.count);
    if (out.empty()) return out;
    std::memcpy(out.data(), block_.data() + list.offset, out.size() * sizeof(T));
    return out;
  }

  [[nodiscard]] std::vector<std::string> texts(List list) const {
    std::vector<std::string> out;
    for (const Text& each : items<Text>(list)) out.emplace_back(text(each));
    return out;
  }

  [[nodiscard]] std::size_t size() const { return block_.size(); }

 private:
  std::string block_;
};

// Texts of odd lengths, so that lists after them would be misaligned without padding.
Bound sample_bound() {
  Bound bound;
  bound.mounts = {
      {.kind = orders::MountKind::directory, .target = "/srv", .mode = 0755},
      {.kind = orders::MountKind::file, .target = "/etc/x", .source = std::string("a\0b", 3)},
      {.kind = orders::MountKind::bind,
       .target = "/srv/data",
       .source = "/host/data",
       .identity = {.device = 7, .inode = 8, .type = S_IFDIR, .uid = 1, .gid = 2},
       .attributes = 5,
       .optional = true,
       .owned = true},
      {.kind = orders::MountKind::tmpfs, .target = "/tmp", .mode = 01777, .size = 4096}};
  bound.landlock = {{.path = "/srv", .access = 3}, {.path = "/none", .access = 0}, {"/tmp", 4}};
  bound.landlock_handled = 11;
  bound.landlock_scoped = 3;
  bound.landlock_attribute_size = 24;
  bound.program = "/usr/bin/node";
  bound.program_identity = {.device = 21, .inode = 22, .type = S_IFREG, .uid = 0, .gid = 0};
  bound.arguments = {"node", "", "server.js", "\xff odd"};
  bound.environment = {"PATH=/usr/bin", "EMPTY="};
  bound.directory = "/home/user";
  return bound;
}

Launch sample_launch() {
  Launch launch;
  launch.filter.code = {{.code = 1, .jt = 2, .jf = 3, .k = 4}, {.code = 6, .k = 5}};
  launch.token = {1, 2, 3, 4, 5, 6};
  launch.limits = {{.resource = 7, .value = 1024}, {.resource = 2, .value = 1ULL << 40U}};
  launch.listen = true;
  launch.drop_groups = true;
  launch.fail_step = orders::Step::pivot;
  return launch;
}

TEST(Orders, TheHeaderSaysWhatTheBlockIs) {
  const Reader block(write_orders(sample_bound(), sample_launch()));
  const orders::Header header = block.header();
  EXPECT_EQ(header.magic, orders::magic);
  EXPECT_EQ(header.size, block.size());
  EXPECT_EQ(header.fail_step, static_cast<std::uint32_t>(orders::Step::pivot));
  EXPECT_EQ(header.program_device, 21U);
  EXPECT_EQ(header.program_inode, 22U);
  EXPECT_EQ(header.uid, 1000U);
  EXPECT_EQ(header.gid, 1000U);
  EXPECT_EQ(header.drop_groups, 1U);
  EXPECT_EQ(header.listen, 1U);
  EXPECT_GT(header.root_inodes, 4U);
  EXPECT_EQ(header.root_bytes, 1U << 20U);
  EXPECT_EQ(header.landlock_handled, 11U);
  EXPECT_EQ(header.landlock_scoped, 3U);
  EXPECT_EQ(header.landlock_attribute_size, 24U);
}

TEST(Orders, TheRootHasRoomForLargeFiles) {
  Bound bound = sample_bound();
  bound.mounts.push_back({.kind = orders::MountKind::file,
                          .target = "/etc/large",
                          .source = std::string(300'000, 'x')});
  EXPECT_GT(Reader(write_orders(bound, sample_launch())).header().root_bytes,
            (1U << 20U) + 290'000U);
}

TEST(Orders, TextsAreWholeAndEndWithANul) {
  const Reader block(write_orders(sample_bound(), sample_launch()));
  const orders::Header header = block.header();
  EXPECT_EQ(block.text(header.program), "/usr/bin/node");
  EXPECT_EQ(block.text(header.directory), "/home/user");
  EXPECT_FALSE(block.text(header.host_name).empty());
  EXPECT_EQ(block.texts(header.arguments), sample_bound().arguments);
  EXPECT_EQ(block.texts(header.environment), sample_bound().environment);
}

TEST(Orders, MountsKeepTheirOrderAndEverythingAboutThem) {
  const Reader block(write_orders(sample_bound(), sample_launch()));
  const auto mounts = block.items<orders::Mount>(block.header().mounts);
  ASSERT_EQ(mounts.size(), 4U);
  EXPECT_EQ(block.text(mounts[0].target), "/srv");
  EXPECT_EQ(mounts[0].mode, 0755U);
  EXPECT_EQ(block.text(mounts[1].source), std::string_view("a\0b", 3));
  EXPECT_EQ(mounts[2].kind, orders::MountKind::bind);
  EXPECT_EQ(block.text(mounts[2].target), "/srv/data");
  EXPECT_EQ(block.text(mounts[2].source), "/host/data");
  EXPECT_EQ(mounts[2].device, 7U);
  EXPECT_EQ(mounts[2].inode, 8U);
  EXPECT_EQ(mounts[2].mode, std::uint32_t{S_IFDIR});
  EXPECT_EQ(mounts[2].attributes, 5U);
  EXPECT_EQ(mounts[2].flags, orders::optional);
  EXPECT_EQ(mounts[2].fd, -1);
  EXPECT_EQ(mounts[3].mode, 01777U);
  EXPECT_EQ(mounts[3].size, 4096U);
  EXPECT_EQ(mounts[3].flags, 0U);
}

TEST(Orders, AMountWithADetachedTreeIsThatTree) {
  Launch launch = sample_launch();
  launch.trees = {-1, -1, 5, -1};
  const Reader block(write_orders(sample_bound(), launch));
  const auto mounts = block.items<orders::Mount>(block.header().mounts);
  EXPECT_EQ(mounts[2].kind, orders::MountKind::tree);
  EXPECT_EQ(mounts[2].fd, 5);
  EXPECT_EQ(mounts[3].kind, orders::MountKind::tmpfs);
  EXPECT_EQ(mounts[3].fd, -1);
}

// The kernel refuses a rule without rights.
TEST(Orders, RulesWithoutRightsAreLeftOut) {
  const Reader block(write_orders(sample_bound(), sample_launch()));
  const auto rules = block.items<orders::LandlockRule>(block.header().landlock_rules);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(block.text(rules[0].path), "/srv");
  EXPECT_EQ(rules[0].access, 3U);
  EXPECT_EQ(block.text(rules[1].path), "/tmp");
  EXPECT_EQ(rules[1].access, 4U);
}

// init adds it with the descriptor that it has compared.
TEST(Orders, ARuleOfAHostPathGoesWithItsMount) {
  Bound bound = sample_bound();
  bound.landlock = {{.path = "/srv", .access = 1},
                    {.path = "/srv/data", .access = 6},
                    {.path = "/srv/data", .access = 8},
                    {.path = "/srv/data/below", .access = 16}};
  const Reader block(write_orders(bound, sample_launch()));
  const auto mounts = block.items<orders::Mount>(block.header().mounts);
  EXPECT_EQ(mounts[0].access, 0U);
  EXPECT_EQ(mounts[2].access, 14U);
  const auto rules = block.items<orders::LandlockRule>(block.header().landlock_rules);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(block.text(rules[0].path), "/srv");
  EXPECT_EQ(rules[0].index, 0U);
  EXPECT_EQ(block.text(rules[1].path), "/srv/data/below");
  EXPECT_EQ(rules[1].index, 3U);
}

TEST(Orders, ARuleIsForWhatLiesOnTop) {
  Bound bound = sample_bound();
  bound.landlock = {{.path = "/srv/data", .access = 6}};
  bound.mounts.push_back({.kind = orders::MountKind::tmpfs, .target = "/srv/data"});
  const Reader covered(write_orders(bound, sample_launch()));
  EXPECT_EQ(covered.items<orders::Mount>(covered.header().mounts)[2].access, 0U);
  EXPECT_EQ(covered.items<orders::LandlockRule>(covered.header().landlock_rules).size(), 1U);

  bound.mounts.push_back(bound.mounts[2]);
  const Reader again(write_orders(bound, sample_launch()));
  const auto mounts = again.items<orders::Mount>(again.header().mounts);
  EXPECT_EQ(mounts[2].access, 0U);
  EXPECT_EQ(mounts[5].access, 6U);
}

TEST(Orders, ASourceThatIsTheTargetIsWrittenOnce) {
  Bound bound = sample_bound();
  bound.mounts[2].source = bound.mounts[2].target;
  const Reader block(write_orders(bound, sample_launch()));
  const orders::Mount mount = block.items<orders::Mount>(block.header().mounts)[2];
  EXPECT_EQ(block.text(mount.source), "/srv/data");
  EXPECT_EQ(mount.source.offset, mount.target.offset);
}

TEST(Orders, LimitsFilterAndTokenArrive) {
  const Reader block(write_orders(sample_bound(), sample_launch()));
  const orders::Header header = block.header();
  const auto limits = block.items<orders::Limit>(header.limits);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].resource, 7U);
  EXPECT_EQ(limits[1].value, 1ULL << 40U);
  EXPECT_EQ(block.items<lower::BpfInstruction>(header.filter), sample_launch().filter.code);
  EXPECT_EQ(header.token[0], 0x2'0000'0001U);
  EXPECT_EQ(header.token[1], 0x4'0000'0003U);
  EXPECT_EQ(header.token[2], 0x6'0000'0005U);
}

TEST(Orders, TheNetworkArrivesWhole) {
  Bound bound = sample_bound();
  bound.capture.messages = {{.protocol = 12, .bytes = std::string("a\0b", 3), .flags = 2}};
  bound.capture.sockets = {{.port = 443,
                            .domain = 10,
                            .type = 1,
                            .protocol = 6,
                            .backlog = 512,
                            .flags = orders::may_lack,
                            .address = "odd",
                            .options = {{41, 26, 0}, {41, 49, 1}},
                            .filter = {{.code = 6, .k = 128}}}};
  bound.capture.inner_sockets = true;
  const Reader block(write_orders(bound, sample_launch()));
  const orders::Header header = block.header();
  EXPECT_EQ(header.has_network, 1U);
  EXPECT_EQ(header.inner_sockets, 1U);
  const auto messages = block.items<orders::NetlinkMessage>(header.netlink);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].protocol, 12U);
  EXPECT_EQ(messages[0].flags, 2U);
  EXPECT_EQ(block.text(messages[0].bytes), std::string_view("a\0b", 3));
  const auto sockets = block.items<orders::Socket>(header.sockets);
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_EQ(sockets[0].domain, 10U);
  EXPECT_EQ(sockets[0].type, 1U);
  EXPECT_EQ(sockets[0].protocol, 6U);
  EXPECT_EQ(sockets[0].backlog, 512U);
  EXPECT_EQ(sockets[0].flags, orders::may_lack);
  EXPECT_EQ(block.text(sockets[0].address), "odd");
  const auto options = block.items<orders::SocketOption>(sockets[0].options);
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[1].name, 49);
  EXPECT_EQ(options[1].value, 1);
  EXPECT_EQ(block.items<lower::BpfInstruction>(sockets[0].filter)[0].k, 128U);
}

TEST(Orders, NothingAtAllIsStillABlock) {
  const Reader block(write_orders({}, {}));
  const orders::Header header = block.header();
  EXPECT_EQ(header.size, block.size());
  EXPECT_TRUE(block.items<orders::Mount>(header.mounts).empty());
  EXPECT_TRUE(block.items<orders::LandlockRule>(header.landlock_rules).empty());
  EXPECT_TRUE(block.items<orders::Limit>(header.limits).empty());
  EXPECT_TRUE(block.texts(header.arguments).empty());
  EXPECT_TRUE(block.items<lower::BpfInstruction>(header.filter).empty());
  EXPECT_EQ(block.text(header.program), "");
  EXPECT_EQ(header.fail_step, 0U);
  EXPECT_EQ(header.listen, 0U);
  EXPECT_EQ(header.drop_groups, 0U);
  EXPECT_EQ(header.has_network, 0U);
  EXPECT_EQ(header.inner_sockets, 0U);
  EXPECT_EQ(header.netlink.count, 0U);
  EXPECT_EQ(header.sockets.count, 0U);
}

TEST(Orders, EveryLengthOfATextLeavesTheListsAligned) {
  for (std::size_t length = 0; length < 17; ++length) {
    Bound bound = sample_bound();
    bound.mounts[0].target = std::string(length, 'x');
    bound.arguments[0] = std::string(length, 'y');
    const Reader block(write_orders(bound, sample_launch()));
    const orders::Header header = block.header();
    EXPECT_EQ(block.items<orders::Mount>(header.mounts).size(), 4U);
    EXPECT_EQ(block.items<orders::LandlockRule>(header.landlock_rules).size(), 2U);
    EXPECT_EQ(block.items<orders::Limit>(header.limits).size(), 2U);
    EXPECT_EQ(block.texts(header.arguments)[0], std::string(length, 'y'));
    EXPECT_EQ(block.texts(header.environment).size(), 2U);
    EXPECT_EQ(block.items<lower::BpfInstruction>(header.filter).size(), 2U);
  }
}

}  // namespace
}  // namespace capgate::sandbox
