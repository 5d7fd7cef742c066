#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/digest.h"
#include "base/format.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace capgate::seal {
namespace {

using core::SecretPlace;
using Kind = SecretPlace::Kind;
using secrets::Secret;

constexpr std::string_view placeholder = "ghp_AbCdEfGhIjKlMnOpQrSt";
constexpr std::string_view value = "ghp_the/real \"value\"";

class SwapHead : public testing::Test {
 protected:
  Key key(SecretPlace as) const {
    return {.name = "TOKEN",
            .placeholder = std::string(placeholder),
            .as = std::move(as),
            .is_bound_here = true,
            .value = &secret_};
  }
  static Request get(std::string target, std::vector<Field> fields = {}) {
    return {.method = "GET",
            .target = std::move(target),
            .authority = "api.example.com",
            .fields = std::move(fields)};
  }
  static Request with_authorization(const std::string& text) {
    return get("/", {{.name = "Authorization", .value = text}});
  }
  static std::string basic(std::string_view text) { return "Basic " + base64(text); }
  // The reason, or "passed".
  static std::string reason(const Key& key, Request request) {
    const auto swapped = Keyring({key}).swap(request);
    if (swapped) return "passed";
    EXPECT_EQ(swapped.error().name, "TOKEN");
    EXPECT_TRUE(swapped.error().text.contains("TOKEN"));
    EXPECT_FALSE(swapped.error().text.contains(value));
    return std::string(swapped.error().reason);
  }

  const Secret secret_ = *Secret::make(value);
  const std::string ph_{placeholder};
};

TEST_F(SwapHead, PutsValuesIntoTheField) {
  for (const char* before : {"Bearer ", "token ", "", "x="}) {
    Request request = with_authorization(before + ph_ + ";");
    EXPECT_EQ(Keyring({key({})}).swap(request), (std::vector<std::string>{"TOKEN"}));
    EXPECT_EQ(request.fields[0].value, before + std::string(value) + ";");
    EXPECT_TRUE(request.fields[0].is_secret);
    EXPECT_FALSE(request.target_is_secret);
  }
  Request request = get("/", {{.name = "X-Api-Key", .value = ph_}});
  ASSERT_TRUE(Keyring({key({.kind = Kind::header, .header = "x-api-key"})}).swap(request));
  EXPECT_EQ(request.fields[0].value, value);
}

TEST_F(SwapHead, PutsValuesIntoBasicCredentials) {
  for (const char* scheme : {"Basic ", "basic   "}) {
    Request request = with_authorization(scheme + base64("user:" + ph_));
    ASSERT_TRUE(Keyring({key({.kind = Kind::basic})}).swap(request));
    EXPECT_EQ(request.fields[0].value, scheme + base64("user:" + std::string(value)));
    EXPECT_TRUE(request.fields[0].is_secret);
  }
}

TEST_F(SwapHead, PutsTwoValuesIntoOnePlace) {
  const Secret user = *Secret::make("somebody");
  Key other = key({.kind = Kind::basic});
  other.name = "USER";
  other.placeholder = "user-0123456789012345";
  other.value = &user;
  const Keyring keys({key({.kind = Kind::basic}), other});
  Request request = with_authorization(basic(other.placeholder + ":" + ph_));
  EXPECT_EQ(keys.swap(request), (std::vector<std::string>{"USER", "TOKEN"}));
  EXPECT_EQ(request.fields[0].value, basic("somebody:" + std::string(value)));
}

TEST_F(SwapHead, PutsValuesIntoTheTarget) {
  Request request = get("/a/b?x=1&key=" + ph_ + "&y=2");
  ASSERT_TRUE(Keyring({key({.kind = Kind::query})}).swap(request));
  EXPECT_EQ(request.target, "/a/b?x=1&key=ghp_the%2Freal%20%22value%22&y=2");
  EXPECT_TRUE(request.target_is_secret);

  request = get("/bot" + ph_ + "/send?x=1");
  ASSERT_TRUE(Keyring({key({.kind = Kind::path})}).swap(request));
  EXPECT_EQ(request.target, "/botghp_the%2Freal%20%22value%22/send?x=1");
  EXPECT_TRUE(request.target_is_secret);
}

TEST_F(SwapHead, RefusesEveryOtherPlace) {
  std::string encoded;
  for (const char c : placeholder) encoded += format("%{:02x}", static_cast<unsigned>(c));
  const std::string twice = "%25" + encoded.substr(1);
  const Request requests[] = {
      {.method = ph_, .target = "/"},
      {.method = "GET", .target = "/", .authority = ph_ + ".example.com"},
      {.method = "GET", .target = "/", .authority = "ghp_abcdefghijklmnopqrst.example.com"},
      get("/" + ph_),
      get("/?" + ph_),
      get("/" + encoded),
      get("/?q=" + encoded),
      get("/?q=" + twice),
      get("/?q=" + base64(ph_)),
      get("/?q=" + base64("a" + ph_)),
      get("/?q=" + base64("ab" + ph_ + "c")),
      get("/?q=" + percent_encoded(base64("a?>~" + ph_))),
      get("/", {{.name = ph_, .value = "1"}}),
      get("/", {{.name = "x-ghp_abcdefghijklmnopqrst", .value = "1"}}),
      get("/", {{.name = "X-Token", .value = ph_}}),
      get("/", {{.name = "X-Token", .value = base64(ph_)}}),
      get("/", {{.name = "Cookie", .value = "a=" + encoded}}),
      with_authorization(basic("user:" + ph_)),
      with_authorization("Basic  " + base64("x" + ph_) + "!"),
      with_authorization("Bearer " + encoded),
      with_authorization("Bearer " + base64(ph_)),
  };
  const auto as_field = key({});
  for (const Request& request : requests) {
    EXPECT_EQ(reason(as_field, request), "other-place") << request.target;
    Key elsewhere = as_field;
    elsewhere.is_bound_here = false;
    EXPECT_EQ(reason(elsewhere, request), "other-host") << request.target;
  }
  for (const Kind kind : {Kind::basic, Kind::query, Kind::path, Kind::body}) {
    EXPECT_EQ(reason(key({.kind = kind}), with_authorization("Bearer " + ph_)), "other-place");
  }
  EXPECT_EQ(reason(key({.kind = Kind::path}), get("/?" + ph_)), "other-place");
  EXPECT_EQ(reason(key({.kind = Kind::query}), get("/" + ph_ + "?")), "other-place");
  EXPECT_EQ(reason(key({.kind = Kind::body}), get("/" + ph_)), "other-place");
}

TEST_F(SwapHead, RefusesWhatIsDoubled) {
  const std::string bearer = "Bearer " + ph_;
  EXPECT_EQ(reason(key({}), with_authorization(bearer + ph_)), "doubled");
  Request twice = with_authorization(bearer);
  twice.fields.push_back({.name = "authorization", .value = bearer});
  EXPECT_EQ(reason(key({}), twice), "doubled");
  Request elsewhere = with_authorization(bearer);
  elsewhere.target = "/?" + ph_;
  EXPECT_EQ(reason(key({}), elsewhere), "other-place");
  EXPECT_EQ(reason(key({.kind = Kind::basic}), with_authorization(basic(ph_ + ":" + ph_))),
            "doubled");
}

TEST_F(SwapHead, RefusesPlaceholdersInsideEachOther) {
  Key bare = key({});
  bare.placeholder = "bareAAAABBBBCCCCDDDDEEEE";
  Request request = with_authorization("Basic " + bare.placeholder + base64("x" + ph_));
  const auto swapped = Keyring({bare, key({.kind = Kind::basic})}).swap(request);
  ASSERT_FALSE(swapped);
  EXPECT_EQ(swapped.error().reason, "other-place");
}

TEST_F(SwapHead, RefusesInItsPlaceWhereItIsNotBound) {
  Key elsewhere = key({});
  EXPECT_EQ(reason(elsewhere, with_authorization("Bearer " + ph_)), "passed");
  elsewhere.is_bound_here = false;
  EXPECT_EQ(reason(elsewhere, with_authorization("Bearer " + ph_)), "other-host");
}

TEST_F(SwapHead, RefusesWithoutAValue) {
  Key without = key({});
  without.value = nullptr;
  EXPECT_EQ(reason(without, with_authorization("Bearer " + ph_)), "not-renewed");
  EXPECT_EQ(reason(without, with_authorization("Bearer x")), "passed");
}

TEST_F(SwapHead, RefusesAValueThatWouldEndTheField) {
  const Secret lines = *Secret::make("a\r\nX-Injected: 1");
  Key bad = key({});
  bad.value = &lines;
  EXPECT_EQ(reason(bad, with_authorization("Bearer " + ph_)), "unfit-value");
  bad.as.kind = Kind::query;
  EXPECT_EQ(reason(bad, get("/?" + ph_)), "passed");
}

TEST_F(SwapHead, TellsThePlaceAndWhatAllowsIt) {
  const auto text = [&](Request request) { return Keyring({key({})}).swap(request).error().text; };
  EXPECT_EQ(text(get("/?" + ph_)),
            "the placeholder of TOKEN stands in the query, which its env:inject allows with "
            "as=query only");
  EXPECT_EQ(text(get("/", {{.name = "X-Token", .value = ph_}})),
            "the placeholder of TOKEN stands in the field x-token, which its env:inject allows "
            "with as=header:x-token only");
  EXPECT_EQ(text(get("/", {{.name = "x\x1b[1m", .value = ph_}})),
            "the placeholder of TOKEN stands in another field, where nothing allows it");
  EXPECT_EQ(text(get("/" + base64(ph_))),
            "the placeholder of TOKEN stands in the path, encoded, where nothing allows it");
}

TEST_F(SwapHead, TakesTheValueOfTheMoment) {
  Secret renewed = *Secret::make("first");
  Key changing = key({});
  changing.value = &renewed;
  const Keyring keys({changing});
  Request request = with_authorization(ph_);
  ASSERT_TRUE(keys.swap(request));
  EXPECT_EQ(request.fields[0].value, "first");
  renewed = *Secret::make("second");
  request = with_authorization(ph_);
  ASSERT_TRUE(keys.swap(request));
  EXPECT_EQ(request.fields[0].value, "second");
}

TEST_F(SwapHead, AsksForWhatCanBeRead) {
  Request request = get("/", {{.name = "Accept-Encoding", .value = "gzip"},
                              {.name = "Range", .value = "bytes=0-1"},
                              {.name = "If-Range", .value = "x"},
                              {.name = "Request-Range", .value = "bytes=0-1"},
                              {.name = "Sec-WebSocket-Extensions", .value = "permessage-deflate"},
                              {.name = "accept-encoding", .value = "br"},
                              {.name = "Accept", .value = "*/*"}});
  ASSERT_TRUE(Keyring({key({})}).swap(request));
  ASSERT_EQ(request.fields.size(), 2U);
  EXPECT_EQ(request.fields[0].name, "Accept-Encoding");
  EXPECT_EQ(request.fields[0].value, "identity");
  EXPECT_EQ(request.fields[1].name, "Accept");

  request = get("/");
  ASSERT_TRUE(Keyring({key({})}).swap(request));
  ASSERT_EQ(request.fields.size(), 1U);
  EXPECT_EQ(request.fields[0].name, "accept-encoding");

  Key elsewhere = key({});
  elsewhere.is_bound_here = false;
  request = get("/", {{.name = "Range", .value = "bytes=0-1"}});
  ASSERT_TRUE(Keyring({elsewhere}).swap(request));
  ASSERT_EQ(request.fields.size(), 1U);
  EXPECT_EQ(request.fields[0].name, "Range");
}

TEST_F(SwapHead, ChecksTrailers) {
  const Keyring keys({key({})});
  EXPECT_TRUE(keys.check_trailers({}));
  EXPECT_TRUE(keys.check_trailers({{.name = "a", .value = "b"}}));
  for (const Field& field :
       {Field{.name = "authorization", .value = ph_}, Field{.name = ph_, .value = ""},
        Field{.name = "x", .value = base64(ph_)}}) {
    const auto checked = keys.check_trailers({{.name = "a", .value = "b"}, field});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().reason, "other-place");
  }
}

std::vector<Field> any_fields() {
  const auto field = rc::gen::map(
      rc::gen::pair(rc::gen::element<std::string>("Accept", "authorization", "x-a", "Cookie", ""),
                    rc::gen::arbitrary<std::string>()),
      [](const auto& pair) { return Field{.name = pair.first, .value = pair.second}; });
  return *rc::gen::container<std::vector<Field>>(field);
}

bool is_same(const std::vector<Field>& a, const std::vector<Field>& b) {
  return std::ranges::equal(a, b, [](const Field& left, const Field& right) {
    return left.name == right.name && left.value == right.value;
  });
}

RC_GTEST_FIXTURE_PROP(SwapHead, LeavesARequestWithoutPlaceholderAlone,
                      (const std::string& target, const std::string& method)) {
  const Request sent{.method = method, .target = target, .authority = "a", .fields = any_fields()};
  for (const Kind kind : {Kind::header, Kind::basic, Kind::query, Kind::path, Kind::body}) {
    Request request = sent;
    const auto swapped = Keyring({key({.kind = kind})}).swap(request);
    RC_ASSERT(swapped.has_value() && swapped->empty());
    RC_ASSERT(request.method == sent.method && request.target == sent.target);
    RC_ASSERT(request.authority == sent.authority && !request.target_is_secret);
    RC_ASSERT(request.fields.back().value == "identity");
    request.fields.pop_back();
    RC_ASSERT(is_same(request.fields, sent.fields));
  }
}

// What the origin receives, with the placeholder put back, is what the client sent.
RC_GTEST_FIXTURE_PROP(SwapHead, ChangesThePlaceholderOnly,
                      (const std::string& before, const std::string& after)) {
  const std::string held = before + ph_ + after;
  const std::string changed = before + std::string(value) + after;
  const std::string in_target = before + percent_encoded(value) + after;
  Request sent = get("/", any_fields());
  const auto swap_as = [&](Kind kind, const Request& request) {
    Request out = request;
    RC_ASSERT(Keyring({key({.kind = kind})}).swap(out).has_value());
    out.fields.pop_back();
    return out;
  };
  Request target = sent;
  target.target = "/?" + held;
  RC_ASSERT(swap_as(Kind::query, target).target == "/?" + in_target);
  RC_PRE(!before.contains('?'));
  target.target = held;
  RC_ASSERT(swap_as(Kind::path, target).target == in_target);

  Request field = sent;
  field.fields.push_back({.name = "Authorization", .value = "x" + held});
  sent.fields.push_back({.name = "Authorization", .value = "x" + changed});
  RC_ASSERT(is_same(swap_as(Kind::header, field).fields, sent.fields));
  field.fields.back().value = basic(held);
  sent.fields.back().value = basic(changed);
  RC_ASSERT(is_same(swap_as(Kind::basic, field).fields, sent.fields));
}

}  // namespace
}  // namespace capgate::seal
