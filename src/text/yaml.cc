#include "text/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/render.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::text {
namespace {

// How many bytes of `text`, which is not empty, are a character that must not stand in the source.
// libyaml refuses the control characters too, but takes U+0085, U+2028, U+2029 and a lone carriage
// return for line breaks: in an editor that does not, a comment would hide the entry behind it.
std::size_t forbidden_length(std::string_view text) {
  constexpr std::array<std::string_view, 5> refused = {
      "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"};
  const char c = text.front();
  if (c == '\t' || c == '\n') return 0;
  if (c == '\r') return text.substr(1).starts_with('\n') ? 0 : 1;
  if (is_control(c)) return 1;
  if (c == '\xc2') return static_cast<unsigned char>(text[1]) < 0xa0 ? 2 : 0;
  if (c != '\xe2' && c != '\xef') return 0;
  return std::ranges::any_of(refused, [&](auto bytes) { return text.starts_with(bytes); }) ? 3 : 0;
}

Result<void> check_characters(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Here and not by event: libyaml compares each %TAG with all before it, minutes for 16 MiB.
    if (text[at] == '%' && (at == 0 || text[at - 1] == '\n')) {
      return fail(Code::yaml_feature, Span::at(at, at + 1), "directives are not allowed",
                  "remove the line; a text that starts with % stands in quotes after its key");
    }
    const std::string_view refused = text.substr(at, forbidden_length(text.substr(at)));
    if (refused.empty()) continue;
    return fail(Code::doc_syntax, Span::at(at, at + refused.size()),
                format("character {} is not allowed here", escape_for_terminal(refused)),
                "remove it, or write it as an escape in double quotes; lines end with LF or CRLF");
  }
  return {};
}

// From libyaml's positions, which count characters, to bytes. Remembers every 32nd character;
// nothing at all for ASCII, where both are the same.
class Offsets {
 public:
  explicit Offsets(std::string_view text) : text_(text) {
    if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
      return;
    }
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size(); at += length_at(at), ++characters) {
      if (characters % stride == 0) known_.push_back(static_cast<std::uint32_t>(at));
    }
  }

  [[nodiscard]] std::size_t byte(const yaml_mark_t& mark) const {
    if (known_.empty()) return std::min(mark.index, text_.size());
    if (mark.index / stride >= known_.size()) return text_.size();
    std::size_t at = known_[mark.index / stride];
    for (std::size_t left = mark.index % stride; left > 0 && at < text_.size(); --left) {
      at += length_at(at);
    }
    return at;
  }

 private:
  static constexpr std::size_t stride = 32;
  // The text is valid UTF-8 by now.
  [[nodiscard]] std::size_t length_at(std::size_t at) const {
    return utf8_length(text_.substr(at, 4));
  }

  std::string_view text_;
  std::vector<std::uint32_t> known_;
};

template <typename Raw, auto release>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned(Owned&&) = delete;
  Owned& operator=(Owned&&) = delete;
  ~Owned() { release(&raw); }
  Raw raw{};
};
using Parser = Owned<yaml_parser_t, yaml_parser_delete>;
using Event = Owned<yaml_event_t, yaml_event_delete>;

void start(yaml_parser_t& parser, std::string_view text) {
  CAPGATE_ASSERT(yaml_parser_initialize(&parser) == 1);
  // Given, so that libyaml does not look for UTF-16.
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  const auto* const bytes = reinterpret_cast<const yaml_char_t*>(text.data());
  yaml_parser_set_input_string(&parser, bytes, text.size());
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Drops up to `most` characters of `set` from the front; true if there was one.
bool skip(std::string_view& text, std::string_view set, std::size_t most = largest_document) {
  const std::size_t count = std::min({text.find_first_not_of(set), text.size(), most});
  text.remove_prefix(count);
  return count > 0;
}

bool is_number(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  std::string_view rest = text.substr(std::min<std::size_t>(text.size(), 2));
  if (text.starts_with("0o")) return skip(rest, "01234567") && rest.empty();
  if (text.starts_with("0x")) return skip(rest, "0123456789abcdefABCDEF") && rest.empty();
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return true;
  skip(text, "+-", 1);
  if (is_one_of(text, {".inf", ".Inf", ".INF"})) return true;
  const bool whole = skip(text, digits);
  const bool fraction = skip(text, ".", 1) && skip(text, digits);
  if (!whole && !fraction) return false;
  if (!skip(text, "eE", 1)) return text.empty();
  skip(text, "+-", 1);
  return skip(text, digits) && text.empty();
}

// The YAML 1.2 core schema.
Kind kind_of_plain(std::string_view text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Kind::null;
  if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return Kind::boolean;
  return is_number(text) ? Kind::number : Kind::string;
}

// One text for each boolean, as in JSON, so that no reader takes True for anything but true.
std::string_view text_as_read(Kind kind, std::string_view value) {
  if (kind != Kind::boolean) return value;
  return is_one_of(value.substr(0, 1), {"t", "T"}) ? "true" : "false";
}

constexpr std::string_view no_tags_help =
    "remove it: quotes make a text, no quotes a number, true, false or null";

// What libyaml says, and what to do about it. Not found: the first row.
struct Problem {
  std::string_view text;
  std::string_view help;
};
constexpr std::string_view undefined_tag = "found undefined tag handle";
constexpr std::array<Problem, 13> problems = {{
    {"", "check the indentation, and put a text with special signs in quotes"},
    {undefined_tag, no_tags_help},
    {"found unexpected end of stream", "close the quote that opens here"},
    {"found unexpected document indicator", "close the quote that opens here"},
    {"did not find expected ',' or ']'", "close the list that opens here, commas between items"},
    {"did not find expected ',' or '}'", "close the braces that open here, commas between keys"},
    {"found character that cannot start any token", "put a text that starts like this in quotes"},
    {"mapping values are not allowed in this context",
     "indent keys alike, and put a text that contains a colon and a space in quotes"},
    {"could not find expected ':'", "write it as key: value"},
    {"did not find expected key", "indent the keys of one mapping alike, each as key: value"},
    {"did not find expected '-' indicator", "indent the items of one list alike, each after a -"},
    {"did not find expected <document start>",
     "a file holds one value: remove what follows it, or indent what belongs to it"},
    {"found unknown escape character", "write a backslash as \\\\, or use single quotes"},
}};

class Builder {
 public:
  explicit Builder(SharedText source) : document_(std::move(source)), text_(document_.source()) {}

  Checked<Document> build() {
    if (auto done = build_document(); !done) mistakes_.push_back(std::move(done).error());
    if (mistakes_.empty()) return std::move(document_);
    sort_diagnostics(mistakes_);
    return std::unexpected(std::move(mistakes_));
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    std::uint32_t items = 0;  // keys and values each count as one
  };

  Result<void> build_document() {
    TRY(check_bytes(text_));
    TRY(check_characters(text_));
    offsets_ = Offsets(text_);
    Parser parser;
    start(parser.raw, text_);
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser.raw, &event.raw) == 0) return syntax_error(parser.raw);
      if (event.raw.type == YAML_STREAM_END_EVENT) break;
      TRY(take(event.raw));
    }
    return document_.size() > 0 ? Result<void>{} : empty_document();
  }

  Result<void> take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT: return {};
      case YAML_DOCUMENT_START_EVENT: return start_document(span_of(event));
      case YAML_ALIAS_EVENT: take_alias(span_of(event)); return {};
      case YAML_SCALAR_EVENT: return take_scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return open(Kind::array, span_of(event), event.data.sequence_start);
      case YAML_MAPPING_START_EVENT:
        return open(Kind::object, span_of(event), event.data.mapping_start);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: close(span_of(event)); return {};
    }
    return {};
  }

  Result<void> start_document(Span where) {
    if (document_.size() == 0) return {};
    return fail(Code::yaml_feature, where, "a second document is not allowed",
                "a file holds one document: remove the --- and what follows it");
  }

  // An alias is refused, and stands in the tree as its own text so that the rest is checked too.
  void take_alias(Span where) {
    note_feature(where, "aliases", "write the value out where it is needed");
    add_scalar({.kind = Kind::string, .span = where, .text = where});
  }

  Result<void> take_scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const Span where = without_trailing_space(span_of(event));
    const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool is_plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (scalar.anchor != nullptr) note_anchor(where);
    if (scalar.tag != nullptr) note_tag(where);
    Kind kind = is_plain ? kind_of_plain(value) : Kind::string;
    if (is_key_next()) {
      if (is_plain) TRY(check_plain_key(where, value));
      kind = Kind::string;
    } else if (is_plain && value.empty() && open_.empty()) {
      return empty_document();
    }
    add_scalar(with_text({.kind = kind, .span = where}, text_as_read(kind, value)));
    return {};
  }

  Result<void> check_plain_key(Span where, std::string_view key) {
    if (key.empty()) {
      return fail(Code::doc_syntax, where, "a key is missing", "write it before the colon");
    }
    if (key == "<<") note_feature(where, "merge keys", "write the merged entries out");
    return {};
  }

  // Text that stands in the source as it is, after at most one quote, keeps its exact place.
  Node with_text(Node node, std::string_view value) {
    const std::size_t width = node.span.end - node.span.begin;
    const std::size_t quotes = width - std::min(width, value.size());
    const std::size_t begin = node.span.begin + (quotes == 2 ? 1 : 0);
    node.verbatim = (quotes == 0 || quotes == 2) && text_.substr(begin, value.size()) == value;
    node.text =
        node.verbatim ? Span::at(begin, begin + value.size()) : document_.add_decoded(value);
    return node;
  }

  Result<void> open(Kind kind, Span where, const auto& start_event) {
    if (start_event.anchor != nullptr) note_anchor(where);
    if (start_event.tag != nullptr) note_tag(where);
    if (is_key_next()) {
      return fail(Code::yaml_feature, until_any(where.begin, ",:\r\n"),
                  "a key must be text, not a list or a mapping", "write it in quotes");
    }
    if (open_.size() == deepest_nesting) {
      return fail(Code::doc_depth, character_at(where.begin),
                  format("nested deeper than {} levels", deepest_nesting),
                  "a manifest needs no more than a handful of levels");
    }
    count_item();
    open_.push_back({.node = document_.add({.kind = kind, .span = where})});
    last_end_ = where.begin;
    return {};
  }

  // libyaml ends a block, and a pair in a list, where the next token starts, comments and all: it
  // ends with its last value, unless it has brackets.
  void close(Span where) {
    const Open self = open_.back();
    open_.pop_back();
    const Node& node = document_.node(self.node);
    const bool is_object = node.kind == Kind::object;
    if (has_brackets(node)) last_end_ = where.end;
    document_.close(self.node, is_object ? self.items / 2 : self.items, last_end_);
    if (is_object) report_duplicate_keys(Value(document_, self.node), mistakes_);
  }

  void add_scalar(Node node) {
    count_item();
    node.next = static_cast<std::uint32_t>(document_.size() + 1);
    document_.add(node);
    last_end_ = node.span.end;
  }

  // A pair in a list, [key: value], is a mapping without: no text value starts with a bracket.
  [[nodiscard]] bool has_brackets(const Node& node) const {
    return is_one_of(text_.substr(node.span.begin, 1), {"[", "{"});
  }

  void count_item() {
    if (!open_.empty()) ++open_.back().items;
  }

  [[nodiscard]] bool is_key_next() const {
    return !open_.empty() && open_.back().items % 2 == 0 &&
           document_.node(open_.back().node).kind == Kind::object;
  }

  void note_anchor(Span where) {
    note_feature(property(where, '&'), "anchors", "remove it, and write repeated values out");
  }
  void note_tag(Span where) { note_feature(property(where, '!'), "tags", no_tags_help); }

  void note_feature(Span where, std::string_view what, std::string_view help) {
    if (mistakes_.size() >= most_mistakes) return;
    mistakes_.push_back({.code = Code::yaml_feature,
                         .where = where,
                         .message = format("{} are not allowed", what),
                         .help = std::string(help)});
  }

  std::unexpected<Diagnostic> syntax_error(const yaml_parser_t& parser) const {
    const std::string_view text = parser.problem ? parser.problem : "cannot be read";
    const auto* const known = std::ranges::find(problems, text, &Problem::text);
    const std::string_view help = (known == problems.end() ? problems.data() : known)->help;
    // An unclosed quote is noticed at the end of the file; where it opens is what helps.
    const bool is_unclosed = help.starts_with("close");
    const std::size_t at = offsets_.byte(is_unclosed ? parser.context_mark : parser.problem_mark);
    if (const auto tab = find_tab_indent(at)) {
      return fail(Code::doc_syntax, character_at(*tab), "a tab indents this line",
                  "indent with spaces: YAML takes no tabs there");
    }
    const Code code = text == undefined_tag ? Code::yaml_feature : Code::doc_syntax;
    return fail(code, character_at(at), format("YAML syntax: {}", text), std::string(help));
  }

  static std::unexpected<Diagnostic> empty_document() {
    return fail(Code::doc_syntax, {}, "the document is empty",
                "a manifest starts with a mapping, for example name: my-server");
  }

  [[nodiscard]] std::optional<std::size_t> find_tab_indent(std::size_t at) const {
    if (!open_.empty() && has_brackets(document_.node(open_.back().node))) return {};
    const std::size_t line = at == 0 ? 0 : text_.find_last_of('\n', at - 1) + 1;
    const std::size_t tab = std::min(text_.find_first_not_of(' ', line), text_.size());
    return text_.substr(tab).starts_with('\t') ? std::optional(tab) : std::nullopt;
  }

  [[nodiscard]] Span span_of(const yaml_event_t& event) const {
    const std::size_t begin = offsets_.byte(event.start_mark);
    return Span::at(begin, std::max(begin, offsets_.byte(event.end_mark)));
  }

  // A block scalar takes the line breaks after it along.
  [[nodiscard]] Span without_trailing_space(Span span) const {
    while (span.end > span.begin && is_space(text_[span.end - 1])) --span.end;
    return span;
  }

  [[nodiscard]] Span character_at(std::size_t at) const {
    return Span::at(at, at + utf8_length(text_.substr(at)));
  }

  [[nodiscard]] Span until_any(std::size_t begin, std::string_view stops) const {
    return Span::at(begin, std::min(text_.find_first_of(stops, begin), text_.size()));
  }

  [[nodiscard]] Span property(Span value, char sign) const {
    const std::size_t found = text_.find(sign, value.begin);
    return until_any(std::min(found, text_.size()), " \t\r\n,[]{}");
  }

  Document document_;
  std::string_view text_;  // of document_, which stays where it is while the parser runs
  Offsets offsets_{""};
  std::vector<Open> open_;
  std::size_t last_end_ = 0;
  Diagnostics mistakes_;
};

}  // namespace

Checked<Document> parse_yaml(SharedText source) { return Builder(std::move(source)).build(); }

}  // namespace capgate::text
