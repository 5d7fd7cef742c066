#include "clients/entry_manifest.h"

namespace capgate::clients {
namespace {

using text::Document;
using text::Kind;
using text::Node;

class Maker {
 public:
  Maker(const ServerConfig& server, const text::SharedText& text) : server_(server), out_(text) {}

  Document make() {
    const std::uint32_t root = open(Kind::object);
    add("name", server_.where);
    add(server_.name, server_.where);
    add("version", server_.where);
    add("0", server_.where);
    add("tools", server_.where);
    close(open(Kind::array), 0);
    add("serverCapabilities", server_.where);
    const std::uint32_t list = open(Kind::array);
    for (std::size_t i = 0; i < server_.capabilities.size(); ++i) {
      add(server_.capabilities[i], server_.capability_spans[i]);
    }
    close(list, server_.capabilities.size());
    close(root, 4);
    return std::move(out_);
  }

 private:
  std::uint32_t open(Kind kind) { return out_.add({.kind = kind, .span = server_.where}); }

  void close(std::uint32_t node, std::size_t count) {
    out_.close(node, static_cast<std::uint32_t>(count), server_.where.end);
  }

  // A string: the source itself where that says the same, so that places inside it are exact.
  void add(std::string_view text, Span where) {
    const std::string_view source = out_.source();
    Node node{.kind = Kind::string, .span = where, .text = where};
    node.verbatim = source.substr(where.begin, where.end - where.begin) == text;
    if (!node.verbatim) node.text = out_.add_decoded(text);
    const std::uint32_t index = out_.add(node);
    out_.close(index, 0, where.end);
  }

  const ServerConfig& server_;
  Document out_;
};

}  // namespace

Document entry_manifest(const ServerConfig& server, const text::SharedText& text) {
  return Maker(server, text).make();
}

}  // namespace capgate::clients
