#include "seal/values.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <ctime>

#include "secrets/renewal.h"
#include "support/freed_memory.h"
#include "support/loopback.h"

namespace capgate::seal {
namespace {

class ValuesTest : public testing::Test {
 protected:
  // "TOKEN" expires in so many seconds.
  void begin(std::int64_t seconds) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    renewer = sys::Fd(ends[0]);
    std::vector<secrets::Handed> handed(1);
    handed[0].name = "TOKEN";
    handed[0].value = *secrets::Secret::make("first");
    handed[0].expires = std::time(nullptr) + seconds;
    values.emplace(stage.loop, std::move(handed), support::without_blocking(sys::Fd(ends[1])));
    values->begin();
  }
  ~ValuesTest() override { stage.loop.cancel_all(); }

  [[nodiscard]] bool is_asked() const {
    secrets::RenewalRequest request;
    return ::recv(renewer.get(), &request, sizeof(request), MSG_DONTWAIT) == sizeof(request);
  }
  void answer(std::string_view value, std::int64_t seconds) { send(value, seconds, 0); }
  // Without its last `missing` bytes.
  void cut_answer(std::string_view value, std::size_t missing) { send(value, 3600, missing); }
  void send(std::string_view value, std::int64_t seconds, std::size_t missing) {
    struct {
      secrets::RenewalReply reply;
      char value[16] = {};
    } message;
    std::string_view("TOKEN").copy(message.reply.name, secrets::longest_name);
    message.reply.is_renewed = 1;
    message.reply.size = static_cast<std::uint32_t>(value.size());
    message.reply.expires = std::time(nullptr) + seconds;
    value.copy(message.value, sizeof(message.value));
    stage.play([&] {
      const std::size_t size = sizeof(message.reply) + value.size() - missing;
      EXPECT_EQ(::send(renewer.get(), &message, size, 0), static_cast<ssize_t>(size));
    });
  }

  support::Stage stage;
  sys::Fd renewer;
  std::optional<Values> values;
};

TEST_F(ValuesTest, AreNotAskedForLongBeforeTheyExpire) {
  begin(3600);
  values->renew_if_due("TOKEN");
  EXPECT_FALSE(is_asked());
}

TEST_F(ValuesTest, AreAskedForBeforeTheyExpire) {
  begin(30);
  values->renew_if_due("TOKEN");
  EXPECT_TRUE(is_asked());
  values->renew_if_due("TOKEN");
  EXPECT_FALSE(is_asked()) << "the answer is still to come";
  EXPECT_EQ(values->find("TOKEN")->view(), "first");
  EXPECT_FALSE(values->is_awaited("TOKEN")) << "there is one until then";
}

// A server that sends requests must not have a provider's program run all the time.
TEST_F(ValuesTest, ThatLiveShortlyAreNotAskedForWithEveryRequest) {
  begin(30);
  values->renew_if_due("TOKEN");
  ASSERT_TRUE(is_asked());
  answer("second", 30);
  EXPECT_EQ(values->find("TOKEN")->view(), "second");
  values->renew_if_due("TOKEN");
  EXPECT_FALSE(is_asked());
}

TEST_F(ValuesTest, RememberWhatWasSentBefore) {
  begin(-1);
  EXPECT_EQ(values->find("TOKEN"), nullptr);
  const auto sent = values->sent("TOKEN");
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0]->view(), "first");
  EXPECT_TRUE(sent[1]->is_empty());
  values->renew_if_due("TOKEN");
  answer("second", 30);
  EXPECT_EQ(sent[0]->view(), "second");
  EXPECT_EQ(sent[1]->view(), "first");
}

// Whoever holds the other end of the channel must not be able to plant a value.
TEST_F(ValuesTest, AreNotReplacedByAnAnswerThatNobodyAskedFor) {
  begin(3600);
  answer("planted", 3600);
  EXPECT_EQ(values->find("TOKEN")->view(), "first");
}

TEST_F(ValuesTest, AreNotReplacedByAnAnswerThatIsCut) {
  begin(30);
  values->renew_if_due("TOKEN");
  ASSERT_TRUE(is_asked());
  cut_answer("second", 3);
  EXPECT_EQ(values->find("TOKEN")->view(), "first");
}

TEST_F(ValuesTest, DoNotStayInTheMemoryOfTheMessage) {
  const std::string_view renewed = "renewed-value-00";
  const support::FreedMemory freed(renewed);
  begin(30);
  values->renew_if_due("TOKEN");
  answer(renewed, 3600);
  EXPECT_EQ(values->find("TOKEN")->view(), renewed);
  stage.loop.cancel_all();  // nobody listens any more
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(ValuesTest, AreNotAwaitedFromARenewerThatIsGone) {
  begin(-1);
  values->renew_if_due("TOKEN");
  EXPECT_TRUE(values->is_awaited("TOKEN"));
  stage.play([&] { renewer = sys::Fd(); });
  EXPECT_FALSE(values->is_awaited("TOKEN"));
  values->renew_if_due("TOKEN");
  EXPECT_FALSE(values->is_awaited("TOKEN"));
}

}  // namespace
}  // namespace capgate::seal
