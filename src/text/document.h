// A parsed JSON or YAML document that knows where everything stood in its source.
//
//   const Document document = TRY(parse_json(std::move(text)));
//   for (const Value tool : document.root().find("tools")->elements()) ...
//
// Nodes lie in one flat array in the order of the text (a node, then its children), so that a
// document costs two allocations however large it is. A Value is a cursor into its Document and
// must not outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/span.h"

namespace capgate::text {

// Limits that hold for every document, whatever its syntax.
inline constexpr std::size_t largest_document = std::size_t{16} << 20;
inline constexpr std::size_t deepest_nesting = 128;
// A document of nothing but mistakes is told its first ones: a report must not outgrow its input.
inline constexpr std::size_t most_mistakes = 100;

enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

struct Node {
  Kind kind = Kind::null;
  // The text of a scalar is the source itself (true), or was decoded from escapes (false).
  bool verbatim = true;
  // Not verbatim, but with JSON's escapes and nothing else, so that locate() can follow them.
  bool json_escapes = false;
  std::uint32_t next = 0;   // index of the node after this one's last descendant
  std::uint32_t count = 0;  // elements of an array, members of an object
  Span span{};              // everything the value takes up in the source, quotes included
  Span text{};              // the scalar's text, in the source or among the decoded strings
};

class Value;

// The text of a document. Shared, so that whoever read it can show it beside the mistakes of a
// parse that failed, without a copy of it.
using SharedText = std::shared_ptr<const std::string>;

[[nodiscard]] inline SharedText share(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

class Document {
 public:
  explicit Document(SharedText source) : source_(std::move(source)) {}

  [[nodiscard]] Value root() const;
  [[nodiscard]] std::string_view source() const { return *source_; }

  // For the parsers: members of an object are added as key, value, key, value ...
  std::uint32_t add(Node node) {
    nodes_.push_back(node);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  void close(std::uint32_t index, std::uint32_t count, std::size_t end) {
    nodes_[index].next = static_cast<std::uint32_t>(nodes_.size());
    nodes_[index].count = count;
    nodes_[index].span.end = static_cast<std::uint32_t>(end);
  }
  Span add_decoded(std::string_view text) {
    const std::size_t begin = decoded_.size();
    decoded_ += text;
    return Span::at(begin, decoded_.size());
  }
  void reserve(std::size_t nodes) { nodes_.reserve(nodes); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Node& node(std::uint32_t index) const { return nodes_[index]; }
  [[nodiscard]] std::string_view text_of(const Node& node) const {
    const std::string_view pool = node.verbatim ? *source_ : decoded_;
    return pool.substr(node.text.begin, node.text.end - node.text.begin);
  }

 private:
  SharedText source_;
  std::string decoded_;
  std::vector<Node> nodes_;
};

struct Member;
template <typename Item>
class Children;

class Value {
 public:
  Value(const Document& document, std::uint32_t index) : document_(&document), index_(index) {}

  [[nodiscard]] Kind kind() const { return node().kind; }
  [[nodiscard]] bool is(Kind kind) const { return node().kind == kind; }
  [[nodiscard]] Span span() const { return node().span; }
  [[nodiscard]] std::uint32_t count() const { return node().count; }
  // The text of a scalar: a string without its quotes and escapes, a number as it was written.
  [[nodiscard]] std::string_view text() const { return document_->text_of(node()); }

  [[nodiscard]] Children<Value> elements() const;
  [[nodiscard]] Children<Member> members() const;
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;

  // Where the bytes [from, to) of a string's text stand in the source. Exact when the string was
  // written without escapes; else the whole string, unless it is JSON, where escapes are followed.
  [[nodiscard]] Span locate(std::size_t from, std::size_t to) const;

  [[nodiscard]] const Document& document() const { return *document_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] std::uint32_t next() const { return node().next; }

 private:
  [[nodiscard]] const Node& node() const { return document_->node(index_); }

  const Document* document_;
  std::uint32_t index_;
};

struct Member {
  Value key;
  Value value;

  // What Children needs to walk from one member to the next.
  static Member at(const Document& document, std::uint32_t index) {
    return {Value(document, index), Value(document, index + 1)};
  }
  [[nodiscard]] std::uint32_t next() const { return value.next(); }
};

// The children of an array (Value) or an object (Member), for range-for.
template <typename Item>
class Children {
 public:
  class Iterator {
   public:
    Iterator(const Document& document, std::uint32_t index) : document_(&document), index_(index) {}
    Item operator*() const { return item(); }
    Iterator& operator++() {
      index_ = item().next();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    [[nodiscard]] Item item() const {
      if constexpr (requires { Item::at(*document_, index_); }) {
        return Item::at(*document_, index_);
      } else {
        return Item(*document_, index_);
      }
    }
    const Document* document_;
    std::uint32_t index_;
  };

  Children(const Document& document, std::uint32_t first, std::uint32_t last)
      : document_(&document), first_(first), last_(last) {}
  [[nodiscard]] Iterator begin() const { return {*document_, first_}; }
  [[nodiscard]] Iterator end() const { return {*document_, last_}; }

 private:
  const Document* document_;
  std::uint32_t first_;
  std::uint32_t last_;
};

inline Value Document::root() const { return {*this, 0}; }

inline Children<Value> Value::elements() const {
  CAPGATE_ASSERT(is(Kind::array));
  return {*document_, index_ + 1, node().next};
}

inline Children<Member> Value::members() const {
  CAPGATE_ASSERT(is(Kind::object));
  return {*document_, index_ + 1, node().next};
}

// Object members that share a key, in the order of the text; the second of each pair is the
// mistake. Costs n log n, whatever the keys are.
[[nodiscard]] std::vector<std::pair<Value, Value>> find_duplicate_keys(Value object);

// Adds one doc_duplicate_key for each of them, until there are most_mistakes.
void report_duplicate_keys(Value object, Diagnostics& mistakes);

}  // namespace capgate::text
