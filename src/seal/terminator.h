// Terminates TLS for endpoints that carry a sealed secret: the real egress::Terminator.
//
//   SealTerminator terminator({loop, policy, journal}, std::move(tls), std::move(values));
//   broker.use(terminator);
//
// What one connection goes through is serve() in terminator.cc, step by step.
#pragma once

#include <map>
#include <memory>

#include "egress/journal.h"
#include "egress/policy.h"
#include "egress/rate.h"
#include "egress/terminator.h"
#include "seal/keyrings.h"
#include "seal/origin_pool.h"
#include "seal/relay.h"
#include "seal/tls.h"
#include "seal/values.h"

namespace capgate::seal {

class Conversation;

class SealTerminator final : public egress::Terminator {
 public:
  struct Parts {
    egress::Loop& loop;
    const egress::Policy& policy;
    egress::Journal& journal;
  };
  SealTerminator(Parts parts, Authority authority, Roots roots, Values values);
  ~SealTerminator() override;

  void begin() { values_.begin(); }
  [[nodiscard]] bool has_kept(const egress::Flow& flow) const override;
  [[nodiscard]] egress::KeptOriginPtr take_kept(const egress::Flow& flow,
                                                const egress::ClientHello& hello) override;
  egress::Async<Served> serve(egress::Tunnel& tunnel, Arrival arrival) override;
  void ended(egress::Tunnel& tunnel) override;

 private:
  egress::Async<Served> shake_hands(Conversation& conversation, const Arrival& arrival);
  egress::Async<Served> greet_origin(Conversation& conversation, const Arrival& arrival);
  egress::Async<Served> greet_client(Conversation& conversation, const Arrival& arrival);
  egress::Async<Served> greet_both(Conversation& conversation, const Arrival& arrival);

  egress::Async<Stream*> connect_again(Conversation& conversation, const Arrival& arrival);
  egress::Async<RelayEnd> relay(Conversation& conversation);

  Parts parts_;
  BufferBudget buffers_;
  egress::Rate requests_;
  Tls tls_;
  OriginPool pool_;
  Values values_;
  Keyrings keyrings_;
  std::map<const egress::Tunnel*, Conversation*> live_;
};

}  // namespace capgate::seal
