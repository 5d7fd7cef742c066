// A value that lives until the process ends.
//
//   const Plan& plan = kept(make_plan());
//
// For what a command needs until its last line: a thousand strings and descriptors are given back
// faster by the end of the process than by their destructors.
#pragma once

#include <forward_list>
#include <utility>

namespace capgate {

template <typename T>
T& kept(T value) {
  static auto& all = *new std::forward_list<T>();  // can be reached, so it is no leak
  return all.emplace_front(std::move(value));
}

}  // namespace capgate
