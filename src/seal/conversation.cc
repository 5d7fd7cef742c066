#include "seal/conversation.h"

#include <algorithm>

#include "base/format.h"
#include "core/host.h"
#include "egress/overrides.h"

namespace capgate::seal {
namespace {

// The audit log has the path as the program sent it; what follows a question mark is not its
// business.
std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find_first_of("?#"));
}

}  // namespace

Conversation::Conversation(Parts parts, egress::Tunnel& tunnel, egress::Flow flow)
    : parts_(parts),
      tunnel_(tunnel),
      flow_(std::move(flow)),
      keys_(parts_.keyrings.at(flow_.host, flow_.port)) {}

void Conversation::add_origin(SslPtr ssl) {
  origin_ = std::make_unique<TlsStream>(parts_.loop, tunnel_.origin(), std::move(ssl));
  origin_made_ = parts_.loop.now();
}

void Conversation::add_kept(KeptTlsPtr kept, ReusedOrigin::Another another) {
  origin_ = std::move(kept->stream);
  origin_made_ = kept->made;
  protocol_ = origin_->protocol();
  reused_ = std::make_unique<ReusedOrigin>(
      *origin_, [this] { return is_silent(tunnel_.origin(), *origin_); }, std::move(another));
}

void Conversation::replace_origin(egress::SocketPtr socket, std::unique_ptr<TlsStream> stream) {
  origin_ = std::move(stream);
  origin_made_ = parts_.loop.now();
  tunnel_.replace_origin(std::move(socket));
}

KeptTlsPtr Conversation::take_origin(KeptTls::Key key, egress::Address address) {
  auto out = std::make_unique<KeptTls>(tunnel_.take_origin(), address);
  out->key = std::move(key);
  out->stream = std::move(origin_);
  out->made = origin_made_;
  return out;
}

Stream& Conversation::origin_stream() {
  if (reused_) return *reused_;
  return *origin_;
}

void Conversation::add_client(SslPtr ssl, std::string hello_bytes) {
  client_ = std::make_unique<TlsStream>(parts_.loop, tunnel_.client(), std::move(ssl),
                                        std::move(hello_bytes));
}

void Conversation::leave() {
  is_left_ = true;
  if (origin_) origin_->leave();
  if (client_) client_->leave();
  // Either may end what is left of this: from here on it is an address only.
  Values& values = parts_.values;
  if (reused_) reused_->leave();
  values.end_waits(this);
}

// What has expired is worth waiting for. False: the connection has ended meanwhile.
Async<bool> Conversation::renew_for_all() {
  for (const egress::Seal& seal : parts_.policy.seals) {
    if (!goes_to(seal, flow_.host, flow_.port)) continue;
    parts_.values.renew_if_due(seal.env.name);
    while (!is_left_ && parts_.values.is_awaited(seal.env.name)) {
      co_await parts_.values.change(this);
    }
  }
  co_return !is_left_;
}

// Each allowed request is a line of the audit log and work for the origin: a server in a loop must
// not fill the disk. False: the connection has ended meanwhile.
Async<bool> Conversation::wait_for_turn() {
  Time next;
  while (!is_left_ && !parts_.requests.take(parts_.loop.now(), next)) {
    parts_.journal.tell_limit("request-rate",
                              "too many requests a second; see --net-limit requests=");
    if (co_await parts_.loop.sleep_until(next) == egress::Woken::cancelled) co_return false;
  }
  co_return !is_left_;
}

egress::Flow Conversation::flow_of(const Request& request) const {
  egress::Flow flow = flow_;
  flow.method = request.method;
  flow.path = path_of(request.target);
  const auto field = std::ranges::find_if(
      request.fields, [](const Field& each) { return egress::is_override_field(each.name); });
  flow.override_field = field == request.fields.end() ? "" : field->name;
  flow.said.reset();
  flow.said_port.reset();
  const auto said = core::parse_endpoint(request.authority);
  flow.said_is_invalid = !said;
  if (said) {
    flow.said = said->host;
    flow.said_port = said->port;
  }
  return flow;
}

Async<std::expected<Admission, Refused>> Conversation::admit(Request& request) {
  const Request as_sent{.method = request.method, .target = request.target};
  const egress::Flow flow = flow_of(request);
  const egress::Verdict verdict = decide(parts_.policy, flow);
  if (!verdict.is_allowed()) {
    const std::string text = explain(verdict, flow);
    const std::string better = remedy(verdict, flow);
    (void)parts_.journal.request(tunnel_.record(), {.method = as_sent.method,
                                                    .path = path_of(as_sent.target),
                                                    .reason = reason_name(verdict.reason),
                                                    .text = text,
                                                    .remedy = better,
                                                    .rule = verdict.rule});
    std::string body = format("capgate: {}\n", text);
    if (!better.empty()) body += format("to allow it: {}\n", better);
    co_return std::unexpected(Refused{.text = std::move(body)});
  }
  if (!co_await wait_for_turn() || !co_await renew_for_all()) {
    co_return std::unexpected(Refused{});
  }
  if (!parts_.journal.is_written()) {
    const std::string unwritable =
        format("the audit log cannot be written: {}", parts_.journal.problem());
    Refused refused = refuse(as_sent, "audit", unwritable);
    refused.status = 503;
    co_return std::unexpected(std::move(refused));
  }
  keys_ = parts_.keyrings.at(flow_.host, flow_.port);
  auto swapped = keys_.swap(request);
  if (!swapped) co_return std::unexpected(refuse(as_sent, swapped.error(), verdict.rule));
  co_return Admission{.rule = verdict.rule, .secrets = *std::move(swapped)};
}

Refused Conversation::refuse(const Request& as_sent, const Misuse& misuse,
                             const egress::Rule* rule) {
  if (!is_left_) {
    (void)parts_.journal.request(tunnel_.record(), {.method = as_sent.method,
                                                    .path = path_of(as_sent.target),
                                                    .reason = misuse.reason,
                                                    .text = misuse.text,
                                                    .rule = rule});
  }
  return {.status = misuse.reason == "not-renewed" ? 503 : 403,
          .text = format("capgate: {}\n", misuse.text)};
}

Refused Conversation::refuse(const Request& as_sent, std::string_view reason,
                             std::string_view text) {
  return refuse(as_sent, {.reason = reason, .name = {}, .text = std::string(text)}, nullptr);
}

bool Conversation::record(const Request& as_sent, const Admission& admission, int status) {
  if (is_left_) return false;
  std::string names;
  for (const std::string& name : admission.secrets) names += names.empty() ? name : "," + name;
  return parts_.journal.request(tunnel_.record(), {.method = as_sent.method,
                                                   .path = path_of(as_sent.target),
                                                   .status = status,
                                                   .secrets = names,
                                                   .rule = admission.rule});
}

void Conversation::tell_scrubbed(std::size_t count) {
  if (is_left_) return;
  parts_.journal.tell_limit(
      "scrubbed", format("{} sent the value of a secret back; it was overwritten {}",
                         tunnel_.record().host, count == 1 ? "once" : format("{} times", count)));
}

void Conversation::count(egress::LaneName lane, std::size_t bytes) {
  if (!is_left_) tunnel_.add_bytes(lane, bytes);
}

}  // namespace capgate::seal
