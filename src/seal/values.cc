#include "seal/values.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "secrets/renewal.h"

namespace capgate::seal {
namespace {

constexpr std::int64_t renewed_before = 60;  // seconds
constexpr std::int64_t pause_after_failure = 5;

std::int64_t seconds_now() { return static_cast<std::int64_t>(std::time(nullptr)); }

bool has_expired(const secrets::Handed& handed) {
  return handed.expires != 0 && seconds_now() >= handed.expires;
}

}  // namespace

Values::Values(egress::Loop& loop, std::vector<secrets::Handed> handed, sys::Fd renewal)
    : loop_(loop), channel_fd_(std::move(renewal)) {
  values_.reserve(handed.size());
  for (secrets::Handed& one : handed) values_.push_back({.handed = std::move(one), .former = {}});
}

void Values::begin() {
  if (channel_fd_.get() < 0) return;
  channel_ = loop_.adopt(std::move(channel_fd_));
  if (channel_) hear();
}

const Values::Value* Values::value_of(std::string_view name) const {
  const auto found =
      std::ranges::find_if(values_, [&](const Value& value) { return value.handed.name == name; });
  return found == values_.end() ? nullptr : &*found;
}

Values::Value* Values::value_of(std::string_view name) {
  return const_cast<Value*>(std::as_const(*this).value_of(name));
}

const secrets::Secret* Values::find(std::string_view name) const {
  const Value* value = value_of(name);
  return value == nullptr || has_expired(value->handed) ? nullptr : &value->handed.value;
}

std::vector<const secrets::Secret*> Values::sent(std::string_view name) const {
  const Value* value = value_of(name);
  if (value == nullptr) return {};
  return {&value->handed.value, &value->former};
}

bool Values::is_awaited(std::string_view name) const {
  const Value* value = value_of(name);
  return value != nullptr && has_expired(value->handed) && value->is_asked;
}

void Values::renew_if_due(std::string_view name) {
  Value* value = value_of(name);
  if (value == nullptr || value->handed.expires == 0 || value->is_asked || !channel_) return;
  const std::int64_t now = seconds_now();
  if (now < value->handed.expires - renewed_before || now < value->not_before) return;
  secrets::RenewalRequest request;
  value->handed.name.copy(request.name, secrets::longest_name);
  const ssize_t sent =
      ::send(channel_->fd(), &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
  value->is_asked = sent == sizeof(request);
}

egress::Task Values::hear() {
  std::vector<char> message(sizeof(secrets::RenewalReply) + secrets::longest_value);
  while (co_await loop_.readable(*channel_) == egress::Woken::ready) {
    const ssize_t size = ::recv(channel_->fd(), message.data(), message.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) {
      channel_->is_readable = false;
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    take_answer(std::span(message).first(static_cast<std::size_t>(size)));
    secrets::wipe(std::span(message));
    answer_all();
  }
  // The renewer is gone: what was asked for never comes.
  for (Value& value : values_) value.is_asked = false;
  channel_.reset();
  answer_all();
}

void Values::take_answer(std::span<const char> message) {
  secrets::RenewalReply reply;
  if (message.size() < sizeof(reply)) return;
  std::memcpy(&reply, message.data(), sizeof(reply));
  reply.name[secrets::longest_name] = '\0';
  Value* value = value_of(reply.name);
  if (value == nullptr || !value->is_asked) return;
  value->is_asked = false;
  const std::span<const char> bytes = message.subspan(sizeof(reply));
  auto renewed = reply.is_renewed == 1 && reply.size == bytes.size()
                     ? secrets::Secret::make({bytes.data(), bytes.size()})
                     : std::nullopt;
  if (!renewed) {
    value->not_before = seconds_now() + pause_after_failure;
    return;
  }
  value->former = std::move(value->handed.value);
  value->handed.value = *std::move(renewed);
  value->handed.expires = reply.expires;
  // One that lives for less than that is not asked for with every request.
  const std::int64_t left = reply.expires - seconds_now();
  value->not_before = seconds_now() + (left > 0 ? left / 2 : pause_after_failure);
}

// Whoever is woken may wait again.
void Values::answer_all() {
  for (const Waiting& waiting : std::exchange(waiting_, {})) waiting.coroutine.resume();
}

void Values::end_waits(const void* whose) {
  for (;;) {
    const auto found = std::ranges::find(waiting_, whose, &Waiting::whose);
    if (found == waiting_.end()) return;
    const std::coroutine_handle<> coroutine = found->coroutine;
    waiting_.erase(found);
    coroutine.resume();
  }
}

}  // namespace capgate::seal
