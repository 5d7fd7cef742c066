// Puts values in the place of placeholders, and placeholders in the place of values. Pure.
//
//   const Keyring keys(keys_of_the_endpoint);
//   BodySwap body = keys.request_body(request);  // streams
//   auto names = keys.swap(request);             // "Bearer <placeholder>" -> "Bearer <value>"
//   Scrub scrub = keys.response_body();          // streams, same length
//
// What is refused rather than passed on, each with a fixed reason for the audit log:
//   other-place   a placeholder stands where its `as` does not allow it: in another field, in a
//                 field name, the method, the path, the query, the body, a trailer, inside Basic
//                 credentials, or percent-encoded or base64 in the target or a field
//   other-host    a placeholder of a secret that is not bound to this endpoint
//   doubled       it stands more than once in the head
//   not-renewed   its value could not be renewed, or was renewed while a body passed whose length
//                 had been announced and would be another one now
//   unfit-value   the value cannot stand in a field: it holds a control character
// A request without a placeholder passes unchanged. Nothing but the placeholder is changed: what
// the origin receives equals what the client sent, otherwise; the fuzz targets check that.
//
// Scrubbing covers the value as such, in hexadecimal and in base64 (standard and URL-safe, all
// three alignments, wrapped into lines), each with any of its characters escaped as URLs, JSON,
// HTML and string literals do, once or twice (escape.h). It is best effort: a service that
// transforms the value otherwise is not caught, and a spelling of less than 8 bytes is not
// searched, as it would occur by accident; docs/secrets.md says so. What is found is overwritten by
// as many bytes of the placeholder (repeated or cut), so no length changes; occurrences that
// overlap are all overwritten.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/capability.h"
#include "seal/message.h"
#include "secrets/secret.h"

namespace capgate::seal {

// A sealed variable. The value is looked up at each use: it may be renewed meanwhile.
struct Key {
  std::string name;
  std::string placeholder;
  core::SecretPlace as;
  bool is_bound_here = false;              // false: known only to be refused here
  const secrets::Secret* value = nullptr;  // null: it could not be renewed, requests are refused
  // What requests may have held before: no longer put in, but scrubbed like the value.
  std::vector<const secrets::Secret*> former;
};

struct Misuse {
  std::string_view reason;  // one of those above
  std::string name;         // of the variable
  std::string text;         // one sentence, without any value
};

// Bytes of a body or of responses, changed while they pass. pass() gives what may leave now: all
// but a tail that could be the beginning of something to be changed. rest() gives that tail. What
// they give may lie in `bytes` itself: nothing is copied where nothing is found. It is valid until
// the next call, and as long as `bytes` are. push() and finish() are the same, as copies.
class BodySwap {
 public:
  BodySwap(BodySwap&&) noexcept;
  BodySwap& operator=(BodySwap&&) noexcept;
  BodySwap(const BodySwap&) = delete;
  BodySwap& operator=(const BodySwap&) = delete;
  ~BodySwap();
  [[nodiscard]] std::expected<std::string_view, Misuse> pass(std::string_view bytes);
  [[nodiscard]] std::expected<std::string_view, Misuse> rest();
  [[nodiscard]] std::expected<std::string, Misuse> push(std::string_view bytes);
  [[nodiscard]] std::expected<std::string, Misuse> finish();
  // True if what leaves may differ in length from what came: a placeholder of another length than
  // the value (short values, or values that the body's format escapes). Does not change: where a
  // renewed value would break it, the body is refused.
  [[nodiscard]] bool may_change_length() const;
  // The variables whose values were put in so far.
  [[nodiscard]] const std::vector<std::string>& used() const;

 private:
  friend class Keyring;
  struct State;
  explicit BodySwap(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Scrub {
 public:
  Scrub(Scrub&&) noexcept;
  Scrub& operator=(Scrub&&) noexcept;
  Scrub(const Scrub&) = delete;
  Scrub& operator=(const Scrub&) = delete;
  ~Scrub();
  [[nodiscard]] std::string_view pass(std::string_view bytes);
  [[nodiscard]] std::string_view rest();
  [[nodiscard]] std::string push(std::string_view bytes);
  [[nodiscard]] std::string finish();
  [[nodiscard]] std::size_t found() const;  // how often something was overwritten

 private:
  friend class Keyring;
  struct State;
  explicit Scrub(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Ring;

class Keyring {
 public:
  explicit Keyring(std::vector<Key> keys);

  // In place: the names of the variables whose values were put in, or why the request is refused
  // (then `request` must not be used). Also makes what comes back readable: Accept-Encoding becomes
  // identity, what asks for ranges and for compressed WebSockets is removed, where a key is bound
  // here.
  [[nodiscard]] std::expected<std::vector<std::string>, Misuse> swap(Request& request) const;
  // By the head as the client sent it (its Content-Type says how a value is escaped).
  [[nodiscard]] BodySwap request_body(const Request& request) const;
  // Trailers of a request hold no placeholder at all.
  [[nodiscard]] std::expected<void, Misuse> check_trailers(const std::vector<Field>& fields) const;

  // In place: how often something was overwritten.
  [[nodiscard]] std::size_t scrub(Response& response) const;
  [[nodiscard]] std::size_t scrub(std::vector<Field>& trailers) const;
  [[nodiscard]] Scrub response_body() const;
  // A response that is encoded (gzip, br ...) cannot be read, so it is refused. Where no key is
  // bound here, or the status says that there is no body, there is nothing to read.
  [[nodiscard]] bool is_readable(const Response& response) const;

  [[nodiscard]] bool is_empty() const;

 private:
  // Shared by copies and by the streams. What is searched is derived from placeholders once, and
  // from values again when one has changed, so a Keyring serves all connections of an endpoint.
  std::shared_ptr<const Ring> ring_;
};

}  // namespace capgate::seal
