// The words of capgate-store. People write them to `capgate secret`, which has the help.
//
//   capgate-store set [--server S] --name NAME [--key SOURCE]     the value on standard input
//   capgate-store get [--server S] --name NAME [--reveal]
//   capgate-store list [--server S] [--json]
//   capgate-store rm [--server S] --name NAME
//   capgate-store rotate [--key SOURCE]
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/vault.h"

namespace capgate::store {

struct Request {
  enum class Verb : unsigned char { set, get, list, rm, rotate };
  Verb verb = Verb::list;
  std::optional<std::string> server;
  std::string name;
  std::optional<KeySource> key;
  bool is_json = false;
  bool reveals = false;

  [[nodiscard]] Place place() const {
    return {.server = server.value_or(std::string(any_server)), .name = name};
  }
};

[[nodiscard]] Outcome<Request> parse_request(std::span<const std::string_view> words);

}  // namespace capgate::store
