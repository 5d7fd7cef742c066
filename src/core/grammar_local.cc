// Kinds that concern this machine: files, programs, sockets, time, limits; and assertions.
#include "core/grammar_detail.h"

namespace capgate::core::grammar {
namespace {

Result<std::string> parse_program(std::string_view name) {
  const Span where = Span::at(0, name.size());
  if (name.contains('/')) {
    return fail(
        Code::cap_exec_path, where, "a program is named, not given by path",
        format("write exec:spawn:{}", escape_for_terminal(name.substr(name.rfind('/') + 1))));
  }
  const auto is_name_character = [](char c) {
    return is_alnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
  };
  if (name.empty() || name.size() > 255 || !is_alnum(name.front()) ||
      !std::ranges::all_of(name, is_name_character)) {
    return fail(Code::cap_exec_name, where, format("{} is not a program name", quoted(name)),
                "name one program, for example exec:spawn:git; there is no wildcard");
  }
  return std::string(name);
}

// The endpoint may be written "unix:/path" in quotes, or unix:/path in two fields.
Result<IpcCapability> parse_ipc_endpoint(const Field& first, const Field* second) {
  using Kind = IpcCapability::Kind;
  constexpr std::string_view names[] = {"dbus:session", "dbus:system", "netlink-route",
                                        "self",         "unix:/path",  "x11"};
  const std::size_t colon = second != nullptr ? first.text.size() : first.text.find(':');
  const std::string_view head = first.text.substr(0, colon);
  std::string_view tail;
  if (second != nullptr) {
    tail = second->text;
  } else if (colon != std::string_view::npos) {
    tail = first.text.substr(colon + 1);
  }
  const bool has_tail = second != nullptr || colon != std::string_view::npos;
  if (head == "unix" && has_tail) {
    auto path = parse_plain_path(tail);
    if (path && *path != "/")
      return IpcCapability{.kind = Kind::unix_path, .path = *std::move(path)};
    return fail(Code::cap_ipc_endpoint, second != nullptr ? second->where : first.where,
                "a Unix socket is named by its absolute path", "write \"unix:/run/app.sock\"");
  }
  const std::string whole = has_tail ? format("{}:{}", head, tail) : std::string(head);
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (whole == names[i]) return IpcCapability{.kind = static_cast<Kind>(i)};
  }
  return fail(Code::cap_ipc_endpoint, first.where, format("{} is not an endpoint", quoted(whole)),
              did_you_mean(whole, names));
}

struct LimitForm {
  std::string_view name;
  std::string_view units;  // one letter each; ' ' is "no unit"
  std::uint64_t step;      // factor from one unit to the next
  std::uint64_t most;      // in the last unit's base
  std::string_view example;
};
// In the order of LimitCapability::Kind.
constexpr LimitForm limit_forms[] = {
    {"cpu", "%", 1, 100'000, "150%"},
    {"disk", " KMG", 1024, std::uint64_t{1} << 50, "512M"},
    {"files", " ", 1, 1'000'000, "1024"},
    {"memory", " KMG", 1024, std::uint64_t{1} << 50, "512M"},
    {"pids", " ", 1, 4'000'000, "256"},
    {"time", "smh", 60, std::uint64_t{365} * 24 * 3600, "30s"},
};

std::optional<std::uint64_t> parse_limit_value(std::string_view text, const LimitForm& form) {
  char unit = ' ';
  if (!text.empty() && !is_digit(text.back())) {
    if (text.back() == ' ') return {};  // a blank is not "no unit"
    unit = text.back();
    text.remove_suffix(1);
  }
  const std::size_t index = form.units.find(unit);
  auto value = parse_decimal(text);
  if (!value || *value == 0 || *value > form.most || index == std::string_view::npos) return {};
  for (std::size_t i = 0; i < index; ++i) {
    *value *= form.step;
    if (*value > form.most) return {};
  }
  return value;
}

}  // namespace

Result<Capability> parse_fs(const Fields& fields) {
  constexpr std::string_view known[] = {"read", "write", "create", "delete"};
  constexpr FsAction values[] = {FsAction::read, FsAction::write, FsAction::create,
                                 FsAction::remove};
  TRY(check_shape(fields, 2, 2, Code::cap_fs_shape, "fs:<actions>:<path>"));
  FsCapability out;
  const Actions actions = TRY(parse_actions(fields.items[0], "fs", known));
  for (std::size_t i = 0; i < std::size(values); ++i) {
    if (actions.test(i)) out.actions.add(values[i]);
  }
  out.path = TRY(in_field(fields.items[1], parse_path));
  constexpr std::string_view refinements[] = {"unsafe"};
  const RefinementReader reader(fields, refinements);
  TRY(reader.check());
  out.unsafe = TRY(reader.flag("unsafe"));
  return out;
}

Result<Capability> parse_exec(const Fields& fields) {
  constexpr std::string_view known[] = {"spawn"};
  TRY(check_shape(fields, 2, 2, Code::cap_exec_shape, "exec:spawn:NAME"));
  TRY(parse_actions(fields.items[0], "exec", known));
  ExecCapability out;
  out.program = TRY(in_field(fields.items[1], parse_program));
  constexpr std::string_view refinements[] = {"nestedSandbox"};
  const RefinementReader reader(fields, refinements);
  TRY(reader.check());
  out.nested_sandbox = TRY(reader.flag("nestedSandbox"));
  return out;
}

Result<Capability> parse_ipc(const Fields& fields) {
  constexpr std::string_view known[] = {"connect"};
  TRY(check_shape(fields, 2, 3, Code::cap_ipc_shape, "ipc:connect:ENDPOINT"));
  TRY(parse_actions(fields.items[0], "ipc", known));
  const Field* second = fields.count == 3 ? &fields.items[2] : nullptr;
  IpcCapability out = TRY(parse_ipc_endpoint(fields.items[1], second));
  constexpr std::string_view refinements[] = {"unsafe"};
  const RefinementReader reader(fields, refinements);
  TRY(reader.check());
  out.unsafe = TRY(reader.flag("unsafe"));
  return out;
}

Result<Capability> parse_clock(const Fields& fields) {
  TRY(check_shape(fields, 1, 1, Code::cap_clock_shape, "clock:system or clock:tzdata"));
  constexpr std::string_view sources[] = {"system", "tzdata"};
  const auto it = std::ranges::find(sources, fields.items[0].text);
  if (it == std::end(sources)) {
    return fail(Code::cap_clock_source, fields.items[0].where,
                format("{} is not a clock source", quoted(fields.items[0].text)),
                did_you_mean(fields.items[0].text, sources));
  }
  const RefinementReader reader(fields, {});
  TRY(reader.check());
  return ClockCapability{.source = static_cast<ClockCapability::Source>(it - sources)};
}

Result<Capability> parse_limit(const Fields& fields) {
  TRY(check_shape(fields, 2, 2, Code::cap_limit_shape, "limit:NAME:VALUE"));
  const auto form = std::ranges::find(limit_forms, fields.items[0].text, &LimitForm::name);
  if (form == std::end(limit_forms)) {
    constexpr std::string_view names[] = {"cpu", "disk", "files", "memory", "pids", "time"};
    return fail(Code::cap_limit_shape, fields.items[0].where,
                format("there is no limit {}", quoted(fields.items[0].text)),
                did_you_mean(fields.items[0].text, names));
  }
  const auto value = parse_limit_value(fields.items[1].text, *form);
  if (!value) {
    return fail(Code::cap_limit_value, fields.items[1].where,
                format("{} is not a value for limit:{}", quoted(fields.items[1].text), form->name),
                format("write a positive number with its unit, for example limit:{}:{}", form->name,
                       form->example));
  }
  const RefinementReader reader(fields, {});
  TRY(reader.check());
  return LimitCapability{.kind = static_cast<LimitCapability::Kind>(form - limit_forms),
                         .value = *value};
}

Result<Capability> parse_assert(const Fields& fields, TextStorage& storage) {
  const std::size_t colon = fields.rest.text.find(':');
  const std::string_view id = fields.rest.text.substr(0, colon);
  const auto is_id_character = [](char c) {
    return is_alnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
  };
  if (id.empty() || !std::ranges::all_of(id, is_id_character)) {
    return fail(Code::cap_assert_shape, fields.rest.locate(Span::at(0, id.size())),
                format("{} is not an assertion id", quoted(id)),
                "write assert:ID:\"text\" with letters, digits, '.', '_' and '-' in the id");
  }
  AssertCapability out{.id = std::string(id), .text = std::string(id)};
  if (colon == std::string_view::npos) return out;
  const std::string_view raw = fields.rest.text.substr(colon + 1);
  const std::size_t offset = fields.rest.where.begin + colon + 1;
  const bool is_quoted = raw.size() >= 2 && raw.starts_with('"');
  if (raw.starts_with('"') && (!is_quoted || !raw.ends_with('"'))) {
    return fail(Code::cap_malformed, Span::at(offset, offset + raw.size()),
                "the quote is not closed", "end the text with a double quote");
  }
  const Field text = TRY(unquote(raw, offset, storage));
  if (std::ranges::any_of(text.text, is_control)) {
    return fail(Code::cap_assert_shape, text.where, "control character in an assertion",
                "write the text on one line");
  }
  if (!text.text.empty()) out.text = text.text;
  return out;
}

}  // namespace capgate::core::grammar
