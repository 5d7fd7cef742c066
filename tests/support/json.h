// A JSON value that a test reads, changes and prints again. Members keep their order.
//
//   Json artifact = Json::parse(text);
//   artifact["argv"].insert(0, "--bind");
//   EXPECT_EQ(artifact["provenance"]["options"]["arch"], "x86_64");
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json.h"
#include "text/json_write.h"

namespace capgate::support {

class Json {
 public:
  using Kind = text::Kind;
  struct Member;

  // Implicit, so that an expectation reads like JSON.
  Json() = default;
  Json(const char* text) : kind_(Kind::string), text_(text) {}
  Json(std::string_view text) : kind_(Kind::string), text_(text) {}
  Json(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
  Json(bool truth) : kind_(Kind::boolean), text_(truth ? "true" : "false") {}
  Json(int number) : kind_(Kind::number), text_(std::to_string(number)) {}
  Json(const std::vector<std::string>& texts) : kind_(Kind::array) {
    items_.assign(texts.begin(), texts.end());
  }

  [[nodiscard]] static Json array(std::initializer_list<Json> items) {
    Json out(Kind::array);
    out.items_ = items;
    return out;
  }
  [[nodiscard]] static Json object(std::initializer_list<Member> members);
  [[nodiscard]] static Json parse(std::string_view text);

  [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
  // The text of a string, the spelling of a number; empty for null.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  // The elements of an array, or the values of an object, whose names are `keys`.
  [[nodiscard]] std::vector<Json>& items() { return items_; }
  [[nodiscard]] const std::vector<Json>& items() const { return items_; }
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) < keys_.size(); }

  // A missing member or element fails the test and reads as null.
  [[nodiscard]] const Json& operator[](std::string_view key) const { return item(find(key), key); }
  [[nodiscard]] const Json& operator[](std::size_t index) const {
    return item(index, std::to_string(index));
  }
  // A missing member is added as null; a missing element fails the test.
  [[nodiscard]] Json& operator[](std::string_view key);
  [[nodiscard]] Json& operator[](std::size_t index);

  void push_back(Json item) { items_.push_back(std::move(item)); }
  void insert(std::size_t at, Json item) {
    items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
  }
  void insert(std::size_t at, std::initializer_list<Json> items) {
    items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), items);
  }
  void insert(std::size_t at, std::string key, Json value) {
    keys_.insert(keys_.begin() + static_cast<std::ptrdiff_t>(at), std::move(key));
    insert(at, std::move(value));
  }
  // Removes an element or a member, and returns it.
  Json take(std::size_t at);
  Json take(std::string_view key) { return take(find(key)); }
  // Where an element stands; `size()` if it is none.
  [[nodiscard]] std::size_t index_of(const Json& item) const {
    return static_cast<std::size_t>(std::ranges::find(items_, item) - items_.begin());
  }
  [[nodiscard]] std::size_t index_of_key(std::string_view key) const { return find(key); }

  [[nodiscard]] std::string dump() const;
  // With sorted keys, as capgate hashes it.
  [[nodiscard]] std::string canonical() const;
  friend bool operator==(const Json&, const Json&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Json& json) {
    return out << json.dump();
  }

 private:
  enum class Order : unsigned char { kept, sorted };

  explicit Json(Kind kind) : kind_(kind) {}
  [[nodiscard]] static Json copy(text::Value value);
  [[nodiscard]] std::size_t find(std::string_view key) const {
    return static_cast<std::size_t>(std::ranges::find(keys_, key) - keys_.begin());
  }
  [[nodiscard]] const Json& item(std::size_t index, std::string_view name) const;
  void write(text::JsonWriter& out, Order order) const;
  [[nodiscard]] std::string print(Order order) const {
    text::JsonWriter out(text::JsonWriter::Style::compact);
    write(out, order);
    return std::move(out).take();
  }

  Kind kind_ = Kind::null;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

struct Json::Member {
  std::string key;
  Json value;
};

inline Json Json::object(std::initializer_list<Member> members) {
  Json out(Kind::object);
  for (const Member& member : members) {
    out.keys_.push_back(member.key);
    out.items_.push_back(member.value);
  }
  return out;
}

inline Json Json::copy(text::Value value) {
  Json out(value.kind());
  if (value.is(Kind::array)) {
    for (const text::Value each : value.elements()) out.items_.push_back(copy(each));
  } else if (value.is(Kind::object)) {
    for (const text::Member each : value.members()) {
      out.keys_.emplace_back(each.key.text());
      out.items_.push_back(copy(each.value));
    }
  } else if (!value.is(Kind::null)) {
    out.text_ = value.text();
  }
  return out;
}

inline Json Json::parse(std::string_view text) {
  const auto document = text::parse_json(std::string(text));
  if (document) return copy(document->root());
  ADD_FAILURE() << "not JSON: " << text.substr(0, 1000);
  return {};
}

inline const Json& Json::item(std::size_t index, std::string_view name) const {
  if (index < items_.size()) return items_[index];
  ADD_FAILURE() << "there is no " << name << " in " << dump().substr(0, 1000);
  static const Json none;
  return none;
}

inline Json& Json::operator[](std::string_view key) {
  const std::size_t at = find(key);
  if (at < keys_.size()) return items_[at];
  kind_ = Kind::object;
  keys_.emplace_back(key);
  return items_.emplace_back();
}

inline Json& Json::operator[](std::size_t index) {
  if (index < items_.size()) return items_[index];
  ADD_FAILURE() << "there is no element " << index << " in " << dump().substr(0, 1000);
  return items_.emplace_back();
}

inline Json Json::take(std::size_t at) {
  if (at >= items_.size()) {
    ADD_FAILURE() << "nothing to take from " << dump().substr(0, 1000);
    return {};
  }
  const auto offset = static_cast<std::ptrdiff_t>(at);
  Json out = std::move(items_[at]);
  items_.erase(items_.begin() + offset);
  if (is(Kind::object)) keys_.erase(keys_.begin() + offset);
  return out;
}

inline void Json::write(text::JsonWriter& out, Order order) const {
  switch (kind_) {
    case Kind::null: out.null(); return;
    case Kind::boolean:
    case Kind::number: out.verbatim(text_); return;
    case Kind::string: out.string(text_); return;
    case Kind::array:
      out.begin_array();
      for (const Json& each : items_) each.write(out, order);
      out.end_array();
      return;
    case Kind::object: break;
  }
  std::vector<std::size_t> at(keys_.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  if (order == Order::sorted) {
    std::ranges::sort(at, {}, [&](std::size_t index) { return keys_[index]; });
  }
  out.begin_object();
  for (const std::size_t index : at) items_[index].write(out.key(keys_[index]), order);
  out.end_object();
}

inline std::string Json::dump() const { return print(Order::kept); }
inline std::string Json::canonical() const { return print(Order::sorted); }

// One member of each element.
[[nodiscard]] inline std::vector<std::string> column(const Json& array, std::string_view key) {
  std::vector<std::string> out;
  for (const Json& each : array.items()) out.push_back(each[key].text());
  return out;
}

}  // namespace capgate::support
