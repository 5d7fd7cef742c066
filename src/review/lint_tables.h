// What the lints know of the world: where anybody gets a name, where anybody leaves data, which
// programs run any code. Data, with a few pure questions about it.
//
//   why_shared("s3.amazonaws.com")       -> "an S3 bucket"; *.s3.amazonaws.com reaches everyone's
//   exfiltration_service("webhook.site") -> "a request bin"
//   site_of("api.github.com")            -> "github.com"
//
// Names are canonical: lower case, no final dot (core/host.h). No list of this kind is complete:
// what they find is true, what they do not find is not thereby safe.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace capgate::review {

// A suffix directly below which anybody gets a name. A label may be "*": s3.*.amazonaws.com.
struct SharedSuffix {
  std::string_view suffix;
  std::string_view what;  // "an S3 bucket": what one gets there
};
[[nodiscard]] std::span<const SharedSuffix> shared_suffixes();  // sorted by suffix

// What strangers may have below *.`name`, or nothing: `name` is such a suffix, or holds one.
[[nodiscard]] std::optional<std::string_view> why_shared(std::string_view name);

// A name below which registries sell names: "com", "co.uk".
[[nodiscard]] bool is_registry_suffix(std::string_view name);
[[nodiscard]] std::span<const std::string_view> registry_suffixes();  // of two labels, sorted

// The part of a name that one party holds: its registry or shared suffix and one label more. A
// party that is known for several domains has one of them: githubusercontent.com is github.com.
[[nodiscard]] std::string_view site_of(std::string_view name);

struct ExfiltrationService {
  enum class Use : unsigned char {
    drop,  // made to take what strangers send
    chat,  // also an honest service, whose hooks and bots take data with no more than a link
  };
  std::string_view host;  // this name and everything below it
  std::string_view what;  // "a paste service"
  Use use = Use::drop;
};
[[nodiscard]] std::span<const ExfiltrationService> exfiltration_services();  // sorted by host
// The entry that `name` is, or lies below; null if there is none.
[[nodiscard]] const ExfiltrationService* exfiltration_service(std::string_view name);

// Programs that run whatever they are handed: shells, interpreters, package runners. `program` is a
// name or a path; a version at its end ("python3.11") does not matter.
[[nodiscard]] bool runs_any_code(std::string_view program);

}  // namespace capgate::review
