#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "base/digest.h"
#include "base/format.h"
#include "seal/spelling.h"
#include "seal/swap.h"
#include "support/cuts.h"

namespace capgate::seal {
namespace {

using secrets::Secret;

constexpr std::string_view placeholder = "ghp_0123456789abcdefghij";

Key key_of(const Secret& secret) {
  return {.name = "TOKEN",
          .placeholder = std::string(placeholder),
          .as = {},
          .is_bound_here = true,
          .value = &secret};
}

std::string whole(const Keyring& keys, std::string_view text) {
  Scrub scrub = keys.response_body();
  std::string out = scrub.push(text);
  return out + scrub.finish();
}

std::string url_safe(std::string text) {
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

TEST(Scrub, OverwritesWithThePlaceholder) {
  const Secret shorter = *Secret::make("value-12345");
  EXPECT_EQ(whole(Keyring({key_of(shorter)}), "a value-12345 b value-12345"),
            "a ghp_0123456 b ghp_0123456");
  const Secret longer = *Secret::make("value-12345-value-12345-value-12345");
  EXPECT_EQ(whole(Keyring({key_of(longer)}), "<value-12345-value-12345-value-12345>"),
            "<ghp_0123456789abcdefghijghp_0123456>");
}

TEST(Scrub, CountsWhatItFinds) {
  const Secret secret = *Secret::make("value-12345");
  Scrub scrub = Keyring({key_of(secret)}).response_body();
  EXPECT_EQ(scrub.push("value-12345 value-1"), "ghp_0123456 ");
  EXPECT_EQ(scrub.found(), 1U);
  EXPECT_EQ(scrub.push("2345 v"), "ghp_0123456 ");
  EXPECT_EQ(scrub.found(), 2U);
  EXPECT_EQ(scrub.finish(), "v");
}

// A request may have held what was renewed since, and a long answer outlives a renewal.
TEST(Scrub, OverwritesFormerValuesAndThoseOfARenewalMeanwhile) {
  Secret current = *Secret::make("first-value-1");
  Secret former;
  Key key = key_of(current);
  key.former = {&current, &former};
  const Keyring keys({key});
  Scrub scrub = keys.response_body();
  EXPECT_EQ(scrub.push("first-value-1."), "ghp_012345678.");
  former = std::move(current);
  current = *Secret::make("second-value");
  EXPECT_EQ(scrub.push("first-value-1 second-value."), "ghp_012345678 ghp_01234567.");
  EXPECT_EQ(whole(keys, "first-value-1 second-value"), "ghp_012345678 ghp_01234567");
}

TEST(Scrub, OverwritesAValueThatHasExpired) {
  const Secret expired = *Secret::make("first-value-1");
  Key key = key_of(expired);
  key.value = nullptr;
  key.former = {&expired};
  EXPECT_EQ(whole(Keyring({key}), "first-value-1"), "ghp_012345678");
}

TEST(Scrub, GivesWhatCameWithoutACopy) {
  const Secret secret = *Secret::make("value-12345");
  Scrub scrub = Keyring({key_of(secret)}).response_body();
  const std::string text = "nothing in it.";
  EXPECT_EQ(scrub.pass(text).data(), text.data());
}

TEST(Scrub, LeavesAloneWhatItCannotKnow) {
  const Secret tiny = *Secret::make("1234");
  EXPECT_EQ(whole(Keyring({key_of(tiny)}), "1234 MTIzNA=="), "1234 MTIzNA==");
  const Secret secret = *Secret::make("value-12345");
  Key key = key_of(secret);
  key.is_bound_here = false;
  EXPECT_EQ(whole(Keyring({key}), "value-12345"), "value-12345");
  key.value = nullptr;
  key.is_bound_here = true;
  EXPECT_EQ(whole(Keyring({key}), "value-12345"), "value-12345");
}

TEST(Scrub, FollowsARenewal) {
  Secret secret = *Secret::make("value-12345");
  const Keyring keys({key_of(secret)});
  EXPECT_EQ(whole(keys, "value-12345"), "ghp_0123456");
  secret = *Secret::make("other-67890");
  EXPECT_EQ(whole(keys, "other-67890"), "ghp_0123456");
}

TEST(Scrub, OverwritesAllThatOverlaps) {
  const Secret secret = *Secret::make("abcabcabcabc");
  Scrub scrub = Keyring({key_of(secret)}).response_body();
  std::string out = scrub.push("xabcabcabcabcab");
  out += scrub.push("c.");
  EXPECT_EQ(out, "xghpghp_01234567.");
  EXPECT_EQ(scrub.found(), 2U);
}

TEST(Scrub, CoversHeads) {
  const Secret secret = *Secret::make("value-12345");
  const Keyring keys({key_of(secret)});
  Response response{.status = 200,
                    .reason = "OK value-12345",
                    .fields = {{.name = "X-value-12345", .value = "1"},
                               {.name = "Location", .value = "/?a=value-12345&value-12345"},
                               {.name = "Via", .value = base64("x:value-12345")}}};
  EXPECT_EQ(keys.scrub(response), 5U);
  EXPECT_EQ(response.reason, "OK ghp_0123456");
  EXPECT_EQ(response.fields[0].name, "x-ghp_0123456");
  EXPECT_EQ(response.fields[1].value, "/?a=ghp_0123456&ghp_0123456");
  EXPECT_EQ(response.fields[2].value.size(), base64("x:value-12345").size());
  EXPECT_NE(response.fields[2].value, base64("x:value-12345"));
  std::vector<Field> trailers{{.name = "a", .value = "value-12345"}};
  EXPECT_EQ(keys.scrub(trailers), 1U);
  EXPECT_EQ(trailers[0].value, "ghp_0123456");
}

TEST(Scrub, KnowsWhatItCanRead) {
  const Secret secret = *Secret::make("value-12345");
  const Keyring keys({key_of(secret)});
  const auto is_readable = [&](std::vector<Field> fields, int status = 200) {
    return keys.is_readable({.status = status, .fields = std::move(fields)});
  };
  EXPECT_TRUE(is_readable({}));
  EXPECT_TRUE(is_readable({{.name = "Content-Encoding", .value = "Identity"}}));
  EXPECT_TRUE(is_readable({{.name = "Content-Encoding", .value = ""}}));
  EXPECT_FALSE(is_readable({{.name = "Content-Encoding", .value = "gzip"}}));
  EXPECT_FALSE(is_readable({{.name = "content-encoding", .value = "identity, br"}}));
  EXPECT_FALSE(is_readable({{.name = "content-encoding", .value = "identity"},
                            {.name = "content-encoding", .value = "zstd"}}));
  EXPECT_TRUE(is_readable({{.name = "content-encoding", .value = "gzip"}}, 304));
  EXPECT_TRUE(Keyring({}).is_readable(
      {.status = 200, .fields = {{.name = "content-encoding", .value = "gzip"}}}));
}

// ---- escapes: those of Python's own libraries are tested in tests/e2e/secret_encoding_test.py
// ----

using Spell = std::function<std::string(const std::string&)>;

// Each character in any way that a library may choose for it, whatever it chose for the others.
std::string any_escape(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_lower = *rc::gen::arbitrary<bool>();
  const auto number = [&](const char* pattern) {
    return capgate::vformat(pattern, fmt::make_format_args(byte));
  };
  switch (*rc::gen::inRange(0, 9)) {
    case 0: return number(is_lower ? "%{:02x}" : "%{:02X}");
    case 1: return number(is_lower ? "\\u{:04x}" : "\\u{:04X}");
    case 2: return number(is_lower ? "&#x{:x};" : "&#X{:X};");
    case 3: return number(is_lower ? "&#{};" : "&#{:03};");
    case 4: return json_escaped(std::string(1, c), Slash::escaped);
    case 5: return number(is_lower ? "%25{:02x}" : "%25{:02X}");
    case 6: return number("\\\\u{:04x}");
    case 7: return c == ' ' ? "+" : std::string(1, c);
    default: return std::string(1, c);
  }
}
std::string any_escapes(const std::string& text) {
  std::string out;
  for (const char c : text) out += any_escape(c);
  return out;
}

// Lines of at least four characters: shorter ones are found where they come at once.
std::string wrapped(std::string_view text) {
  const auto width = *rc::gen::inRange<std::size_t>(4, 80);
  const std::string line_break = *rc::gen::element<std::string>(
      "\n", "\r\n", "\\n", "\\r\\n", "\n    ", "%0A", "%0d%0a", "&#10;", "\\u000a", "\r");
  std::string out;
  for (; text.size() > width; text.remove_prefix(width)) {
    out.append(text.substr(0, width)).append(line_break);
  }
  return out.append(text);
}

// Each as a service would write it that was sent the value.
std::vector<Spell> spellings() {
  return {
      [](const std::string& v) { return v; },
      [](const std::string& v) { return percent_encoded(v); },
      [](const std::string& v) { return percent_encoded(v, HexCase::lower); },
      [](const std::string& v) { return json_escaped(v); },
      [](const std::string& v) { return json_escaped(v, Slash::escaped); },
      [](const std::string& v) { return hex_encoded(v, HexCase::lower); },
      [](const std::string& v) { return hex_encoded(v, HexCase::upper); },
      [](const std::string& v) { return any_escapes(v); },
      [](const std::string& v) { return any_escapes(hex_encoded(v)); },
  };
}

RC_GTEST_PROP(ScrubProperty, LeavesNoSpellingOfTheValue,
              (const std::string& before, const std::string& after)) {
  const std::string value =
      *rc::gen::resize(12, rc::gen::arbitrary<std::string>()) + "\"/\n~?>&% -12";
  const Secret secret = *Secret::make(value);
  const Keyring keys({key_of(secret)});
  for (const Spell& spell : spellings()) {
    const std::string spelt = spell(value);
    const std::string text = before + spelt + after;
    Scrub scrub = keys.response_body();
    std::string out;
    for (const std::string& part : support::any_cuts(text)) out += scrub.push(part);
    out += scrub.finish();
    RC_ASSERT(out.size() == text.size());
    RC_ASSERT(!out.contains(spelt));
    RC_ASSERT(scrub.found() > 0U);
    RC_ASSERT(out == whole(keys, text));
  }
}

TEST(Scrub, OverwritesEscapedAndWrappedText) {
  const Secret secret = *Secret::make("a/b=c&d e<f>g\"h'i");
  const Keyring keys({key_of(secret)});
  for (const std::string_view text : {
           "a/b%3Dc%26d%20e%3Cf%3Eg%22h%27i",         // quote
           "a%2Fb%3Dc%26d+e%3Cf%3Eg%22h%27i",         // quote_plus
           "a%2fb%3dc%26d%20e%3cf%3eg%22h'i",         // another alphabet, in lower case
           "a/b=c&amp;d e&lt;f&gt;g&quot;h&#x27;i",   // html.escape
           "a/b=c&amp;d e&lt;f&gt;g&#34;h&#39;i",     // Jinja
           "a\\/b=c&d e<f>g\\\"h'i",                  // PHP's json_encode
           "a/b=c\\u0026d e\\u003cf\\u003eg\\\"h'i",  // Go's json
           "a/b=c\\u0026d e\\u003Cf\\u003Eg\\u0022h\\u0027i",
           "YS9iPWMmZCBlPGY+ZyJoJ2k=",
           "YS9iPWMmZCBl\nPGY+ZyJoJ2k=",
           "YS9iPWMmZCBl\\r\\nPGY+ZyJoJ2k=",
           "YS9iPWMmZCBlPGY%2BZyJoJ2k%3D",
           "YS9iPWMmZCBlPGY-ZyJoJ2k",
           "612f623d632664206"
           "53c663e6722682769",
       }) {
    const std::string out = whole(keys, text);
    EXPECT_EQ(out.size(), text.size());
    EXPECT_EQ(out.substr(0, 12), placeholder.substr(0, 12)) << text;
    for (std::size_t at = 1; at < text.size(); ++at) {
      Scrub scrub = keys.response_body();
      std::string in_two = scrub.push(text.substr(0, at));
      in_two += scrub.push(text.substr(at));
      EXPECT_EQ(in_two + scrub.finish(), out) << text << " cut at " << at;
    }
  }
}

// A stream of events or lines is not kept waiting for what cannot belong together.
TEST(Scrub, HoldsBackNoLines) {
  const Secret secret = *Secret::make("value-12345");
  const Keyring keys({key_of(secret)});
  const std::string encoded = base64("value-12345");
  for (const std::string& line :
       {std::string("data: {\"a\": 1}\n\n"), "a log line " + encoded.substr(0, 2) + "\n",
        std::string("x%20&amp;\\n\n"), "data: " + encoded.substr(0, 8) + "\n\n"}) {
    Scrub scrub = keys.response_body();
    EXPECT_EQ(scrub.push(line), line);
  }
}

// The value may hold what begins an escape.
TEST(Scrub, IsQuickWhereEverythingIsAnEscape) {
  const Secret secret = *Secret::make(std::string(8, '\\') + "%25%25&amp;&amp;");
  const Keyring keys({key_of(secret)});
  const std::string text = std::string(200, '\\') + "%25%25&amp;&amp;";
  Scrub scrub = keys.response_body();
  const std::string out = scrub.push(text) + scrub.finish();
  EXPECT_EQ(out.size(), text.size());
  EXPECT_FALSE(out.ends_with("\\%25%25&amp;&amp;"));
}

// In base64 no character is left that only the value decides.
RC_GTEST_PROP(ScrubProperty, LeavesNoBase64OfTheValue,
              (const std::string& before, const std::string& after)) {
  const std::string value = *rc::gen::resize(12, rc::gen::arbitrary<std::string>()) + "~?>-12345";
  const Secret secret = *Secret::make(value);
  const Keyring keys({key_of(secret)});
  const std::string standard = base64(before + value + after);
  for (const std::string& text :
       {standard, url_safe(standard), any_escapes(standard), wrapped(standard)}) {
    Scrub scrub = keys.response_body();
    std::string out;
    for (const std::string& part : support::any_cuts(text)) out += scrub.push(part);
    out += scrub.finish();
    RC_ASSERT(out.size() == text.size() && scrub.found() > 0U);
    for (const Alphabet alphabet : {Alphabet::standard, Alphabet::url_safe}) {
      RC_ASSERT(!out.contains(base64_inside(value, before.size() % 3, alphabet)));
    }
    RC_ASSERT(out == whole(keys, text));
  }
}

std::string scrubbed_slowly(const std::string& text, const std::vector<std::string>& patterns,
                            const std::vector<std::string>& placeholders) {
  std::string out = text;
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t size = 0;
    std::size_t owner = 0;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (patterns[i].size() <= size || !text.substr(at).starts_with(patterns[i])) continue;
      size = patterns[i].size();
      owner = i;
    }
    if (at + size <= covered) continue;
    covered = at + size;
    for (std::size_t i = 0; i < size; ++i) {
      out[at + i] = placeholders[owner][i % placeholders[owner].size()];
    }
  }
  return out;
}

// Few letters, so that values contain and overlap each other. None of the text is base64 of them.
RC_GTEST_PROP(ScrubProperty, AgreesWithASlowSearch, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b'));
  const std::vector<std::string> values = {"abaababa" + *letters, "ababaaba",
                                           "bbbbbbbb" + *letters};
  const std::vector<std::string> placeholders = {"01234567890123456789", "ABCDEFGHIJKLMNOPQRSTUV",
                                                 "-----------------------"};
  std::vector<Secret> secrets;
  for (const std::string& value : values) secrets.push_back(*Secret::make(value));
  std::vector<Key> keys;
  for (std::size_t i = 0; i < values.size(); ++i) {
    keys.push_back(key_of(secrets[i]));
    keys.back().placeholder = placeholders[i];
  }
  std::string text = *letters;
  for (int i = 0; i < 4; ++i) {
    text += values[*rc::gen::inRange<std::size_t>(0, values.size())] + *letters;
  }
  Scrub scrub = Keyring(keys).response_body();
  std::string out;
  for (const std::string& part : support::any_cuts(text)) out += scrub.push(part);
  out += scrub.finish();
  RC_ASSERT(out == scrubbed_slowly(text, values, placeholders));
}

}  // namespace
}  // namespace capgate::seal
