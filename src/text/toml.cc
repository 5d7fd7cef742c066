#include "text/toml.h"

#include <unordered_map>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"
#include "text/toml_scan.h"

namespace capgate::text {
namespace {

// How a table came to be decides who may add keys to it.
enum class Origin : std::uint8_t {
  value,    // a scalar, a list or a table in braces: complete
  passed,   // named on the way to a table below it
  header,   // [table]
  dotted,   // a.b = 1 makes a
  listing,  // [[table]]: a list of tables
};

struct Item {
  Kind kind = Kind::object;
  Origin origin = Origin::value;
  std::size_t depth = 0;
  TomlToken token{};
  std::vector<std::pair<TomlToken, std::uint32_t>> members{};  // keys, unused in a list
};

class Reader {
 public:
  explicit Reader(SharedText source)
      : document_(std::move(source)), text_(document_.source()), scanner_(text_) {}

  Checked<Document> parse() {
    if (auto done = parse_text(); !done) {
      return std::unexpected(Diagnostics{std::move(done).error()});
    }
    emit(root);
    return std::move(document_);
  }

 private:
  static constexpr std::uint32_t root = 0;
  using Key = std::vector<TomlToken>;

  Result<void> parse_text() {
    TRY(check_bytes(text_));
    items_.push_back({.origin = Origin::header});
    table_ = root;
    while (!scanner_.at_end()) {
      scanner_.skip_spaces();
      if (scanner_.peek() == '[') {
        TRY(header());
      } else if (!is_line_over()) {
        TRY(assignment(table_));
      }
      TRY(scanner_.end_line());
    }
    return {};
  }

  [[nodiscard]] bool is_line_over() const {
    const char c = scanner_.peek();
    return scanner_.at_end() || c == '#' || c == '\n' || c == '\r';
  }

  Result<Key> key() {
    Key parts;
    do {
      scanner_.skip_spaces();
      parts.push_back(TRY(scanner_.key_part()));
      scanner_.skip_spaces();
    } while (scanner_.skip("."));
    return parts;
  }

  Result<void> header() {
    const std::size_t begin = scanner_.at();
    const bool is_listing = scanner_.skip("[[");
    if (!is_listing) scanner_.step();
    const Key path = TRY(key());
    if (!scanner_.skip(is_listing ? "]]" : "]")) {
      return scanner_.unexpected("the header is not closed",
                                 "write [table], or [[list.of.tables]]");
    }
    const Span span = Span::at(begin, scanner_.at());
    std::uint32_t parent = root;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      parent = TRY(pass(parent, path[i]));
    }
    table_ = is_listing ? TRY(next_of_listing(parent, path.back(), span))
                        : TRY(open_table(parent, path.back(), span));
    return {};
  }

  Result<std::uint32_t> pass(std::uint32_t parent, const TomlToken& part) {
    const auto found = find(parent, part);
    if (!found) return add(parent, part, {.origin = Origin::passed, .token = part});
    const Item& item = items_[*found];
    if (item.origin == Origin::listing) return item.members.back().second;
    if (item.origin == Origin::value) return given_twice(part);
    return *found;
  }

  Result<std::uint32_t> open_table(std::uint32_t parent, const TomlToken& part, Span span) {
    const Item table{.origin = Origin::header, .token = {.span = span}};
    const auto found = find(parent, part);
    if (!found) return add(parent, part, table);
    if (items_[*found].origin != Origin::passed) return given_twice(part);
    items_[*found].origin = Origin::header;
    items_[*found].token.span = span;
    return *found;
  }

  Result<std::uint32_t> next_of_listing(std::uint32_t parent, const TomlToken& part, Span span) {
    auto list = find(parent, part);
    if (!list) {
      list = TRY(add(parent, part,
                     {.kind = Kind::array, .origin = Origin::listing, .token = {.span = span}}));
    } else if (items_[*list].origin != Origin::listing) {
      return given_twice(part);
    }
    return append(*list, {.origin = Origin::header, .token = {.span = span}});
  }

  Result<void> assignment(std::uint32_t table) {
    const std::size_t begin = scanner_.at();
    Key path = TRY(key());
    if (!scanner_.skip("=")) return scanner_.unexpected("expected '='", "write key = value");
    scanner_.skip_spaces();
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      table = TRY(pass_dotted(table, path[i]));
    }
    TomlToken& last = path.back();
    if (find(table, last)) return given_twice(last);
    last.span.begin = static_cast<std::uint32_t>(begin);
    const std::uint32_t self = TRY(add(table, last, {}));
    return value(self);
  }

  Result<std::uint32_t> pass_dotted(std::uint32_t parent, const TomlToken& part) {
    const auto found = find(parent, part);
    if (!found) return add(parent, part, {.origin = Origin::dotted, .token = part});
    if (items_[*found].origin != Origin::dotted) return given_twice(part);
    return *found;
  }

  // Fills in the item that the key has been given already: a list's items must come after it.
  Result<void> value(std::uint32_t self) {
    switch (scanner_.peek()) {
      case '[': return list(self);
      case '{': return braces(self);
      case '"':
      case '\'': return scalar(self, scanner_.string());
      default: return scalar(self, scanner_.bare_value());
    }
  }

  Result<void> scalar(std::uint32_t self, Result<TomlToken> token) {
    items_[self].token = TRY(std::move(token));
    items_[self].kind = items_[self].token.kind;
    return {};
  }

  Result<void> list(std::uint32_t self) {
    const std::size_t begin = scanner_.at();
    items_[self].kind = Kind::array;
    scanner_.step();
    TRY(scanner_.skip_lines());
    while (!scanner_.skip("]")) {
      const std::uint32_t item = TRY(append(self, {}));
      TRY(value(item));
      TRY(scanner_.skip_lines());
      const bool has_comma = scanner_.skip(",");
      TRY(scanner_.skip_lines());
      if (!has_comma && scanner_.peek() != ']') {
        return scanner_.unexpected("expected ',' or ']'", "separate the items with a comma");
      }
    }
    items_[self].token.span = Span::at(begin, scanner_.at());
    return {};
  }

  Result<void> braces(std::uint32_t self) {
    const std::size_t begin = scanner_.at();
    scanner_.step();
    scanner_.skip_spaces();
    for (bool first = true; !(first && scanner_.skip("}")); first = false) {
      scanner_.skip_spaces();
      TRY(assignment(self));
      scanner_.skip_spaces();
      if (scanner_.skip("}")) break;
      if (!scanner_.skip(",")) {
        return scanner_.unexpected("expected ',' or '}'",
                                   "a table in braces stands on one line, its keys with commas");
      }
    }
    items_[self].token.span = Span::at(begin, scanner_.at());
    complete(self);
    return {};
  }

  // Nothing is added to a table in braces, nor to those that dotted keys made inside.
  void complete(std::uint32_t self) {
    items_[self].origin = Origin::value;
    for (const auto& [key, child] : items_[self].members) {
      if (items_[child].origin == Origin::dotted) complete(child);
    }
  }

  [[nodiscard]] std::string name_of(std::uint32_t parent, const TomlToken& part) const {
    return format("{}.{}", parent, part.value(text_));
  }

  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t parent,
                                                  const TomlToken& part) const {
    const auto found = named_.find(name_of(parent, part));
    return found == named_.end() ? std::nullopt : std::optional(found->second);
  }

  Result<std::uint32_t> add(std::uint32_t parent, const TomlToken& part, Item item) {
    const std::uint32_t self = TRY(make(parent, std::move(item), part.span));
    items_[parent].members.emplace_back(part, self);
    named_.emplace(name_of(parent, part), self);
    return self;
  }

  Result<std::uint32_t> append(std::uint32_t list, Item item) {
    const Span here = Span::at(scanner_.at(), scanner_.at());
    const std::uint32_t self = TRY(make(list, std::move(item), here));
    items_[list].members.emplace_back(TomlToken{}, self);
    return self;
  }

  Result<std::uint32_t> make(std::uint32_t parent, Item item, Span where) {
    item.depth = items_[parent].depth + 1;
    if (item.depth > deepest_nesting) {
      return fail(Code::doc_depth, where, format("nested deeper than {} levels", deepest_nesting),
                  "a configuration needs no more than a handful of levels");
    }
    items_.push_back(std::move(item));
    return static_cast<std::uint32_t>(items_.size() - 1);
  }

  std::unexpected<Diagnostic> given_twice(const TomlToken& part) const {
    return fail(Code::doc_duplicate_key, part.span,
                format("key {} is given twice", quoted(part.value(text_))),
                "keep one of them: which one counts would be a guess");
  }

  void emit_scalar(const TomlToken& token, Kind kind) {
    document_.add({.kind = kind,
                   .verbatim = token.verbatim,
                   .next = static_cast<std::uint32_t>(document_.size() + 1),
                   .span = token.span,
                   .text = token.verbatim ? token.text : document_.add_decoded(token.decoded)});
  }

  void emit(std::uint32_t index) {
    const Item& item = items_[index];
    if (item.kind != Kind::object && item.kind != Kind::array) {
      emit_scalar(item.token, item.kind);
      return;
    }
    const std::uint32_t self = document_.add({.kind = item.kind, .span = item.token.span});
    for (const auto& [key, child] : item.members) {
      if (item.kind == Kind::object) emit_scalar(key, Kind::string);
      emit(child);
    }
    document_.close(self, static_cast<std::uint32_t>(item.members.size()), item.token.span.end);
  }

  Document document_;
  std::string_view text_;  // of document_, which stays where it is while this runs
  TomlScanner scanner_;
  std::vector<Item> items_;
  std::unordered_map<std::string, std::uint32_t> named_;
  std::uint32_t table_ = root;
};

}  // namespace

Checked<Document> parse_toml(SharedText source) { return Reader(std::move(source)).parse(); }

}  // namespace capgate::text
