#include "base/format.h"
#include "review/diff_print.h"

namespace capgate::review {
namespace {

using Kind = core::GrantChange::Kind;

constexpr Rule rules[] = {
    {.id = "DIFF_WIDENED",
     .level = Level::error,
     .summary = "A server may do more than before.",
     .detail = "A grant is new or reaches further than before. Approve it if the change needs it; "
               "else name the exact host, path or program."},
    {.id = "DIFF_LIMIT",
     .level = Level::error,
     .summary = "A limit of a server is larger than before, or gone.",
     .detail = "A limit keeps a server from using up the machine. Approve the new value, or keep "
               "the old one."},
    {.id = "DIFF_PROMISE",
     .level = Level::error,
     .summary = "An assertion of a server is gone or says something else.",
     .detail = "capgate or the host keeps a server to its assertions. Approve the change if nobody "
               "relies on it."},
    {.id = "DIFF_MOVED",
     .level = Level::note,
     .summary = "A tool may do what only other tools of its server could.",
     .detail = "The server as a whole may do no more than before, but this tool may."},
    {.id = "DIFF_ARTIFACT",
     .level = Level::error,
     .summary = "A compiled policy has what its manifest does not cause, or an entry of "
                "capgate.yaml runs something else.",
     .detail = "Compile the manifest again and use what comes out; of an entry, approve what runs "
               "and where it is not confined. A difference of which nobody can say what it does "
               "counts as a wider policy."},
    {.id = "DIFF_BESIDE",
     .level = Level::note,
     .summary = "Something beside the permissions changed: a command, a secret, a hash.",
     .detail = "No permission changed with it, but what runs with them may be another program."},
};

std::string_view rule_of(const ShownChange& change) {
  if (change.is_grant) return "DIFF_WIDENED";
  return change.capability.starts_with("limit:") ? "DIFF_LIMIT" : "DIFF_PROMISE";
}

// A place in the new file, which is what a review looks at: of what is gone, its start.
void set_place(const ShownChange& change, std::string_view new_file, Finding& finding) {
  finding.file = new_file;
  if (change.side != core::GrantChange::Side::after || change.places.empty()) return;
  if (change.places.front().name.empty()) return;
  finding.position = change.places.front().position;
  finding.end = change.places.front().end;
}

Finding finding_of(const ShownServer& server, const ShownChange& change, std::string_view file) {
  Finding out{.rule = rule_of(change),
              .level = Level::error,
              .message = format("{} {}: {}", server.name, change.sentence, change.capability),
              .help = change.before.empty() ? "" : format("before: {}", change.before),
              .file = {},
              .position = {},
              .end = {},
              .identity = format("{}:{}", server.name, change.capability)};
  set_place(change, file, out);
  return out;
}

Finding finding_of(const ShownServer& server, const ShownPart& part) {
  const bool is_error =
      part.kind == ShownPart::Kind::widened || part.kind == ShownPart::Kind::differs;
  return {.rule = is_error ? "DIFF_ARTIFACT" : "DIFF_BESIDE",
          .level = is_error ? Level::error : Level::note,
          .message = format("{} {}: {}", server.name, kind_name(part.kind), part_words(part)),
          .help = part_cause(part),
          .file = server.file,
          .position = {},
          .end = {},
          .identity = format("{}:{}:{}:{}", server.name, part.part, part.before, part.after)};
}

}  // namespace

std::span<const Rule> diff_rules() { return rules; }

std::vector<Finding> diff_findings(std::span<const ShownServer> servers) {
  std::vector<Finding> out;
  for (const ShownServer& server : servers) {
    for (const ShownChange& change : server.changes) {
      if (change.kind == Kind::widened) out.push_back(finding_of(server, change, server.file));
    }
    for (const ShownPart& part : server.parts) {
      if (part.kind != ShownPart::Kind::narrowed) out.push_back(finding_of(server, part));
    }
    for (const ShownTool& tool : server.tools) {
      for (const ShownChange& change : tool.changes) {
        if (change.kind != Kind::moved) continue;
        Finding finding = finding_of(server, change, server.file);
        finding.rule = "DIFF_MOVED";
        finding.level = Level::note;
        finding.message =
            format("{}: {}", tool.name.empty() ? "every tool" : tool.name, finding.message);
        finding.identity = format("{}:{}:{}", server.name, tool.name, change.capability);
        out.push_back(std::move(finding));
      }
    }
  }
  sort_findings(out);
  return out;
}

}  // namespace capgate::review
