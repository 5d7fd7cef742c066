#include "core/variables.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"

namespace capgate::core {
namespace {

constexpr std::size_t most_combinations = 256;

struct Chosen {
  std::string_view name;
  std::string_view value;
};

std::unexpected<Diagnostic> fail(Span where, std::string message, std::string help) {
  return capgate::fail(Code::cap_variable, where, std::move(message), std::move(help));
}

// Calls `use` for each ${NAME} in the field with its name and its place in the text.
template <typename Use>
Result<void> for_each_variable(const Field& field, Use use) {
  std::size_t at = 0;
  while ((at = field.text.find("${", at)) != std::string_view::npos) {
    const std::size_t end = field.text.find('}', at);
    const std::string_view name = end == std::string_view::npos
                                      ? std::string_view()
                                      : field.text.substr(at + 2, end - at - 2);
    const Span inside = Span::at(at, std::min(end, field.text.size() - 1) + 1);
    if (!is_variable_name(name)) {
      return fail(field.locate(inside), "malformed variable",
                  "write ${NAME} with upper-case letters, digits and underscores");
    }
    TRY(use(name, inside));
    at = inside.end;
  }
  return {};
}

Result<const Binding*> find_binding(std::string_view name, Span where, const Bindings& bindings) {
  const auto binding = std::ranges::find(bindings, name, &Binding::name);
  if (binding == bindings.end() || binding->values.empty()) {
    return fail(where, format("variable {} is not bound", name),
                format("bind it with --set {}=VALUE", name));
  }
  for (const std::string& value : binding->values) {
    if (value.empty() || value.contains('*') || std::ranges::any_of(value, is_control)) {
      return fail(where, format("variable {} is bound to {}", name, quoted(value)),
                  "a value is plain text: not empty, without '*' and control characters");
    }
  }
  return &*binding;
}

Result<Field> substitute(const Field& field, const std::vector<Chosen>& chosen,
                         TextStorage& storage) {
  if (!field.text.contains("${")) return field;
  // NOLINTBEGIN(misc-const-correctness): changed by the lambda below.
  std::string text;
  std::size_t copied = 0;
  // NOLINTEND(misc-const-correctness)
  TRY(for_each_variable(field, [&](std::string_view name, Span inside) -> Result<void> {
    text += field.text.substr(copied, inside.begin - copied);
    text += std::ranges::find(chosen, name, &Chosen::name)->value;
    copied = inside.end;
    return {};
  }));
  text += field.text.substr(copied);
  storage.push_front(std::move(text));
  return Field{.text = storage.front(), .where = field.where, .verbatim = false};
}

Result<std::vector<const Binding*>> collect_bindings(const Fields& fields,
                                                     const Bindings& bindings) {
  std::vector<const Binding*> used;
  const auto collect = [&](const Field& field) {
    return for_each_variable(field, [&](std::string_view name, Span inside) -> Result<void> {
      const Binding* binding = TRY(find_binding(name, field.locate(inside), bindings));
      if (!contains(used, binding)) used.push_back(binding);
      return {};
    });
  };
  for (std::size_t i = 1; i < std::min(fields.count, Fields::most); ++i) {
    TRY(collect(fields.items[i]));
  }
  for (const Refinement& refinement : fields.refinements) {
    TRY(collect(refinement.value));
  }
  return used;
}

}  // namespace

bool is_variable_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

Result<std::vector<Fields>> expand_variables(const Fields& fields, const Bindings& bindings,
                                             TextStorage& storage) {
  const std::vector<const Binding*> used = TRY(collect_bindings(fields, bindings));
  std::size_t combinations = 1;
  for (const Binding* binding : used) {
    combinations *= binding->values.size();
    if (combinations > most_combinations) {
      return fail(fields.rest.where,
                  format("more than {} combinations of values", most_combinations),
                  "bind fewer values, or write the capabilities out");
    }
  }

  std::vector<Fields> out;
  for (std::size_t n = 0; n < combinations; ++n) {
    std::vector<Chosen> chosen;
    std::size_t index = n;
    for (const Binding* binding : used) {
      chosen.push_back({binding->name, binding->values[index % binding->values.size()]});
      index /= binding->values.size();
    }
    Fields copy = fields;
    for (std::size_t i = 1; i < std::min(fields.count, Fields::most); ++i) {
      copy.items[i] = TRY(substitute(copy.items[i], chosen, storage));
    }
    for (Refinement& refinement : copy.refinements) {
      refinement.value = TRY(substitute(refinement.value, chosen, storage));
    }
    out.push_back(std::move(copy));
  }
  return out;
}

}  // namespace capgate::core
