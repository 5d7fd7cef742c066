// What every place that starts a program needs. The order of the steps stays with each of them: it
// is what makes one safe.
#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace capgate::sys {

// For exec: ends with a null pointer, and lives no longer than `texts`.
[[nodiscard]] inline std::vector<char*> exec_words(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// In the child, between fork and exec: what the parent ignores, handles or blocks is none of its
// concern.
inline void default_signals() {
  for (int signal = 1; signal < SIGRTMAX; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
}
[[nodiscard]] inline bool unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  return ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
}

}  // namespace capgate::sys
