#include "egress/dns.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "core/host.h"
#include "support/dns_messages.h"
#include "support/generators.h"

namespace capgate::egress {
namespace {

using Kind = DnsReply::Kind;
using support::dns_name;
using support::DnsBytes;
using support::DnsMessage;
using support::DnsQuestion;

constexpr unsigned a = 1, ns = 2, ptr = 12, mx = 15, txt = 16, aaaa = 28, srv = 33, opt = 41,
                   svcb = 64, https = 65, axfr = 252, any = 255;
constexpr unsigned no_error = 0, format_error = 1, no_such_name = 3, not_implemented = 4,
                   refused = 5, bad_version = 16;

const DnsBytes first4 = {28, 18, 0, 1};
const DnsBytes first6 = {0x2d, 0x00, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

Policy policy_of(const std::vector<std::string>& endpoints) {
  Policy policy;
  for (const std::string& endpoint : endpoints) {
    policy.rules.push_back({.connect = {.endpoint = *core::parse_endpoint(endpoint)}});
  }
  return policy;
}

struct Resolver {
  explicit Resolver(const std::vector<std::string>& endpoints) : policy(policy_of(endpoints)) {}

  // What a client reads, or a message without questions where the reply is not one.
  DnsMessage ask(const DnsBytes& query) {
    reply = answer_dns(query, {.policy = policy, .names = names, .ipv6 = ipv6}, out);
    EXPECT_LE(reply.size, 512U);
    const auto message = support::read_dns_reply(std::span(out).first(reply.size));
    EXPECT_EQ(message.has_value(), reply.size != 0);
    return message.value_or(DnsMessage{});
  }
  DnsMessage ask(std::string_view name, unsigned type) {
    return ask(DnsQuestion{.name = dns_name(name), .type = type}.bytes());
  }

  Policy policy;
  NameBook names;
  bool ipv6 = true;
  DnsReply reply;
  std::array<std::uint8_t, 1232> out{};
};

Resolver example() { return Resolver({"api.github.com:443", "*.example.com", "127.0.0.1:8080"}); }

// ---- Answers ---------------------------------------------------------------------------------

TEST(Dns, GivesAnAllowedNameItsSyntheticAddresses) {
  Resolver resolver = example();
  const DnsMessage four = resolver.ask("api.github.com", a);
  EXPECT_EQ(resolver.reply.kind, Kind::answered);
  EXPECT_EQ(resolver.reply.name, "api.github.com");
  EXPECT_EQ(resolver.reply.type, a);
  EXPECT_EQ(four.rcode(), no_error);
  ASSERT_EQ(four.answers.size(), 1U);
  EXPECT_EQ(four.answers[0].name, "api.github.com");
  EXPECT_EQ(four.answers[0].type, a);
  EXPECT_EQ(four.answers[0].class_number, 1U);
  EXPECT_EQ(four.answers[0].seconds, 5U);
  EXPECT_EQ(four.answers[0].data, first4);
  EXPECT_TRUE(four.authorities.empty());
  EXPECT_TRUE(four.additionals.empty());

  const DnsMessage six = resolver.ask("api.github.com", aaaa);
  ASSERT_EQ(six.answers.size(), 1U);
  EXPECT_EQ(six.answers[0].type, aaaa);
  EXPECT_EQ(six.answers[0].data, first6);
  EXPECT_EQ(resolver.names.size(), 1U);
}

TEST(Dns, GivesNoIpv6AddressWhereThereIsNoIpv6) {
  Resolver resolver = example();
  resolver.ipv6 = false;
  for (const std::string_view name : {"api.github.com", "localhost"}) {
    const DnsMessage message = resolver.ask(name, aaaa);
    EXPECT_EQ(message.rcode(), no_error) << name;
    EXPECT_TRUE(message.answers.empty()) << name;
    EXPECT_EQ(resolver.reply.kind, Kind::answered) << name;
  }
  EXPECT_EQ(resolver.ask("api.github.com", a).answers.size(), 1U);
}

TEST(Dns, RepeatsTheQuestionAsItCameAndDecidesOnOneSpelling) {
  Resolver resolver = example();
  const DnsMessage message = resolver.ask("aPI.gitHUB.cOm", a);
  ASSERT_EQ(message.questions.size(), 1U);
  EXPECT_EQ(message.questions[0].name, "aPI.gitHUB.cOm");
  ASSERT_EQ(message.answers.size(), 1U);
  EXPECT_EQ(message.answers[0].name, "aPI.gitHUB.cOm");
  EXPECT_EQ(resolver.reply.name, "api.github.com");
  EXPECT_EQ(resolver.ask("API.GITHUB.COM", a).answers[0].data, first4);
  EXPECT_EQ(resolver.names.size(), 1U);
}

TEST(Dns, SetsTheFlagsThatClientsExpect) {
  Resolver resolver = example();
  DnsQuestion question{.name = dns_name("api.github.com")};
  EXPECT_EQ(resolver.ask(question.bytes()).id, 0xbeefU);
  EXPECT_EQ(resolver.ask(question.bytes()).flags, 0x8180U);  // QR RD RA
  question.flags = 0x0000;
  EXPECT_EQ(resolver.ask(question.bytes()).flags, 0x8080U);
  question.flags = 0x0110;  // RD CD
  EXPECT_EQ(resolver.ask(question.bytes()).flags, 0x8190U);
  question.flags = 0x0120;  // RD AD, as dig sends it: repeating AD would claim to have verified
  EXPECT_EQ(resolver.ask(question.bytes()).flags, 0x8180U);
}

TEST(Dns, AnswersOtherTypesOfAllowedNamesWithNothing) {
  Resolver resolver = example();
  for (const unsigned type : {ns, ptr, mx, txt, srv, opt, svcb, https, axfr, any, 65535U}) {
    const DnsMessage message = resolver.ask("www.example.com", type);
    EXPECT_EQ(message.rcode(), no_error) << type;
    EXPECT_TRUE(message.answers.empty()) << type;
    EXPECT_EQ(resolver.reply.kind, Kind::answered) << type;
  }
  EXPECT_EQ(resolver.names.size(), 0U) << "they need no address";
}

TEST(Dns, AnswersLocalhostWithTheSandboxsOwnLoopback) {
  for (const std::vector<std::string>& rules :
       {std::vector<std::string>{}, {"a.test"}, {"localhost:5432", "*"}}) {
    Resolver resolver(rules);
    for (const std::string_view name : {"localhost", "LocalHost", "a.b.localhost"}) {
      EXPECT_EQ(resolver.ask(name, a).answers.at(0).data, (DnsBytes{127, 0, 0, 1}));
      EXPECT_EQ(resolver.ask(name, aaaa).answers.at(0).data,
                (DnsBytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
      EXPECT_EQ(resolver.ask(name, mx).rcode(), no_error);
      EXPECT_EQ(resolver.names.size(), 0U);
    }
  }
}

// ---- Denials ---------------------------------------------------------------------------------

TEST(Dns, DeniesNamesThatNoRuleCovers) {
  Resolver resolver = example();
  for (const std::string_view name :
       {"github.com", "evil.test", "example.com", "xapi.github.com", "api.github.com.evil.test",
        "com", "notlocalhost", "localhost.evil.test", "secret-bytes.in-addr.arpa"}) {
    for (const unsigned type : {a, aaaa, https, svcb, ptr}) {
      const DnsMessage message = resolver.ask(name, type);
      EXPECT_EQ(message.rcode(), no_such_name) << name << ' ' << type;
      EXPECT_TRUE(message.answers.empty()) << name;
      EXPECT_TRUE(message.authorities.empty()) << name;
      EXPECT_EQ(resolver.reply.kind, Kind::denied) << name;
      EXPECT_EQ(resolver.reply.name, name);
      EXPECT_EQ(resolver.reply.type, type);
    }
    for (const unsigned type : {ns, mx, txt, srv, axfr, any}) {
      EXPECT_EQ(resolver.ask(name, type).rcode(), refused) << name << ' ' << type;
      EXPECT_EQ(resolver.reply.kind, Kind::denied) << name;
    }
  }
  EXPECT_EQ(resolver.names.size(), 0U);
}

struct Spelling {
  DnsBytes name;
  std::string_view shown;
};

TEST(Dns, DeniesWhatIsNoHostNameEvenIfEveryNameIsAllowed) {
  const Spelling table[] = {
      {dns_name(""), "."},
      {dns_name("127.0.0.1"), "127.0.0.1"},
      {dns_name("8.8.8.8"), "8.8.8.8"},
      {dns_name("a.0x7f"), "a.0x7f"},
      {dns_name("::1"), "::1"},
      {dns_name("[::1]"), "[::1]"},
      {dns_name("*"), "*"},
      {dns_name("*.example.com"), "*.example.com"},
      {dns_name("-a.example.com"), "-a.example.com"},
      {dns_name("a b.example.com"), "a\\032b.example.com"},
      {dns_name("a\\b.test"), "a\\\\b.test"},
      {dns_name("a\nb.test"), "a\\010b.test"},
      {dns_name("\xc3\xa9.test"), "\\195\\169.test"},
      {{4, 'a', 0, 'b', 'c', 0}, "a\\000bc"},
      // One label with a dot in it is not two.
      {{11, 'w', 'w', 'w', '.', 'e', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'c', 'o', 'm', 0},
       "www\\.example.com"},
  };
  Resolver resolver({"*", "*.example.com"});
  for (const Spelling& row : table) {
    SCOPED_TRACE(row.shown);
    const DnsMessage message = resolver.ask(DnsQuestion{.name = row.name}.bytes());
    EXPECT_EQ(message.rcode(), no_such_name);
    EXPECT_TRUE(message.answers.empty());
    EXPECT_EQ(resolver.reply.kind, Kind::denied);
    EXPECT_EQ(resolver.reply.name, row.shown);
  }
  EXPECT_EQ(resolver.names.size(), 0U);
}

TEST(Dns, RefusesOtherClasses) {
  Resolver resolver({"*"});
  for (const unsigned class_number : {0U, 3U, 4U, 254U, 255U}) {
    for (const std::string_view name : {"version.bind", "a.test", "localhost"}) {
      const DnsMessage message =
          resolver.ask(DnsQuestion{.name = dns_name(name), .class_number = class_number}.bytes());
      EXPECT_EQ(message.rcode(), refused) << class_number;
      EXPECT_TRUE(message.answers.empty());
      EXPECT_EQ(resolver.reply.kind, Kind::denied);
    }
  }
  EXPECT_EQ(resolver.names.size(), 0U);
}

// ---- Reverse ---------------------------------------------------------------------------------

constexpr std::string_view first6_reversed =
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.0.0.d.2.ip6.arpa";

TEST(Dns, GivesTheNameOfASyntheticAddressBack) {
  Resolver resolver = example();
  (void)resolver.ask("API.github.com", a);
  for (const std::string_view name :
       {std::string_view("1.0.18.28.in-addr.arpa"), std::string_view("1.0.18.28.IN-ADDR.arpa"),
        first6_reversed}) {
    const DnsMessage message = resolver.ask(name, ptr);
    EXPECT_EQ(message.rcode(), no_error) << name;
    EXPECT_EQ(message.answers.at(0).type, ptr);
    EXPECT_EQ(message.answers.at(0).data, dns_name("api.github.com"));
    EXPECT_EQ(resolver.reply.kind, Kind::answered);
  }
}

TEST(Dns, KnowsNoNameForOtherAddresses) {
  for (const std::string rule : {"b.test", "*"}) {
    Resolver resolver({rule});
    std::vector<std::string> names = {
        "2.0.18.28.in-addr.arpa",   "1.0.0.127.in-addr.arpa",
        "8.8.8.8.in-addr.arpa",     "0.18.28.in-addr.arpa",
        "0.1.0.18.28.in-addr.arpa", "01.0.18.28.in-addr.arpa",
        "1.0.18.284.in-addr.arpa",  "1.0.18.x28.in-addr.arpa",
        "x.1.0.18.28.in-addr.arpa", "1.ip6.arpa",
        "x.in-addr.arpa",           "0." + std::string(first6_reversed)};
    for (const std::size_t at : {0U, 2U, 30U, 62U}) {
      names.emplace_back(first6_reversed);
      names.back()[at] = 'f';
      names.emplace_back(first6_reversed);
      names.back()[at] = 'g';
    }
    names.emplace_back(first6_reversed);
    names.back()[1] = '0';
    (void)resolver.ask("b.test", a);
    ASSERT_EQ(resolver.names.size(), 1U);
    for (const std::string& name : names) {
      EXPECT_EQ(resolver.ask(name, ptr).rcode(), no_such_name) << name;
      EXPECT_EQ(resolver.reply.kind, Kind::denied) << name;
    }
  }
}

TEST(Dns, TakesNoPartOfAnAddressForTheWhole) {
  Resolver resolver({"*"});
  for (int i = 1; i <= 256; ++i) (void)resolver.ask("n" + std::to_string(i) + ".test", a);
  EXPECT_EQ(resolver.ask("0.1.18.28.in-addr.arpa", ptr).answers.at(0).data, dns_name("n256.test"));
  EXPECT_EQ(resolver.ask("1.18.28.in-addr.arpa", ptr).rcode(), no_such_name);
  std::string longer(first6_reversed);
  EXPECT_EQ(resolver.ask(longer, ptr).answers.at(0).data, dns_name("n1.test"));
  EXPECT_EQ(resolver.ask(longer.insert(63, ".0"), ptr).rcode(), no_such_name);
}

TEST(Dns, HasRoomForTheLongestNames) {
  const std::string label(63, 'a');
  const std::string longest = label + '.' + label + '.' + label + '.' + std::string(61, 'a');
  Resolver resolver({"*"});
  DnsQuestion question{.name = dns_name(longest), .type = aaaa, .additional = {support::dns_opt()}};
  ASSERT_EQ(question.name.size(), 255U);
  EXPECT_EQ(resolver.ask(question.bytes()).answers.at(0).data, first6);
  EXPECT_EQ(resolver.reply.name, longest);
  EXPECT_EQ(resolver.reply.size, 310U);

  question = {.name = dns_name(first6_reversed), .type = ptr, .additional = {support::dns_opt()}};
  EXPECT_EQ(resolver.ask(question.bytes()).answers.at(0).data, dns_name(longest));
  EXPECT_EQ(resolver.reply.size, 368U);

  EXPECT_EQ(resolver.ask(longest + "a", a).rcode(), format_error);
  EXPECT_EQ(resolver.ask(label + "a.test", a).rcode(), format_error);
}

TEST(Dns, GivesNoReplyThatDoesNotFit) {
  Resolver resolver = example();
  const DnsBytes query = DnsQuestion{.name = dns_name("api.github.com")}.bytes();
  (void)resolver.ask(query);
  const std::size_t whole = resolver.reply.size;
  for (std::size_t room = 0; room <= whole; ++room) {
    std::vector<std::uint8_t> out(room);
    const DnsReply reply =
        answer_dns(query, {.policy = resolver.policy, .names = resolver.names}, out);
    EXPECT_EQ(reply.size, room == whole ? whole : 0U);
    EXPECT_EQ(reply.kind, room == whole ? Kind::answered : Kind::none);
  }
}

// ---- EDNS ------------------------------------------------------------------------------------

TEST(Dns, AnswersEdnsWithEdns) {
  const DnsBytes cookie = {0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  for (const DnsBytes& options : {DnsBytes{}, cookie, DnsBytes{0, 12, 0, 0}}) {
    Resolver resolver = example();
    for (const std::string_view name : {"api.github.com", "evil.test"}) {
      const DnsMessage message = resolver.ask(DnsQuestion{
          .name = dns_name(name),
          .additional = {
              support::dns_opt(0, options)}}.bytes());
      ASSERT_EQ(message.additionals.size(), 1U);
      EXPECT_EQ(message.additionals[0].name, "");
      EXPECT_EQ(message.additionals[0].type, opt);
      EXPECT_EQ(message.additionals[0].class_number, 1232U);
      EXPECT_EQ(message.additionals[0].seconds, 0U);
      EXPECT_TRUE(message.additionals[0].data.empty());
    }
  }
}

TEST(Dns, KnowsOneVersionOfEdns) {
  Resolver resolver = example();
  const DnsMessage message = resolver.ask(
      DnsQuestion{.name = dns_name("api.github.com"), .additional = {support::dns_opt(1)}}.bytes());
  EXPECT_EQ(message.rcode(), bad_version);
  EXPECT_EQ(message.questions.size(), 1U);
  EXPECT_TRUE(message.answers.empty());
  EXPECT_EQ(message.additionals.size(), 1U);
  EXPECT_EQ(resolver.reply.kind, Kind::malformed);
  EXPECT_EQ(resolver.names.size(), 0U);
}

// ---- What is no query ------------------------------------------------------------------------

void expect_error(const DnsBytes& query, unsigned rcode) {
  Resolver resolver({"*"});
  const DnsMessage message = resolver.ask(query);
  EXPECT_EQ(message.rcode(), rcode);
  EXPECT_EQ(message.id, 0xbeefU);
  EXPECT_EQ(resolver.reply.kind, Kind::malformed);
  EXPECT_EQ(resolver.reply.size, 12U);
  EXPECT_EQ(resolver.reply.name, "");
  EXPECT_EQ(resolver.names.size(), 0U);
}

TEST(Dns, RefusesWhatIsMalformed) {
  const DnsQuestion plain{.name = dns_name("a.test")};
  const auto with = [&](std::vector<DnsBytes> records) {
    return DnsQuestion{.name = plain.name, .additional = std::move(records)}.bytes();
  };
  const DnsBytes address = {0, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 1, 2, 3, 4};
  DnsBytes named_opt = support::dns_opt();
  named_opt.insert(named_opt.begin(), {1, 'a'});
  DnsBytes almost_named_opt = support::dns_opt();
  almost_named_opt[0] = 1;
  DnsBytes other_type = support::dns_opt();
  other_type[2] = 16;
  const std::vector<DnsBytes> table = {
      DnsQuestion{.name = {0xc0, 12}}.bytes(),
      DnsQuestion{.name = {1, 'a', 0xc0, 12}}.bytes(),
      DnsQuestion{.name = {0x40, 0}}.bytes(),
      DnsQuestion{.name = {0x80, 0}}.bytes(),
      with({address}),
      with({support::dns_opt(), support::dns_opt()}),
      with({support::dns_opt(), address}),
      with({named_opt}),
      with({almost_named_opt}),
      with({other_type}),
      with({support::dns_opt(0, {0, 10, 0, 9, 1})}),
      with({support::dns_opt(0, {0, 10, 0})}),
      with({{}}),
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    SCOPED_TRACE(i);
    expect_error(table[i], format_error);
  }
}

TEST(Dns, RefusesOtherCountsThanOneQuestion) {
  for (const std::size_t at : {5U, 7U, 9U, 11U}) {
    for (std::uint8_t count = 0; count <= 2; ++count) {
      DnsBytes query = DnsQuestion{.name = dns_name("a.test")}.bytes();
      if (query[at] == count) continue;
      query[at] = count;
      SCOPED_TRACE(at);
      expect_error(query, format_error);
    }
  }
}

TEST(Dns, RefusesWhatIsCutOrGoesOn) {
  const DnsBytes whole =
      DnsQuestion{.name = dns_name("a.test"), .additional = {support::dns_opt()}}.bytes();
  for (std::size_t size = 12; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    expect_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, format_error);
  }
  DnsBytes longer = whole;
  longer.push_back(0);
  expect_error(longer, format_error);
}

TEST(Dns, ImplementsNothingButQueries) {
  for (unsigned opcode = 1; opcode < 16; ++opcode) {
    expect_error(DnsQuestion{.name = dns_name("a.test"), .flags = opcode << 11U}.bytes(),
                 not_implemented);
  }
}

TEST(Dns, IsSilentToResponsesAndToWhatHasNoHeader) {
  Resolver resolver = example();
  DnsBytes query = DnsQuestion{.name = dns_name("api.github.com"), .flags = 0x8180}.bytes();
  (void)resolver.ask(query);
  EXPECT_EQ(resolver.reply.kind, Kind::none);
  EXPECT_EQ(resolver.reply.size, 0U);
  query.resize(11);
  query[2] = 1;
  (void)resolver.ask(query);
  EXPECT_EQ(resolver.reply.kind, Kind::none);
  EXPECT_EQ(resolver.reply.size, 0U);
  (void)resolver.ask(DnsBytes{});
  EXPECT_EQ(resolver.reply.kind, Kind::none);
}

// ---- Properties ------------------------------------------------------------------------------

std::string any_case(std::string text) {
  for (char& c : text) {
    if (is_lower(c) && support::flip()) c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

RC_GTEST_PROP(Dns, GivesAddressesToExactlyTheNamesThatARuleMatches, ()) {
  const core::Endpoint rule = *support::endpoint();
  const core::HostPattern asked = (*support::endpoint()).host;
  Resolver resolver({core::print(rule)});
  const unsigned type = support::flip() ? a : aaaa;
  const DnsMessage message = resolver.ask(any_case(asked.text), type);

  const bool is_name = asked.kind == core::HostPattern::Kind::name ||
                       asked.kind == core::HostPattern::Kind::subdomains;
  const core::HostPattern name{.kind = core::HostPattern::Kind::name, .text = asked.text};
  if (is_name && core::names_private_endpoint(name)) {
    RC_ASSERT(message.answers.size() == 1U);
    RC_ASSERT(resolver.names.size() == 0U);
  } else if (is_name && core::matches(rule.host, name)) {
    RC_ASSERT(message.answers.size() == 1U);
    RC_ASSERT(resolver.names.name_of(std::array<std::uint8_t, 4>{28, 18, 0, 1}) == asked.text);
  } else {
    RC_ASSERT(message.rcode() == no_such_name);
    RC_ASSERT(message.answers.empty());
    RC_ASSERT(resolver.names.size() == 0U);
  }
}

RC_GTEST_PROP(Dns, AnswersAnyChangeOfAQueryWithAReadableMessage, ()) {
  DnsBytes query = DnsQuestion{.name = dns_name(any_case("www.example.com")),
                               .type = *rc::gen::element(a, aaaa, ptr, https, txt),
                               .additional = {support::dns_opt(0, {0, 12, 0, 1, 0})}}
                       .bytes();
  const auto changes = *rc::gen::container<std::vector<std::pair<std::uint8_t, std::uint8_t>>>(
      rc::gen::arbitrary<std::pair<std::uint8_t, std::uint8_t>>());
  for (std::size_t i = 0; i < changes.size() && i < 3; ++i) {
    query[changes[i].first % query.size()] = changes[i].second;
  }
  Resolver resolver = example();
  const DnsMessage message = resolver.ask(query);  // expects that it can be read
  if (resolver.reply.kind == Kind::answered) {
    RC_ASSERT(message.rcode() == no_error);
  } else {
    RC_ASSERT(message.answers.empty());
    RC_ASSERT(resolver.names.size() == 0U);
  }
  RC_ASSERT(std::ranges::all_of(resolver.reply.name, is_printable_ascii));
}

RC_GTEST_PROP(Dns, ShowsNamesInPrintableCharactersAndNeverTwoAlike, ()) {
  const auto name = [] {
    DnsBytes out;
    const auto labels = *rc::gen::inRange(1, 4);
    for (int i = 0; i < labels; ++i) {
      const std::string label = *rc::gen::nonEmpty(support::text_over("ab.\\ 0\x01\x7f\xff"));
      out.push_back(static_cast<std::uint8_t>(std::min<std::size_t>(label.size(), 8)));
      out.insert(out.end(), label.begin(), label.begin() + out.back());
    }
    out.push_back(0);
    return out;
  };
  const DnsBytes one = name(), other = name();
  Resolver resolver({});
  (void)resolver.ask(DnsQuestion{.name = one}.bytes());
  const std::string shown = resolver.reply.name;
  (void)resolver.ask(DnsQuestion{.name = other}.bytes());
  RC_ASSERT((shown == resolver.reply.name) == (one == other));
  RC_ASSERT(std::ranges::all_of(shown, is_printable_ascii));
}

}  // namespace
}  // namespace capgate::egress
