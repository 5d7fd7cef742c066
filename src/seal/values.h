// The values of the sealed variables, and their renewal.
//
//   Values values(loop, std::move(handed), std::move(renewal_channel));
//   values.renew_if_due("TOKEN");                        // asks the renewer, does not wait
//   values.find("TOKEN")  -> null: it has expired and could not be renewed yet
//
// A value is asked for anew a minute before it expires, or at half of its time if that is later,
// and is used until then. When it has expired there is none: requests wait for the renewer's
// answer, for a while, and are refused without one.
#pragma once

#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egress/loop.h"
#include "egress/task.h"
#include "secrets/handover.h"

namespace capgate::seal {

class Values {
 public:
  Values(egress::Loop& loop, std::vector<secrets::Handed> handed, sys::Fd renewal);

  // Once the broker runs: hears the renewer.
  void begin();

  [[nodiscard]] const secrets::Secret* find(std::string_view name) const;
  // What requests may have held: the value, if it has expired as well, and the one before it. They
  // stay where they are while their contents change; those that never were are empty.
  [[nodiscard]] std::vector<const secrets::Secret*> sent(std::string_view name) const;
  void renew_if_due(std::string_view name);
  // Waiting may help: it has expired, and the renewer was asked.
  [[nodiscard]] bool is_awaited(std::string_view name) const;

  // Until any answer of the renewer, or end_waits() for `whose`.
  class [[nodiscard]] Change {
   public:
    Change(Values& values, const void* whose) : values_(values), whose_(whose) {}
    static bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      values_.waiting_.push_back({whose_, coroutine});
    }
    static void await_resume() {}

   private:
    Values& values_;
    const void* whose_;
  };
  Change change(const void* whose) { return {*this, whose}; }
  void end_waits(const void* whose);

 private:
  struct Value {
    secrets::Handed handed;
    secrets::Secret former;
    bool is_asked = false;
    std::int64_t not_before = 0;  // Unix seconds: it is not asked again at once
  };
  struct Waiting {
    const void* whose;
    std::coroutine_handle<> coroutine;
  };

  [[nodiscard]] Value* value_of(std::string_view name);
  [[nodiscard]] const Value* value_of(std::string_view name) const;
  egress::Task hear();
  void take_answer(std::span<const char> message);
  void answer_all();

  egress::Loop& loop_;
  std::vector<Value> values_;
  sys::Fd channel_fd_;
  egress::SocketPtr channel_;
  std::vector<Waiting> waiting_;
};

}  // namespace capgate::seal
